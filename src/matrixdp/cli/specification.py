"""The commands ``validate``, ``draft`` and ``schema``."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matrixdp.cli.app import JsonOption, guarded
from matrixdp.cli.ledger import check_terms, has_left
from matrixdp.cli.options import DatabaseTable, Spec
from matrixdp.errors import SourceError, format_place
from matrixdp.sources.formats import format_names

if TYPE_CHECKING:
    from matrixdp.noise import Noise
    from matrixdp.specification import Specification

_MAX_ANSWERS = 50_000_000


@guarded
def validate(
    spec: Spec,
    as_json: JsonOption = False,
) -> None:
    """Check a specification without the data, and say what to expect.

    Prints the sizes of the domain and the workload, what the budget amounts to, and roughly the memory and
    time that a release will take; if that is minutes, what to change. Checks that the data are there with
    every column needed; no record is read.
    """
    from matrixdp.cli.console import print_facts, privacy_figures, unit_in_words
    from matrixdp.cli.forecast import forecast, in_words, suggestions
    from matrixdp.cli.options import advice, warn
    from matrixdp.display import figure
    from matrixdp.noise import natural_noise
    from matrixdp.specification import load_specification

    written = load_specification(spec)
    budget = written.budget
    privacy = None if budget is None else privacy_figures(budget, natural_noise(budget))
    expected = forecast(written.workload, _MAX_ANSWERS, _noises(written), bool(written.targets))
    found = _data(written)
    debited = _debited(written)
    shorter = suggestions(written.workload, expected, all(noise.norm == 1 for noise in _noises(written)))
    cells = written.domain.cells()
    if as_json:
        sizes = {"valid": True, "attributes": len(written.domain), "cells": cells}
        promised = {
            "privacy": privacy,
            "unit": written.unit.as_dict(),
            "warnings": list(advice(written)),
        }
        told = {"data": found, "ledger": debited, "suggestions": shorter}
        typer.echo(json.dumps({**sizes, **asdict(expected), **promised, **told}))
        return
    selecting = in_words(expected.select_seconds)
    facts = [
        ("domain", f"{len(written.domain)} attributes, {cells:{',' if cells < 10**12 else '.2e'}} cells"),
        ("workload", f"{expected.queries:,} queries in {expected.groups:,} groups"),
        ("marginals", f"{expected.marginals:,}, the largest of {expected.largest_marginal:,} cells"),
        ("to measure", f"about {expected.counted_cells:,} rows"),
        ("largest group", f"{expected.largest_group:,} queries"),
        ("disk", f"about {figure(expected.disk_bytes / 1e6)} MB"),
        ("memory", f"about {figure(expected.memory_bytes / 1e6)} MB"),
        ("time", f"about {selecting} to select, {in_words(expected.release_seconds)} in all"),
        ("privacy", _promise(written)),
        ("unit", unit_in_words(written.unit)),
        ("data", found),
    ]
    if debited is not None:
        facts.insert(-1, ("ledger", debited["says"]))
    warn(written)
    typer.secho(f"{spec}: valid", bold=True)
    print_facts(facts)
    for line in shorter:
        typer.echo(f"Long: {line}.")


def _debited(written: Specification) -> dict[str, Any] | None:
    """Return whether the ledger has enough left, if there is one."""
    if written.ledger is None:
        return None
    budget = written.budget if written.least is None else written.least.reference()
    if budget is not None:
        check_terms(written.ledger, budget)
    return has_left(written.ledger, None if written.targets else written.budget, _noises(written))


def _noises(written: Specification) -> tuple[Noise, ...]:
    from matrixdp.selection.noise_choice import noises_for

    budget = written.budget if written.least is None else written.least.reference()
    return noises_for(None, budget, "auto")[0]


def _promise(written: Specification) -> str:
    from matrixdp.measure.statement import statement
    from matrixdp.noise import natural_noise

    budget = written.budget
    if written.least is not None:
        most = "" if budget is None else f", at most {budget!r}"
        delta = "" if written.least.delta is None else f" at delta {written.least.delta}"
        return f"the smallest {written.least.kind}{delta} that meets the targets{most}; `select` prints it"
    if budget is None:
        return "no budget: `select` and `release` need one"
    promise = statement(natural_noise(budget).cost(budget), budget, private=True)
    mu, rho = f"mu {promise.mu:.4g} (GDP)", f"rho {promise.rho:.4g} (zCDP)"
    if promise.pure_epsilon is not None:
        return f"{budget!r}: epsilon {promise.pure_epsilon:.4g} (pure), which implies {mu} and {rho}"
    return f"{budget!r}: {mu}, {rho}, epsilon {promise.epsilon_at_reference_delta:.4g} at delta 1e-06"


def _data(written: Specification) -> str:
    from matrixdp.forms import shown
    from matrixdp.sources import open_source

    if written.data is None:
        return "none named: give `release` the path by --data"
    try:
        source = open_source(
            str(written.data), table_name=written.table, quoted_newlines=written.quoted_newlines
        )
    except SourceError as error:
        return f"not there yet ({error})"
    source.check(written.domain, written.out_of_domain, written.unit)
    return f"{shown(str(written.data))} is there, with every column (no record was read)"


# The command ``draft``.

_Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help=f"The table: a path ({format_names()}; a pattern of files too) or the address of a database.",
    ),
]
_Public = Annotated[
    Path | None,
    typer.Option(
        "--public-table",
        metavar="FILE",
        help="A table that is public, with columns of the same names: last year's, a published sample; or a "
        "code book, with columns such as variable, value and label.",
    ),
]
_Quoted = Annotated[bool, typer.Option("--quoted-newlines", help="Quotes in CSV files may hold line ends.")]


@guarded
def draft(
    data: _Data, table: DatabaseTable = None, public_table: _Public = None, quoted_newlines: _Quoted = False
) -> None:
    """Print a first specification for a table, without reading a record of it.

    The draft uses only column names and types; it leaves out identifiers and free text, with the reason.
    Values are left as TODO, which `validate` rejects by name. With --public-table, values found in that
    public table are filled in and flagged for review; a column with one public value, or with dates as texts,
    keeps a TODO:

    \b
      matrixdp draft people.csv --public-table people-2019.csv > people.yaml
      matrixdp validate people.yaml
    """  # noqa: D301 - click reads the character itself
    from matrixdp.display import listed
    from matrixdp.draft import draft_specification
    from matrixdp.specification.load import parse_yaml

    text = draft_specification(data, table=table, public_table=public_table, quoted_newlines=quoted_newlines)
    typer.echo(text, nl=False)
    unfilled = parse_yaml(text).unfilled
    if unfilled:
        typer.echo(f"To fill in (TODO): {listed(map(format_place, unfilled), len(unfilled))}.", err=True)


# The command ``schema``.


class Document(StrEnum):
    """Documents that have a schema."""

    release = "release"
    specification = "specification"
    strategy = "strategy"


_Document = Annotated[
    Document,
    typer.Argument(
        metavar="DOCUMENT",
        help="specification, strategy (for `select --strategy-file`), or release (release.json).",
    ),
]


@guarded
def schema(document: _Document = Document.specification) -> None:
    """Print the JSON Schema of specifications, of strategy files, or of release.json.

    Editors complete and check a specification with it: save it beside the file and begin the file with

    \b
      # yaml-language-server: $schema=matrixdp.schema.json
    """  # noqa: D301 - click reads the character itself
    from matrixdp.releases import release_schema
    from matrixdp.specification import json_schema, strategy_schema

    schemas = {
        Document.release: release_schema,
        Document.specification: json_schema,
        Document.strategy: strategy_schema,
    }
    typer.echo(json.dumps(schemas[document](), indent=2, ensure_ascii=False))
