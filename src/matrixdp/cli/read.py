"""The command ``show``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matrixdp.cli.app import guarded
from matrixdp.cli.options import Confidence, ReleaseFolder

if TYPE_CHECKING:
    from matrixdp.releases import Release

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
    from matrixdp.releases import Release

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

    from matrixdp.answers.intervals import decimals_of, for_people, least_error
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

    from matrixdp.answers.titles import titles
    from matrixdp.cli.console import figure
    from matrixdp.cli.tables import console
    from matrixdp.verification.explain import printable

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


# The command ``answer``.

_Queries = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[QUERY]...",
        show_default=False,
        help="Workload entries as YAML, inline or in files: 'product: {age: {ranges: [[0, 17]]}}', or "
        "statistics: 'quantile: {age: [0.25, 0.5, 0.75]}, by: [sex]'.",
    ),
]
_Sql = Annotated[
    str | None,
    typer.Option(
        "--sql",
        metavar="STATEMENT",
        show_default=False,
        help="In the place of QUERY: SQL that counts, or a file with it; answered in its result's shape.",
    ),
]
_AnswerOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        show_default=False,
        help="Write every answer to a new file, by its ending: .csv, .parquet or .json.",
    ),
]
_AnswerForce = Annotated[bool, typer.Option("--force", help="With --out, replace a file that is there.")]
_AnswerJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, with every answer.")]
_AnswerCsv = Annotated[bool, typer.Option("--csv", help="Print CSV, with every answer.")]
_AnswerAll = Annotated[bool, typer.Option("--all", help="Show every answer, however many.")]


@guarded
def answer(
    folder: ReleaseFolder,
    queries: _Queries = None,
    sql: _Sql = None,
    confidence: Confidence = None,
    out: _AnswerOut = None,
    force: _AnswerForce = False,
    as_json: _AnswerJson = False,
    as_csv: _AnswerCsv = False,
    every: _AnswerAll = False,
) -> None:
    """Answer new queries from a release, without the data: counts, and statistics of counts.

    It costs no further budget. Every answer comes with its standard error or its interval. A query that the
    measurement does not determine is refused, with the reason.
    """
    from matrixdp.cli.console import check_out, printed_csv, printed_json, write_out
    from matrixdp.cli.options import read_questions
    from matrixdp.errors import SpecificationError, within
    from matrixdp.releases import load_release

    asked = queries or []
    if as_json and as_csv:
        raise SpecificationError.at(("--csv",), "--json too", "one of the two")
    if bool(asked) == (sql is not None):
        found = "QUERY and --sql" if asked else "neither QUERY nor --sql"
        raise SpecificationError.at(("query",), found, "one of the two")
    check_out(out, force)
    entries = read_questions(asked) if asked else []
    statement = None if sql is None else statement_of(sql)
    result = load_release(folder, confidence=confidence)
    tables: list[tuple[Any, Any]] = [] if statement is None else [(None, result.sql(statement))]
    for place, entry in entries:
        with within(*place):
            tables.append((entry, result.answer(entry)))
    if out is not None:
        write_out(out, result, tables)
    if as_json:
        typer.echo(printed_json(result, tables))
    elif as_csv:
        _warn(result)
        typer.echo(printed_csv(tables), nl=False)
    elif out is None:
        _show(result, tables, every)
    else:
        _warn(result)
        rows = sum(table.num_rows for _, table in tables)
        typer.echo(f"{rows:,} answers written to {out}.")


def _warn(result: Release) -> None:
    from matrixdp.cli.tables import NOT_PRIVATE

    if not result.private:
        typer.echo(NOT_PRIVATE, err=True)


def _show(result: Release, tables: Sequence[tuple[Any, Any]], every: bool) -> None:
    from rich.text import Text

    from matrixdp.cli.console import title_of
    from matrixdp.cli.tables import NOT_PRIVATE, console, print_answers, print_result, print_statistic
    from matrixdp.statistics import StatisticEntry

    screen = console()
    if not result.private:
        screen.print(NOT_PRIVATE, style="bold red")
    cut = False
    for entry, table in tables:
        if len(tables) > 1 or isinstance(entry, StatisticEntry):
            screen.print(Text(title_of(entry), style="bold"))
        limit = table.num_rows if every else _SHOWN
        if isinstance(entry, StatisticEntry):
            print_statistic(screen, table, result.confidence, limit)
        else:
            shown = print_result if entry is None else print_answers
            shown(screen, table, result.confidence, limit)
        cut = cut or table.num_rows > limit
    if cut:
        screen.print("--all shows every one; --json and --csv print them.")


def statement_of(sql: str) -> str:
    """Return the statement that a text is, or a file holds."""
    from matrixdp.errors import SpecificationError

    if not os.path.isfile(sql):  # noqa: PTH113 - no error where the path is none
        if sql.endswith(".sql") and len(sql.split()) == 1:
            found, expected = f"{sql!r}, which is no file", "a SQL statement, or a file with one"
            raise SpecificationError.at(("--sql",), found, expected)
        return sql
    try:
        return Path(sql).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        found, expected = "a file that cannot be read as text", "a SQL statement, or a file with one"
        raise SpecificationError.at(("--sql",), found, expected) from None


# The command ``verify``.

_Folder = Annotated[
    Path,
    typer.Argument(metavar="DIR", show_default=False, help="The folder that `release` or `model` wrote."),
]
_Ledger = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", show_default=False, help="The ledger that must hold the debit."),
]
_Key = Annotated[
    Path | None,
    typer.Option(
        "--key", metavar="KEY", show_default=False, help="The public key that it must be signed with."
    ),
]
_VerifyJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@guarded
def verify(folder: _Folder, ledger: _Ledger = None, key: _Key = None, as_json: _VerifyJson = False) -> None:
    """Check a release, or a model of one, without the data: all is computed again.

    Cost, digests, statement and every answer, and with their options the signature and the ledger. One line
    for each subject: ok, FAILED, or not checked. Exit status: 0 if nothing is false, 1 if something is, 2
    for wrong use.
    """
    from matrixdp.cli.console import Reporter
    from matrixdp.errors import SpecificationError
    from matrixdp.model.folder import is_model
    from matrixdp.verification import verify_model, verify_release
    from matrixdp.verification.explain import printable

    with Reporter() as reporter:
        progress = reporter.counter("computing answers again")
        model = is_model(folder)
        if not model:
            found = verify_release(folder, ledger=ledger, key=key, progress=progress)
        elif ledger is not None or key is not None:
            expected = "the folder of a release: that of a model is neither debited nor signed"
            raise SpecificationError.at(("DIR",), f"the model {folder}", expected)
        else:
            found = verify_model(folder, progress=progress)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
    else:
        for finding in found:
            outcome = "FAILED" if finding.outcome == "failed" else finding.outcome
            typer.echo(f"{outcome:<12} {finding.subject:<12} {printable(finding.words)}")
        what = "model" if model else "release"
        verdict = "what was checked holds" if found.holds else f"FAILED: the {what} is not what it says"
        typer.echo(f"{found.folder}: {verdict}.")
    if not found.holds:
        raise typer.Exit(1)


# The command ``report``.

_ReportOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        show_default=False,
        help="Where to write; DIR.html beside the folder if not given.",
    ),
]
_Title = Annotated[
    str | None,
    typer.Option(
        "--title",
        metavar="TEXT",
        show_default=False,
        help="The page's title, in place of the name.",
    ),
]
_ReportForce = Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")]


@guarded
def report(
    folder: ReleaseFolder, out: _ReportOut = None, title: _Title = None, force: _ReportForce = False
) -> None:
    """Write a release as one page to look at, in HTML.

    The promise in plain words, the accuracy of every table, pictures with their errors, and tables that can
    be searched, sorted and downloaded. The page needs no network and no other file. It lies outside the
    folder, as it follows from it.
    """
    from matrixdp.cli.console import Reporter
    from matrixdp.errors import StorageError
    from matrixdp.report import report_release

    whole = folder.resolve()
    path = whole.parent / f"{whole.name}.html" if out is None else out
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise StorageError(f"{path}: found no folder to save a file of that name in")
    if path.resolve().is_relative_to(whole):
        raise StorageError(f"{path}: expected a file outside the folder of the release")
    if path.exists() and not force:
        raise StorageError(f"{path}: found a file; expected one that is not there yet, or --force")
    with Reporter() as reporter:
        reporter.stage("drawing the page")
        page = report_release(folder, title=title)
    path.write_text(page, encoding="utf-8")
    typer.echo(f"{path}: {len(page.encode()) / 1000:,.0f} KB.")


# The command ``explain``.

_ExplainOut = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", show_default=False, help="Write Markdown to this file instead."),
]


@guarded
def explain(folder: ReleaseFolder, out: _ExplainOut = None) -> None:
    """Explain a release to a reviewer, in words and exact numbers.

    From the domain to the promise, computed from the files, without the data. Into a file or a pipe it is
    Markdown.
    """
    from matrixdp.errors import StorageError
    from matrixdp.verification import explain_release

    text = explain_release(folder)
    if out is not None:
        if out.exists():
            raise StorageError(f"{out}: found a file; expected one that is not there yet")
        out.write_text(text, encoding="utf-8")
        typer.echo(f"{out}: {len(text.splitlines())} lines.")
    elif sys.stdout.isatty():
        from rich.markdown import Markdown

        from matrixdp.cli.tables import console

        screen = console()
        with screen.capture() as capture:
            screen.print(Markdown(text))
        typer.echo(capture.get(), nl=False)
        if capture.get().count("…") > text.count("…"):
            typer.echo("Numbers that end in … are cut; with --out FILE.md every one is whole.", err=True)
    else:
        typer.echo(text, nl=False)
