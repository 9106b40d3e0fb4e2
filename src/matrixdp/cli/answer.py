"""The command ``answer``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matrixdp.cli.guard import guarded
from matrixdp.cli.options import Confidence, ReleaseFolder

if TYPE_CHECKING:
    from matrixdp.release import Release

__all__ = ["answer", "statement_of"]

_SHOWN = 50

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
_Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        show_default=False,
        help="Write every answer to a new file, by its ending: .csv, .parquet or .json.",
    ),
]
_Force = Annotated[bool, typer.Option("--force", help="With --out, replace a file that is there.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, with every answer.")]
_Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, with every answer.")]
_All = Annotated[bool, typer.Option("--all", help="Show every answer, however many.")]


@guarded
def answer(
    folder: ReleaseFolder,
    queries: _Queries = None,
    sql: _Sql = None,
    confidence: Confidence = None,
    out: _Out = None,
    force: _Force = False,
    as_json: _Json = False,
    as_csv: _Csv = False,
    every: _All = False,
) -> None:
    """Answer new queries from a release, without the data: counts, and statistics of counts.

    It costs no further budget. Every answer comes with its standard error or its interval. A query that the
    measurement does not determine is refused, with the reason.
    """
    from matrixdp.cli.questions import read_questions
    from matrixdp.cli.results import check_out, printed_csv, printed_json, write_out
    from matrixdp.errors import SpecificationError, within
    from matrixdp.release import load_release

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

    from matrixdp.cli.results import title_of
    from matrixdp.cli.tables import NOT_PRIVATE, console, print_answers, print_result, print_statistic
    from matrixdp.language import StatisticEntry

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
