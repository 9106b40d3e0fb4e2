"""The command ``draft``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matrixdp.cli.guard import guarded

__all__ = ["draft"]

_Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="The table: CSV, Parquet (a pattern of files too) or a database.",
    ),
]
_Table = Annotated[str | None, typer.Option("--table", show_default=False, help="The table of a database.")]
_Public = Annotated[
    Path | None,
    typer.Option(
        "--public-table",
        metavar="FILE",
        show_default=False,
        help="A table that is public, with columns of the same names: last year's, a published sample; or a "
        "code book, with columns such as variable, value and label.",
    ),
]
_Quoted = Annotated[bool, typer.Option("--quoted-newlines", help="Quotes in CSV files may hold line ends.")]


@guarded
def draft(
    data: _Data, table: _Table = None, public_table: _Public = None, quoted_newlines: _Quoted = False
) -> None:
    """Print a first specification for a table, without reading a record of it.

    It follows from the names and the storage types of the columns; identifiers and free text are left out,
    with the reason. Values are left as TODO, which `validate` rejects by name, or with --public-table taken
    from a table that is public, and marked so. A column with one public value, or with dates as texts, keeps
    a TODO for the values to add:

    \b
      matrixdp draft people.csv --public-table people-2019.csv > people.yaml
      matrixdp validate people.yaml
    """  # noqa: D301 - click reads the character itself
    from matrixdp.display import listed
    from matrixdp.draft import draft_specification
    from matrixdp.errors import format_place
    from matrixdp.specification.yaml_text import parse_yaml

    text = draft_specification(data, table=table, public_table=public_table, quoted_newlines=quoted_newlines)
    typer.echo(text, nl=False)
    unfilled = parse_yaml(text).unfilled
    if unfilled:
        typer.echo(f"To fill in (TODO): {listed(map(format_place, unfilled), len(unfilled))}.", err=True)
