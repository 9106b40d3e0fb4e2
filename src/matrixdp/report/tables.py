"""The tables of a release as a page shows them: figures as readers see them, pictures, files, key figures."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from matrixdp import queries
from matrixdp.answers.cross_table import CrossTable, default_cross_table
from matrixdp.answers.intervals import decimals_of
from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.quality import (
    MISSING,
    QUALITY,
    UNRELIABLE,
    Presentation,
    deviations_of,
    for_readers,
    suppressed_rows,
    texts_for_readers,
)
from matrixdp.answers.schedule import figures_known
from matrixdp.answers.table import BOUND, FIGURES, figure_of, heading, is_key, without_formulas
from matrixdp.answers.titles import file_name
from matrixdp.display import printable
from matrixdp.errors import WorkloadError
from matrixdp.pictures.plots import MAX_DRAWN, Answered, answered_statistic, axes_of
from matrixdp.queries import Group, ProductGroup
from matrixdp.releases.release import Release
from matrixdp.report.accuracy import first_places

#: Tables that are shown, and rows of one table and of the page, at most.
MAX_GROUPS, MAX_GROUP_ROWS, MAX_ROWS = 50, 2_000, 8_000
#: Rows of a table that is too long to be shown whole, and rows of a table that is a key figure of the page.
_FIRST_ROWS, _KEY_ROWS = 50, 3
_MOST_KEYS = 8


@final
@dataclass(frozen=True, eq=False)
class Shown:
    """One table as a page shows it.

    Attributes
    ----------
    published : PublishedTable
    table : pyarrow.Table or None
        What the release has; None where that is too much for a page, or a statistic could not be computed.
    presentation : Presentation
        What readers see of figures.
    rows : int
        How many rows are shown.
    picture : Answered or None
        What a picture shows: no more than readers see.
    cross : CrossTable or None
        The same figures as rows by columns with totals.
    """

    published: PublishedTable
    table: pa.Table | None = None
    presentation: Presentation = field(default_factory=Presentation)
    rows: int = 0
    picture: Answered | None = None
    cross: CrossTable | None = None

    @property
    def title(self) -> str:
        """What the table is called."""
        return printable(self.published.title)

    @property
    def refusal(self) -> str | None:
        """Why a statistic could not be computed."""
        statistic = self.published.statistic
        return None if statistic is None or statistic.published is not None else str(statistic.refusal)

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        return texts_for_readers(self.table, self.published.measures, self.presentation, self.rows)

    @cached_property
    def _fields(self) -> list[pa.Field]:
        """The columns that are shown, what rows are of before the figures."""
        assert self.table is not None
        pairs = zip(self.table.schema, self.table.columns, strict=True)
        known = [f for f, column in pairs if column.null_count < len(self.table) and f.name in self._texts]
        shown = [field for field in known if BOUND not in (field.metadata or {})]
        return sorted(shown, key=lambda own: not is_key(own))

    @property
    def graded(self) -> bool:
        """Whether the last column has letters."""
        return QUALITY in self._texts

    @property
    def listed(self) -> bool:
        """Whether the table lists values with the confidence that they are the most frequent."""
        return self.published.statistic is not None and "confidence" in self._texts

    @property
    def alone(self) -> str:
        """The attribute or level that a table with a picture is about alone; nothing where there are more."""
        names = [own.name for own in self._fields if is_key(own)]
        return names[0] if len(names) == 1 and self.picture is not None else ""

    @property
    def keys(self) -> int:
        """How many columns say what a row is of."""
        return sum(map(is_key, self._fields))

    def heads(self, confidence: str) -> list[str]:
        """Return the headings."""
        say = self.presentation.say
        found = [printable(heading(field, say, confidence)) for field in self._fields]
        return [*found, say(QUALITY)] if self.graded else found

    def lines(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows that are shown, as texts."""
        names = [field.name for field in self._fields] + ([QUALITY] if self.graded else [])
        yield from zip(*(self._texts[name] for name in names), strict=True)

    @cached_property
    def readable(self) -> pa.Table:
        """The whole table as readers see it, with numbers as numbers."""
        return for_readers(self.table, self.published.measures, self.presentation)

    @property
    def file(self) -> str:
        """The name of a CSV file of the table."""
        return f"{file_name(self.published.name, set())}.csv"

    def csv(self) -> str:
        """Return the whole table as the address of a CSV file that holds it."""
        stream = io.BytesIO()
        pacsv.write_csv(without_formulas(self.readable), stream)
        return data_address("text/csv;charset=utf-8", stream.getvalue())

    def keyed(self) -> Iterator[tuple[list[str], dict[str, str]]]:
        """Yield of each row that is shown what it is of, and its figures and its letter by their names."""
        keys = [field.name for field in self._fields if is_key(field)]
        kinds = [field.name for field in self._fields if figure_of(field) and field.name in FIGURES]
        kinds += [QUALITY] * self.graded
        for place in range(self.rows):
            of = [self._texts[name][place] for name in keys]
            yield of, {name: self._texts[name][place] for name in kinds}


