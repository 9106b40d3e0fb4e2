"""The command ``verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from matrixdp.cli.guard import guarded

__all__ = ["verify"]

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
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@guarded
def verify(folder: _Folder, ledger: _Ledger = None, key: _Key = None, as_json: _Json = False) -> None:
    """Check a release, or a model of one, without the data: all is computed again.

    Cost, digests, statement and every answer, and with their options the signature and the ledger. One line
    for each subject: ok, FAILED, or not checked. Exit status: 0 if nothing is false, 1 if something is, 2
    for wrong use.
    """
    from matrixdp.cli.progress import Reporter
    from matrixdp.errors import SpecificationError
    from matrixdp.model.folder import is_model
    from matrixdp.review import verify_model, verify_release
    from matrixdp.review.markdown import printable

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
