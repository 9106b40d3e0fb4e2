"""What a page says beside its tables: key figures, what a publication of a series brought, quartiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matrixdp import queries
from matrixdp.answers.figures import MISSING, UNRELIABLE
from matrixdp.answers.footnotes import chosen_rows, newest
from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.schedule import figures_known
from matrixdp.answers.shown import Shown
from matrixdp.errors import WorkloadError, within
from matrixdp.queries import Group, ProductGroup
from matrixdp.releases.release import Release
from matrixdp.report.tables import PageTable
from matrixdp.statistics.statistic import DIFFERENCE, PERCENT_CHANGE
from matrixdp.texts import Rows

# Key figures: what a reader who reads no table should take away.

#: Rows of a statistic that is a key figure of its own, and key figures, at most.
_KEY_ROWS, _MOST_KEYS = 3, 8


@final
@dataclass(frozen=True)
class KeyFigure:
    """One figure with what it is of, and its interval."""

    label: str
    text: str
    unit: str
    interval: str
    remark: str = ""


def key_figures(release: Release, shown: Sequence[PageTable]) -> list[KeyFigure]:
    """Return the figures that the publication chose, else what a page shows by default.

    That is the newest period, the total, short statistics and the largest change in per cent; none that is
    unreliable.

    Raises
    ------
    WorkloadError
        If the publication chose rows that do not exist.
    """
    chosen = release.publication.key_figures
    if chosen is not None:
        return list(_chosen(release, chosen))
    readable = [one for one in shown if one.shown is not None and one.shown.main is not None]
    counts = [one for one in readable if one.published.group is not None]
    dated = ((one, newest(one.shown)) for one in counts if one.keys == 1 and one.shown is not None)
    found = next(([*_figures(one, rows)] for one, rows in dated if rows is not None and len(rows) == 1), [])
    found += next(([*_figures(one, [0])] for one in counts if not one.keys), [])
    changes = [own for one in readable if one.published.measures == PERCENT_CHANGE for own in _changed(one)]
    room = _MOST_KEYS - bool(changes)
    for one in readable:
        short = 0 < one.published.rows <= min(one.rows, _KEY_ROWS)
        if one.published.group is None and short and one.published.measures != PERCENT_CHANGE:
            own = [*_figures(one, range(one.rows))]
            found += own if len(found) + len(own) <= room else []
    largest = max(changes, key=lambda pair: pair[0], default=None)
    return found if largest is None else [*found, largest[1]]


def _chosen(release: Release, asked: Sequence[str | Rows]) -> Iterator[KeyFigure]:
    """Yield the figures that a publication chose; of a series that goes on, those that there are by now."""
    names = release.chosen
    tables = {one.name: one for one in release.tables}
    for place, own in enumerate(asked):
        rows = Rows(table=own) if isinstance(own, str) else own
        name = names["key_figures", place] if isinstance(own, str) else names["key_figures", place, "table"]
        if name in tables:
            with within("publication", "key_figures", place):
                found = chosen_rows(release, tables[name], rows.where)
            title = "" if rows.title is None else rows.title.within(release.domain.language)
            yield from _figures(PageTable(tables[name], found.shown), found.places, title=title)


def _figures(one: PageTable, places: Iterable[int], remark: str = "", title: str = "") -> Iterator[KeyFigure]:
    """Yield the figures of some rows but those that are unreliable, impossible, or do not exist."""
    assert one.shown is not None
    assert one.shown.main is not None
    figures, rows = one.shown.main, one.shown.rows()
    texts, letters, intervals = figures.texts("estimate"), figures.letters, figures.intervals()
    times = {one.shown.head(own) for own in one.shown.keys if one.shown.dated(own.name)}
    quantiles = [own for own in one.shown.keys if own.name == "quantile"]
    alone = {one.shown.head(own) for own in quantiles if len(one.shown.table[own.name].unique()) == 1}
    for place in places:
        if letters[place] != UNRELIABLE and not (figures.absent | figures.outside)[place]:
            dated = [text for head, text in rows[place] if title and head in times]
            of = [text for head, text in rows[place] if head not in alone]  # as of the quantile of a median
            label = ", ".join([title, *dated] if title else [one.title, *of])
            spread = "" if intervals[place] == MISSING else intervals[place]
            unit = "" if one.published.measures in (PERCENT_CHANGE, "share") else one.published.unit
            yield KeyFigure(label, texts[place], unit, spread, remark)


def _changed(one: PageTable) -> Iterator[tuple[float, KeyFigure]]:
    """Yield the largest of the changes in per cent of the newest period that are clear, with its size."""
    assert one.shown is not None
    assert one.shown.main is not None
    _, _, lower, upper = one.shown.main.values
    rows = newest(one.shown) or []
    clear = [place for place in rows if lower[place] > 0 or upper[place] < 0]
    sizes = np.abs(one.shown.main.values[0])
    if clear:
        largest = max(clear, key=lambda place: float(sizes[place]))
        told = one.shown.say("largest_of", number=one.shown.say.number(len(rows)))
        for own in _figures(one, [largest], told if len(rows) > 1 else ""):
            yield float(sizes[largest]), own


# Quartiles of what a release has cumulative counts of.

#: Values of an attribute, categories of another, and tables, at most.
MAX_VALUES, MAX_STRATA, _MOST = 500, 12, 6


def quartiles(release: Release) -> Iterator[tuple[str, pa.Table]]:
    """Yield a title and the quartiles, for attributes with cumulative counts and one or no other attribute.

    Each is what `Release.quantile` returns.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": range(8)}), mdp.product(age="prefix"))
    >>> release = mdp.select(workload).measure({"age": [3] * 99}, mdp.Budget(rho=9)).reconstruct()
    >>> [(title, table.column("estimate").to_pylist()) for title, table in quartiles(release)]
    [('age', [3.0, 3.0, 3.0])]
    """
    groups = (one.group for one in release.tables if one.group is not None)
    asked = dict.fromkeys(own for group in groups if (own := _cumulated(group)) is not None)
    say, titles = release.presentation.say, {own.name: own.title for own in release.domain}
    for name, others in list(asked)[:_MOST]:
        title = titles[name]
        title = say("by", first=title, rest=titles[others[0]]) if others else title
        yield title, release.quantile(name, by=others)


def _cumulated(group: Group) -> tuple[str, tuple[str, ...]] | None:
    """Return the attribute that a group cumulates, and those by which it does; None where it does not."""
    if not isinstance(group, ProductGroup) or not 1 <= len(group.attributes) <= 2:
        return None
    along, others = [], []
    for (name, own), size in zip(group.sets.items(), group.sizes, strict=True):
        if isinstance(own, queries.Prefix) and size <= MAX_VALUES:
            along.append(name)
        elif isinstance(own, queries.Identity) and size <= MAX_STRATA:
            others.append(name)
        else:
            return None
    return (along[0], tuple(others)) if len(along) == 1 else None


# Series: what the last publication brought.

#: Tables whose changes are listed, and the most rows of each.
_MOST_CHANGED, _MOST_CHANGES = 6, 12


@final
@dataclass(frozen=True)
class News:
    """What is new in the last publication of a series.

    Attributes
    ----------
    through : str
        The last period that is published.
    answers : int
        How many answers are new.
    left : int
        How many periods are left.
    changes : tuple of (str, str, tuple of (str, str))
        For each table by period whether it is compared with the period or the year before, its title, and
        what changed: of what, and how much.
    """

    through: str
    answers: int
    left: int
    changes: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]


def news(release: Release) -> News | None:
    """Return what the last publication of a series brought; None of a release that is no series."""
    if release.series is None:
        return None
    name, published = release.series
    attribute = release.domain[name]
    before = published[-2] if len(published) > 1 else 0
    asked = release.workload
    new = figures_known(asked, attribute, published[-1]) - figures_known(asked, attribute, before)
    found = []
    for one in release.tables:
        for over in ("period", "year"):
            with suppress(WorkloadError):
                rows = tuple(_changes(release, one, over))
                found += [(over, one.title, rows)] * bool(rows)
    through, left = attribute.label(published[-1] - 1), attribute.size - published[-1]
    return News(through, new, left, tuple(found[:_MOST_CHANGED]))


def _changes(
    release: Release, one: PublishedTable, over: Literal["period", "year"]
) -> Iterator[tuple[str, str]]:
    """Yield how the counts of the last period of a table changed, where these are few."""
    assert release.series is not None
    name, published = release.series
    last, rules = published[-1] - 1, release.presentation
    table = release.changes(one, over).to_arrow()
    pairs = tuple((earlier, last) for earlier in range(last))
    texts = queries.Changes(pairs).describe(release.domain[name]) if pairs else []
    kept = table.filter(pc.is_in(table[name].cast(pa.utf8()), pa.array(texts, pa.utf8())))
    if not 0 < len(kept) <= _MOST_CHANGES:
        return
    shown = Shown(kept.drop_columns(["clear"]), DIFFERENCE, replace(rules, suppress_above=None))
    [figures] = shown.figures.values()
    signed = kept["estimate"].to_numpy()
    sizes, margins = map(abs, figures.shown[0]), figures.margins()
    every = zip(sizes, shown.rows(), margins, signed, kept["clear"], strict=True)
    for value, row, margin, change, clear in every:
        direction = ("up" if change > 0 else "down") if clear.as_py() else "no_change"
        told = {"change": figures.text(value), "margin": margin.removeprefix("\N{PLUS-MINUS SIGN} ")}
        yield ", ".join(text for _, text in row), rules.say(direction, **told)
