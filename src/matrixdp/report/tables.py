"""The tables of a release as a page shows them: figures as readers see them, pictures, files, key figures."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from matrixdp import queries
from matrixdp.answers.cross_table import CrossTable, default_cross_table
from matrixdp.answers.figures import MISSING, UNRELIABLE
from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.schedule import figures_known
from matrixdp.answers.shown import QUALITY, Shown
from matrixdp.answers.table import is_key, without_formulas
from matrixdp.answers.titles import file_name
from matrixdp.display import printable
from matrixdp.errors import WorkloadError
from matrixdp.pictures.plots import MAX_DRAWN, Answered, answered_statistic, axes_of
from matrixdp.queries import Group, ProductGroup
from matrixdp.releases.release import Release
from matrixdp.report.accuracy import first_places
from matrixdp.statistics.statistic import DIFFERENCE

#: Tables that are shown, and rows of one table and of the page, at most.
MAX_GROUPS, MAX_GROUP_ROWS, MAX_ROWS = 50, 2_000, 8_000
#: Rows of a table that is too long to be shown whole, and rows of a table that is a key figure of the page.
_FIRST_ROWS, _KEY_ROWS = 50, 3
_MOST_KEYS = 8


@final
@dataclass(frozen=True, eq=False)
class PageTable:
    """One table as a page lays it out.

    Attributes
    ----------
    published : PublishedTable
    shown : Shown or None
        Its rows; None where that is too much for a page, or a statistic could not be computed.
    picture : Answered or None
        What a picture shows: no more than readers see.
    cross : CrossTable or None
        The same figures as rows by columns with totals.
    """

    published: PublishedTable
    shown: Shown | None = None
    picture: Answered | None = None
    cross: CrossTable | None = None

    @property
    def title(self) -> str:
        """What the table is called."""
        return printable(self.published.title)

    @property
    def rows(self) -> int:
        """How many rows are shown."""
        return 0 if self.shown is None else len(self.shown.table)

    @property
    def refusal(self) -> str | None:
        """Why a statistic could not be computed."""
        statistic = self.published.statistic
        return None if statistic is None or statistic.published is not None else str(statistic.refusal)

    @cached_property
    def _fields(self) -> list[pa.Field]:
        """The columns that are shown, what rows are of before the figures."""
        assert self.shown is not None
        table = self.shown.table
        known = [own for own in self.shown.fields if table.column(own.name).null_count < len(table)]
        return sorted(known, key=lambda own: not is_key(own))

    @property
    def graded(self) -> bool:
        """Whether the last column has letters."""
        return self.shown is not None and bool(self.shown.letters)

    @property
    def listed(self) -> bool:
        """Whether the table lists values with the confidence that they are the most frequent."""
        return self.published.statistic is not None and "confidence" in [own.name for own in self._fields]

    @property
    def alone(self) -> str:
        """The attribute or level that a table with a picture is about alone; nothing where there are more."""
        names = [own.name for own in self._fields if is_key(own)] if self.picture is not None else []
        return names[0] if len(names) == 1 else ""

    @property
    def keys(self) -> int:
        """How many columns say what a row is of."""
        return sum(map(is_key, self._fields))

    def heads(self, confidence: float) -> list[str]:
        """Return the headings."""
        assert self.shown is not None
        found = [self.shown.head(field, confidence) for field in self._fields]
        return [*found, self.shown.say(QUALITY)] if self.graded else found

    def lines(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows that are shown, as texts."""
        assert self.shown is not None
        columns = [self.shown.texts(field.name) for field in self._fields]
        yield from zip(*columns, *([self.shown.letters] if self.graded else []), strict=True)

    @property
    def file(self) -> str:
        """The name of a CSV file of the table."""
        return f"{file_name(self.published.name, set())}.csv"

    def csv(self) -> str:
        """Return the whole table as the address of a CSV file that holds it."""
        assert self.shown is not None
        stream = io.BytesIO()
        pacsv.write_csv(without_formulas(self.shown.numbers), stream)
        return data_address("text/csv;charset=utf-8", stream.getvalue())


