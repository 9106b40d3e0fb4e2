"""The tables that a workload asks for: counts, and statistics without the counts that only serve them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from matrixdp.answers.inference import AskedStatistic, named_statistics
from matrixdp.answers.titles import find_group, title, unique
from matrixdp.domain import Domain
from matrixdp.errors import WorkloadError, within
from matrixdp.plans import Analysis
from matrixdp.privacy.persons import counts_persons
from matrixdp.queries import Group, Workload
from matrixdp.queries.groups import asked_attributes, subtracts
from matrixdp.statistics import statistic_of
from matrixdp.statistics.statistic import DIFFERENCE, KINDS, PERCENT_CHANGE, SQUARED, attribute_of
from matrixdp.texts import ENGLISH, Described, Publication, Words, words_in


@final
@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A table that a workload asks for: the answers of one query group, or one statistic.

    Attributes
    ----------
    name : str
        What files and commands call the table; no two tables of a release are called the same.
    title : str
        What readers call it, in the language of the release; no two have the same.
    measures : str
        What the estimates are: records, a difference of them, a share, or the name of an attribute.
    unit : str
        The same in the words of readers.
    note, source : str
        What readers are told besides; empty where nothing is.
    attributes : tuple of str
        The attributes that it is about.
    group : Group or None
        The query group; None for a statistic.
    place : int or None
        The place of the group in the workload.
    statistic : AskedStatistic or None
        The statistic; its ``table`` is None where it could not be computed, and ``refusal`` says why.
    """

    name: str
    title: str
    measures: str
    unit: str
    note: str = ""
    source: str = ""
    attributes: tuple[str, ...] = ()
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


def published_tables(
    workload: Workload,
    asked: Sequence[AskedStatistic] | None = None,
    say: Words = ENGLISH,
    records: str | None = None,
) -> tuple[PublishedTable, ...]:
    """Return the tables that a workload asks for, in its order.

    Query groups that exist only to serve a statistic are not among them; `helper_tables` has those. Without
    ``asked``, statistics are among them by their names alone. ``records`` is what readers call records, if
    that is another word than that of the language.
    """
    domain, statistics = workload.domain, {one.place: one for one in asked or ()}
    unit_of = {"records": records or say("records"), "persons": say("persons")}
    named = named_statistics(domain, workload.entries)
    found: list[PublishedTable] = []
    for number, (entry, places) in enumerate(zip(workload.entries, workload.places, strict=True)):
        told = entry.told(domain.language) if isinstance(entry, Described) else {}
        called, words = told.pop("title", ""), (told.get("note", ""), told.get("source", ""))
        if number in named:
            if asked is not None and number not in statistics:
                continue  # of a series, nothing of it is known yet
            name, statistic = named[number]
            measured = statistic.measures
            unit = told.get("unit") or _unit(domain, measured, unit_of["records"], say)
            own = called or statistic.spoken(domain, say, lambda group: title(group, domain, say))
            about = domain.sort({n for place in places for n in asked_attributes(workload.groups[place])})
            one = PublishedTable(name, own, measured, unit, *words, about, statistic=statistics.get(number))
            found.append(one)
            continue
        for place in places:
            group = workload.groups[place]
            own = called or title(group, domain, say)
            if called and len(places) > 1:
                plain = replace(group, name=", ".join(group.attributes) or "total")
                own = f"{called}: {title(plain, domain, say)}"
            unit = told.get("unit") or unit_of["persons" if counts_persons(entry) else "records"]
            measured = DIFFERENCE if subtracts(group) else "records"
            about = asked_attributes(group)
            found.append(PublishedTable(title(group), own, measured, unit, *words, about, group, place))
    names, titles = (unique(getattr(one, key) for one in found) for key in ("name", "title"))
    triples = zip(names, titles, found, strict=True)
    return tuple(replace(one, name=name, title=called) for name, called, one in triples)


def find_table(
    tables: Sequence[PublishedTable], groups: Sequence[Group], called: str
) -> PublishedTable | int:
    """Return the table that is called so, by its title, name or attributes, or the place of a group.

    Raises
    ------
    WorkloadError
        If no table or several are called so.
    """
    named = {one.name: one for one in tables if one.group is None}
    named |= {one.title: one for one in tables if one.title != one.name}
    place = find_group(groups, called, list(named), [one.title for one in tables])
    if place >= len(groups):
        return list(named.values())[place - len(groups)]
    return next((one for one in tables if one.place == place), place)


def chosen_tables(workload: Workload, publication: Publication) -> dict[tuple[str | int, ...], str]:
    """Return the names of the tables that a publication speaks of, by the places where it does.

    Raises
    ------
    WorkloadError
        If there is no such table, or it only serves a statistic.
    """
    asked = publication.named
    if not asked:
        return {}
    spoken = workload.in_language(publication.language)
    tables = published_tables(spoken, say=words_in(publication.language))
    found = {}
    for place, called in asked.items():
        with within("publication", *place):
            one = find_table(tables, spoken.groups, called)
            if isinstance(one, int):
                expected = "a table of its own; this one serves a statistic"
                raise WorkloadError.at((), repr(called), expected, code="not-supported")
        found[place] = one.name
    return found


def ordered(
    tables: Sequence[PublishedTable], chosen: Mapping[tuple[str | int, ...], str]
) -> list[PublishedTable]:
    """Return tables in the order of a publication: those that it names first, the others as they were."""
    names = [name for place, name in chosen.items() if place[0] == "order"]
    return sorted(tables, key=lambda one: names.index(one.name) if one.name in names else len(names))


def _unit(domain: Domain, measured: str, records: str, say: Words) -> str:
    """Return what figures are in the words of readers: in the unit of the attribute that they are of."""
    if measured == PERCENT_CHANGE:
        return "%"
    own = attribute_of(measured)
    name = own if own in domain else own.removesuffix(SQUARED)
    if measured in KINDS or name not in domain:
        return records if measured in ("records", DIFFERENCE) else say.texts.get(measured, measured)
    attribute = domain[name]
    return attribute.told.get("unit", attribute.title) + own.removeprefix(name)


def attribute_notes(
    domain: Domain, say: Words, names: Collection[str] | None = None
) -> list[tuple[str, str]]:
    """Return the title of each attribute, or of each of some, that has a note or a source, and these."""
    asked = [own for own in domain if names is None or own.name in names]
    told = [(own.title, own.told.get("note", ""), own.told.get("source", "")) for own in asked]
    pairs = [(title, note, say("source", source=source) if source else "") for title, note, source in told]
    return [(title, " ".join(filter(None, texts))) for title, *texts in pairs if any(texts)]


def helper_tables(workload: Workload) -> tuple[PublishedTable, ...]:
    """Return the answers of the query groups that exist only to serve statistics."""
    places = [
        place
        for entry, own in zip(workload.entries, workload.places, strict=True)
        if statistic_of(entry) is not None
        for place in own
    ]
    names = unique(title(workload.groups[place]) for place in places)
    return tuple(
        PublishedTable(name, name, "", "", group=workload.groups[place], place=place)
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
