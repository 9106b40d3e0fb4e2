"""The command ``recover``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from matrixdp.cli.guard import guarded

__all__ = ["recover"]

_Folder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", show_default=False, help="Where the release was to be, or the folder it left."
    ),
]
_Force = Annotated[bool, typer.Option("--force", help="Replace an earlier release in that folder.")]


@guarded
def recover(folder: _Folder, force: _Force = False) -> None:
    """Make a release of what a stopped one had measured whole.

    Nothing is spent for it and the table is not read again: that release had spent its budget. If no
    measurement was whole, there is nothing to recover.
    """
    from matrixdp.cli.progress import Reporter
    from matrixdp.release import recover_release

    with Reporter() as reporter:
        place = recover_release(folder, force=force, progress=reporter.counter("writing answers"))
    files = ", ".join(sorted(path.name for path in place.iterdir()))
    typer.echo(f"{place}: the release is complete ({files}); nothing more was spent.")
