"""The tables of a release as a page shows them: figures as readers see them, pictures, footnotes, files."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from matrixdp.answers.cross_table import CrossTable, default_cross_table
from matrixdp.answers.footnotes import Mark, footnotes
from matrixdp.answers.publication import PublishedTable, attribute_notes, ordered
from matrixdp.answers.shown import QUALITY, Shown
from matrixdp.answers.table import figure_of, is_key, subject_of, without_formulas
from matrixdp.answers.titles import file_name
from matrixdp.display import printable
from matrixdp.pictures.plots import MAX_DRAWN, Answered, answered_group, answered_statistic
from matrixdp.releases.release import Release
from matrixdp.report.accuracy import first_places

#: Tables that are shown, and rows of one table and of the page, at most.
MAX_GROUPS, MAX_GROUP_ROWS, MAX_ROWS = 50, 2_000, 8_000
#: Rows of a table that is too long to be shown whole.
_FIRST_ROWS = 50
#: Letters in a row of a cross table that stands beside a picture, at most.
_BESIDE = 64
#: Rows that a warning names, at most.
_NAMED = 4


@final
@dataclass(frozen=True)
class Column:
    """A column of a list: its heading, what it holds, and its cells: a text, and the margin beside it."""

    head: str
    kind: Literal["key", "figure", "letter"]
    cells: Sequence[tuple[str, str]]


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
    definitions : tuple of (str, str)
        The attributes that it is about, with their notes.
    marks : tuple of Mark
        Its footnotes.
    anchor : str
        What links call it.
    """

    published: PublishedTable
    shown: Shown | None = None
    picture: Answered | None = None
    cross: CrossTable | None = None
    definitions: Sequence[tuple[str, str]] = ()
    marks: Sequence[Mark] = ()
    anchor: str = ""

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
    def single(self) -> bool:
        """Whether it is one figure."""
        return (
            self.rows == self.published.rows == 1 and self.shown is not None and self.shown.main is not None
        )

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

    @property
    def beside(self) -> bool:
        """Whether table and picture stand side by side: the table has few columns, the picture one axis."""
        if self.picture is None or self.rows < self.published.rows:
            return False
        if self.cross is not None:
            return len(self.cross.panels) == 1 and _width(self.cross) <= _BESIDE
        return self.keys == 1

    def columns(self) -> Iterator[Column]:
        """Yield what the list shows: what rows are of, estimates with their margins, and letters."""
        assert self.shown is not None
        for own in self._fields:
            head, texts = self.shown.head(own), self.shown.texts(own.name)
            figure = figure_of(own)
            if figure in ("", "estimate") and own.name != "warning":
                margins = self.shown.figures[subject_of(own)].margins() if figure else [""] * len(texts)
                yield Column(head, "key" if is_key(own) else "figure", [*zip(texts, margins, strict=True)])
        if self.shown.letters:
            yield Column(self.shown.say(QUALITY), "letter", [(letter, "") for letter in self.shown.letters])

    def warnings(self) -> Iterator[str]:
        """Yield what is to be known of rows, with those that it is about."""
        if self.shown is None:
            return
        for text, numbers in self.shown.warnings.items():
            rows = [", ".join(label for _, label in self._rows[number - 1]) for number in numbers[:_NAMED]]
            more = [f"+ {self.shown.say.number(len(numbers) - _NAMED)}"] * (len(numbers) > _NAMED)
            yield self.shown.say("definition", title="; ".join([*rows, *more]), note=text)

    def anchors(self) -> list[str]:
        """Return what links call the rows."""
        assert self.shown is not None
        taken: set[str] = set()
        return [
            f"{self.anchor}.{file_name(' '.join(text for _, text in row), taken)}"
            for row in self.shown.rows()
        ]

    def marked_row(self, place: int) -> list[int]:
        """Return the numbers of the footnotes of a row of the list."""
        return [mark.number for mark in self.marks if mark.of and mark.of <= {*self._rows[place]}]

    @cached_property
    def _rows(self) -> list[list[tuple[str, str]]]:
        return [] if self.shown is None else self.shown.rows()

    def marked(self, *of: tuple[str, str]) -> list[int]:
        """Return the numbers of the footnotes of what is of these values; of the whole table without any."""
        return [mark.number for mark in self.marks if mark.of == {*of}]

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


def _width(cross: CrossTable) -> int:
    """Return how many letters its longest row may have, with a space between columns."""
    rows = [row for panel in cross.panels for row in panel.rows]
    cells = zip(*(row.cells for row in rows if row.cells), strict=True)
    widths = [max(len(f"{own.text} {own.margin}") for own in column) for column in cells]
    heads = [len(head) for head in cross.columns]
    columns = sum(max(pair) + 2 for pair in zip(widths, heads, strict=True))
    return columns + max((len(row.label) for row in rows), default=0)


def data_address(kind: str, content: bytes) -> str:
    """Return an address that holds a file."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def shown_tables(release: Release) -> Iterator[PageTable]:
    """Yield the tables of a release as far as a page shows them, in the order of the publication."""
    left, taken = MAX_ROWS, {"tables", "news", "quartiles", "method", "promise", "accuracy", "explanation"}
    inference, rules = release.inference(), release.presentation
    places = set(first_places(release.workload, MAX_GROUPS))
    chosen = [one for one in page_tables(release) if one.place is None or one.place in places]
    marks = footnotes(release, chosen)
    for one in chosen[:MAX_GROUPS]:
        told: dict[str, Any] = {
            "definitions": attribute_notes(release.domain, rules.say, one.attributes),
            "anchor": file_name(one.name, taken),
            "marks": marks.get(one.name, ()),
        }
        if one.rows > MAX_DRAWN or (one.statistic is not None and one.statistic.published is None):
            yield PageTable(one, **told)
            continue
        rows = one.rows if one.rows <= min(left, MAX_GROUP_ROWS) else min(_FIRST_ROWS, left)
        left -= rows
        table = release.table(one).to_arrow()
        shown = Shown(table, one.measures, rules, rows)
        whole = rows == one.rows
        cross = default_cross_table(inference, one, rules) if whole else None
        every = shown if whole else Shown(table, one.measures, rules)
        yield PageTable(one, shown, _picture(release, one, every), cross, **told)


def page_tables(release: Release) -> list[PublishedTable]:
    """Return the tables that the publication does not hide from pages, in its order."""
    hidden = {name for place, name in release.chosen.items() if place[0] == "hide_from_page"}
    shown = [one for one in release.tables if one.name not in hidden]
    return ordered(shown, release.chosen)


def _picture(release: Release, one: PublishedTable, shown: Shown) -> Answered | None:
    """Return what a picture of a table shows; None where it would say no more than a line of text."""
    # no axis is drawn for what has no bound
    assert shown.main is not None
    hidden = shown.main.hidden | shown.main.unbounded
    if len(hidden) < 2 or hidden.all():
        return None
    if one.group is None:
        return answered_statistic(shown, one.unit).without(hidden)
    told = {"unit": one.unit, "measures": one.measures, "say": shown.say, "exact": shown.main}
    values = np.where(hidden, np.nan, shown.main.shown)
    return answered_group(release.domain, one.group, values, hidden=hidden, **told)
