"""The part of a workload that is known when some periods of a series are over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp import forms, queries
from matrixdp.domain import Attribute, Domain
from matrixdp.domain.kinds import PERIODS, Dates
from matrixdp.errors import EntryError, WorkloadError, within
from matrixdp.forms import Record, key, record
from matrixdp.language.entries import ENTRY, Entry, entry_form, find_attribute
from matrixdp.queries import Chosen, ChosenRows, Group, ProductGroup, Spans, Workload
from matrixdp.queries.predicates import Changes, Predicates
from matrixdp.texts import Text

_AT_THE_END = "when the series ends ({})"


def _spans(predicates: Predicates, size: int) -> Spans:
    """Return the first and the last value that each query asks about, -1 where it asks about none."""
    spans = predicates.spans(size)
    return spans if (spans.last >= 0).all() else Spans.of_rows(predicates.rows(size))


def known_after(group: Group, attribute: str, size: int) -> NDArray[np.intp]:
    """Return the period after which each query is known: the last one that it asks about.

    Parameters
    ----------
    group : Group
        The queries.
    attribute : str
        The attribute whose values are the periods.
    size : int
        The number of periods.

    Returns
    -------
    ndarray of int
        The codes of periods: of a product one for each of the attribute's predicates, else one for each
        query. A query without the attribute asks about all periods, one that counts nothing about none (-1).

    Examples
    --------
    >>> from matrixdp.language import product
    >>> domain = Domain({"sex": 2, "month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month"}})
    >>> [group] = product(sex="identity", month={"sliding": 3}).expand(domain)
    >>> known_after(group, "month", 6)
    array([2, 3, 4, 5])
    """
    if attribute not in group.attributes:
        return np.full(1 if isinstance(group, ProductGroup) else group.queries, size - 1)
    axis = group.attributes.index(attribute)
    if isinstance(group, ProductGroup):
        return _spans(group.predicates[axis], size).last
    others = tuple(1 + place for place in range(len(group.sizes)) if place != axis)
    return Spans.of_rows((group.rows().reshape(-1, *group.sizes) != 0).any(axis=others)).last


def each_known_after(group: Group, attribute: Attribute) -> NDArray[np.intp]:
    """Return the same for every query, in the order of the answers.

    Examples
    --------
    >>> from matrixdp.language import product
    >>> domain = Domain({"month": {"from": "2025-01-01", "to": "2025-03-31", "by": "month"}, "sex": 2})
    >>> [group] = product(sex="identity", month={"sliding": 2}).expand(domain)
    >>> each_known_after(group, domain["month"])
    array([1, 1, 2, 2])
    """
    known = known_after(group, attribute.name, attribute.size)
    if isinstance(group, ProductGroup) and attribute.name in group.attributes:
        axis = group.attributes.index(attribute.name)
        known = known.reshape([-1, *[1] * (len(group.counts) - axis - 1)])
        return np.broadcast_to(known, group.counts).ravel()
    return np.broadcast_to(known, group.queries)


def schedule_in_words(periods: Iterable[int], attribute: Attribute) -> str:
    """Return when answers come, given the periods after which some do.

    Examples
    --------
    >>> domain = Domain({"month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month"}})
    >>> for periods in ([5], range(6), [2, 3, 4, 5], [2, 5]):
    ...     print(schedule_in_words(periods, domain["month"]))
    when the series ends (2025-06)
    each month when it is over
    first after 3 months, then each month
    2 times: first after 2025-03, last after 2025-06
    """
    last, unit = attribute.size - 1, getattr(attribute, "by", "period")
    found = sorted({max(period, 0) for period in periods})
    if found == [last]:
        return _AT_THE_END.format(attribute.label(last))
    if found == [*range(found[0], last + 1)]:
        first = f"first after {found[0] + 1} {unit}s, then each {unit}"
        return first if found[0] else f"each {unit} when it is over"
    ends = f"first after {attribute.label(found[0])}, last after {attribute.label(found[-1])}"
    return f"{len(found)} times: {ends}" if len(found) > 1 else f"when {attribute.label(found[0])} is over"


def group_through(group: Group, attribute: str, periods: int, size: int, after: int = -1) -> list[Group]:
    """Return the queries of a group that are known after some periods, as a group of its name.

    None where there are none; with `after` those that were not known after the first `after` periods.
    """
    known = known_after(group, attribute, size)
    kept = (known >= after) & (known < periods)
    if kept.all():
        return [group]
    if not kept.any():
        return []
    places, weights = tuple(np.flatnonzero(kept).tolist()), group.query_weights
    if not isinstance(group, ProductGroup):
        weights = None if weights is None else weights[kept]
        return [replace(group, content=ChosenRows(group.content, places), query_weights=weights)]
    axis = group.attributes.index(attribute)
    if weights is not None:
        weights = np.compress(kept, weights.reshape(group.counts), axis)
    sets = list(group.predicates)
    sets[axis] = Chosen(sets[axis], places)
    return [replace(group, predicates=tuple(sets), query_weights=weights)]


@final
@record
class Through(Record):
    """What an entry asks about the first periods of a series."""

    attribute: str = key(forms.text("the name of an attribute"))
    periods: int = key(forms.whole("an integer of at least 1, the number of periods that are over", least=1))
    entry: Entry = key(ENTRY)


@final
@entry_form
@record
class ThroughEntry(Entry):
    """What an entry asks about the periods that are over; series write it, see `workload_through`."""

    through: Through = key(forms.RecordForm(Through))

    def check(self) -> None:
        super().check()
        own = set(self.to_spec()) - {"through"}
        if own:
            found, expected = f"{', '.join(sorted(own))} beside through", "these keys in its entry"
            raise EntryError.at((), found, expected, code="conflict")

    def texts(self) -> Iterator[tuple[str, Text]]:
        """Yield the texts of its entry by their keys."""
        return self.through.entry.texts()

    def groups(self, domain: Domain) -> list[Group]:
        asked = self.through
        with within("through"):
            size = find_attribute(domain, asked.attribute).size
            if asked.periods > size:
                expected = f"at most {size}, the number of periods"
                raise EntryError.at(("periods",), str(asked.periods), expected, code="out-of-range")
            with within("entry"):
                groups = asked.entry.expand(domain)
        return [own for group in groups for own in group_through(group, asked.attribute, asked.periods, size)]

    def split(self, domain: Domain) -> list[Entry]:
        """Return one entry for each of those that its entry stands for; see `Workload`."""
        asked = self.through.entry
        parts = asked.split(domain) if hasattr(asked, "split") else [asked]
        return [replace(self, through=replace(self.through, entry=part)) for part in parts]


def whole_entry(entry: queries.Entry) -> queries.Entry:
    """Return what an entry asks of a whole series, where it is about the periods that are over."""
    return entry.through.entry if isinstance(entry, ThroughEntry) else entry


def whole_workload(workload: Workload) -> Workload:
    """Return what a workload asks of a whole series, where it is about the periods that are over."""
    if not any(isinstance(entry, ThroughEntry) for entry in workload.entries):
        return workload
    return Workload(workload.domain, *map(whole_entry, workload.entries))


def changes(group: Group, domain: Domain, over: str) -> ProductGroup:
    """Return the changes of counts by period: on the period before, or on the same period a year before.

    Parameters
    ----------
    group : Group
        Counts with a row for each period of an attribute of dates.
    domain : Domain
        The attributes.
    over : {"period", "year"}
        What each period is compared with, where the group has both.

    Raises
    ------
    WorkloadError
        If the group has no rows by period, or none for two periods that are so far apart.

    Examples
    --------
    >>> from matrixdp.language import product
    >>> domain = Domain({"month": {"from": "2024-01-01", "to": "2025-02-28", "by": "month"}})
    >>> [group] = product(month="identity").expand(domain)
    >>> changes(group, domain, "year").predicates[0].describe(domain["month"])
    ['2025-01 less 2024-01', '2025-02 less 2024-02']
    """
    if over not in ("period", "year"):
        raise WorkloadError.at(("over",), repr(over), "period or year", code="unknown-name")
    axis, pairs = comparisons(group, domain, over, "changes")
    assert isinstance(group, ProductGroup)
    spans = _spans(group.predicates[axis], group.sizes[axis])
    if not (spans.first == spans.last).all():
        raise WorkloadError.at(("changes",), repr(group.name), _BY_PERIOD, code="not-supported")
    sets = list(group.predicates)
    codes = spans.first[np.array(pairs)]
    sets[axis] = Changes(tuple((int(earlier), int(later)) for earlier, later in codes))
    return ProductGroup(group.name, group.attributes, tuple(sets), group.sizes)


_BY_PERIOD = "a table of counts with a row for each period of an attribute of dates"


def comparisons(group: Group, domain: Domain, over: str, under: str) -> tuple[int, list[tuple[int, int]]]:
    """Return the axis of a group's periods, and the places of what is compared: the earlier and the later.

    Periods may be single ones, those of a level such as quarters, the year to date or a number of periods up
    to each. The one before ends where a period begins, and is as long where periods overlap; the same one of
    the year before has both ends a year before.

    Parameters
    ----------
    group : Group
    domain : Domain
    over : {"period", "year"}
    under : str
        The key of the counts, for errors.

    Raises
    ------
    WorkloadError
        If the group has no rows by period, or nothing to compare.

    Examples
    --------
    >>> from matrixdp.language import product
    >>> domain = Domain({"month": {"from": "2024-01-01", "to": "2025-02-28", "by": "month"}})
    >>> for sets, over in (("identity", "year"), ("year_to_date", "year"), ({"sliding": 6}, "period")):
    ...     [group] = product(month=sets).expand(domain)
    ...     print(comparisons(group, domain, over, "changes"))
    (0, [(0, 12), (1, 13)])
    (0, [(0, 12), (1, 13)])
    (0, [(0, 6), (1, 7), (2, 8)])
    """
    for axis, name in enumerate(group.attributes):
        dates = domain[name]
        if not (isinstance(group, ProductGroup) and isinstance(dates, Dates) and dates.by in PERIODS):
            continue
        spans = _spans(group.predicates[axis], dates.size)
        if not spans.whole.all():
            continue
        ends = zip(spans.first.tolist(), spans.last.tolist(), strict=True)
        places = {own: place for place, own in enumerate(ends) if own[1] != dates.null_code}
        earlier = _year_before(dates, list(places)) if over == "year" else _before(list(places))
        pairs = [(places[one], places[row]) for row, one in earlier.items() if one in places]
        if not pairs:
            expected = f"a table with periods that are a {over if over == 'year' else dates.by} apart"
            raise WorkloadError.at(("over",), repr(group.name), expected, code="wrong-size")
        return axis, sorted(pairs, key=itemgetter(1))
    raise WorkloadError.at((under,), repr(group.name), _BY_PERIOD, code="not-supported")


_Ends = tuple[int, int]


def _before(rows: list[_Ends]) -> dict[_Ends, _Ends]:
    """Return the ends of what lies just before each range."""
    ordered = sorted(rows)
    if all(one[1] < other[0] for one, other in pairwise(ordered)):
        return {other: one for one, other in pairwise(ordered) if one[1] == other[0] - 1}
    return {(first, last): (2 * first - last - 1, first - 1) for first, last in rows}


def _year_before(dates: Dates, rows: list[_Ends]) -> dict[_Ends, _Ends]:
    """Return the ends of each range in the year before."""
    found, periods = {}, dates.size - (dates.null_code is not None)
    for first, last in rows:
        start, end = dates.year_before(first), dates.year_before(last)
        if last > first and last + 1 < periods:  # what ends with February does, in a leap year as in others
            after = dates.year_before(last + 1)
            end = end if after is None else after - 1
        if start is not None and end is not None:
            found[first, last] = start, end
    return found


def workload_through(workload: Workload, attribute: str, periods: int) -> Workload:
    """Return the queries of a workload that are known when some periods of a series are over.

    Groups keep their names, titles and weights.

    Parameters
    ----------
    workload : Workload
        What is asked of the whole series.
    attribute : str
        The attribute whose values are the periods.
    periods : int
        How many of them are over, from the first one.

    Raises
    ------
    WorkloadError
        If there is no such attribute, or not as many periods, or no query is known yet.

    Examples
    --------
    >>> from matrixdp.language import marginals, product
    >>> domain = Domain({"sex": 2, "month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month"}})
    >>> workload = Workload(domain, marginals(1), product(month={"sliding": 3}, sex="identity"))
    >>> [(group.name, group.queries) for group in workload_through(workload, "month", 4)]
    [('month', 4), ('sex, month: identity x sliding 3', 4)]
    """
    if attribute in workload.domain and periods == workload.domain[attribute].size:
        return workload
    made = [
        ThroughEntry.read({"through": {"attribute": attribute, "periods": periods, "entry": entry}})
        for entry in workload.entries
    ]
    return Workload(workload.domain, *made)
