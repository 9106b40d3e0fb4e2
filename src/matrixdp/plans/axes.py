"""What queries ask of single attributes: contracted with weights there, or their weighted means removed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from matrixdp.domain import Domain
from matrixdp.exact.linear import Array, along, kronecker, outer
from matrixdp.exact.matrices import Entries
from matrixdp.plans.part import Block, Part
from matrixdp.queries.predicates import Predicates, Total
from matrixdp.queries.structured import Totals


def without_sums(array: Array, axis: int, weights: Array) -> Array:
    """Return the array with P = I - w 1' applied along one axis; w is all zeros where nothing changes."""
    if not weights.any():
        return array
    shape = [-1 if i == axis else 1 for i in range(array.ndim)]
    return np.asarray(array - array.sum(axis=axis, keepdims=True) * weights.reshape(shape))


def shortened(vector: Array) -> Array:
    """Return the first entry alone of a vector whose entries are all the same; else the array as it is."""
    return vector[:1] if vector.ndim == 1 and vector.size and (vector == vector[0]).all() else vector


@dataclass(frozen=True, eq=False)
class Piece:
    """Queries q on one attribute, their weighted means removed: q - (q.w) 1'; see `exact.AxisQueries`.

    Attributes
    ----------
    predicates : Predicates
    weights : ndarray
        w, with sum 1 or all zeros.
    """

    predicates: Predicates
    weights: Array

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self.weights)

    @cached_property
    def means(self) -> Array:
        """q.w of every query."""
        return self.predicates.apply(self.weights[:, None])[:, 0]

    @cached_property
    def lengths(self) -> Array:
        """The squared lengths of the queries themselves, 1 for those that ask nothing."""
        squares = self.predicates.squares(self.size)
        return np.where(squares > 0.0, squares, 1.0)

    @property
    def vanishes(self) -> bool:
        """Whether nothing is left: the queries are totals."""
        return isinstance(self.predicates, Total | Totals) and bool(self.weights.any())

    @cached_property
    def contracted(self) -> float:
        """The largest squared length of (q.w) 1', relative to that of q."""
        return self.size * float((self.means**2 / self.lengths).max())

    @cached_property
    def kept(self) -> float:
        """The largest squared length of the piece, relative to that of q."""
        return float((self.squares() / self.lengths).max())

    def entries(self) -> Entries | None:
        """Return all entries other than 0 where these are few; means that are removed leave many."""
        return None if self.weights.any() else self.predicates.entries(self.size)

    def apply(self, array: Array) -> Array:
        """Return the pieces times an array of shape (size, k)."""
        return self.predicates.apply(without_sums(array, 0, self.weights))

    def squares(self) -> Array:
        """Return the squared length of each piece."""
        return self.weighted_squares(np.ones(self.size))

    def weighted_squares(self, weights: Array) -> Array:
        """Return the sum of squared entries of each piece, those of each value times a weight."""
        squares = self.predicates.weighted_squares(weights)
        if not self.weights.any():
            return squares
        sums = self.predicates.apply(weights[:, None])[:, 0]
        return np.maximum(squares - 2.0 * self.means * sums + self.means**2 * float(weights.sum()), 0.0)

    def quadratic(self, form: Array) -> Array:
        """Return p form p' for each piece p."""
        return self.predicates.quadratic(without_sums(without_sums(form, 0, self.weights), 1, self.weights))


