"""The command ``answer``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from matrixdp.cli.guard import guarded
from matrixdp.cli.options import Confidence

__all__ = ["answer", "entry_of", "statement_of"]

_SHOWN = 50


_Folder = Annotated[
    Path, typer.Argument(metavar="DIR", show_default=False, help="The folder that `release` wrote.")
]
_Query = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUERY]",
        show_default=False,
        help="A workload entry as YAML, inline or in a file: 'product: {age: {ranges: [[0, 17]]}}'.",
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
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, with every answer.")]
_Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, with every answer.")]
_All = Annotated[bool, typer.Option("--all", help="Show every answer, however many.")]


@guarded
def answer(
    folder: _Folder,
    query: _Query = None,
    sql: _Sql = None,
    confidence: Confidence = None,
    as_json: _Json = False,
    as_csv: _Csv = False,
    every: _All = False,
) -> None:
    """Answer a new query from a release, without the data.

    It costs no further budget. Every answer comes with its standard error. A query that the measurement does
    not determine is refused, with the reason.
    """
    from matrixdp.errors import SpecificationError
    from matrixdp.release import load_release

    if as_json and as_csv:
        raise SpecificationError.at(("--csv",), "--json too", "one of the two")
    if (query is None) == (sql is None):
        found = "neither QUERY nor --sql" if query is None else "QUERY and --sql"
        raise SpecificationError.at(("query",), found, "one of the two")
    entry, base = ({}, Path()) if query is None else entry_of(query)
    statement = None if sql is None else statement_of(sql)
    result = load_release(folder, confidence=confidence)
    answers = result.answer(entry, base_path=base) if statement is None else result.sql(statement)
    if as_json:
        rows = [{name: _finite(value) for name, value in row.items()} for row in answers.to_pylist()]
        printed = {"private": result.private, "confidence": result.confidence, "answers": rows}
        typer.echo(json.dumps(printed, ensure_ascii=False, default=str, allow_nan=False))
        return
    if as_csv:
        _print_csv(answers, result.private)
        return
    from matrixdp.cli.tables import NOT_PRIVATE, console, print_answers, print_result

    screen = console()
    if not result.private:
        screen.print(NOT_PRIVATE, style="bold red")
    shown = print_answers if statement is None else print_result
    shown(screen, answers, result.confidence, answers.num_rows if every else _SHOWN)
    if answers.num_rows > _SHOWN and not every:
        screen.print("--all shows every one; --json and --csv print them.")


def _finite(value: object) -> object:
    """Return a value as JSON has it, in which the open end of a bin is null."""
    return None if isinstance(value, float) and math.isinf(value) else value


def entry_of(query: str) -> tuple[Mapping[str, Any], Path]:
    """Return the entry that a text or a file holds, and what its paths are relative to."""
    from matrixdp.errors import SpecificationError
    from matrixdp.specification import parse_yaml

    expected = "a workload entry such as 'product: {age: {ranges: [[0, 17]]}}', or a file with one"
    base = Path()
    text = query
    if os.path.isfile(query):  # noqa: PTH113 - no error where the path is none
        base = Path(query).parent
        try:
            text = Path(query).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise SpecificationError.at(("query",), "a file that cannot be read as text", expected) from None
    elif ":" not in query:
        raise SpecificationError.at(("query",), f"{query!r}, which is no file and no entry", expected)
    entry = parse_yaml(text).value
    if isinstance(entry, list) and len(entry) == 1:
        entry = entry[0]
    if not isinstance(entry, Mapping):
        raise SpecificationError.at(("query",), f"a {type(entry).__name__}", expected)
    return entry, base


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


def _print_csv(answers: Any, private: bool) -> None:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    from matrixdp.cli.tables import NOT_PRIVATE

    if not private:
        typer.echo(NOT_PRIVATE, err=True)
    texts = {field.name: pa.utf8() for field in answers.schema if pa.types.is_dictionary(field.type)}
    plain = pa.schema([(field.name, texts.get(field.name, field.type)) for field in answers.schema])
    sink = pa.BufferOutputStream()
    pacsv.write_csv(answers.cast(plain), sink)
    typer.echo(sink.getvalue().to_pybytes().decode(), nl=False)
