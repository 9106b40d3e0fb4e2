"""The operator of one sector, applied to vectors factor by factor: its matrix is never formed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.bounds.exact import Bases
from matrixdp.selection.bounds.triples import Operator

__all__ = ["ProbedSector"]

Array = NDArray[np.float64]
#: Vectors by subset: shape (vectors, r_1, r_2, ...), one axis for each attribute that the subset keeps.
Vectors = list[Array]
#: For each attribute of a union, whether the left and the right subset keep it, and its factor.
_Factors = list[tuple[int, bool, bool, Array]]
#: The places of two subsets, and a Kronecker product between them with its coefficient.
_Block = tuple[int, int, float, _Factors]


class ProbedSector:
    """What is asked and measured in a sector, between coordinates in which what is measured is the identity.

    With Y = R R' and A as in section 9 of docs/mathematics.md, ``asked`` applies R'AR and ``metric`` R'R.

    Parameters
    ----------
    operator : Operator
        Without attributes that are tied together in this sector.
    spread : tuple of int
        The symmetric attributes of the sector.
    p : sequence of ndarray
        Distributions by type.
    scales : ndarray
        Of the covariances, by order.
    """

    def __init__(
        self, operator: Operator, spread: tuple[int, ...], p: Sequence[Array], scales: Array
    ) -> None:
        lattice = operator.lattice
        self._operator, self._bases = operator, Bases(operator, list(p))
        self._factors: dict[tuple[int, ...], Array] = {}
        self._halves: dict[tuple[int, int], Array] = {}
        cells = [float(len(operator.axes.weights[lattice.types[i]])) for i in spread]
        #: How often every singular value of the sector occurs.
        self.multiplicity = math.prod(n - 1.0 for n in cells)
        places = [place for place in lattice.sectors[spread].tolist() if operator.levels[place] > 0]
        sizes = {place: scales[lattice.orders[place]] / math.sqrt(operator.levels[place]) for place in places}
        self._places = [place for place in places if sizes[place] > 0]
        # a symmetric attribute is a I there, and is measured with the covariance (n - 1) / n
        self._sizes = {place: math.sqrt(sizes[place] * self.multiplicity) for place in self._places}
        self._even = 1.0 / math.prod(cells)
        self._members = {place: [int(i) for i in lattice.members[place] if i >= 0] for place in self._places}
        self._theta = operator.thetas(p)
        self._of_asked: list[_Block] = []
        self._of_metric: list[_Block] = []
        for row, first in enumerate(self._places):
            unions = lattice.unions(first)
            for column, second in enumerate(self._places):
                together = int(unions[second])
                if together >= 0:
                    for scale, factors in self._asked(first, second, together):
                        self._of_asked.append((row, column, scale, factors))
                    self._of_metric.append((row, column, *self._metric(first, second, together)))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each subset's coordinates."""
        found, lattice = self._operator.found, self._operator.lattice
        return [
            tuple(
                self._half(int(lattice.types[i]), int(found[place, i])).shape[1] for i in self._members[place]
            )
            for place in self._places
        ]

    def _half(self, type_: int, number: int) -> Array:
        """Return L with L L' the covariance in the coordinates of the complement of s = sqrt(p)."""
        if (type_, number) not in self._halves:
            # Z 1 = 0, so that Z = S Q N Q' S has N = (S Q)^+ Z ((S Q)^+)'
            away = np.linalg.pinv(self._bases[type_][0])
            values, vectors = np.linalg.eigh(away @ self._operator.axes.strategy(number).covariance @ away.T)
            kept = values > 0
            self._halves[type_, number] = vectors[:, kept] * np.sqrt(values[kept])
        return self._halves[type_, number]

    def _kept(self, first: int, second: int, together: int) -> list[tuple[int, bool, bool]]:
        own = [int(i) for i in self._operator.lattice.members[together] if i >= 0]
        return [(i, i in self._members[first], i in self._members[second]) for i in own]

    def _asked(self, first: int, second: int, together: int) -> list[tuple[float, _Factors]]:
        operator, lattice = self._operator, self._operator.lattice
        blocks: list[tuple[float, _Factors]] = []
        for m, coefficient in enumerate(operator.coefficients[together]):
            if coefficient == 0.0:
                continue
            factors: _Factors = []
            scale = float(coefficient) * self._even * self._sizes[first] * self._sizes[second]
            for i, left, right in self._kept(first, second, together):
                type_, slot = int(lattice.types[i]), int(operator.slots[together, m, i])
                key = (
                    type_,
                    int(operator.found[first, i]) if left else -1,
                    int(operator.found[second, i]) if right else -1,
                    slot,
                )
                if key not in self._factors:
                    sides = [self._side(type_, number) for number in key[1:3]]
                    self._factors[key] = sides[0].T @ operator.axes.gram(slot) @ sides[1]
                factors.append((i, left, right, self._factors[key]))
            blocks.append((scale, factors))
        return blocks

    def _side(self, type_: int, number: int) -> Array:
        side = self._bases.side(type_, number >= 0)
        return side @ self._half(type_, number) if number >= 0 else side

    def _metric(self, first: int, second: int, together: int) -> tuple[float, _Factors]:
        operator, lattice = self._operator, self._operator.lattice
        scale = float(self._theta[together]) * self._sizes[first] * self._sizes[second]
        factors = []
        for i, left, right in self._kept(first, second, together):
            type_ = int(lattice.types[i])
            apart = self._bases[type_][1]
            rows = self._half(type_, int(operator.found[first, i])).T if left else apart.T
            columns = self._half(type_, int(operator.found[second, i])) if right else apart
            factors.append((i, left, right, rows @ columns))
        return scale, factors

    def asked(self, vectors: Vectors) -> Vectors:
        """Return R'AR times each of the vectors."""
        return self._applied(vectors, self._of_asked)

    def metric(self, vectors: Vectors) -> Vectors:
        """Return R'R times each of the vectors."""
        return self._applied(vectors, self._of_metric)

    def _applied(self, vectors: Vectors, blocks: Sequence[_Block]) -> Vectors:
        found = [np.zeros_like(one) for one in vectors]
        for row, column, scale, factors in blocks:
            found[row] += scale * self._block(vectors[column], column, row, factors)
        return found

    def _block(self, tensor: Array, column: int, row: int, factors: _Factors) -> Array:
        """Return one Kronecker product of matrices, columns and rows, applied to vectors of one subset."""
        labels = [-1, *self._members[self._places[column]]]
        scale = 1.0
        # what shrinks the tensor first, what makes it grow last
        for i, left, right, factor in sorted(factors, key=lambda one: (one[1], not one[2])):
            if right:
                axis = labels.index(i)
                tensor = np.tensordot(tensor, factor, axes=(axis, 1))
                del labels[axis]
                if left:
                    labels.append(i)
                else:
                    tensor = tensor[..., 0]
            elif left:
                tensor = np.multiply.outer(tensor, factor[:, 0])
                labels.append(i)
            else:
                scale *= float(factor[0, 0])
        wanted = [-1, *self._members[self._places[row]]]
        return scale * tensor.transpose([labels.index(i) for i in wanted])
