"""What queries ask of the pieces of a split, one block of attributes at a time: vectors and forms."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact import GridTree, MergedMatrix
from matrixdp.exact.linear import along
from matrixdp.plan.part import Block, Part
from matrixdp.plan.quadratic_forms import (
    grid_quadratic,
    product_quadratic,
    without_sums,
)
from matrixdp.queries.groups import ProductGroup
from matrixdp.queries.predicates import Matrix, Predicates, Total
from matrixdp.queries.structured import Totals

__all__ = ["Contractions"]

Array = NDArray[np.float64]

#: Attributes of more values are analysed by the structure of their matrix, where it has one.
_DENSE_VALUES = 512


class Contractions:
    """Queries contracted with weights along some attributes, their weighted means removed along others.

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
        self._known: dict[Hashable, Array] = {}
        self._relative: dict[Hashable, float] = {}

    def sizes(self, attributes: Sequence[str]) -> list[int]:
        """Return the sizes of attributes."""
        return [self.domain[name].size for name in attributes]

    def contracted(self, name: str, predicates: Predicates) -> Array:
        """Return q.w for every query of a set on one attribute."""
        weights = self.weights[name]
        key = ("contracted", self.alike[name], predicates.key(len(weights)))
        if key not in self._known:
            self._known[key] = predicates.apply(weights[:, None])[:, 0]
        return self._known[key]

    def largest_contraction(self, name: str, predicates: Predicates) -> float:
        """Return the largest squared norm of (q.w) 1' of a set on one attribute, relative to that of q."""
        size = self.domain[name].size
        key = ("contracted", self.alike[name], predicates.key(size))
        if key not in self._relative:
            ratios = self.contracted(name, predicates) / _lengths(predicates, size)[:, 0]
            self._relative[key] = size * float((ratios**2).max())
        return self._relative[key]

    def residual_norms(self, name: str, predicates: Predicates) -> Array:
        """Return the squared norms of q - (q.w) 1' relative to that of q."""
        size = self.domain[name].size
        sums = predicates.apply(np.ones((size, 1)))[:, 0]
        means = self.contracted(name, predicates)
        squares = predicates.squares(size)
        norms = squares - 2 * means * sums + means**2 * size
        return np.asarray(np.maximum(norms, 0.0) / np.where(squares > 0.0, squares, 1.0))

    def axis_variances(self, block: Block, predicates: Predicates) -> Array:
        """Return the variance of the pieces of a set on one attribute, at unit noise."""
        [name] = block.attributes
        size = block.matrix.columns
        key = (block.matrix.digest(), self.alike[name], predicates.key(size))
        if key in self._known:
            return self._known[key]
        structure = block.matrix.symmetric_covariance
        if isinstance(block.matrix, MergedMatrix):
            [seen] = self._merged(block, block.matrix, (predicates,))
            values = seen.quadratic(block.matrix.matrix.covariance())
        elif structure is not None and size > _DENSE_VALUES:
            scale, shift = structure
            sums = predicates.apply(np.ones((size, 1)))[:, 0]
            means = self.contracted(name, predicates)
            values = scale * (predicates.squares(size) - 2 * means * sums + means**2 * size)
            values = values + shift * (sums - means * size) ** 2
        else:
            values = predicates.quadratic(self._form(block))
        self._known[key] = np.maximum(values, 0.0)
        return self._known[key]

    def _form(self, block: Block) -> Array:
        """Return the covariance of a block's estimate as pieces see it, shape (cells, cells)."""
        form = block.matrix.covariance()
        sizes = self.sizes(block.attributes)
        tensor = form.reshape(*sizes, *sizes)
        for axis, name in enumerate(block.attributes):
            tensor = without_sums(tensor, axis, self.weights[name])
            tensor = without_sums(tensor, axis + len(sizes), self.weights[name])
        return tensor.reshape(form.shape)

    def _merged(
        self, block: Block, matrix: MergedMatrix, predicates: Sequence[Predicates]
    ) -> tuple[Matrix, ...]:
        """Return what pieces of sets ask of the groups of values: their means over each group."""
        return tuple(
            Matrix(one.apply(without_sums(spread, 0, self.weights[name])))
            for name, one, spread in zip(block.attributes, predicates, matrix.spreads, strict=True)
        )

    def block_variances(self, block: Block, predicates: Sequence[Predicates]) -> Array:
        """Return the variances of the product of sets on a block, at unit noise."""
        if len(predicates) == 1:
            return self.axis_variances(block, predicates[0])
        sizes = self.sizes(block.attributes)
        keys = tuple(p.key(n) for p, n in zip(predicates, sizes, strict=True))
        key = (block.matrix.digest(), tuple(self.alike[name] for name in block.attributes), keys)
        if key not in self._known:
            plain = not any(self.weights[name].any() for name in block.attributes)
            if isinstance(block.matrix, GridTree) and plain:
                found = grid_quadratic(block.matrix.structure, predicates)
            elif isinstance(block.matrix, MergedMatrix):
                seen = self._merged(block, block.matrix, predicates)
                form = block.matrix.matrix.covariance()
                found = product_quadratic(form, seen, block.matrix.merged_sizes)
            else:
                found = product_quadratic(self._form(block), predicates, sizes)
            self._known[key] = np.maximum(found, 0.0)
        return self._known[key]

    def part_covariances(
        self, part: Part, left: Mapping[str, Predicates], right: Mapping[str, Predicates]
    ) -> Array:
        """Return the covariances of the pieces of two products on a part at unit noise, query by query.

        Shape: the numbers of predicates of the part's attributes, which are the same in both products.
        """
        if part.multipliers is not None:
            values = 1.0 / np.asarray(part.multipliers, dtype=float) ** 2
            for axis, block in enumerate(part.blocks):
                [name] = block.attributes
                inverse = without_sums(block.matrix.solve(np.eye(block.matrix.rows)), 0, self.weights[name])
                first = left[name].apply(inverse)
                values = along(values, axis, first * right[name].apply(inverse))
        else:
            values = np.ones(())
            for block in part.blocks:
                values = np.multiply.outer(values, self._block_covariances(block, left, right))
        return np.transpose(values, [part.listed.index(name) for name in part.attributes])

    def _block_covariances(
        self, block: Block, left: Mapping[str, Predicates], right: Mapping[str, Predicates]
    ) -> Array:
        names, sizes = block.attributes, tuple(self.sizes(block.attributes))
        own, other = (tuple(sets[name] for name in names) for sets in (left, right))
        first, second = (ProductGroup("", names, sets, sizes) for sets in (own, other))
        if any(
            self.weights[name].any() and isinstance(predicates, Total | Totals)
            for sets in (own, other)
            for name, predicates in zip(names, sets, strict=True)
        ):
            return np.zeros(first.counts)  # nothing is left of a total
        if first.key() == second.key():
            return self.block_variances(block, own)
        for group, totals in ((first, other), (second, own)):
            if all(isinstance(predicates, Total | Totals) for predicates in totals):
                image = self._image(block, np.ones((block.matrix.columns, 1)))
                return group.answers(image.reshape(sizes))
        image = self._image(block, second.rows().T)
        return np.asarray(np.einsum("ki,ik->k", first.rows(), image)).reshape(first.counts)

    def _image(self, block: Block, vectors: Array) -> Array:
        """Return the covariance of a block's estimate as pieces see it times vectors, shape (cells, k)."""
        sizes = self.sizes(block.attributes)
        weights = [self.weights[name] for name in block.attributes]
        tensor = vectors.reshape(*sizes, -1)
        for axis, own in enumerate(weights):
            tensor = tensor - np.expand_dims(np.tensordot(own, tensor, axes=(0, axis)), axis)
        flat = tensor.reshape(vectors.shape)
        tensor = block.matrix.covariance_times(flat).reshape(tensor.shape)
        for axis, own in enumerate(weights):
            tensor = without_sums(tensor, axis, own)
        return tensor.reshape(vectors.shape)

    def outside(self, block: Block, sets: Mapping[str, Predicates]) -> float:
        """Return the largest squared norm, relative to its own, of a query beyond what a block measures."""
        merged = block.matrix if isinstance(block.matrix, MergedMatrix) else None
        outside = block.matrix.unsupported if merged is None else merged.matrix.unsupported
        if outside is None and merged is None:
            return 0.0
        sizes = self.sizes(block.attributes)
        asked = [sets.get(name, Total()) for name in block.attributes]
        keys = [predicates.key(size) for predicates, size in zip(asked, sizes, strict=True)]
        key = (block.matrix.digest(), block.attributes, *keys)
        if key not in self._relative:
            lengths = [_lengths(p, size) for p, size in zip(asked, sizes, strict=True)]
            found = 0.0
            if merged is not None:
                found = self._told_apart(block, merged, asked, lengths)
            if merged is not None and outside is not None:
                seen = self._merged(block, merged, asked)
                found += _beyond(outside, seen, merged.merged_sizes, lengths)
            elif outside is not None:
                # outside (q P)' = (outside P') q'
                tensor = outside.reshape(-1, *sizes)
                for axis, name in enumerate(block.attributes, 1):
                    tensor = without_sums(tensor, axis, self.weights[name])
                found = _beyond(tensor, asked, sizes, lengths)
            self._relative[key] = found
        return self._relative[key]

    def _told_apart(
        self, block: Block, matrix: MergedMatrix, predicates: Sequence[Predicates], lengths: Sequence[Array]
    ) -> float:
        """Return a bound on the squared norm of what pieces of a product tell apart within groups of cells.

        It is relative to the queries' own lengths.
        """
        whole, inside = [], []
        for name, one, length, group, spread in zip(
            block.attributes, predicates, lengths, matrix.groups, matrix.spreads, strict=True
        ):
            size = len(group)
            # P' q less its mean over each group, a set of queries at a time along its cells
            pieces = without_sums(np.eye(size), 0, self.weights[name])
            within = pieces - (pieces @ spread)[:, group]
            whole.append(float(((one.apply(pieces) / length) ** 2).sum(axis=1).max()))
            inside.append(float(((one.apply(within) / length) ** 2).sum(axis=1).max()))
        return sum(
            own * math.prod(whole[:axis]) * math.prod(whole[axis + 1 :]) for axis, own in enumerate(inside)
        )

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


def _lengths(predicates: Predicates, size: int) -> Array:
    """Return the lengths of queries, as a column; 1 for those that ask nothing."""
    squares = predicates.squares(size)
    return np.asarray(np.sqrt(np.where(squares > 0.0, squares, 1.0))[:, None])


def _beyond(
    outside: Array, predicates: Sequence[Predicates], sizes: Sequence[int], lengths: Sequence[Array]
) -> float:
    """Return the largest squared norm, relative to their own, of queries along orthonormal rows of cells."""
    tensor = outside.reshape(-1, *sizes)
    for axis, (one, length) in enumerate(zip(predicates, lengths, strict=True), 1):
        tensor = along(tensor, axis, one.apply) / length.reshape(
            [-1 if i == axis else 1 for i in range(tensor.ndim)]
        )
    return float((tensor**2).sum(axis=0).max())
