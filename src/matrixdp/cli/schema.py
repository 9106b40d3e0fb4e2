"""The command ``schema``."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from matrixdp.cli.guard import guarded

__all__ = ["schema"]


class Document(StrEnum):
    """What there are schemas of."""

    release = "release"
    specification = "specification"


_Document = Annotated[
    Document,
    typer.Argument(metavar="DOCUMENT", show_default=False, help="release (release.json) or specification."),
]


@guarded
def schema(document: _Document) -> None:
    """Print the JSON Schema of release.json or of specifications."""
    from matrixdp.release import release_schema
    from matrixdp.specification import json_schema

    found = release_schema() if document is Document.release else json_schema()
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
