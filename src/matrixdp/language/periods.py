"""The part of a workload that is known when some periods of a series are over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp import forms
from matrixdp.domain import Attribute, Domain
from matrixdp.domain.kinds import PERIODS, Dates
from matrixdp.errors import EntryError, WorkloadError, within
from matrixdp.forms import Record, key, record
from matrixdp.language.entries import ENTRY, Entry, entry_form, find_attribute
from matrixdp.queries import Chosen, ChosenRows, Group, ProductGroup, Spans, Workload
from matrixdp.queries.predicates import Changes, Predicates
from matrixdp.texts import Text

_AT_THE_END = "when the series ends ({})"


def _last_of(predicates: Predicates, size: int) -> NDArray[np.intp]:
    """Return the last value that each query asks about, -1 where it asks about none."""
    last = predicates.spans(size).last
    return last if (last >= 0).all() else Spans.of_rows(predicates.rows(size)).last


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
        return _last_of(group.predicates[axis], size)
    others = tuple(1 + place for place in range(len(group.sizes)) if place != axis)
    return Spans.of_rows((group.rows().reshape(-1, *group.sizes) != 0).any(axis=others)).last


def queries_known(groups: Iterable[Group], attribute: Attribute, periods: int) -> int:
    """Return how many queries are known when the first `periods` periods are over.

    Examples
    --------
    >>> from matrixdp.language import product
    >>> domain = Domain({"sex": 2, "month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month"}})
    >>> workload = Workload(domain, product(sex="identity", month={"sliding": 3}), product(sex="identity"))
    >>> [queries_known(workload, domain["month"], periods) for periods in (2, 3, 6)]
    [0, 2, 10]
    """
    total = 0
    for group in groups:
        known = known_after(group, attribute.name, attribute.size)
        total += group.queries // len(known) * int((known < periods).sum())
    return total


def schedule(group: Group, attribute: str, size: int) -> tuple[int, ...]:
    """Return the periods after which answers of a group come, each once and in order; see `known_after`.

    Examples
    --------
    >>> from matrixdp.language import product
    >>> domain = Domain({"sex": 2, "month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month"}})
    >>> by_sex, windows = Workload(domain, product(sex="identity"), product(month={"sliding": 3}))
    >>> schedule(by_sex, "month", 6), schedule(windows, "month", 6)
    ((5,), (2, 3, 4, 5))
    """
    return tuple(np.unique(np.maximum(known_after(group, attribute, size), 0)).tolist())


def schedule_in_words(group: Group, attribute: Attribute) -> str:
    """Return when the answers of a group come.

    Examples
    --------
    >>> from matrixdp.language import product
    >>> domain = Domain({"sex": 2, "month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month"}})
    >>> entries = product(sex="identity"), product(month="prefix"), product(month={"sliding": 3})
    >>> for group in Workload(domain, *entries):
    ...     print(schedule_in_words(group, domain["month"]))
    when the series ends (2025-06)
    each month when it is over
    first after 3 months, then each month
    """
    last, unit = attribute.size - 1, getattr(attribute, "by", "period")
    found = schedule(group, attribute.name, attribute.size)
    if found == (last,):
        return _AT_THE_END.format(attribute.label(last))
    if found == tuple(range(found[0], last + 1)):
        first = f"first after {found[0] + 1} {unit}s, then each {unit}"
        return first if found[0] else f"each {unit} when it is over"
    ends = f"first after {attribute.label(found[0])}, last after {attribute.label(found[-1])}"
    return f"{len(found)} times: {ends}" if len(found) > 1 else f"when {attribute.label(found[0])} is over"


def schedules(workload: Workload, attribute: str) -> dict[str, list[str]]:
    """Return when answers come, in words, with the names of the groups; see `schedule_in_words`."""
    periods = workload.domain[attribute]
    found: dict[str, list[str]] = {}
    for entry, places in zip(workload.entries, workload.places, strict=True):
        for group in workload.groups[places.start : places.stop]:
            at_the_end = isinstance(entry, Entry) and entry.whole
            words = _AT_THE_END.format(periods.label(periods.size - 1)) if at_the_end else ""
            found.setdefault(words or schedule_in_words(group, periods), []).append(group.name)
    return found


def _through(group: Group, attribute: str, periods: int, size: int) -> list[Group]:
    """Return the queries of a group that are known by a period, as a group of the same name, or none."""
    kept = known_after(group, attribute, size) < periods
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
        if asked.entry.whole and asked.periods < size:
            return []
        return [own for group in groups for own in _through(group, asked.attribute, asked.periods, size)]


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
    for axis, name in enumerate(group.attributes):
        dates = domain[name]
        if not (isinstance(group, ProductGroup) and isinstance(dates, Dates) and dates.by in PERIODS):
            continue
        spans = group.predicates[axis].spans(dates.size)
        if not (spans.whole & (spans.first == spans.last)).all():
            continue
        known = spans.first.tolist()
        earlier = ((dates.year_before(code) if over == "year" else code - 1, code) for code in known)
        pairs = tuple((before, code) for before, code in earlier if before is not None and before in known)
        if not pairs:
            expected = f"a table with periods that are a {over if over == 'year' else dates.by} apart"
            raise WorkloadError.at(("over",), repr(group.name), expected, code="wrong-size")
        sets = list(group.predicates)
        sets[axis] = Changes(pairs)
        return ProductGroup(group.name, group.attributes, tuple(sets), group.sizes)
    expected = "a table of counts with a row for each period of an attribute of dates"
    raise WorkloadError.at(("changes",), repr(group.name), expected, code="not-supported")


def workload_through(workload: Workload, attribute: str, periods: int) -> Workload:
    """Return the queries of a workload that are known when some periods of a series are over.

    Groups keep their names, titles and weights. Statistics are known when the series ends.

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
