"""A release at a glance: two lines, and a few of its answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from matrixdp.answers.columns import AnswerColumns
from matrixdp.answers.titles import title
from matrixdp.display import MAX_ROWS, Displayed, Preview, counted
from matrixdp.errors import MatrixDPError

if TYPE_CHECKING:
    import pyarrow as pa

    from matrixdp.measure import Measurement
    from matrixdp.queries import Group, Workload

__all__ = ["NOT_PRIVATE", "Glance"]

NOT_PRIVATE = "NOT PRIVATE: the noise was seeded"
#: Answers to larger groups are not computed for a glance.
_MOST_QUERIES = 100_000


class Glance(Displayed):
    """What a release shows of itself."""

    measurement: Measurement
    workload: Workload
    confidence: float

    @abstractmethod
    def _table(self, groups: Sequence[Group]) -> pa.Table:
        """Return the answers to some groups."""

    def _lines(self) -> tuple[str, str]:
        noise, workload = self.measurement.plan.noise, self.workload
        answers, groups = counted(workload.queries, "answer"), counted(len(workload), "group")
        budget = self.measurement.authorization.budget
        second = f"within {budget!r}" if self.measurement.private else NOT_PRIVATE
        return f"Release of {answers} in {groups}, {noise} noise", second

    def _preview(self) -> Preview:
        groups = self.workload.groups[:MAX_ROWS]
        each = max(1, MAX_ROWS // len(groups))
        rows = [row for group in groups for row in self._first(group, each)]
        ends = f"{100 * self.confidence:g} % interval"
        columns = ("group", "records with", "estimate", "stddev", ends)
        return Preview(columns, rows, self.workload.queries, frozenset((2, 3, 4)))

    def _first(self, group: Group, number: int) -> Iterator[tuple[str, ...]]:
        """Yield the first answers to a group, or its name where they would take long or do not exist."""
        name, table = title(group), None
        if group.queries <= _MOST_QUERIES:
            try:
                table = self._table((group,)).slice(0, number)
            except MatrixDPError:
                table = None  # `answers` says why
        if table is None:
            yield name, counted(group.queries, "query", "queries"), "-", "-", "-"
            return
        columns = AnswerColumns(self.workload.domain, (group,), levels=True).columns
        for row in table.to_pylist():
            asked = [f"{a} {row[column]}" for a, column in columns.items() if row[column] is not None]
            asked += [row["query"]] if row.get("query") else []
            estimate, low, high = (f"{row[figure]:,.1f}" for figure in ("estimate", "lower", "upper"))
            yield name, ", ".join(asked) or "(all)", estimate, f"{row['stddev']:,.4g}", f"{low} to {high}"
