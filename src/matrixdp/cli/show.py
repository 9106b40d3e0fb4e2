"""The command ``show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from matrixdp.cli.guard import guarded
from matrixdp.cli.options import Confidence, ReleaseFolder

if TYPE_CHECKING:
    from matrixdp.release import Release

__all__ = ["show"]

_SHOWN = 50
_Table = Annotated[
    str | None,
    typer.Argument(
        metavar="[TABLE]",
        show_default=False,
        help="A table to show: its title, its name or its attributes, such as 'age CDF by sex'.",
    ),
]
_Pivot = Annotated[
    str | None,
    typer.Option(
        "--pivot", metavar="ATTRIBUTE", show_default=False, help="An attribute whose values become columns."
    ),
]
_Csv = Annotated[
    bool, typer.Option("--csv", help="Print CSV, every row, with the digits that the error justifies.")
]
_All = Annotated[bool, typer.Option("--all", help="Show every row, however many.")]
_Tables = Annotated[
    Path | None,
    typer.Option(
        "--tables", metavar="OUT", show_default=False, help="Write every table into this new folder."
    ),
]
_Format = Annotated[str, typer.Option("--format", metavar="csv|parquet", help="What --tables writes.")]


@guarded
def show(
    folder: ReleaseFolder,
    table: _Table = None,
    pivot: _Pivot = None,
    as_csv: _Csv = False,
    every: _All = False,
    tables: _Tables = None,
    format: _Format = "csv",  # noqa: A002
    confidence: Confidence = None,
) -> None:
    """Show what a release holds, or one of its tables, or write each as a file.

    From the release alone: no data are read, and it costs no further budget.
    """
    from matrixdp.cli.tables import NOT_PRIVATE
    from matrixdp.errors import SpecificationError
    from matrixdp.release import Release

    if table is not None and tables is not None:
        raise SpecificationError.at(("--tables",), "a single table too", "one of the two")
    if table is None and (as_csv or (pivot is not None and tables is None)):
        raise SpecificationError.at(("table",), "none", "the title of a table with --csv and --pivot")
    release = Release.load(folder, confidence=confidence)
    if not release.private:
        typer.echo(NOT_PRIVATE, err=True)
    if tables is not None:
        out = release.save_tables(tables, format=format, pivot=pivot)
        written = len(release.workload.groups)
        typer.echo(f"{out}: {written:,} table{'s' * (written != 1)}, datapackage.json, croissant.json.")
    elif table is not None:
        _show_table(release, table, pivot, as_csv, every)
    else:
        _list(release, every)


def _show_table(release: Release, text: str, pivot: str | None, as_csv: bool, every: bool) -> None:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    from matrixdp.answers.digits import decimals_of, for_people, least_error
    from matrixdp.cli.tables import console, print_table

    found = release.table(text, pivot=pivot)
    if as_csv:
        shown = for_people(found, decimals_of(least_error(found)))
        sink = pa.BufferOutputStream()
        pacsv.write_csv(shown, sink)
        typer.echo(sink.getvalue().to_pybytes().decode(), nl=False)
        return
    limit = found.num_rows if every else _SHOWN
    print_table(console(), found, release.confidence, limit)


def _list(release: Release, every: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from matrixdp.answers import titles
    from matrixdp.cli.facts import figure
    from matrixdp.cli.tables import console
    from matrixdp.review.markdown import printable

    screen = console()
    groups = release.workload.groups
    limit = len(groups) if every else _SHOWN
    listed = Table(header_style="bold")
    listed.add_column("table", overflow="fold")
    for name in ("answers", "RMSE", "largest stddev"):
        listed.add_column(name, justify="right", no_wrap=True)
    for name, group in zip(titles(groups)[:limit], groups[:limit], strict=True):
        error = release.analysis.group(group)
        errors = (figure((error.total / group.queries) ** 0.5), figure(error.largest**0.5))
        listed.add_row(Text(printable(name)), f"{group.queries:,}", *errors)
    screen.print(listed)
    if limit < len(groups):
        screen.print(f"{limit} of {len(groups):,} tables shown; --all shows every one.")
    screen.print(Text(release.statement.text))
    if release.size.total is not None:
        screen.print(Text(f"Records in the domain: {release.size.total}."))
    for sentence in release.warnings:
        typer.echo(f"Warning: {sentence}.", err=True)
