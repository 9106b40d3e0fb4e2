"""Queries as sums of pieces that are each estimated from one part, on their own.

Everything is assembled from one vector per predicate set and measured matrix, so a group of a million queries
costs a few outer products.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError, UnsupportedQueryError
from matrixdp.exact import MergedMatrix
from matrixdp.exact.linear import along
from matrixdp.plan.analysis import Analysis, Estimates, GroupError
from matrixdp.plan.contractions import Contractions
from matrixdp.plan.part import Part
from matrixdp.plan.quadratic_forms import one_query, without_sums
from matrixdp.plan.repeats import Representatives, compressible, representatives
from matrixdp.queries.groups import DenseGroup, Group, ProductGroup
from matrixdp.queries.predicates import Total

__all__ = ["MAX_VARIANCES", "SUPPORT_TOLERANCE", "PieceAnalysis", "not_measured"]

Array = NDArray[np.float64]

#: Squared relative norm above which a part of a query outside the measured span counts.
SUPPORT_TOLERANCE = 1e-9
#: Queries per group up to which per-query variances are formed in one piece; cells of one query.
MAX_VARIANCES = 400_000_000
#: Queries times cells of a table, up to which the covariances of many queries are formed.
MAX_COVARIANCES = 20_000_000


class PieceAnalysis(Analysis):
    """Estimates and errors of queries that are sums of pieces, one for each marginal.

    The piece on a marginal is the query contracted with the weights of the attributes that the marginal does
    not have, its weighted mean removed along those that it has.

    Parameters
    ----------
    domain : Domain
    parts : sequence of Part
        What is measured, on different marginals.
    noise : sequence of float
        The noise variance of each part.
    weights : mapping of str to ndarray
        For each attribute a vector with sum 1, or zeros: then nothing is contracted nor removed.
    """

    additive: ClassVar[bool] = True

    def __init__(
        self, domain: Domain, parts: Sequence[Part], noise: Sequence[float], weights: Mapping[str, Array]
    ) -> None:
        super().__init__()
        self.domain = domain
        self.parts = tuple(parts)
        self.noise = tuple(noise)
        self.axes = Contractions(domain, weights)
        self.places = {part.attributes: place for place, part in enumerate(self.parts)}
        self._keys: dict[int, Hashable] = {}
        self._summed: dict[Hashable, bool] = {}

    @abstractmethod
    def pieces(self, attributes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
        """Yield the marginals that a query on ``attributes`` splits over, with the places of their parts."""

    @abstractmethod
    def marginal(self, attributes: tuple[str, ...], residual: Callable[[int], Array]) -> Array:
        """Return the estimate of a marginal from those of the parts, their weighted means removed."""

    def asked(self, group: Group) -> tuple[str, ...]:
        """Return the attributes that a group asks about."""
        return group.attributes

    def estimates(self, values: Sequence[Array]) -> Estimates:
        def residual(place: int) -> Array:
            part = self.parts[place]
            tensor = part.estimate(values[place], self.domain)
            for axis, name in enumerate(part.attributes):
                tensor = without_sums(tensor, axis, self.axes.weights[name])
            return tensor

        return self.from_residuals(residual)

    def from_residuals(self, residual: Callable[[int], Array]) -> Estimates:
        """Return the estimates that follow from those of the parts, their weighted means removed."""
        return _PieceEstimates(self, residual)

    # ---- support -------------------------------------------------------------------------------

    def check_support(self, group: Group) -> None:
        if isinstance(group, ProductGroup):
            self._check_product(group)
        elif not self._products_of(group):
            for _ in self._row_pieces(group):
                pass

    def _products_of(self, group: Group) -> Sequence[tuple[float, ProductGroup]]:
        """Return products that a group is a sum of and that are all supported; none if it has none such."""
        if isinstance(group, ProductGroup):
            self.check_support(group)
            return ((1.0, group),)
        key = self.key(group)
        if key not in self._summed:
            self._summed[key] = bool(group.summands)
            with suppress(UnsupportedQueryError):
                for _, product in group.summands:
                    self._summed[key] = False
                    self._check_product(product)
                    self._summed[key] = True
        return group.summands if self._summed[key] else ()

    def _check_product(self, group: ProductGroup) -> None:
        axes, sets, asked = self.axes, group.sets, self.asked(group)
        for kept, place in self.pieces(asked):
            contracted = [name for name in asked if name not in kept]
            if place is None:
                size = 1.0
                for name in asked:
                    if name in kept:
                        size *= float(axes.residual_norms(name, sets[name]).max())
                    else:
                        size *= axes.largest_contraction(name, sets[name])
                if size > SUPPORT_TOLERANCE:
                    raise UnsupportedQueryError(f"{group.name}: {not_measured(kept)}")
            elif all(axes.largest_contraction(name, sets[name]) > 0.0 for name in contracted):
                # otherwise the pieces on this marginal are zero: an attribute stays whole
                for block in self.parts[place].blocks:
                    if axes.outside(block, sets) > SUPPORT_TOLERANCE:
                        raise UnsupportedQueryError(
                            f"{group.name}: asks more of {', '.join(block.attributes)} than the strategy "
                            "measures there; ask a query that the workload's queries on it determine"
                        )

    def _row_pieces(self, group: DenseGroup) -> Iterator[tuple[int, Array]]:
        """Yield the places of the parts that explicit queries need with their pieces there, all supported."""
        rows = group.rows()
        for kept, place in self.pieces(group.attributes):
            pieces = self.axes.piece_rows(group.attributes, kept, rows)
            if place is None:
                if ((pieces**2).max(axis=1) > SUPPORT_TOLERANCE * (rows**2).max(axis=1)).any():
                    raise UnsupportedQueryError(f"{group.name}: {not_measured(kept)}")
                continue
            if self._unsupported(self.parts[place], pieces, rows):
                raise UnsupportedQueryError(
                    f"{group.name}: asks more of {', '.join(kept)} than was measured there"
                )
            yield place, pieces

    def _unsupported(self, part: Part, pieces: Array, rows: Array) -> bool:
        """Return whether pieces (queries x cells of the part) of some rows leave what the part measures."""
        tensor = pieces.reshape(len(pieces), *self.axes.sizes(part.attributes))
        norms = np.maximum((pieces**2).sum(axis=1), (rows**2).sum(axis=1))
        for block in part.blocks:
            merged = block.matrix if isinstance(block.matrix, MergedMatrix) else None
            outside = block.matrix.unsupported if merged is None else merged.matrix.unsupported
            if outside is None and merged is None:
                continue
            axes = [part.attributes.index(name) + 1 for name in block.attributes]
            moved = np.moveaxis(tensor, axes, range(len(axes)))
            flat = np.ascontiguousarray(moved).reshape(block.matrix.columns, -1)
            lost = np.zeros(flat.shape[1]) if merged is None else (merged.apart(flat) ** 2).sum(axis=0)
            if outside is not None:
                seen = flat if merged is None else merged.means(flat)
                lost += ((outside @ seen) ** 2).sum(axis=0)
            if (lost.reshape(len(rows), -1).sum(axis=1) > SUPPORT_TOLERANCE * norms).any():
                return True
        return False

    # ---- groups --------------------------------------------------------------------------------

    def variances(self, group: Group) -> Array:
        if group.queries > MAX_VARIANCES:
            raise TooLargeError(f"{group.name}: {group.queries} variances would be formed at once")
        products = self._products_of(group)
        if not products:
            assert isinstance(group, DenseGroup)
            total = np.zeros(group.queries)
            for measured, pieces in self._row_pieces(group):
                total += self._inner(measured, pieces, pieces)
            return total
        asked = self.asked(group)
        total = np.zeros(products[0][1].counts)
        for kept, place in self.pieces(asked):
            if place is None:
                continue
            for position, (sign, left) in enumerate(products):
                total += self._product_covariances(place, kept, asked, left, left)
                for other, right in products[:position]:
                    cross = self._product_covariances(place, kept, asked, left, right)
                    total += 2.0 * sign * other * cross
        if isinstance(group, DenseGroup):
            return group.arranged(np.maximum(total, 0.0))
        return total.ravel()

    def _product_covariances(
        self,
        place: int,
        kept: tuple[str, ...],
        asked: tuple[str, ...],
        left: ProductGroup,
        right: ProductGroup,
    ) -> Array:
        """Return the covariances of the pieces of two products on a part, query by query, as ``counts``."""
        own, other = ({name: group.sets.get(name, Total()) for name in kept} for group in (left, right))
        values = self.noise[place] * self.axes.part_covariances(self.parts[place], own, other)
        # attributes that only the part has are totals, of one query each
        values = values.reshape(
            [n if name in kept else 1 for name, n in zip(left.attributes, left.counts, strict=True)]
        )
        for axis, name in enumerate(left.attributes):
            if name in asked and name not in kept:
                factor = self.axes.contracted(name, left.sets[name])
                factor = factor * self.axes.contracted(name, right.sets[name])
                values = values * factor.reshape([-1 if i == axis else 1 for i in range(values.ndim)])
        return values

    def _factors(self, place: int, left: Array, right: Array) -> tuple[Array, Array]:
        """Return rows for pieces, shape (queries, any) each, whose inner products are their covariances."""
        part = self.parts[place]
        if part.multipliers is not None:
            first, second = self._measured_rows(part, left), self._measured_rows(part, right)
            return self.noise[place] * first.reshape(len(left), -1), second.reshape(len(right), -1)
        out = right.reshape(len(right), *self.axes.sizes(part.attributes))
        for block in part.blocks:
            axes = [part.attributes.index(name) + 1 for name in block.attributes]
            moved = np.moveaxis(out, axes, range(len(axes)))
            flat = np.ascontiguousarray(moved).reshape(block.matrix.columns, -1)
            flat = block.matrix.covariance_times(flat)
            out = np.moveaxis(flat.reshape(moved.shape), range(len(axes)), axes)
        return self.noise[place] * left, out.reshape(len(right), -1)

    def _inner(self, place: int, left: Array, right: Array) -> Array:
        """Return the covariances of pieces, row by row: shape (queries, cells) twice in, (queries,) out."""
        return np.asarray(np.einsum("ij,ij->i", *self._factors(place, left, right)))

    def _measured_rows(self, part: Part, pieces: Array) -> Array:
        """Return the coefficients of the measured rows in pieces, shape (queries, *rows of the blocks)."""
        tensor = pieces.reshape(len(pieces), *self.axes.sizes(part.attributes))
        order = [part.attributes.index(name) + 1 for name in part.listed]
        columns = [block.matrix.columns for block in part.blocks]
        tensor = np.transpose(tensor, [0, *order]).reshape(len(pieces), *columns)
        for axis, block in enumerate(part.blocks, 1):
            tensor = along(tensor, axis, block.matrix.coefficients)
        return tensor if part.multipliers is None else tensor / part.multipliers

    def _asked_rows(self, group: Group, rows: Array) -> Array:
        """Return rows of a group over the attributes that it asks about: the others are totals."""
        asked = self.asked(group)
        tensor = rows.reshape(len(rows), *group.sizes)
        for axis in range(len(group.attributes), 0, -1):
            if group.attributes[axis - 1] not in asked:
                tensor = np.take(tensor, 0, axis=axis)
        return tensor.reshape(len(rows), -1)

    def covariance(self, left: Group, i: int, right: Group, j: int) -> float:
        first = self._supported_pieces(left, one_query(left, i))
        second = self._supported_pieces(right, one_query(right, j))
        return math.fsum(
            float(self._inner(place, first[place], second[place])[0]) for place in first.keys() & second
        )

    def covariances(self, left: Group, right: Group, *, paired: bool = False) -> Array:
        self._check_pairs(left, right, paired)
        first, second = self._supported_pieces(left), self._supported_pieces(right)
        found = np.zeros(left.queries if paired else (left.queries, right.queries))
        for place in sorted(first.keys() & second):
            if paired:
                found += self._inner(place, first[place], second[place])
            else:
                own, other = self._factors(place, first[place], second[place])
                found += own @ other.T
        return found

    def _supported_pieces(self, group: Group, rows: Array | None = None) -> dict[int, Array]:
        """Return the pieces of some or all queries on each part that they need, shape (queries, cells)."""
        asked = self.asked(group)
        cells, queries = self.domain.cells(asked), group.queries if rows is None else len(rows)
        if cells * queries > (MAX_VARIANCES if queries == 1 else MAX_COVARIANCES):
            times = "" if queries == 1 else f" times {queries} queries"
            raise TooLargeError(f"covariance: a table of {', '.join(asked)} has too many cells{times}")
        tensor = self._asked_rows(group, group.rows() if rows is None else rows)
        pieces = {place: kept for kept, place in self.pieces(asked) if place is not None}
        return {place: self.axes.piece_rows(asked, kept, tensor) for place, kept in pieces.items()}

    def noise_terms(self, group: Group, most: int) -> Array | None:
        asked = self.asked(group)
        rows = self._asked_rows(group, group.rows())
        found = [np.zeros((len(rows), 0))]
        for kept, place in self.pieces(asked):
            if place is None:
                continue
            part = self.parts[place]
            if part.rows * len(rows) > most:
                return None
            squares = self._measured_rows(part, self.axes.piece_rows(asked, kept, rows)) ** 2
            found.append(self.noise[place] * squares.reshape(len(rows), -1))
        return np.concatenate(found, axis=1)

    # ---- equal groups and repeated queries -----------------------------------------------------

    def key(self, group: Group) -> Hashable:
        asked = self.asked(group)
        parts = tuple(
            None if place is None else self._part_key(place, group.attributes)
            for _, place in self.pieces(asked)
        )
        own = None if group.query_weights is None else group.query_weights.tobytes()
        alike = tuple(self.axes.alike[name] for name in asked)
        sizes = tuple(self.axes.sizes(group.attributes))
        return (type(group).__name__, sizes, group.key(), group.weight, own, parts, alike)

    def _part_key(self, place: int, attributes: tuple[str, ...]) -> Hashable:
        part = self.parts[place]
        if place not in self._keys:
            self._keys[place] = (
                tuple((block.matrix.digest(), len(block.attributes)) for block in part.blocks),
                self.noise[place],
                None if part.multipliers is None else part.multipliers.tobytes(),
            )
        order = tuple(attributes.index(name) if name in attributes else -1 for name in part.listed)
        return (self._keys[place], order)

    def _error(self, group: Group) -> GroupError:
        """Analyse a large product group by its different queries alone, if there are fewer."""
        found = self._different(group) if isinstance(group, ProductGroup) and compressible(group) else None
        return super()._error(group) if found is None else found.error(self.variances)

    def _different(self, group: ProductGroup) -> Representatives | None:
        self.check_support(group)
        factors: dict[str, list[Array] | None] = {name: [] for name in group.attributes}
        asked = self.asked(group)

        def add(name: str, values: Array) -> None:
            known = factors[name]
            if known is not None:
                known.append(values)

        for kept, place in self.pieces(asked):
            if place is None:
                continue
            part = self.parts[place]
            for block in part.blocks:
                if part.multipliers is not None or len(block.attributes) > 1:
                    factors |= dict.fromkeys(block.attributes)
                elif block.attributes[0] in group.sets:
                    [name] = block.attributes
                    add(name, self.axes.axis_variances(block, group.sets[name]))
            for name in asked:
                if name not in kept:
                    add(name, self.axes.contracted(name, group.sets[name]) ** 2)
        return representatives(group, factors)


class _PieceEstimates(Estimates):
    """Estimates that are sums of one piece from each part."""

    def __init__(self, analysis: PieceAnalysis, residual: Callable[[int], Array]) -> None:
        self._analysis = analysis
        self._residual = cache(residual)

    def marginal(self, attributes: tuple[str, ...]) -> Array:
        return self._analysis.marginal(attributes, self._residual)

    def answers(self, group: Group) -> Array:
        self._analysis.check_support(group)
        attributes = self._analysis.asked(group)
        tensor = self.marginal(attributes)
        if isinstance(group, DenseGroup):
            return group.answers(tensor)
        sets = tuple(group.sets[name] for name in attributes)
        return ProductGroup(group.name, attributes, sets, tensor.shape).answers(tensor).ravel()


def not_measured(kept: tuple[str, ...]) -> str:
    """Return what is said of a query on a marginal that was not measured."""
    return f"needs the marginal of {', '.join(kept) or 'no attribute (the total)'}, which was not measured"