def data_address(kind: str, content: bytes) -> str:
    """Return an address that holds a file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def shown_tables(release: Release, presentation: Presentation) -> Iterator[Shown]:
    """Yield the tables of a release as far as a page shows them."""
    left = MAX_ROWS
    inference = release.inference()
    places = set(first_places(release.workload, MAX_GROUPS))
    chosen = [one for one in release.tables if one.place is None or one.place in places]
    for one in chosen[:MAX_GROUPS]:
        if one.rows > MAX_DRAWN or (one.statistic is not None and one.statistic.published is None):
            yield Shown(one, presentation=presentation)
            continue
        rows = one.rows if one.rows <= min(left, MAX_GROUP_ROWS) else min(_FIRST_ROWS, left)
        left -= rows
        table = release.table(one)
        whole = rows == one.rows
        cross = default_cross_table(inference, one, presentation) if whole else None
        picture = _picture(release, one, table, presentation)
        yield Shown(one, table, presentation, rows, picture, cross)


def _picture(
    release: Release, one: PublishedTable, table: pa.Table, presentation: Presentation
) -> Answered | None:
    """Return what a picture of a table shows; None where it would say no more than a line of text."""
    seen, say = for_readers(table, one.measures, presentation), presentation.say
    # no axis is drawn for what has no bound
    hidden = np.array(suppressed_rows(seen)) | np.isinf(deviations_of(table))
    if len(hidden) < 2 or hidden.all():
        return None
    if one.group is None:
        figures = seen.drop_columns([QUALITY]) if QUALITY in seen.column_names else seen
        return answered_statistic(figures, one.unit, say).without(hidden)
    columns = (seen.column(name).to_numpy() for name in FIGURES)
    estimates, stddevs, lower, upper = (np.asarray(own, dtype=np.float64) for own in columns)
    axes = axes_of(release.domain, one.group, say)
    return Answered(axes, estimates, stddevs, lower, upper, one.unit, say=say).without(hidden)


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


def key_figures(shown: Sequence[Shown]) -> list[KeyFigure]:
    """Return the total, short statistics, and the largest group of attributes; none that is unreliable."""
    counts = [one for one in shown if one.table is not None and one.published.group is not None and one.rows]
    totals = [figure for one in counts if not one.keys for figure in _figures(one, 1)][:1]
    largest = [figure for one in counts if (figure := _largest(one)) is not None][:3]
    asked = [one for one in shown if one.table is not None and one.published.statistic is not None]
    found = totals
    for one in asked:
        own = _figures(one, _KEY_ROWS) if 0 < one.published.rows <= _KEY_ROWS else []
        found += own if len(found) + len(own) + len(largest) <= _MOST_KEYS else []
    return [*found, *largest]


def _figures(one: Shown, most: int) -> list[KeyFigure]:
    return [
        _key_figure(one, of, figures)
        for of, figures in list(one.keyed())[:most]
        if figures["estimate"] != MISSING and figures.get(QUALITY) != UNRELIABLE
    ]


def _key_figure(one: Shown, of: list[str], figures: dict[str, str], remark: str = "") -> KeyFigure:
    low, high = figures.get("lower", MISSING), figures.get("upper", MISSING)
    interval = "" if MISSING in (low, high) else one.presentation.say("range", low=low, high=high)
    label = f"{one.title}: {', '.join(of)}" if remark else ", ".join([one.title, *of])
    return KeyFigure(label, figures["estimate"], one.published.unit, interval, remark)


def _largest(one: Shown) -> KeyFigure | None:
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
    place = int(np.nanargmax(one.picture.estimates))
    of, figures = list(one.keyed())[place]
    remark = one.presentation.say("largest_of", number=f"{one.rows:,}")
    return None if figures.get(QUALITY) == UNRELIABLE else _key_figure(one, of, figures, remark)


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


def news(release: Release, presentation: Presentation) -> News | None:
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
                rows = tuple(_changes(release, one, over, presentation))
                found += [(one.title, rows)] * bool(rows)
    through, left = attribute.label(published[-1] - 1), attribute.size - published[-1]
    return News(through, new, left, tuple(found[:_MOST_CHANGED]))


def _changes(
    release: Release, one: PublishedTable, over: Literal["period", "year"], presentation: Presentation
) -> Iterator[tuple[str, str]]:
    """Yield how the counts of the last period of a table changed, where these are few."""
    assert release.series is not None
    name, published = release.series
    last = release.domain[name].label(published[-1] - 1)
    table = release.changes(one, over)
    rows = [row for row in table.to_pylist() if str(row[name]).startswith(f"{last} ")]
    if len(rows) > _MOST_CHANGES:
        return
    least = min((row["stddev"] for row in rows), default=0.0)
    for row in rows:
        half, unit, digits = (row["upper"] - row["lower"]) / 2, one.measures, decimals_of(least)
        texts = [
            presentation.text(
                float(presentation.shown(np.array([value]), kind, unit, digits)[0]), unit, digits
            )
            for value, kind in ((abs(row["estimate"]), "estimate"), (half, "upper"))
        ]
        direction = "no_change" if not row["clear"] else "up" if row["estimate"] > 0 else "down"
        if direction == "no_change" and presentation.suppress_above is not None:
            direction = "no_figure"
        keys = [str(row[own]) for own in table.column_names if own in release.domain and own != name]
        of = ", ".join([str(row[name]), *(key for key in keys if key != "None")])
        yield printable(of), presentation.say(direction, change=texts[0], margin=texts[1])
