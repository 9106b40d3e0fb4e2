"""The statistics that a workload asks for, as a release has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import pyarrow as pa

from matrixdp.answers.joined import joined
from matrixdp.errors import MatrixDPError
from matrixdp.language import StatisticEntry, Statistics
from matrixdp.statistics.derived import DerivedStatistics
from matrixdp.statistics.tables import said_of

__all__ = ["STATISTIC", "AskedStatistic", "AskedStatistics", "asked_statistics", "statistics_table"]

#: What the column is called that says which statistic a row is of.
STATISTIC = "statistic"


@final
@dataclass(frozen=True, eq=False)
class AskedStatistic:
    """A statistic that a workload asks for.

    Attributes
    ----------
    name : str
        By the user, else what it asks; several alike have their number behind it.
    entry : StatisticEntry
        What was asked.
    table : pyarrow.Table or None
        What follows; None where nothing does.
    refusal : MatrixDPError or None
        Why nothing follows.
    """

    name: str
    entry: StatisticEntry
    table: pa.Table | None
    refusal: MatrixDPError | None = None

    def as_dict(self, first_row: int) -> dict[str, Any]:
        """Return what the record of a release says of it, given the row of the file on which it begins."""
        said: dict[str, Any] = {"name": self.name, "statistic": self.entry.kind, "first_row": first_row}
        if self.table is None:
            return said | {"rows": 0, "note": str(self.refusal)}
        columns, intervals = self.table.column_names, said_of(self.table)["intervals"]
        return said | {"rows": self.table.num_rows, "columns": columns, "intervals": intervals}


class AskedStatistics(DerivedStatistics):
    """The statistics that the workload of a release asks for."""

    @cached_property
    def asked(self) -> tuple[AskedStatistic, ...]:
        """The statistics that the workload asks for, each with its table or why there is none."""
        return asked_statistics(self, self.inference().workload.entries)

    @property
    def statistics(self) -> Mapping[str, pa.Table]:
        """The tables of the statistics that the workload asks for, by their names.

        Raises
        ------
        MatrixDPError
            If one of them cannot be computed.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> asked = mdp.ask.quantile("age", 0.5, name="median age")
        >>> workload = mdp.Workload(mdp.Domain({"age": range(8)}), asked)
        >>> measured = mdp.select(workload).measure({"age": [3] * 500 + [5] * 400}, mdp.Budget(mu=10))
        >>> measured.reconstruct().statistics["median age"]["estimate"].to_pylist()
        [3.0]
        """
        for one in self.asked:
            if one.refusal is not None:
                raise one.refusal
        return {one.name: one.table for one in self.asked}


def asked_statistics(release: Statistics, entries: Iterable[object]) -> tuple[AskedStatistic, ...]:
    """Return the statistics that are among the entries of a workload, in their order.

    What cannot be computed is kept with its reason: the measurement was paid for, whatever follows from it.
    """
    asked = [entry for entry in entries if isinstance(entry, StatisticEntry)]
    titles = {entry.title for entry in asked}
    seen: Counter[str] = Counter()
    found = []
    for entry in asked:
        seen[entry.title] += 1
        name = entry.title
        while seen[entry.title] > 1 and (name := f"{entry.title} ({seen[entry.title]})") in titles:
            seen[entry.title] += 1
        try:
            found.append(AskedStatistic(name, entry, entry.ask(release)))
        except MatrixDPError as error:
            found.append(AskedStatistic(name, entry, None, error))
    return tuple(found)


def statistics_table(asked: Sequence[AskedStatistic]) -> pa.Table:
    """Return all that follow in one table, which begins with the name of the statistic."""
    tables = [(one.name, one.table.replace_schema_metadata()) for one in asked if one.table is not None]
    return joined(tables, STATISTIC)
