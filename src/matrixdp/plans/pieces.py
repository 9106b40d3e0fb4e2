"""Queries as sums of pieces that are each estimated from one part, on their own.

Everything is assembled from one vector per predicate set and measured matrix, so a group of a million queries
costs a few outer products.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError, UnsupportedQueryError
from matrixdp.exact.linear import Array, along, outer
from matrixdp.noise import Walk
from matrixdp.plans.axes import Axes, shortened, without_sums
from matrixdp.plans.part import Part
from matrixdp.plans.plan import Analysis, Estimates, NoiseTerms, questions_key
from matrixdp.queries.groups import DenseGroup, Group, ProductGroup
from matrixdp.queries.predicates import Identity, Total

#: Squared relative norm above which a part of a query outside the measured span counts.
SUPPORT_TOLERANCE = 1e-9
#: Queries per group up to which per-query variances are formed in one piece; cells of one query.
MAX_VARIANCES = 400_000_000
#: Entries of the queries on one attribute that are written out for their noise terms.
_MOST_ROWS = 4_000_000
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
        self.axes = Axes(domain, weights)
        self.places = {part.attributes: place for place, part in enumerate(self.parts)}
        #: The keys of groups that were found to be supported.
        self._supported: set[Hashable] = set()

    @abstractmethod
    def pieces(self, attributes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
        """Yield the marginals that a query on ``attributes`` splits over, with the places of their parts."""

    @abstractmethod
    def marginal(self, attributes: tuple[str, ...], residual: Callable[[int], Array]) -> Array:
        """Return the estimate of a marginal from those of the parts, their weighted means removed."""

    def asked(self, group: Group) -> Group:
        """Return a group without attributes that it asks nothing of and that were not measured."""
        return group

    def estimates(self, values: Sequence[Array]) -> Estimates:
        def residual(place: int) -> Array:
            return self.residual(self.parts[place], values[place])

        return PieceEstimates(self, residual)

    def residual(self, part: Part, answers: Array) -> Array:
        """Return the estimate of a part's marginal, its weighted means removed along every attribute."""
        none = [own.attributes[0] for own in part.blocks if own.matrix.residual and len(own.attributes) == 1]
        return self.removed(part.attributes, part.estimate(answers, self.domain), none)

    def removed(self, attributes: Sequence[str], tensor: Array, none: Sequence[str] = ()) -> Array:
        """Return a marginal with its weighted means removed along every attribute; along some it has none."""
        for axis, name in enumerate(attributes):
            if name not in none:
                tensor = without_sums(tensor, axis, self.axes.weights[name])
        return tensor

    # ---- support -------------------------------------------------------------------------------

    def check_support(self, group: Group) -> None:
        group = self.asked(group)
        self._check_measured(group)
        key = type(group), group.key(), self.seen(group.attributes), self._alike(group)
        if key not in self._supported:
            self._check_pieces(group)
            self._supported.add(key)

    def _check_pieces(self, group: Group) -> None:
        if isinstance(group, ProductGroup):
            self._check_product(group)
            return
        if self._products_of(group):
            return
        rows = group.rows()
        for kept, place, pieces in self._row_pieces(group.attributes, rows):
            if place is not None:
                if self._unsupported(self.parts[place], pieces, rows):
                    told = f"asks more of {', '.join(kept)} than was measured there"
                    raise UnsupportedQueryError(f"{group.name}: {told}")
            elif ((pieces**2).max(axis=1) > SUPPORT_TOLERANCE * (rows**2).max(axis=1)).any():
                raise UnsupportedQueryError(f"{group.name}: {not_measured(kept)}")

    def _check_measured(self, group: Group) -> None:
        """Reject a query about a period that is not measured yet."""
        if self.through is None:
            return
        name, through = self.through
        size = self.domain[name].size
        later = np.eye(size)[:, through:]
        if name not in group.attributes:
            asks = through < size
        elif isinstance(group, ProductGroup):
            asks = bool(group.sets[name].apply(later).any())
        else:
            rows = np.moveaxis(group.rows().reshape(-1, *group.sizes), group.attributes.index(name) + 1, 0)
            asks = bool(rows[through:].any())
        if asks:
            known = f"{name} {self.domain[name].label(through - 1)}" if through else "none"
            told = f"asks about a period that is not measured yet; the last one that is: {known}"
            raise UnsupportedQueryError(f"{group.name}: {told}", "not-yet")

    def _products_of(self, group: Group) -> Sequence[tuple[float, ProductGroup]]:
        """Return products that a group is a sum of and that are all supported; none if it has none such."""
        if isinstance(group, ProductGroup):
            self.check_support(group)
            return ((1.0, group),)
        with suppress(UnsupportedQueryError):
            for _, product in group.summands:
                self._check_product(product)
            return group.summands
        return ()

    def _check_product(self, group: ProductGroup) -> None:
        split = list(self.pieces(group.attributes))  # refuses attributes that were not measured
        own = {name: self.axes.piece(name, predicates) for name, predicates in group.sets.items()}
        for kept, place in split:
            if place is None:
                share = math.prod(one.kept if n in kept else one.contracted for n, one in own.items())
                if share > SUPPORT_TOLERANCE:
                    raise UnsupportedQueryError(f"{group.name}: {not_measured(kept)}")
            elif all(one.contracted > 0.0 for name, one in own.items() if name not in kept):
                # otherwise the pieces on this marginal are zero: an attribute stays whole
                for block in self.parts[place].blocks:
                    if self.axes.lost(block, group.sets) > SUPPORT_TOLERANCE:
                        raise UnsupportedQueryError(
                            f"{group.name}: asks more of {', '.join(block.attributes)} than the strategy "
                            "measures there; ask a query that the workload's queries on it determine"
                        )

    def _unsupported(self, part: Part, pieces: Array, rows: Array) -> bool:
        """Return whether pieces (queries x cells of the part) of some rows leave what the part measures."""
        tensor = self._by_blocks(part, pieces)
        norms = np.maximum((pieces**2).sum(axis=1), (rows**2).sum(axis=1))
        for axis, block in enumerate(part.blocks, 1):
            moved = np.moveaxis(tensor, axis, 0)
            lost = block.matrix.lost(np.ascontiguousarray(moved).reshape(len(moved), -1))
            if (lost.reshape(len(rows), -1).sum(axis=1) > SUPPORT_TOLERANCE * norms).any():
                return True
        return False

    # ---- explicit queries ----------------------------------------------------------------------

    def _row_pieces(
        self, attributes: tuple[str, ...], rows: Array
    ) -> Iterator[tuple[tuple[str, ...], int | None, Array]]:
        """Yield marginals, the places of their parts, and the pieces of explicit queries on their cells."""
        for kept, place in self.pieces(attributes):
            yield kept, place, self.axes.piece_rows(attributes, kept, rows)

    def _by_blocks(self, part: Part, pieces: Array) -> Array:
        """Return pieces with the cells of each block of a part along one axis: (queries, *columns)."""
        tensor = pieces.reshape(len(pieces), *self.axes.sizes(part.attributes))
        order = [part.attributes.index(name) + 1 for name in part.listed]
        columns = [block.matrix.columns for block in part.blocks]
        return np.transpose(tensor, [0, *order]).reshape(len(pieces), *columns)

    def _measured_rows(self, part: Part, pieces: Array) -> Array:
        """Return the coefficients of the measured rows in pieces, shape (queries, rows)."""
        tensor = self._by_blocks(part, pieces)
        for axis, block in enumerate(part.blocks, 1):
            tensor = along(tensor, axis, block.matrix.coefficients)
        if part.multipliers is not None:
            tensor = tensor / part.multipliers
        return tensor.reshape(len(pieces), -1)

    def _row_covariances(self, place: int, left: Array, right: Array, paired: bool) -> Array:
        """Return the covariances of pieces on a part, shape (queries, cells) each, or those in one place."""
        part = self.parts[place]
        if part.multipliers is not None:
            own, other = self._measured_rows(part, left), self._measured_rows(part, right)
        else:
            own, other = self._by_blocks(part, left), self._by_blocks(part, right)
            for axis, block in enumerate(part.blocks, 1):
                other = along(other, axis, block.matrix.covariance_times)
            own, other = own.reshape(len(left), -1), other.reshape(len(right), -1)
        return self.noise[place] * (np.einsum("ij,ij->i", own, other) if paired else own @ other.T)

    def covariances(self, left: Group, right: Group, *, paired: bool = False) -> Array:
        self._check_pairs(left, right, paired)
        first, second = self.rows_on_parts(left), self.rows_on_parts(right)
        found = np.zeros(left.queries if paired else (left.queries, right.queries))
        for place in sorted(first.keys() & second):
            found += self._row_covariances(place, first[place], second[place], paired)
        return found

    def rows_on_parts(self, group: Group) -> dict[int, Array]:
        """Return the pieces of queries on each part that they need, shape (queries, cells)."""
        group, queries = self.asked(group), group.queries
        most = MAX_VARIANCES if queries == 1 else MAX_COVARIANCES
        if self.domain.cells(group.attributes) * queries > most:
            times = "" if queries == 1 else f" times {queries} queries"
            told = f"a table of {', '.join(group.attributes)} has too many cells{times}"
            raise TooLargeError(f"covariance: {told}")
        pieces = self._row_pieces(group.attributes, group.rows())
        return {place: own for _, place, own in pieces if place is not None}

    def noise_terms(self, group: Group, most: int) -> NoiseTerms | None:
        group = self.asked(group)
        found: NoiseTerms = {}
        for _, place, pieces in self._row_pieces(group.attributes, group.rows()):
            if place is not None:
                part = self.parts[place]
                shares = self.variables(place)
                if part.rows * len(pieces) * len(shares) > most:
                    return None
                terms = np.sqrt(self.noise[place]) * self._measured_rows(part, pieces)
                found |= {own: np.sqrt(share) * terms for own, share in shares}
        return found

    def variables(self, place: int) -> Sequence[tuple[int, float]]:
        """Return what a part's noise consists of: places of measured parts, and shares in the variance."""
        return ((place, 1.0),)

    def alike_terms(self, group: ProductGroup, most: int) -> tuple[Array, NDArray[np.intp]] | None:
        """Return the shares of noise variables in variances, queries that are alike once, and which is which.

        Sorted shares, shape (kinds, variables), and the kind of every query; None if one row would have more
        than ``most`` variables, or if answers are no product over the attributes of one part.
        """
        part, kinds = self.parts[0], np.zeros(1, dtype=np.intp)
        shares: Array = np.ones((1, 1))
        whole = len(self.parts) == 1 and part.multipliers is None and len(part.blocks) == len(part.attributes)
        if not whole or part.walk is not None or not set(group.attributes) <= set(part.attributes):
            return None
        if any(self.axes.weights[name].any() for name in part.attributes):
            return None
        matrices = {block.attributes[0]: block.matrix for block in part.blocks}
        for name in part.attributes:
            predicates, size = group.sets.get(name, Total()), self.domain[name].size
            count = predicates.count(size)
            if matrices[name].kind == "identity" and isinstance(predicates, Identity):
                own, of = np.ones((1, 1)), np.zeros(count, dtype=np.intp)
            elif count * size > _MOST_ROWS:
                return None
            else:
                coefficients = matrices[name].coefficients(predicates.rows(size).T).T
                squares = -np.sort(-(coefficients**2), axis=1)
                squares[squares[:, 0] <= 0, 0] = 1.0  # a query that is zero has no noise
                squares = np.round(squares / squares.sum(axis=1, keepdims=True), 9)
                own, of = np.unique(squares[:, squares.any(axis=0)], axis=0, return_inverse=True)
            if shares.shape[1] * own.shape[1] > most:
                return None
            shares = np.asarray(np.kron(shares, own))
            kinds = np.add.outer(kinds * len(own), of.ravel()).ravel()
        return shares, kinds

    def walk_terms(self, group: ProductGroup, most: int) -> tuple[Walk, Array, NDArray[np.intp]] | None:
        """Return coefficients of rows in queries of a part with a walk, those that are alike once.

        They are those of as many walks as one query needs, shape (kinds, rows), with the kind of every query.
        Independent walks may trade places, and signs. None if there would be more than ``most``.
        """
        part = self.parts[0]
        if part.walk is None or len(self.parts) > 1 or len(part.blocks) != len(part.attributes):
            return None
        if any(self.axes.weights[name].any() for name in part.attributes):
            return None
        matrices = {block.attributes[0]: block.matrix for block in part.blocks}
        own: Array = np.ones((1, 1))
        others: Array = np.ones((1, 1))
        of, at = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)
        for name in part.attributes:
            predicates, size = group.sets.get(name, Total()), self.domain[name].size
            count = predicates.count(size)
            of, at = np.repeat(of, count), np.repeat(at, count)
            if matrices[name].kind == "identity" and isinstance(predicates, Identity):
                continue  # every query needs one row
            if count * size > most:
                return None
            rows = matrices[name].coefficients(predicates.rows(size).T).T
            repeats = len(of) // count
            if matrices[name].walk is not None:
                own, at = rows, np.tile(np.arange(count), repeats)
                continue
            few, place = np.unique(np.round(-np.sort(-np.abs(rows), axis=1), 12), axis=0, return_inverse=True)
            others = np.asarray(np.kron(others, few[:, few.any(axis=0)]))
            of = of * len(few) + np.tile(place.ravel(), repeats)
        if len(others) * len(own) * others.shape[1] * own.shape[1] > most:
            return None
        walk = replace(part.walk, before=others.shape[1], after=1)
        return walk, np.asarray(np.kron(others, own)), of * len(own) + at

    # ---- groups --------------------------------------------------------------------------------

    def variances(self, group: Group) -> Array:
        if group.queries > MAX_VARIANCES:
            raise TooLargeError(f"{group.name}: {group.queries} variances would be formed at once")
        total: Any = 0.0
        for _, own in self._variances_by_part(group):
            total = total + own
        every = np.broadcast_to(total, self._counts(group)).flatten()
        return np.maximum(every, 0.0) if isinstance(group, DenseGroup) else every

    def by_part(self, group: Group, weighted: bool = False) -> dict[int, float]:
        """Return how much each part adds to the sum of the variances, by the place of the part.

        If ``weighted`` to that in which they have the weights of the group and of its queries.
        """
        weights = group.query_weights if weighted else None
        factor = group.weight if weighted else 1.0
        found = {}
        for place, own in self._variances_by_part(group):
            every = np.broadcast_to(own, self._counts(group)).ravel()
            found[place] = factor * float(every.sum() if weights is None else every @ weights)
        return found

    def _counts(self, group: Group) -> tuple[int, ...]:
        """Return the shape of what `_variances_by_part` yields."""
        asked = self.asked(group)
        return asked.counts if isinstance(asked, ProductGroup) else (asked.queries,)

    def _variances_by_part(self, group: Group) -> Iterator[tuple[int, Array]]:
        """Yield the place of each part that answers a group, and what it adds to the variances.

        Of a product in the shape of its ``counts``, or 1 where they do not differ along one; else flat.
        """
        group = self.asked(group)
        products = self._products_of(group)
        if not products:
            self.check_support(group)
            for _, place, rows in self._row_pieces(group.attributes, group.rows()):
                if place is not None:
                    yield place, self._row_covariances(place, rows, rows, True)
            return
        for kept, place in self.pieces(group.attributes):
            if place is not None:
                added: Any = 0.0
                for (sign, left), (other, right) in combinations_with_replacement(products, 2):
                    factor = sign * other if left is right else 2.0 * sign * other
                    added = added + factor * self._product_covariances(place, kept, left, right)
                if isinstance(group, DenseGroup):
                    added = group.arranged(np.broadcast_to(added, products[0][1].counts))
                yield place, added

    def _product_covariances(
        self, place: int, kept: tuple[str, ...], left: ProductGroup, right: ProductGroup
    ) -> Array:
        """Return the covariances of the pieces of two products on a part, as `Axes.covariances` does."""
        values = self.noise[place] * self.axes.covariances(self.parts[place], left.sets, right.sets)
        # attributes that only the part has are totals, of one query each
        counts = dict(zip(self.parts[place].attributes, values.shape, strict=True))
        return values.reshape([counts[name] if name in kept else 1 for name in left.attributes]) * outer(
            np.ones(1)
            if n in kept
            else shortened(self.axes.piece(n, p).means * self.axes.piece(n, right.sets[n]).means)
            for n, p in left.sets.items()
        )

    # ---- equal groups and equal queries ---------------------------------------------------------

    def key(self, group: Group) -> Hashable:
        group = self.asked(group)
        return questions_key(group), self.seen(group.attributes), self._alike(group)

    def _alike(self, group: Group) -> tuple[str, ...]:
        return tuple([self.axes.alike[name] for name in group.attributes])

    def seen(self, attributes: tuple[str, ...]) -> Hashable:
        """Return a value equal for attributes on whose pieces equal matrices are measured as precisely."""
        return tuple(
            None if place is None else (self.parts[place].key(attributes), self.noise[place])
            for _, place in self.pieces(attributes)
        )

    def factors(self, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        self.check_support(group)
        asked = self.asked(group)
        assert isinstance(asked, ProductGroup)
        group = asked
        factors: dict[str, list[Array]] = {name: [] for name in group.attributes}
        tied: set[str] = set()
        for kept, place in self.pieces(group.attributes):
            if place is None:
                continue
            for block in self.parts[place].blocks:
                if self.parts[place].multipliers is not None or len(block.attributes) > 1:
                    tied.update(block.attributes)
                elif block.attributes[0] in group.sets:
                    factors[block.attributes[0]].append(self.axes.variances(block, group.sets))
            for name, predicates in group.sets.items():
                if name not in kept:
                    factors[name].append(self.axes.piece(name, predicates).means ** 2)
        return {name: None if name in tied else own for name, own in factors.items()}


class PieceEstimates(Estimates):
    """Estimates that are sums of one piece from each part, given the parts' own, their means removed."""

    def __init__(self, analysis: PieceAnalysis, residual: Callable[[int], Array]) -> None:
        self._analysis = analysis
        self._residual = cache(residual)

    def marginal(self, attributes: tuple[str, ...]) -> Array:
        return self._analysis.marginal(attributes, self._residual)

    def answers(self, group: Group) -> Array:
        self._analysis.check_support(group)
        own = self._analysis.asked(group)
        return own.answers(self.marginal(own.attributes)).ravel()


def not_measured(kept: tuple[str, ...]) -> str:
    """Return the message for a query on a marginal that was not measured."""
    return f"needs the marginal of {', '.join(kept) or 'no attribute (the total)'}, which was not measured"
