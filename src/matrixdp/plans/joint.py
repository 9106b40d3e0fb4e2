"""Joint plans: whole tables that share their one-way marginals, and a part for each other marginal."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, final

import numpy as np

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.exact.linear import Array, kronecker
from matrixdp.plans.least_squares import Schur, bilinear
from matrixdp.plans.part import Block, Part
from matrixdp.plans.pieces import MAX_VARIANCES, PieceEstimates
from matrixdp.plans.plan import Estimates, NoiseTerms, Plan
from matrixdp.plans.split import SplitAnalysis, TableAnalysis, check_weight_vectors
from matrixdp.queries.groups import DenseGroup, Group, ProductGroup

Names = tuple[str, ...]

#: Unknowns of the one-way marginals: their covariance is one dense matrix.
MAX_UNKNOWNS = 6_000
#: Unknowns are taken for the same whose correlations, and logarithms of deviations, agree to these decimals.
_DIGITS = 10


@final
@dataclass(frozen=True, eq=False)
class Joint(Plan, kind="joint"):
    """Tables of one or two attributes, measured whole, and a part for each other marginal.

    The tables' answers are their global least squares: what several of them say of a one-way marginal or of
    the total is pooled. A query on attributes that no table has together splits as in `Split`: its pieces on
    a table, on a one-way marginal of one and on the total are answered from the tables, the others from the
    parts that are not whole.

    Parameters
    ----------
    domain, parts, noise
        See `Plan`.
    weights : dict of str to ndarray
        For each attribute a vector with sum 1, or zeros; see `Split`.
    whole : dict of str to ndarray
        At ``"parts"``, for each part 1 if it is a whole table, else 0.
    """

    words: ClassVar[str] = "whole tables that share their one-way marginals, one part for each other marginal"
    walks: ClassVar[bool] = True

    weights: dict[str, Array]
    whole: dict[str, Array]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_distinct()
        check_weight_vectors(self.domain, self.weights)
        marks = self.whole["parts"]
        if marks.shape != (len(self.parts),) or not np.isin(marks, (0.0, 1.0)).all() or not marks.any():
            raise NumericalError("a joint plan says of every part whether it is a whole table; one must be")
        held = {
            name for part, mark in zip(self.parts, marks, strict=True) if mark for name in part.attributes
        }
        for part, mark in zip(self.parts, marks, strict=True):
            if not mark:
                if len(part.attributes) < 2 and held.issuperset(part.attributes):
                    raise NumericalError(f"part {part.attributes}: it follows from a whole table")
                continue
            whole = all(block.matrix.rank == block.matrix.columns for block in part.blocks)
            fits = part.multipliers is None and part.listed == part.attributes
            if not (whole and fits and 1 <= len(part.attributes) <= 2):
                raise NumericalError(f"part {part.attributes}: not a whole table of one or two attributes")

    def analysed(self, noise: Sequence[float]) -> JointAnalysis:
        """Return estimates and errors if the parts are measured with given noise variances.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> from matrixdp.exact import IdentityMatrix
        >>> from matrixdp.noise import GAUSSIAN
        >>> from matrixdp.plans import Block, Part
        >>> domain = mdp.Domain({"a": 2, "b": 2, "c": 2})
        >>> def table(*names):
        ...     blocks = tuple(Block((name,), IdentityMatrix(2)) for name in names)
        ...     return Part(names, blocks, 2.0)
        >>> parts = (table("a", "b"), table("a", "c"))
        >>> weights = {name: np.full(2, 0.5) for name in domain.names}
        >>> plan = Joint(domain, parts, GAUSSIAN, weights, {"parts": np.ones(2)})
        >>> [group] = mdp.marginals([["a"]]).expand(domain)
        >>> plan.analysis.variances(group)  # two sums of two cells each, averaged
        array([2., 2.])
        """
        return JointAnalysis(self, noise)


@final
class JointAnalysis(SplitAnalysis):
    """Estimates and errors under a joint plan."""

    def __init__(self, plan: Joint, noise: Sequence[float]) -> None:
        domain, whole = plan.domain, [place for place, mark in enumerate(plan.whole["parts"]) if mark]
        tables = [TableAnalysis(domain, plan.parts[place], noise[place]) for place in whole]
        #: The tables by their marginals; and for each marginal that follows from one, the first such table.
        self.tables = {plan.parts[place].attributes: t for t, place in enumerate(whole)}
        self.held = dict(self.tables)
        for own, t in self.tables.items():
            for kept in ((), *((name,) for name in own)):
                self.held.setdefault(kept, t)
        unknowns = 1 + sum(domain[own[0]].size - 1 for own in self.held if len(own) == 1)
        if unknowns > MAX_UNKNOWNS:
            raise TooLargeError(
                f"tables that share one-way marginals of {unknowns} unknowns; the limit is {MAX_UNKNOWNS}"
            )
        self.shared = Schur(tables, [own for own in self.held if len(own) < 2])
        follow = [own for own in self.held if own not in self.tables]
        cells = [[Block((name,), IdentityMatrix(domain[name].size)) for name in own] for own in follow]
        parts = [*plan.parts, *(Part(n, tuple(own), 1.0) for n, own in zip(follow, cells, strict=True))]
        super().__init__(domain, parts, [*noise, *(1.0 for _ in follow)], plan.weights)
        #: What tells whether a query's pieces are all measured, on tables or apart.
        self._measured = SplitAnalysis(domain, parts, self.noise, plan.weights)
        self._known: dict[Names, Hashable] = {}

    def pieces(self, attributes: Names) -> Iterator[tuple[Names, int | None]]:
        """Yield the pieces that are not answered from the tables."""
        return ((kept, place) for kept, place in super().pieces(attributes) if kept not in self.held)

    def check_support(self, group: Group) -> None:
        self._measured.check_support(group)

    def estimates(self, values: Sequence[Array]) -> Estimates:
        def estimate(place: int) -> Array:
            return self.parts[place].estimate(values[place], self.domain)

        best = self.shared.tables([estimate(self.places[table]) for table in self.tables])

        def residual(place: int) -> Array:
            names = self.parts[place].attributes
            if names in self.held:
                table = self.shared.parts[self.held[names]].attributes
                others = tuple(axis for axis, name in enumerate(table) if name not in names)
                tensor = best[self.held[names]].reshape(self.axes.sizes(table)).sum(axis=others)
            else:
                tensor = estimate(place)
            return self.removed(names, tensor)

        return PieceEstimates(self, residual)

    def _answered(self, asked: Names) -> list[Names]:
        """Return the marginals of pieces that are answered from the tables: a table's own needs no others."""
        if asked in self.held:
            return [asked]
        return [kept for n in range(3) for kept in combinations(asked, n) if kept in self.held]

    # ---- explicit queries ----------------------------------------------------------------------

    def _queries(self, group: Group) -> dict[int, Array]:
        """Return queries as sums of queries on the tables, by their places."""
        asked, rows = group.attributes, group.rows()
        found: dict[int, Array] = {}
        for kept in self._answered(asked):
            pieces = rows if kept == asked else self.axes.piece_rows(asked, kept, rows)
            own = self._spread_rows(kept, pieces)
            found[self.held[kept]] = found.get(self.held[kept], 0.0) + own
        return found

    def _spread_rows(self, kept: Names, rows: Array) -> Array:
        """Return queries on a marginal as queries on the table that it follows from."""
        sizes = {name: self.domain[name].size for name in self.shared.parts[self.held[kept]].attributes}
        tensor = rows.reshape(-1, *(size if name in kept else 1 for name, size in sizes.items()))
        return np.broadcast_to(tensor, (len(rows), *sizes.values())).reshape(len(rows), -1)

    def covariances(self, left: Group, right: Group, *, paired: bool = False) -> Array:
        found = super().covariances(left, right, paired=paired)
        first, second = self._queries(left), self._queries(right)
        return found + self.shared.covariances(first, second, paired)

    def noise_terms(self, group: Group, most: int) -> NoiseTerms | None:
        width = sum(part.rows for part in self.shared.parts)
        found = super().noise_terms(group, most) if width * group.queries <= most else None
        if found is None:
            return None
        weights = self.shared.weights(self._queries(group))
        triples = zip(self.tables, self.shared.alone, weights, strict=True)
        return found | {self.places[names]: table.noise_of(own) for names, table, own in triples}

    # ---- groups --------------------------------------------------------------------------------

    def variances(self, group: Group) -> Array:
        total = super().variances(group)
        if isinstance(group, DenseGroup):
            if group.summands:  # of which those on tables are not checked yet
                self.check_support(group)
            queries = self._queries(group)
            own = self.shared.covariances(queries, queries, True)
        else:
            own = self._product_variances(group)
        return total + np.maximum(own, 0.0)

    def _product_variances(self, group: ProductGroup) -> Array:
        """Return the variances of what the tables say of a product, flat."""
        asked = group.attributes
        answered = self._answered(asked)
        pieces = {name: self.axes.piece(name, group.sets[name]) for name in asked}
        means = {name: own.means[:, None] for name, own in pieces.items()}
        rows = {}
        for name, own in pieces.items():
            if means[name].size * own.size > MAX_VARIANCES:
                raise TooLargeError(f"{means[name].size} queries on {own.size} values are too many to form")
            rows[name] = own.predicates.rows(own.size) - (0.0 if answered == [asked] else means[name])
        total = np.zeros(group.counts)
        for i, kept in enumerate(answered):
            for other in answered[: i + 1]:
                left, right = ([(rows if n in own else means)[n] for n in asked] for own in (kept, other))
                factor = 1.0 if kept == other else 2.0
                total += factor * bilinear(self._form(kept, other), left, right)
        return total.ravel()

    def _form(self, kept: Names, other: Names) -> Array:
        """Return the covariances of the best estimates of the cells of two marginals."""
        left, right = (
            {self.held[own]: self._spread_rows(own, np.eye(self.domain.cells(own)))} for own in (kept, other)
        )
        if kept != other or kept not in self.tables:
            return self.shared.covariances(left, right, False)
        # the covariance of all cells of a table needs no products with them
        t = self.tables[kept]
        blocks = [block.matrix.covariance() for block in self.shared.parts[t].blocks]
        return self.shared.noise[t] * kronecker(blocks) + self.shared.changes(left, right, False)

    def key(self, group: Group) -> Hashable:
        return super().key(group), self._shared_key(group.attributes)

    def _shared_key(self, asked: Names) -> Hashable:
        """Return a value equal for attributes of which tables say the same; most are alike by symmetry."""
        if asked not in self._known:
            [mode] = self.shared.modes
            pairs = [(own, self.tables[own]) for own in combinations(asked, 2) if own in self.tables]
            tables = [(*map(asked.index, own), id(mode.views[t]), self.shared.noise[t]) for own, t in pairs]
            held = [own for n in (0, 1) for own in combinations(asked, n) if own in self.held]
            places = np.concatenate([mode.subsets[own] for own in held])
            covariance = mode.covariance[np.ix_(places, places)]
            deviations = np.sqrt(np.diagonal(covariance))
            figures = covariance / np.multiply.outer(deviations, deviations), np.log(deviations)
            # adding 0 leaves one zero of two
            rounded = tuple((np.round(own, _DIGITS) + 0.0).tobytes() for own in figures)
            unknown = tuple(own in held for own in combinations(asked, 1))
            self._known[asked] = tuple(self.axes.sizes(asked)), unknown, tuple(tables), rounded
        return self._known[asked]

    def factors(self, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        return {}
