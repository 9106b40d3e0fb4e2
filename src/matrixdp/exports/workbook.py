"""The tables of a release as one Excel workbook: contents, cross tables and lists of rows, and notes."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from matrixdp.answers.cross_table import CrossTable, Row, default_cross_table
from matrixdp.answers.figures import MISSING, UNRELIABLE, Figures
from matrixdp.answers.footnotes import Mark, footnotes
from matrixdp.answers.publication import PublishedTable, attribute_notes, ordered, table_errors
from matrixdp.answers.shown import Shown
from matrixdp.answers.table import figure_of, heading, subject_of
from matrixdp.display import harmless
from matrixdp.errors import TooLargeError, needing
from matrixdp.exports.registry import file_mark, register_export, same_tables
from matrixdp.texts import legal_xml

if TYPE_CHECKING:
    from matrixdp.releases.release import Release

FILE = "tables.xlsx"
#: What a sheet of Excel can hold, without its head; and how many tables a workbook has.
MAX_ROWS, MAX_TABLES = 1_000_000, 500
_LONGEST_SHEET = 31
#: Rows above the head of a table: its title, its unit, and a link to the contents.
_ABOVE = 4
#: Characters of a column of a list, and of what prints upright.
_WIDE, _UPRIGHT = 16, 100


def write_workbook(release: Release, published: Sequence[PublishedTable], folder: Path) -> None:
    """Write tables as one workbook into a folder.

    Raises
    ------
    SpecificationError
        If XlsxWriter is not installed.
    TooLargeError
        If there are too many tables, or more rows than a sheet has.
    """
    with needing("XlsxWriter", "excel", "format"):
        import xlsxwriter
        from xlsxwriter.exceptions import FileCreateError
    if len(published) > MAX_TABLES:
        expected = f"at most {MAX_TABLES}, which have sheets; csv and parquet have no such limit"
        raise TooLargeError.at(("tables",), f"{len(published):,} tables", expected)
    for one in published:
        if one.rows > MAX_ROWS:
            expected = f"at most {MAX_ROWS:,}, which fit on a sheet; csv and parquet have no such limit"
            raise TooLargeError.at(("tables", one.title), f"{one.rows:,} rows", expected)
    spoken = release.for_readers(release.domain.language)
    found = same_tables(published, release, spoken)
    release, published = spoken, ordered(found, spoken.chosen)
    # texts of the domain are never formulas or links
    plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    try:
        with xlsxwriter.Workbook(str(folder / f"{file_mark(release)}{FILE}"), plain) as book:
            _write_book(book, release, published)
    except FileCreateError as error:
        raise error.args[0] from None


@final
@dataclass(frozen=True)
class _Sheet:
    """A sheet: a table as rows by columns, or as a list where there is no cross table."""

    name: str
    one: PublishedTable
    cross: CrossTable | None


@final
class _Looks:
    """The formats of a workbook, each made once."""

    def __init__(self, book: Any) -> None:
        self._book = book
        self._known: dict[object, Any] = {}
        self.title = self._made(bold=True, font_size=14)
        self.link = self._made(font_color="#0b5ea8", underline=1)
        self.words = self._made(text_wrap=True, valign="top")
        self.alarm = self._made(bold=True, font_color="#b3261e")
        self.day = self._made(num_format="yyyy-mm-dd")

    def _made(self, **properties: object) -> Any:
        key = tuple(properties.items())
        if key not in self._known:
            self._known[key] = self._book.add_format(properties)
        return self._known[key]

    def head(self, figure: bool = False) -> Any:
        """Return the format of the heading of a column."""
        side = "right" if figure else "left"
        return self._made(bold=True, bottom=1, text_wrap=True, valign="top", align=side)

    def label(self, bold: bool = False, indent: int = 0) -> Any:
        """Return the format of a label of a row."""
        return self._made(bold=bold, indent=indent)

    def figure(
        self, figures: Figures | None, kind: str = "estimate", letter: str = "", bold: bool = False
    ) -> Any:
        """Return the format of a figure with its digits, and its letter behind it; None for what is text."""
        decimals, percent = None if figures is None else figures.places(kind), ""
        if figures is not None and figures.dates:
            return self.day
        if figures is not None and figures.measures == "share":
            decimals, percent = None if decimals is None else decimals - 2, "%"
        digits = "General" if decimals is None else "#,##0" + ("." + "0" * decimals if decimals > 0 else "")
        number = f'{digits}{percent}" {letter}"' if letter else digits + percent
        return self._made(num_format=number, align="right", bold=bold)


def _write_book(book: Any, release: Release, published: Sequence[PublishedTable]) -> None:
    made = release.measurement.authorization.time
    day = dt.datetime(2000, 1, 1) if made is None else dt.datetime.fromisoformat(made).replace(tzinfo=None)
    book.set_properties({"created": day, "comments": release.statement.text})
    looks, say = _Looks(book), release.presentation.say
    front, back = (_plain(say(name))[:_LONGEST_SHEET] for name in ("contents", "notes"))
    contents = book.add_worksheet(front)
    sheets = list(_sheets(release, published, {front.casefold(), back.casefold()}))
    _write_contents(contents, looks, release, sheets, back)
    marks = footnotes(release, published)
    for own in sheets:
        sheet = book.add_worksheet(own.name)
        sheet.write_string(0, 0, own.one.title, looks.title)
        sheet.write_url(2, 0, f"internal:'{front}'!A1", looks.link, front)
        source = own.one.source and say("source", source=own.one.source.rstrip("."))
        note = own.one.note and f"{own.one.note.rstrip('.')}."
        what = say("letters", notes=back)
        if own.cross is None:
            what = say("intervals_of", confidence=say.number(100 * release.confidence))
        below = map(_footnote, marks.get(own.one.name, ()))
        told = (say("unit", unit=own.one.unit), what, note, source, *below)
        if own.cross is not None:
            widths = _write_cross(sheet, looks, own.cross)
        else:
            widths = _write_list(sheet, looks, release, own.one)
        _write_line(sheet, looks, " ".join(filter(None, told)), widths)
        _set_page(sheet, landscape=sum(widths) > _UPRIGHT)
    notes = book.add_worksheet(back)
    _set_page(notes, landscape=False)
    notes.set_column(0, 0, 110)
    for row, text in enumerate(_notes(release)):
        notes.write_string(row, 0, text, looks.words)


def _set_page(sheet: Any, *, landscape: bool) -> None:
    """Let a sheet print with all of its columns on a page, and its head on each page."""
    sheet.set_paper(9)  # A4
    if landscape:
        sheet.set_landscape()
    sheet.fit_to_pages(1, 0)
    sheet.repeat_rows(0, _ABOVE)
    sheet.set_footer("&L&A&R&P / &N")


def _write_line(sheet: Any, looks: _Looks, line: str, widths: Sequence[int]) -> None:
    """Write what a table needs said above it, over the columns that it has."""
    if len(widths) > 1:
        sheet.merge_range(1, 0, 1, len(widths) - 1, "", looks.words)
    sheet.write_string(1, 0, line, looks.words)
    sheet.set_row(1, 15 * math.ceil(1.1 * len(line) / sum(widths)))


def _footnote(mark: Mark) -> str:
    of = ", ".join(text for _, text in sorted(mark.of))
    return f"{of}: {mark.text}" if of else mark.text


def _plain(title: str) -> str:
    """Return a title in letters that the name of a sheet can have."""
    plain = re.sub(r"[\[\]:*?/\\']+", " ", title)
    return " ".join("".join(c for c in plain if harmless(c)).split()) or "table"


def _sheets(release: Release, published: Sequence[PublishedTable], taken: set[str]) -> Iterator[_Sheet]:
    """Yield the sheets of tables, under names that Excel takes: 31 letters, each once in any case."""
    inference, listed = release.inference(), release.presentation.say("list_ending")

    def named(title: str, ending: str = "") -> str:
        base = _plain(title)
        endings = (ending if number == 1 else f"{ending} {number}" for number in count(1))
        names = (base[: _LONGEST_SHEET - len(end)].rstrip() + end for end in endings)
        name = next(one for one in names if one.casefold() not in taken)
        taken.add(name.casefold())
        return name

    for one in published:
        cross = default_cross_table(inference, one, release.presentation)
        if cross is not None:
            yield _Sheet(named(one.title), one, cross)
        yield _Sheet(named(one.title, "" if cross is None else listed), one, None)


def _write_contents(
    sheet: Any, looks: _Looks, release: Release, sheets: Sequence[_Sheet], notes: str
) -> None:
    sheet.set_column(0, 0, 50)
    sheet.set_column(1, 5, 18)
    _set_page(sheet, landscape=True)
    say = release.presentation.say
    sheet.write_string(0, 0, say("contents"), looks.title)
    if not release.private:
        sheet.write_string(1, 0, say("seeded_book"), looks.alarm)
    for column, head in enumerate(("table", "intervals", "rows", "unit", "error", "largest")):
        sheet.write_string(2, column, say(f"head_{head}"), looks.head(figure=column in (2, 4, 5)))
    row, listed = 2, None
    for own in sheets:
        link = f"internal:'{own.name}'!A1"
        if own.one is listed:  # the list of a cross table
            sheet.write_url(row, 1, link, looks.link, say("list"))
            continue
        row, listed = row + 1, own.one
        sheet.write_url(row, 0, link, looks.link, legal_xml(own.one.title))
        sheet.write_number(row, 2, own.one.rows)
        sheet.write_string(row, 3, own.one.unit)
        for column, error in enumerate(table_errors(own.one, release.analysis) or (), start=4):
            sheet.write_number(row, column, float(f"{error:.3g}"))
    sheet.write_url(row + 1, 0, f"internal:'{notes}'!A1", looks.link, notes)
    sheet.freeze_panes(3, 0)


def _write_cross(sheet: Any, looks: _Looks, cross: CrossTable) -> list[int]:
    """Write a cross table: its panels below one another, under one head that stays in sight.

    Returns
    -------
    list of int
        The widths of its columns in characters.
    """
    if cross.column_axis is not None:
        sheet.write_string(_ABOVE - 1, 1, cross.column_axis.title, looks.label(bold=True))
    sheet.write_string(_ABOVE, 0, cross.stub, looks.head())
    for column, label in enumerate(cross.columns, start=1):
        sheet.write_string(_ABOVE, column, label, looks.head(figure=True))
    rows = [
        own
        for panel in cross.panels
        for own in ([Row(panel.label, ())] if panel.label else []) + [*panel.rows]
    ]
    for place, own in enumerate(rows, start=_ABOVE + 1):
        bold = own.total or own.group or not own.cells
        indent = 0 if bold or len(cross.row_axes) == 1 else 1
        sheet.write_string(place, 0, own.label, looks.label(bold, indent))
        for column, cell in enumerate(own.cells, start=1):
            if cell.value is None:
                sheet.write_string(place, column, cell.text, looks.figure(None, bold=bold))
            else:
                look = looks.figure(cross.figures, letter=cell.grade, bold=bold)
                sheet.write_number(place, column, cell.value, look)
    sheet.set_column(0, 0, 30)
    sheet.set_column(1, len(cross.columns), 14)
    sheet.freeze_panes(_ABOVE + 1, 1)
    return [30, *[14] * len(cross.columns)]


def _write_list(sheet: Any, looks: _Looks, release: Release, one: PublishedTable) -> list[int]:
    """Write a table as it is, a row for each of its figures, with standard errors and intervals.

    Returns
    -------
    list of int
        The widths of its columns in characters.
    """
    say = release.presentation.say
    if one.statistic is not None and one.statistic.published is None:
        sheet.write_string(_ABOVE, 0, say("not_computed", reason=one.statistic.refusal))
        return [_UPRIGHT]
    shown = Shown(release.table(one).to_arrow(), one.measures, release.presentation)
    table = shown.numbers
    for column, field in enumerate(table.schema):
        figure = figure_of(field)
        sheet.write_string(_ABOVE, column, heading(field, say), looks.head(bool(figure)))
        look = looks.figure(shown.figures[subject_of(field)], figure) if figure else None
        values = table.column(column).to_pylist()
        for row, (value, hidden) in enumerate(zip(values, shown.hidden, strict=True), start=_ABOVE + 1):
            if value is None and figure:
                sheet.write_string(row, column, UNRELIABLE if hidden else MISSING, look)
            elif isinstance(value, bool | str):
                sheet.write_string(row, column, str(value))
            elif isinstance(value, dt.date):
                sheet.write_datetime(row, column, dt.datetime.combine(value, dt.time()), looks.day)
            elif value is not None:
                sheet.write_number(row, column, value, look)
    sheet.set_column(0, max(len(table.schema) - 1, 0), _WIDE)
    sheet.freeze_panes(_ABOVE + 1, next(place for place, own in enumerate(table.schema) if figure_of(own)))
    sheet.autofilter(_ABOVE, 0, _ABOVE + table.num_rows, len(table.schema) - 1)
    return [_WIDE] * len(table.schema)


def _notes(release: Release) -> list[str]:
    presentation, say = release.presentation, release.presentation.say
    return [
        *([] if release.private else [say("seeded_notes")]),
        *(f"{say(f'told_{key}')}: {text}" for key, text in release.told.items()),
        release.statement.text,
        *(f"{title}: {note}" for title, note in attribute_notes(release.domain, say)),
        say("digits"),
        say("intervals_are", description=release.intervals.described(say)),
        *presentation.words,
        *([] if presentation.within_range else [say("negative")]),
        *release.warnings,
    ]


register_export("xlsx", write_workbook)
