"""Two parts: with the Gram matrices on every attribute diagonal together, so are the normal equations.

On attribute i let V_i' G_ti V_i = diag(a_ti) for both parts t, with G = 11' where a part sums over the
attribute. The normal equations M = k_1 (x) G_1i + k_2 (x) G_2i are then V^-T diag(d) V^-1 with
d = k_1 (x) a_1i + k_2 (x) a_2i, and a query q has the variance |q V / sqrt(d)|^2. Where part 2 sums over an
attribute all but one column of V_i are seen by part 1 alone, so d is needed on the cells of each part's own
marginal only, never on those of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import along_axes
from matrixdp.plan.combination import Combination, Loss, Placed, asked_sets, axis_matrices
from matrixdp.plan.direct import TableAnalysis
from matrixdp.plan.pencils import Pencil
from matrixdp.queries.groups import DenseGroup, Group, ProductGroup

__all__ = ["Pair"]

Array = NDArray[np.float64]

#: Values of an attribute, and cells of a marginal, up to which two parts are combined.
MAX_VALUES, MAX_CELLS = 4_096, 20_000_000


class Pair(Combination):
    """The global least squares of two parts; see `Combination`."""

    def __init__(self, tables: Sequence[TableAnalysis]) -> None:
        super().__init__(tables)
        own = [axis_matrices(part) for part in self.parts]
        names = self.domain.sort({*own[0], *own[1]})
        pencils = {name: Pencil.of(own[0].get(name), own[1].get(name)) for name in names}
        #: By part: the pencils of its attributes, and of those that only the other part has.
        self._axes = [[pencils[name] for name in part.attributes] for part in self.parts]
        self._outside = [[pencils[name] for name in names if name not in of] for of in own]
        #: By part: 1'V along the attributes that only the other part has.
        self._sums = [math.prod(pencil.total for pencil in outside) for outside in self._outside]
        #: By part: where the coordinates that both marginals have lie in its own.
        self._common = [
            tuple(slice(None) if name in own[1 - place] else 0 for name in part.attributes)
            for place, part in enumerate(self.parts)
        ]
        scales = [math.prod(pencil.scales[t] for pencil in pencils.values()) for t in (0, 1)]
        #: By marginal, then by part: what the part sees of its coordinates, at noise 1.
        self._seen = [[scales[t] * self._information(place, t) for t in (0, 1)] for place in (0, 1)]
        precisions = [1.0 / variance for variance in self.noise]
        self._inverses = [self._inverse(place, precisions) for place in (0, 1)]

    @staticmethod
    def fits(tables: Sequence[TableAnalysis]) -> bool:
        """Return whether there are two parts, small enough to be combined."""
        domain, names = tables[0].domain, [table.parts[0].attributes for table in tables]
        return (
            len(tables) == 2
            and all(domain.cells(own) <= MAX_CELLS for own in names)
            and all(domain[name].size <= MAX_VALUES for own in names for name in own)
        )

    def _information(self, place: int, t: int) -> Array:
        found = np.array(math.prod(float(pencil.shares[t][0]) for pencil in self._outside[place]))
        for pencil in self._axes[place]:
            found = np.multiply.outer(found, pencil.shares[t])
        return np.asarray(found)

    def _inverse(self, place: int, precisions: Sequence[float]) -> Array:
        """Return 1 / d on the marginal of a part; 0 where nothing is seen."""
        total = precisions[0] * self._seen[place][0] + precisions[1] * self._seen[place][1]
        return np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)

    def _scores(self, place: int) -> Array:
        """Return what turns the coordinates of a part's own estimate into its right-hand side."""
        # along attributes that the part sums over, what it sees is (1'V)^2 and what it says is 1'V
        return np.asarray(self._seen[place][place] / (self.noise[place] * self._sums[place]))

    def tables(self, estimates: Sequence[Array]) -> list[Array]:
        sides = [
            np.asarray(self._scores(place) * along_axes(estimate, [p.dual for p in self._axes[place]]))
            for place, estimate in enumerate(estimates)
        ]
        both = sides[0][self._common[0]] + sides[1][self._common[1]]
        found = []
        for place, side in enumerate(sides):
            side[self._common[place]] = both
            solved = self._sums[place] * self._inverses[place] * side
            found.append(along_axes(solved, [pencil.basis for pencil in self._axes[place]]))
        return found

    def _coordinates(self, place: int, rows: Array) -> Array:
        """Return queries on a part's marginal in V's coordinates, shape (queries, *ranks)."""
        shape = [len(pencil.basis) for pencil in self._axes[place]]
        bases = [pencil.basis.T for pencil in self._axes[place]]
        return self._sums[place] * along_axes(rows.reshape(len(rows), *shape), bases, 1)

    def _squares(self, place: int, group: ProductGroup) -> list[Array]:
        """Return the squared coordinates of what a group asks of each attribute, summed over those alike.

        Shape (queries, kinds of columns) each.
        """
        sets = zip(asked_sets(self.parts[place], group), self._axes[place], strict=True)
        return [predicates.apply(pencil.basis) ** 2 @ pencil.alike[1] for predicates, pencil in sets]

    def _of_kinds(self, place: int, tensor: Array) -> Array:
        """Return a tensor of coordinates at one of each kind."""
        return tensor[np.ix_(*(pencil.alike[0] for pencil in self._axes[place]))]

    def variances(self, place: int, group: ProductGroup) -> Array:
        scaled = self._sums[place] ** 2 * self._of_kinds(place, self._inverses[place])
        return along_axes(scaled, self._squares(place, group)).ravel()

    def covariances(self, left: tuple[int, Array], right: tuple[int, Array], paired: bool) -> Array:
        own, other = self._coordinates(*left) * self._inverses[left[0]], self._coordinates(*right)
        if left[0] != right[0]:
            own = own[(slice(None), *self._common[left[0]])]
            other = other[(slice(None), *self._common[right[0]])]
        own, other = own.reshape(len(own), -1), other.reshape(len(other), -1)
        return np.asarray(np.einsum("ij,ij->i", own, other) if paired else own @ other.T)

    def local_rows(self, place: int, rows: Array) -> list[Array]:
        solved = [self._coordinates(place, rows) * self._inverses[place]] * 2
        other = 1 - place
        solved[other] = np.zeros((len(rows), *self._inverses[other].shape))
        solved[other][(slice(None), *self._common[other])] = solved[place][
            (slice(None), *self._common[place])
        ]
        found = []
        for t, own in enumerate(solved):
            back = along_axes(own * self._scores(t), [pencil.dual.T for pencil in self._axes[t]], 1)
            found.append(back.reshape(len(rows), -1))
        return found

    def factors(self, place: int, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        squares = dict(zip(self.parts[place].attributes, self._squares(place, group), strict=True))
        return {name: list(squares[name].T) if name in squares else [] for name in group.attributes}

    def loss(self, placed: Iterable[Placed]) -> Loss:
        seen = [[self._of_kinds(place, own) for own in self._seen[place]] for place in (0, 1)]
        energies = [np.zeros(own[0].shape) for own in seen]
        for place, group in placed:
            energies[place] += group.weight * self._energy(place, group)

        def evaluate(precisions: Array) -> tuple[float, Array]:
            total, gradient = 0.0, np.zeros(2)
            for energy, (first, second) in zip(energies, seen, strict=True):
                asked = first + second > 0
                inverse = 1.0 / (precisions[0] * first[asked] + precisions[1] * second[asked])
                own = energy[asked] * inverse
                total += float(own.sum())
                gradient -= [float((own * inverse) @ part[asked]) for part in (first, second)]
            return total, gradient

        return evaluate

    def _energy(self, place: int, group: Group) -> Array:
        """Return the weighted sum of the squared coordinates of a group's queries, by kinds."""
        if isinstance(group, DenseGroup):
            squares = self._coordinates(place, self.alone[place].rows(group)) ** 2
            weights = np.ones(len(squares)) if group.query_weights is None else group.query_weights
            found = np.tensordot(weights, squares, axes=(0, 0))
            return along_axes(found, [pencil.alike[1].T for pencil in self._axes[place]])
        axes = self._squares(place, group)
        if group.query_weights is None:
            axes = [own.sum(axis=0, keepdims=True) for own in axes]
            tensor = np.ones([1] * len(axes))
        else:
            tensor = group.query_weights.reshape([len(own) for own in axes])
        return self._sums[place] ** 2 * along_axes(tensor, [own.T for own in axes])
