"""The tables that a workload asks for: counts, and statistics without the counts that only serve them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from matrixdp.answers.inference import AskedStatistic
from matrixdp.answers.titles import title, unique
from matrixdp.plan import Analysis
from matrixdp.queries import Group, Workload
from matrixdp.statistics import StatisticEntry


@final
@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A table that a workload asks for: the answers of one query group, or one statistic.

    Attributes
    ----------
    title : str
        What the table is called; no two tables of a release are called the same.
    unit : str
        Of the estimates: records, a share, or what the attribute counts.
    group : Group or None
        The query group; None for a statistic.
    place : int or None
        The place of the group in the workload.
    statistic : AskedStatistic or None
        The statistic; its ``table`` is None where it could not be computed, and ``refusal`` says why.
    """

    title: str
    unit: str
    group: Group | None = None
    place: int | None = None
    statistic: AskedStatistic | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        if self.group is not None:
            return self.group.queries
        table = None if self.statistic is None else self.statistic.table
        return 0 if table is None else int(table.num_rows)


def published_tables(workload: Workload, asked: Sequence[AskedStatistic]) -> tuple[PublishedTable, ...]:
    """Return the tables that a workload asks for, in its order.

    Query groups that exist only to serve a statistic are not among them; `helper_tables` has those.
    """
    statistics = iter(asked)
    found: list[tuple[str, str, int | None, AskedStatistic | None]] = []
    for entry, places in zip(workload.entries, workload.places, strict=True):
        if isinstance(entry, StatisticEntry):
            found.append((entry.title, entry.unit, None, next(statistics)))
        else:
            found += [(title(workload.groups[place]), "records", place, None) for place in places]
    names = unique(name for name, *_ in found)
    return tuple(
        PublishedTable(name, unit, None if place is None else workload.groups[place], place, statistic)
        for name, (_, unit, place, statistic) in zip(names, found, strict=True)
    )


def helper_tables(workload: Workload) -> tuple[PublishedTable, ...]:
    """Return the answers of the query groups that exist only to serve statistics."""
    places = [
        place
        for entry, own in zip(workload.entries, workload.places, strict=True)
        if isinstance(entry, StatisticEntry)
        for place in own
    ]
    names = unique(title(workload.groups[place]) for place in places)
    return tuple(
        PublishedTable(name, "", workload.groups[place], place)
        for name, place in zip(names, places, strict=True)
    )


def table_errors(table: PublishedTable, analysis: Analysis) -> tuple[float, float] | None:
    """Return the root mean square and the largest of a table's standard errors; None where it has none."""
    if table.group is not None:
        error = analysis.group(table.group)
        return math.sqrt(error.total / table.group.queries), math.sqrt(error.largest)
    found = None if table.statistic is None else table.statistic.table
    if found is None:
        return None
    known = found.column("stddev").to_numpy()
    known = known[np.isfinite(known)]
    return (math.sqrt(float((known**2).mean())), float(known.max())) if len(known) else None
