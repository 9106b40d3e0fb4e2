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
    strategy = "strategy"


_Document = Annotated[
    Document,
    typer.Argument(
        metavar="DOCUMENT", help="specification, strategy (for `select --given`), or release (release.json)."
    ),
]


@guarded
def schema(document: _Document = Document.specification) -> None:
    """Print the JSON Schema of specifications, of strategies that are given, or of release.json.

    Editors complete and check a specification by it: save it beside the file and begin the file with

    \b
      # yaml-language-server: $schema=matrixdp.schema.json
    """  # noqa: D301 - click reads the character itself
    from matrixdp.release import release_schema
    from matrixdp.specification import json_schema, strategy_schema

    schemas = {
        Document.release: release_schema,
        Document.specification: json_schema,
        Document.strategy: strategy_schema,
    }
    typer.echo(json.dumps(schemas[document](), indent=2, ensure_ascii=False))
