"""Unions of products: several parts, each one product on a marginal, answered by global least squares."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, TooLargeError, UnsupportedQueryError
from matrixdp.plan.analysis import Estimates, GroupError
from matrixdp.plan.combination import Combination, Loss, axis_matrices
from matrixdp.plan.direct import TableAnalysis
from matrixdp.plan.overlaps import Overlaps
from matrixdp.plan.pair import Pair
from matrixdp.plan.plan import Plan
from matrixdp.plan.quadratic_forms import one_query
from matrixdp.plan.repeats import compressible, representatives
from matrixdp.plan.several import SeveralEstimates, SeveralTables
from matrixdp.queries.groups import DenseGroup, Group, ProductGroup

__all__ = ["Union", "UnionAnalysis"]

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Union(Plan, kind="union"):
    """Several parts, each a product of matrices on single attributes; answers are their least squares.

    A query is answered if one of the parts determines it; what all others say of it counts too. Answers are
    consistent: they follow from one table.
    """

    words: ClassVar[str] = "one part for each union of queries, all combined by least squares"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.parts) < 2:
            raise NumericalError("a union has at least two parts")
        for part in self.parts:
            axis_matrices(part)

    def analysed(self, noise: Sequence[float]) -> UnionAnalysis:
        """Return estimates and errors if the parts are measured with given noise variances.

        Raises
        ------
        TooLargeError
            If the parts have too many unknowns in common.

        References
        ----------
        Two parts: the generalized eigenvectors of their Gram matrices on each attribute. Several: the Schur
        complement of what they have in common. See the documentation on mathematics.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> from matrixdp.exact import IdentityMatrix
        >>> from matrixdp.noise import GAUSSIAN
        >>> from matrixdp.plan import Block, Part
        >>> domain = mdp.Domain({"a": 4, "b": 2})
        >>> blocks = Block(("a",), IdentityMatrix(4)), Block(("b",), IdentityMatrix(2))
        >>> cells = Part(("a", "b"), blocks, 2.0)
        >>> plan = Union(domain, (cells, Part((), (), 2.0)), GAUSSIAN)
        >>> [total] = mdp.marginals(0).expand(domain)
        >>> float(plan.analysis.variances(total)[0].round(9))  # 1 / (1/16 + 1/2)
        1.777777778
        """
        tables = [TableAnalysis(self.domain, part, own) for part, own in zip(self.parts, noise, strict=True)]
        return UnionAnalysis(tables)


def _combined(tables: Sequence[TableAnalysis]) -> Combination:
    if Pair.fits(tables):
        return Pair(tables)
    if Overlaps.fits(tables):
        return Overlaps(tables)
    raise TooLargeError(
        f"a union of {len(tables)} products has too many unknowns in common to be answered by least squares"
    )


def _determines(table: TableAnalysis, group: Group) -> bool:
    """Return whether a table determines every query of a group."""
    with suppress(UnsupportedQueryError):
        table.check_support(group)
        return True
    return False


@final
class UnionAnalysis(SeveralTables):
    """Estimates and errors of the global least squares of several tables."""

    additive: ClassVar[bool] = True

    def __init__(self, tables: Sequence[TableAnalysis]) -> None:
        super().__init__(tables)
        self.combination = _combined(tables)

    def place(self, group: Group) -> int:
        """Return the first part that determines a group.

        Raises UnsupportedQueryError if none does.
        """
        able = enumerate(self.able(group))
        found = (place for place, table in able if table is not None and _determines(table, group))
        place = next(found, None)
        if place is None:
            self.refuse(group)
        return place

    def estimates(self, values: Sequence[Array]) -> Estimates:
        own = [t.parts[0].estimate(v, self.domain) for t, v in zip(self.tables, values, strict=True)]
        return _UnionEstimates(self, self.combination.tables(own))

    def check_support(self, group: Group) -> None:
        self.place(group)

    def variances(self, group: Group) -> Array:
        place = self.place(group)
        if isinstance(group, DenseGroup):
            placed = place, self.tables[place].rows(group)
            return self.combination.covariances(placed, placed, True)
        return self.combination.variances(place, group)

    def covariance(self, left: Group, i: int, right: Group, j: int) -> float:
        places = self.place(left), self.place(right)
        first = places[0], self.tables[places[0]].rows(left, one_query(left, i))
        second = places[1], self.tables[places[1]].rows(right, one_query(right, j))
        return float(self.combination.covariances(first, second, True)[0])

    def covariances(self, left: Group, right: Group, *, paired: bool = False) -> Array:
        self._check_pairs(left, right, paired)
        first, second = self.place(left), self.place(right)
        own, other = self.tables[first].rows(left), self.tables[second].rows(right)
        return self.combination.covariances((first, own), (second, other), paired)

    def noise_terms(self, group: Group, most: int) -> Array | None:
        if group.queries * sum(table.parts[0].rows for table in self.tables) > most:
            return None
        place = self.place(group)
        rows = self.combination.local_rows(place, self.tables[place].rows(group))
        shares = [table.noise_shares(own) for table, own in zip(self.tables, rows, strict=True)]
        return np.concatenate(shares, axis=1)

    def key(self, group: Group) -> Hashable:
        own = None if group.query_weights is None else group.query_weights.tobytes()
        return (self.place(group), group.attributes, type(group).__name__, group.key(), group.weight, own)

    def _error(self, group: Group) -> GroupError:
        """Analyse a large product group by its different queries alone, if there are fewer."""
        if isinstance(group, ProductGroup) and compressible(group):
            found = representatives(group, self.combination.factors(self.place(group), group))
            if found is not None:
                return found.error(self.variances)
        return super()._error(group)

    def loss(self, groups: Iterable[Group]) -> Loss:
        """Return the weighted sum of variances as a function of the parts' precisions, and its gradient."""
        return self.combination.loss([(self.place(group), group) for group in groups])

    @property
    def work(self) -> float:
        """About how many multiplications one evaluation of `loss` takes, beyond few."""
        return self.combination.work


class _UnionEstimates(SeveralEstimates):
    def __init__(self, analysis: UnionAnalysis, tables: Sequence[Array]) -> None:
        super().__init__(analysis.domain)
        self._analysis = analysis
        pairs = zip(analysis.tables, tables, strict=True)
        self._held = [table.answering(estimate) for table, estimate in pairs]

    def answers(self, group: Group) -> Array:
        return self._held[self._analysis.place(group)].answers(group)
