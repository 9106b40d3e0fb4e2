"""Local plans: parts that each determine some queries by themselves, averaged where several do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import UnsupportedQueryError
from matrixdp.plan.analysis import Estimates
from matrixdp.plan.direct import TableAnalysis
from matrixdp.plan.plan import Plan
from matrixdp.plan.several import SeveralEstimates, SeveralTables
from matrixdp.queries.groups import Group

__all__ = ["Local"]

Array = NDArray[np.float64]
Answer = TypeVar("Answer")


@final
@dataclass(frozen=True, eq=False)
class Local(Plan, kind="local"):
    """Parts that each determine some queries by themselves.

    A query is estimated from each part that determines it; the estimates are averaged by inverse variance.
    That serves where a `Union` would be too large. Answers are consistent with one another only as far as
    they come from the same parts.
    """

    words: ClassVar[str] = "one part for each union of queries, averages of what they estimate"

    def analysed(self, noise: Sequence[float]) -> _AverageAnalysis:
        return _AverageAnalysis(
            [TableAnalysis(self.domain, part, own) for part, own in zip(self.parts, noise, strict=True)]
        )


@final
class _AverageAnalysis(SeveralTables):
    """Averages of the estimates of several tables by inverse variance."""

    def _each(self, group: Group, ask: Callable[[TableAnalysis], Answer]) -> list[Answer | None]:
        """Return what each table says, None where it does not determine a query; some table must."""
        found: list[Answer | None] = []
        determined = False
        for table in self.able(group):
            answer = None
            if table is not None:
                with suppress(UnsupportedQueryError):
                    answer, determined = ask(table), True
            found.append(answer)
        if not determined:
            self.refuse(group)
        return found

    def estimates(self, values: Sequence[Array]) -> Estimates:
        held = [table.estimates([own]) for table, own in zip(self.tables, values, strict=True)]
        return _AverageEstimates(self, held)

    def check_support(self, group: Group) -> None:
        self._each(group, lambda table: table.check_support(group))

    def _precisions(self, group: Group) -> tuple[list[Array | None], Array, Array]:
        """Return each table's precisions relative to the largest, their sum, and the least variances."""
        found = self._each(group, lambda table: table.variances(group))
        least = np.min([values for values in found if values is not None], axis=0)
        # a query that is zero has no variance: every table estimates it as 0
        ratios = [None if v is None else np.divide(least, v, out=np.ones_like(v), where=v > 0) for v in found]
        return ratios, np.sum([ratio for ratio in ratios if ratio is not None], axis=0), least

    def shares(self, group: Group) -> list[Array | None]:
        """Return for each table the share that its estimates have in the answers, shape (queries,).

        Inverse variances over their sum: the unbiased average with the least variance. They sum to 1.
        """
        ratios, total, _ = self._precisions(group)
        return [None if ratio is None else ratio / total for ratio in ratios]

    def variances(self, group: Group) -> Array:
        _, total, least = self._precisions(group)
        return np.asarray(least / total)

    def covariance(self, left: Group, i: int, right: Group, j: int) -> float:
        total = 0.0
        for table, own, other in zip(self.tables, self.shares(left), self.shares(right), strict=True):
            if own is not None and other is not None:
                total += float(own[i]) * float(other[j]) * table.covariance(left, i, right, j)
        return total

    def covariances(self, left: Group, right: Group, *, paired: bool = False) -> Array:
        self._check_pairs(left, right, paired)
        total = np.zeros(left.queries if paired else (left.queries, right.queries))
        for table, own, other in zip(self.tables, self.shares(left), self.shares(right), strict=True):
            if own is not None and other is not None:
                shares = own * other if paired else np.outer(own, other)
                total += shares * table.covariances(left, right, paired=paired)
        return total

    def noise_terms(self, group: Group, most: int) -> Array | None:
        terms: list[Array] = []
        for table, share in zip(self.tables, self.shares(group), strict=True):
            if share is not None:
                found = table.noise_terms(group, most)
                if found is None:
                    return None
                terms.append(share[:, None] ** 2 * found)
        return np.concatenate(terms, axis=1)

    def key(self, group: Group) -> Hashable:
        return tuple(self._each(group, lambda table: table.key(group)))


class _AverageEstimates(SeveralEstimates):
    def __init__(self, analysis: _AverageAnalysis, held: Sequence[Estimates]) -> None:
        super().__init__(analysis.domain)
        self._analysis = analysis
        self._held = tuple(held)

    def answers(self, group: Group) -> Array:
        total = np.zeros(group.queries)
        for held, share in zip(self._held, self._analysis.shares(group), strict=True):
            if share is not None:
                total += share * held.answers(group)
        return total