def data_address(kind: str, content: bytes) -> str:
    """Return an address that holds a file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def shown_tables(release: Release) -> Iterator[PageTable]:
    """Yield the tables of a release as far as a page shows them."""
    left = MAX_ROWS
    inference, rules = release.inference(), release.presentation
    places = set(first_places(release.workload, MAX_GROUPS))
    chosen = [one for one in release.tables if one.place is None or one.place in places]
    for one in chosen[:MAX_GROUPS]:
        if one.rows > MAX_DRAWN or (one.statistic is not None and one.statistic.published is None):
            yield PageTable(one)
            continue
        rows = one.rows if one.rows <= min(left, MAX_GROUP_ROWS) else min(_FIRST_ROWS, left)
        left -= rows
        table = release.table(one).to_arrow()
        shown = Shown(table, one.measures, rules, rows)
        whole = rows == one.rows
        cross = default_cross_table(inference, one, rules) if whole else None
        every = shown if whole else Shown(table, one.measures, rules)
        yield PageTable(one, shown, _picture(release, one, every), cross)


def _picture(release: Release, one: PublishedTable, shown: Shown) -> Answered | None:
    """Return what a picture of a table shows; None where it would say no more than a line of text."""
    # no axis is drawn for what has no bound
    assert shown.main is not None
    hidden = shown.main.hidden | shown.main.unbounded
    if len(hidden) < 2 or hidden.all():
        return None
    if one.group is None:
        return answered_statistic(shown, one.unit).without(hidden)
    axes = axes_of(release.domain, one.group, shown.say)
    told = {"unit": one.unit, "measures": one.measures, "say": shown.say, "exact": shown.main}
    return Answered.of(axes, shown.main.shown, **told).without(hidden)


# Key figures: what a reader who reads no table should take away.


@final
@dataclass(frozen=True)
class KeyFigure:
    """One figure with what it is of, and its interval."""

    label: str
    text: str
    unit: str
    interval: str
    remark: str = ""


def key_figures(shown: Sequence[PageTable]) -> list[KeyFigure]:
    """Return the total, short statistics, and the largest group of attributes; none that is unreliable."""
    counts = [one for one in shown if one.published.group is not None and one.rows]
    totals = [figure for one in counts if not one.keys for figure in _figures(one, [0])][:1]
    largest = [figure for one in counts if (figure := _largest(one)) is not None][:3]
    found = totals
    for one in shown:
        if one.published.statistic is None or not 0 < one.published.rows <= min(one.rows, _KEY_ROWS):
            continue
        own = _figures(one, range(one.rows))
        found += own if len(found) + len(own) + len(largest) <= _MOST_KEYS else []
    return [*found, *largest]


def _figures(one: PageTable, places: Iterable[int], remark: str = "") -> list[KeyFigure]:
    """Return the figures of some rows but those that are unreliable, impossible, or do not exist."""
    assert one.shown is not None
    assert one.shown.main is not None
    figures, rows = one.shown.main, one.shown.rows()
    texts, letters, intervals = figures.texts("estimate"), figures.letters, figures.intervals()
    found = []
    for place in places:
        if letters[place] != UNRELIABLE and not (figures.absent | figures.outside)[place]:
            of = [text for _, text in rows[place]]
            label = f"{one.title}: {', '.join(of)}" if remark else ", ".join([one.title, *of])
            spread = "" if intervals[place] == MISSING else intervals[place]
            found.append(KeyFigure(label, texts[place], one.published.unit, spread, remark))
    return found


def _largest(one: PageTable) -> KeyFigure | None:
    """Return the largest of the counts of categories of one attribute."""
    axes = () if one.picture is None else one.picture.axes
    if (
        len(axes) != 1
        or axes[0].kind != "categories"
        or one.keys != 1
        or not 3 <= one.published.rows <= one.rows
    ):
        return None
    assert one.picture is not None
    say = one.picture.say
    place = int(np.nanargmax(one.picture.estimates))
    return next(iter(_figures(one, [place], say("largest_of", number=say.number(one.rows)))), None)


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
    changes : tuple of (str, tuple of (str, str))
        For each table by period its title, and what changed: of what, and how much.
    """

    through: str
    answers: int
    left: int
    changes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


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
                found += [(one.title, rows)] * bool(rows)
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
    ends = release.domain[name].label(last)
    kept = table.filter(pc.starts_with(table[name].cast(pa.utf8()), f"{ends} "))
    if not 0 < len(kept) <= _MOST_CHANGES:
        return
    shown = Shown(kept, DIFFERENCE, replace(rules, suppress_above=None))
    [figures] = shown.figures.values()
    signed = kept["estimate"].to_numpy()
    sizes, margins = map(abs, figures.shown[0]), figures.margins()
    every = zip(sizes, shown.rows(), margins, signed, kept["clear"], strict=True)
    for value, row, margin, change, clear in every:
        up = "up" if change > 0 else "down"
        direction = up if clear.as_py() else "no_change" if rules.suppress_above is None else "no_figure"
        told = {"change": figures.text(value), "margin": margin.removeprefix("\N{PLUS-MINUS SIGN} ")}
        yield ", ".join(text for _, text in row), rules.say(direction, **told)
