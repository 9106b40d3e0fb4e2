"""The command ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matrixdp.cli.guard import guarded
from matrixdp.cli.options import ReleaseFolder

__all__ = ["report"]

_Out = Annotated[
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
_Force = Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")]


@guarded
def report(folder: ReleaseFolder, out: _Out = None, title: _Title = None, force: _Force = False) -> None:
    """Write a release as one page to look at, in HTML.

    The promise in plain words, the accuracy of every table, pictures with their errors, and tables that can
    be searched, sorted and downloaded. The page needs no network and no other file. It lies outside the
    folder, as it follows from it.
    """
    from matrixdp.cli.progress import Reporter
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
