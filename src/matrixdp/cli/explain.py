"""The command ``explain``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from matrixdp.cli.guard import guarded
from matrixdp.cli.options import ReleaseFolder

__all__ = ["explain"]

_Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", show_default=False, help="Write Markdown to this file instead."),
]


@guarded
def explain(folder: ReleaseFolder, out: _Out = None) -> None:
    """Explain a release to a reviewer, in words and exact numbers.

    From the domain to the promise, computed from the files, without the data. Into a file or a pipe it is
    Markdown.
    """
    from matrixdp.errors import StorageError
    from matrixdp.review import explain_release

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
