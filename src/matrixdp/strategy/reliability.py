"""Which counts will be reliable, before anything is measured: from their errors and a number of records.

The number is public: how many records the table should have, or those of a table that is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from matrixdp.answers.figures import GRADES
from matrixdp.privacy import Budget
from matrixdp.queries import Group, ProductGroup, Workload
from matrixdp.queries.groups import subtracts
from matrixdp.queries.workload import largest_value
from matrixdp.selection.forecast import forecast
from matrixdp.selection.problem.gather_groups import GivenGroups
from matrixdp.strategy.strategy import Strategy, select

LARGEST_SHARE = GRADES[-1][1]
"""The standard error of a reliable count is at most this share of it."""

#: A programme is told of where fewer of its counts are reliable, if that takes no more seconds to find.
_FEW, _MOST_SECONDS = 0.2, 5.0


@final
@dataclass(frozen=True)
class ExpectedCounts:
    """The counts of a query group.

    Attributes
    ----------
    group : Group
        What is counted.
    stddev : float
        Their typical standard error.
    average : float
        Their average, if the records were spread evenly over the domain.
    """

    group: Group
    stddev: float
    average: float

    @property
    def reliable(self) -> bool:
        """Whether the standard error is at most a third of the average count."""
        return self.stddev <= LARGEST_SHARE * self.average


def expected_counts(strategy: Strategy, budget: Budget, records: int) -> Iterator[ExpectedCounts]:
    """Yield what is to be expected of each group of products that counts records.

    Parameters
    ----------
    strategy : Strategy
        What will be measured.
    budget : Budget
        What will be spent.
    records : int
        How many records there are, a public number.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "age": 100}), mdp.marginals(1))
    >>> strategy = mdp.select(workload, noise="gaussian")
    >>> [(own.average, own.reliable) for own in expected_counts(strategy, mdp.Budget(mu=0.5), 1_000)]
    [(500.0, True), (10.0, True)]
    """
    scale = strategy.selection.noise.error_scale(budget)
    for group, error in zip(strategy.workload, strategy.priced(budget).errors, strict=True):
        if isinstance(group, ProductGroup) and not largest_value(group) and not subtracts(group):
            pairs = zip(group.predicates, group.sizes, strict=True)
            shares = (sets.column_sums(size, 1).mean() / sets.count(size) for sets, size in pairs)
            stddev = math.sqrt(error.total / group.queries / scale)
            yield ExpectedCounts(group, stddev, records * math.prod(map(float, shares)))


def reliable_counts(expected: Iterable[ExpectedCounts]) -> tuple[int, int]:
    """Return how many of some expected counts are reliable, and how many there are.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> group = Workload(mdp.Domain({"sex": 2}), mdp.marginals(1)).groups[0]
    >>> reliable_counts([ExpectedCounts(group, 3.0, 9.0), ExpectedCounts(group, 3.1, 9.0)])
    (2, 4)
    """
    counts = [(own.group.queries, own.reliable) for own in expected]
    return sum(queries for queries, reliable in counts if reliable), sum(queries for queries, _ in counts)


def noise_warnings(workload: Workload, budget: Budget | None, records: int | None) -> tuple[str, ...]:
    """Return that nearly all cells of the tables of a workload will be noise, where that is soon known.

    Parameters
    ----------
    workload : Workload
        What will be asked. Only its tables are looked at: with all else, their errors grow.
    budget : Budget, optional
        What will be spent.
    records : int, optional
        How many records the table should have, a public number.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({f"q{k}": 20 for k in range(20)})
    >>> asked = mdp.Workload(domain, mdp.marginals([1, 2])), mdp.Budget(rho=0.1)
    >>> noise_warnings(*asked, 1_000_000)
    ()
    >>> print(noise_warnings(*asked, 10_000)[0][:89])
    workload: of 76,400 counts in tables about 400 can be told from noise with 10,000 records
    """
    tables = tuple(filter(_is_table, workload))
    if budget is None or records is None or not tables:
        return ()
    asked = Workload(workload.domain, GivenGroups(tables))
    if (forecast(asked, budget).select_seconds or 0.0) > _MOST_SECONDS:
        return ()
    found = list(expected_counts(select(asked, budget=budget), budget, records))
    reliable, counts = reliable_counts(found)
    if reliable >= _FEW * counts:
        return ()
    worst = min(found, key=lambda own: own.average)
    told = f"{worst.average:.2g} records a cell with a standard error of {worst.stddev:.2g}"
    return (
        f"workload: of {counts:,} counts in tables about {reliable:,} can be told from noise with "
        f"{records:,} records spread evenly; {' x '.join(worst.group.attributes)} has {told}: ask for fewer "
        "tables, give attributes fewer values, or spend more",
    )


def _is_table(group: Group) -> bool:
    """Return whether errors are known in closed form: cells, sums of cells, and the total."""
    if not isinstance(group, ProductGroup) or largest_value(group):
        return False
    pairs = zip(group.predicates, group.sizes, strict=True)
    return all(sets.symmetric(size) is not None for sets, size in pairs)
