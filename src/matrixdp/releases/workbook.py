"""The tables of a release as one Excel workbook: contents, a sheet for each table, and notes."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matrixdp.answers.intervals import decimals_by_subject, for_people
from matrixdp.answers.publication import PublishedTable, table_errors
from matrixdp.answers.table import figure_of, heading, subject_of
from matrixdp.errors import SpecificationError, TooLargeError

if TYPE_CHECKING:
    from matrixdp.releases.release import Release

FILE = "tables.xlsx"
#: What a sheet of Excel can hold, without its head.
MAX_ROWS, MAX_SHEETS = 1_000_000, 500
_LONGEST_SHEET = 31
#: Rows above the head of a table: its title, its unit, and a link to the contents.
_ABOVE = 4


def write_workbook(release: Release, published: Sequence[PublishedTable], path: Path) -> None:
    """Write tables as one workbook.

    Raises
    ------
    SpecificationError
        If XlsxWriter is not installed: ``pip install 'matrixdp[excel]'``.
    TooLargeError
        If there are more tables than sheets, or more rows than a sheet has.
    """
    try:
        import xlsxwriter
    except ImportError:
        expected = "an installation with it: pip install 'matrixdp[excel]'"
        raise SpecificationError.at(("format",), "no XlsxWriter", expected, code="missing-library") from None
    if len(published) > MAX_SHEETS:
        expected = f"at most {MAX_SHEETS}, each of which is a sheet; csv and parquet have no such limit"
        raise TooLargeError.at(("tables",), f"{len(published):,} tables", expected)
    for one in published:
        if one.rows > MAX_ROWS:
            expected = f"at most {MAX_ROWS:,}, which fit on a sheet; csv and parquet have no such limit"
            raise TooLargeError.at(("tables", one.title), f"{one.rows:,} rows", expected)
    # texts of the domain are never formulas or links
    plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(str(path), plain) as book:
        _write_book(book, release, published)


def _write_book(book: Any, release: Release, published: Sequence[PublishedTable]) -> None:
    made = release.measurement.authorization.time
    day = dt.datetime(2000, 1, 1) if made is None else dt.datetime.fromisoformat(made).replace(tzinfo=None)
    book.set_properties({"created": day, "comments": release.statement.text})
    looks = {
        "title": book.add_format({"bold": True, "font_size": 14}),
        "head": book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"}),
        "link": book.add_format({"font_color": "#0b5ea8", "underline": 1}),
        "words": book.add_format({"text_wrap": True, "valign": "top"}),
        "alarm": book.add_format({"bold": True, "font_color": "#b3261e"}),
    }
    contents = book.add_worksheet("Contents")
    names = _sheet_names(published)
    _write_contents(contents, looks, release, published, names)
    for one, name in zip(published, names, strict=True):
        _write_table(book.add_worksheet(name), book, looks, release, one)
    notes = book.add_worksheet("Notes")
    notes.set_column(0, 0, 110)
    for row, text in enumerate(_notes(release)):
        notes.write_string(row, 0, text, looks["words"])


def _sheet_names(published: Sequence[PublishedTable]) -> list[str]:
    """Return names of sheets: at most 31 letters without marks that Excel rejects, each once in any case."""
    taken = {"contents", "notes"}
    names = []
    for one in published:
        plain = re.sub(r"[\[\]:*?/\\']+", " ", one.title)
        base = " ".join("".join(c for c in plain if c.isprintable()).split())[:_LONGEST_SHEET] or "table"
        name, number = base, 2
        while name.casefold() in taken:
            ending = f" {number}"
            name, number = base[: _LONGEST_SHEET - len(ending)] + ending, number + 1
        taken.add(name.casefold())
        names.append(name)
    return names


def _write_contents(
    sheet: Any, looks: dict[str, Any], release: Release, published: Sequence[PublishedTable], names: list[str]
) -> None:
    sheet.set_column(0, 0, 50)
    sheet.set_column(1, 4, 18)
    sheet.write_string(0, 0, "Contents", looks["title"])
    if not release.private:
        sheet.write_string(1, 0, "NOT PRIVATE: the noise was seeded. Do not publish.", looks["alarm"])
    for column, head in enumerate(["table", "rows", "unit", "standard error (RMS)", "largest"]):
        sheet.write_string(2, column, head, looks["head"])
    for row, (one, name) in enumerate(zip(published, names, strict=True), start=3):
        quoted = name.replace("'", "''")
        sheet.write_url(row, 0, f"internal:'{quoted}'!A1", looks["link"], one.title)
        sheet.write_number(row, 1, one.rows)
        sheet.write_string(row, 2, one.unit)
        for column, error in enumerate(table_errors(one, release.analysis) or (), start=3):
            sheet.write_number(row, column, float(f"{error:.3g}"))
    sheet.freeze_panes(3, 0)


def _write_table(sheet: Any, book: Any, looks: dict[str, Any], release: Release, one: PublishedTable) -> None:
    sheet.write_string(0, 0, one.title, looks["title"])
    sheet.write_string(1, 0, f"Unit: {one.unit}. Intervals of {100 * release.confidence:g}% confidence.")
    sheet.write_url(2, 0, "internal:'Contents'!A1", looks["link"], "Contents")
    if one.statistic is not None and one.statistic.published is None:
        sheet.write_string(_ABOVE, 0, f"Not computed: {one.statistic.refusal}")
        return
    table = release.table(one)
    decimals = decimals_by_subject(table)
    table = for_people(table, decimals)
    for column, field in enumerate(table.schema):
        sheet.write_string(_ABOVE, column, heading(field), looks["head"])
        digits = decimals.get(subject_of(field)) or 0
        number = "#,##0" + ("." + "0" * digits if digits > 0 else "")
        look = book.add_format({"num_format": number if figure_of(field) else "General"})
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        for row, value in enumerate(table.column(column).to_pylist(), start=_ABOVE + 1):
            if isinstance(value, bool | str):
                sheet.write_string(row, column, str(value))
            elif isinstance(value, dt.date):
                sheet.write_datetime(row, column, dt.datetime.combine(value, dt.time()), day)
            elif value is not None:
                sheet.write_number(row, column, value, look)
    sheet.set_column(0, max(len(table.schema) - 1, 0), 16)
    sheet.freeze_panes(_ABOVE + 1, sum(not figure_of(field) for field in table.schema))
    sheet.autofilter(_ABOVE, 0, _ABOVE + table.num_rows, len(table.schema) - 1)


def _notes(release: Release) -> list[str]:
    return [
        *([] if release.private else ["NOT PRIVATE: the noise was seeded. Do not publish these tables."]),
        release.statement.text,
        "Every figure is the true one plus noise of a known size. Estimates are unbiased. Figures have the "
        "digits that their standard errors justify; ends of intervals are rounded outward.",
        f"Intervals are {release.intervals.description}.",
        "An estimate below 0 is noise around a small count; it stays, since sums of estimates are right only "
        "if nothing is cut off.",
        *release.warnings,
    ]
