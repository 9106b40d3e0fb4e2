"""The command ``synthesize``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from matrixdp.cli.guard import guarded

__all__ = ["synthesize"]

_Folder = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="The folder that `model` wrote.")
]
_Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        show_default=False,
        help="Where the records go: a new file whose name ends in .parquet or .csv. What they are comes "
        "beside it, in FILE.json.",
    ),
]
_Rows = Annotated[
    str,
    typer.Option("--rows", metavar="<auto|N>", help="How many; auto: the number of records as released."),
]
_Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, show_default=False, help="The same seed, the same records (default: the model's)."
    ),
]
_Values = Annotated[
    str,
    typer.Option(
        "--values",
        metavar="<labels|data>",
        help="labels: values in the words of the answers, bins as texts. data: the columns that the domain "
        "is read from, with values that are read as the same ones; of a bin its middle.",
    ),
]
_Levels = Annotated[bool, typer.Option("--levels", help="A column for each level of an attribute too.")]
_Force = Annotated[bool, typer.Option("--force", help="Replace an earlier file.")]
_Json = Annotated[bool, typer.Option("--json", help="Print what is in FILE.json.")]


@guarded
def synthesize(
    folder: _Folder,
    out: _Out,
    rows: _Rows = "auto",
    seed: _Seed = None,
    values: _Values = "labels",
    levels: _Levels = False,
    force: _Force = False,
    as_json: _Json = False,
) -> None:
    """Write synthetic records of a model: tables that are counted on them are those of the model, rounded.

    No record is that of a person, and none costs any budget. The records are biased as the model is, and how
    attributes go together that were not measured together is the model's guess.
    """
    from matrixdp.cli.progress import Reporter
    from matrixdp.model import Model
    from matrixdp.model.writing import beside

    number = _rows(rows)
    with Reporter() as reporter:
        reporter.stage("checking the model")
        made = Model.load(folder)
        progress = reporter.counter("writing records")
        made.save_records(
            out, number, seed=seed, values=values, levels=levels, force=force, progress=progress
        )
    written = beside(out).read_text(encoding="utf-8")
    if as_json:
        typer.echo(written, nl=False)
        return
    from rich.text import Text

    from matrixdp.cli.facts import print_facts
    from matrixdp.cli.tables import NOT_PRIVATE, console

    record, screen = json.loads(written), console()
    if not made.private:
        screen.print(f"{NOT_PRIVATE}\n", style="bold")
    facts = {
        "file": str(out),
        "what it is": str(beside(out)),
        "records": f"{record['rows']:,}",
        "columns": ", ".join(record["columns"]),
        "seed": str(record["seed"]),
        "model": made.method + ("" if made.accepted else ", which its own tests REJECT"),
    }
    print_facts(facts.items())
    screen.print(Text(f"\n{record['synthetic']}"))


def _rows(text: str) -> int | None:
    """Return a number of records; None where the model says it."""
    from matrixdp.errors import SpecificationError
    from matrixdp.forms import describe_value

    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise SpecificationError.at(("--rows",), describe_value(text), "auto, or a number of records")
    return int(text)