class Axes:
    """Pieces of queries on the attributes of a domain, and how blocks of parts see them.

    Parameters
    ----------
    domain : Domain
    weights : mapping of str to ndarray
        For each attribute a vector with sum 1, or zeros: then nothing is contracted nor removed.
    """

    def __init__(self, domain: Domain, weights: Mapping[str, Array]) -> None:
        self.domain = domain
        self.weights = weights
        first: dict[bytes, str] = {}
        #: For each attribute the first with the same weights.
        self.alike = {name: first.setdefault(vector.tobytes(), name) for name, vector in weights.items()}
        self._pieces: dict[Hashable, Piece] = {}
        self._variances: dict[Hashable, Array] = {}
        self._lost: dict[Hashable, float] = {}

    def sizes(self, attributes: Sequence[str]) -> list[int]:
        """Return the sizes of attributes."""
        return [self.domain[name].size for name in attributes]

    def piece(self, name: str, predicates: Predicates) -> Piece:
        """Return the piece of a set of queries on an attribute, the same object for equal ones."""
        key = self.alike[name], predicates.key(self.domain[name].size)
        if key not in self._pieces:
            self._pieces[key] = Piece(predicates, self.weights[name])
        return self._pieces[key]

    def _of(self, block: Block, sets: Mapping[str, Predicates]) -> tuple[Hashable, list[Piece]]:
        """Return the pieces that a block sees, with a value equal for equal ones seen by equal matrices."""
        own = [self.piece(name, sets.get(name, Total())) for name in block.attributes]
        return (block.matrix.digest(), *map(id, own)), own

    def variances(self, block: Block, sets: Mapping[str, Predicates]) -> Array:
        """Return the variances of the products of pieces on a block at unit noise, shape (counts)."""
        key, own = self._of(block, sets)
        if key not in self._variances:
            self._variances[key] = np.maximum(block.matrix.variances(own), 0.0)
        return self._variances[key]

    def lost(self, block: Block, sets: Mapping[str, Predicates]) -> float:
        """Return the largest squared length, relative to its own, of a query beyond what a block measures."""
        key, own = self._of(block, sets)
        if key not in self._lost:
            self._lost[key] = block.matrix.lost_share(own)
        return self._lost[key]

    def covariances(
        self, part: Part, left: Mapping[str, Predicates], right: Mapping[str, Predicates]
    ) -> Array:
        """Return the covariances of the pieces of two products on a part at unit noise, query by query.

        Shape: the numbers of predicates of the part's attributes, which are the same in both products; or 1,
        where they do not differ along one.
        """
        if part.multipliers is None:
            values = outer(shortened(self._covariances(block, left, right)) for block in part.blocks)
        else:
            values = 1.0 / np.asarray(part.multipliers, dtype=float) ** 2
            for axis, block in enumerate(part.blocks):
                inverse = block.matrix.solve(np.eye(block.matrix.rows))
                [first], [second] = self._of(block, left)[1], self._of(block, right)[1]
                values = along(values, axis, first.apply(inverse) * second.apply(inverse))
        return np.transpose(values, [part.listed.index(name) for name in part.attributes])

    def _covariances(
        self, block: Block, left: Mapping[str, Predicates], right: Mapping[str, Predicates]
    ) -> Array:
        (first, own), (second, other) = self._of(block, left), self._of(block, right)
        if first == second:
            return self.variances(block, left)
        matrix, sizes = block.matrix, self.sizes(block.attributes)
        counts = [one.predicates.count(one.size) for one in own]
        if any(one.vanishes for one in (*own, *other)):
            return np.zeros(counts)
        for pieces, totals in ((own, other), (other, own)):
            if all(isinstance(one.predicates, Total | Totals) for one in totals):
                image = matrix.covariance_times(np.ones((matrix.columns, 1))).reshape(sizes)
                for axis, one in enumerate(pieces):
                    image = along(image, axis, one.apply)
                return image
        if len(own) == 1:
            return matrix.covariances(*own, *other)
        rows = [kronecker(one.apply(np.eye(one.size)) for one in pieces) for pieces in (own, other)]
        found = np.einsum("ki,ik->k", rows[0], matrix.covariance_times(rows[1].T))
        return np.asarray(found).reshape(counts)

    def piece_rows(self, attributes: tuple[str, ...], kept: tuple[str, ...], rows: Array) -> Array:
        """Return explicit queries on ``attributes`` as pieces on the cells of ``kept``."""
        tensor = rows.reshape(len(rows), *self.sizes(attributes))
        for axis in range(len(attributes), 0, -1):
            name = attributes[axis - 1]
            if name in kept and not self.weights[name].any():
                continue
            mean = np.tensordot(tensor, self.weights[name], axes=(axis, 0))
            tensor = tensor - np.expand_dims(mean, axis) if name in kept else mean
        for axis, name in enumerate(kept, 1):
            if name not in attributes:
                tensor = np.repeat(np.expand_dims(tensor, axis), self.domain[name].size, axis=axis)
        return tensor.reshape(len(rows), -1)
