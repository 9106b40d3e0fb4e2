"""The command ``design``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from matrixdp.cli.app import wrong
from matrixdp.cli.options import DatabaseTable
from matrixdp.specification.load import read_document

_TEXTS = (".yaml", ".yml", ".json")
_BLANK = """\
domain:
  TODO: TODO   # an attribute: [category, ...], {min, max}, {amount, step} or {from, to, by}

workload:
  - marginals: [0, 1]   # the total, and every attribute on its own

privacy: {epsilon: 1.0, delta: 1.0e-6}
"""


def design(
    source: Annotated[
        str | None,
        Argument(metavar="[SPEC | TABLE]", help="A specification; or a table, of which one is drafted."),
    ] = None,
    public_table: Annotated[
        str | None,
        Option(
            metavar="TABLE",
            help="A table that is PUBLIC, with the same columns, on which tables are judged. Its EXACT "
            "ANSWERS SHINE THROUGH: never give a confidential table.",
        ),
    ] = None,
    records: Annotated[
        int,
        Option(min=1, metavar="N", help="In place of a public table: N records, spread evenly."),
    ] = 10_000,
    table: DatabaseTable = None,
    out: Annotated[
        Path | None,
        Option(metavar="FILE", help="Where the specification is saved.", show_default="SPEC, or TABLE.yaml"),
    ] = None,
    port: Annotated[int, Option(min=0, max=65_535, help="A port of this machine; 0 takes a free one.")] = 0,
    browser: Annotated[bool, Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Design a release on a page in the browser, and see how good every table will be before spending.

    The page is served on this machine alone (127.0.0.1), at an address with a secret. Of a table its names
    and types of columns are read, no record, until you confirm the summary of a release. The specification
    stays a file: the page changes what you change, and keeps comments.
    """
    from matrixdp.design.app import Design, serve
    from matrixdp.design.desk import Records

    file, draft = _opened(source, table, public_table, out)
    on = Records(public_table, number=None if public_table is not None else records)

    def opened(address: str) -> None:
        typer.echo(f"The design of {file} is at\n\n  {address}\n\nCtrl-C ends it.")
        if browser:
            webbrowser.open(address)

    try:
        serve(Design(file, draft, on), port, opened)
    except OSError as error:
        raise wrong("--port", f"{port}, {error.strerror}", "a free port, or 0", "no-place") from None


def _opened(
    source: str | None, table: str | None, public_table: str | None, out: Path | None
) -> tuple[Path, str]:
    """Return the file of the specification, and what it begins with where it is not there yet."""
    from matrixdp.draft import draft_specification

    if source is None:
        file, draft = out or Path("design.yaml"), _BLANK
    elif source.lower().endswith(_TEXTS):
        read_document(Path(source))
        file = out or Path(source)
        draft = Path(source).read_text(encoding="utf-8-sig")
    else:
        draft = draft_specification(source, table=table, public_table=public_table)
        file = out or Path(f"{Path(source).stem}.yaml")
    if file.exists() and source != str(file):
        expected = f"`matrixdp design {file}` to go on with it, or another file by --out"
        raise wrong("--out", f"{str(file)!r}, which exists", expected, "file-exists")
    if not file.absolute().parent.is_dir():
        raise wrong(
            "--out", f"{str(file)!r}, in a folder that does not exist", "a file in a folder", "no-place"
        )
    return file.absolute(), draft
