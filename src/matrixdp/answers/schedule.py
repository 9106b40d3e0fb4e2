"""When the tables of a series come: each row when the last period that it needs is over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.titles import title, unique
from matrixdp.domain import Attribute
from matrixdp.language.periods import known_after, schedule_in_words
from matrixdp.queries import Group, Workload
from matrixdp.statistics import statistic_of


@final
@dataclass(frozen=True, eq=False)
class Coming:
    """A table of a series.

    Attributes
    ----------
    name : str
        What the table is called.
    known_after : ndarray of int
        The codes of periods after which rows come.
    times : int
        The number of rows for each of them.
    group : Group or None
        The query group; None for a statistic.
    """

    name: str
    known_after: NDArray[np.intp]
    times: int = 1
    group: Group | None = None

    @property
    def rows(self) -> int:
        """How many rows the table has when the series ends."""
        return self.times * len(self.known_after)

    def known(self, periods: int) -> int:
        """Return how many rows are known when the first `periods` periods are over."""
        return self.times * int((self.known_after < periods).sum())

    def words(self, attribute: Attribute) -> str:
        """Return when the rows come, in words."""
        return schedule_in_words(np.unique(self.known_after).tolist(), attribute)


def tables_to_come(workload: Workload, attribute: Attribute) -> Iterator[Coming]:
    """Yield the tables that a workload asks for, without the groups that only serve statistics.

    Parameters
    ----------
    workload : Workload
    attribute : Attribute
        The one whose values are the periods.
    """
    domain = workload.domain
    asked = (own for entry in workload.entries if (own := statistic_of(entry)) is not None)
    names = iter(unique(own.called(domain, title) for own in asked))
    for entry, places in zip(workload.entries, workload.places, strict=True):
        if (statistic := statistic_of(entry)) is not None:
            yield Coming(next(names), statistic.known_after(domain, attribute))
            continue
        for group in workload.groups[places.start : places.stop]:
            known = known_after(group, attribute.name, attribute.size)
            yield Coming(group.name, known, group.queries // len(known), group)


def figures_known(workload: Workload, attribute: Attribute, periods: int) -> int:
    """Return how many rows of the tables of a series are known when the first `periods` periods are over.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> from matrixdp.language import product
    >>> from matrixdp.statistics import ask
    >>> domain = Domain({"age": 90, "month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month"}})
    >>> workload = Workload(domain, product(month={"sliding": 3}), ask.mean("age", by=["month"]))
    >>> [figures_known(workload, domain["month"], periods) for periods in (2, 3, 6)]
    [2, 4, 10]
    """
    return sum(one.known(periods) for one in tables_to_come(workload, attribute))


def schedules(workload: Workload, attribute: str) -> dict[str, list[str]]:
    """Return when answers come, in words, with the names of the tables."""
    periods = workload.domain[attribute]
    found: dict[str, list[str]] = {}
    for one in tables_to_come(workload, periods):
        found.setdefault(one.words(periods), []).append(one.name)
    return found
