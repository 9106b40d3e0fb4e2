"""The commands ``validate``, ``draft`` and ``schema``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from matrixdp.answers.schedule import schedules
from matrixdp.cli import console
from matrixdp.cli.app import JsonOption
from matrixdp.cli.ledger import has_left
from matrixdp.cli.options import DatabaseTable, ExpectOption, Spec, warn
from matrixdp.display import counted, figure, listed
from matrixdp.errors import SourceError, format_place
from matrixdp.forms import shown
from matrixdp.noise import natural_noise
from matrixdp.privacy.budget import delta_warnings, weak_privacy
from matrixdp.sources import Source, open_source
from matrixdp.sources.formats import format_names
from matrixdp.specification import (
    Specification,
    WrittenDiscovery,
    advice,
    is_discovery,
    load_discovery,
    load_specification,
    parse_yaml,
    read_document,
)
from matrixdp.specification.advice import declared


def validate(spec: Spec, as_json: JsonOption = False, expect: ExpectOption = None) -> None:
    """Check a specification without the data, and say what to expect.

    Prints the sizes of the domain and the workload, what the budget amounts to, and roughly the memory and
    time that a release will take; if that is minutes, what to change. Checks that the data are there with
    every column needed; no record is read. Of the specification of a discovery it says what each attribute
    will cost, and how many persons must have a value that is found.
    """
    from matrixdp.selection.forecast import forecast, in_words
    from matrixdp.selection.noise_choice import noises_for

    if is_discovery(read_document(spec).value):
        _validate_discovery(spec, as_json)
        return
    written = load_specification(spec)
    if written.publication.named:
        from matrixdp.answers.publication import chosen_tables

        chosen_tables(written.workload, written.publication)
    domain, budget, asked = written.domain, written.budget, written.reference_budget
    expected = forecast(written.workload, asked, targets=bool(written.targets))
    check = partial(
        Source.check, domain=written.domain, out_of_domain=written.out_of_domain, unit=written.unit
    )
    found = _data(written.data, written, "release", check)
    debited = None
    if written.ledger is not None:
        noises = noises_for(None, asked, "auto")[0]
        costs = [] if written.targets or budget is None else [noise.cost(budget) for noise in noises]
        debited = has_left(written.ledger, asked, costs)
    cells = domain.cells()
    warnings: tuple[str, ...] = advice(written, expect)
    if (records := declared(written, expect)) is not None:
        from matrixdp.strategy.reliability import noise_warnings

        warnings += tuple(noise_warnings(written.workload, asked, records))
    if as_json:
        privacy = None if budget is None else console.privacy_figures(budget, natural_noise(budget))
        told = {"valid": True, "attributes": len(domain), "cells": cells, **asdict(expected)}
        told |= {"privacy": privacy, "unit": written.unit.as_dict(), "warnings": warnings}
        told["rounds"] = written.rounds
        if written.series is not None:
            told["answers_come"] = schedules(written.workload, written.series.attribute)
        typer.echo(json.dumps(told | {"data": found, "ledger": debited}))
        return
    select, whole = expected.select_seconds, expected.release_seconds
    times = "not known: it depends on what a search finds"
    if select is not None and whole is not None:
        times = f"about {in_words(select)} to select, {in_words(whole)} in all"
    facts = {
        "domain": f"{len(domain)} attributes, {counted(cells, 'cell')}",
        "workload": f"{counted(expected.queries, 'query', 'queries')} in {counted(expected.groups, 'group')}",
        "marginals": f"{expected.marginals:,}, the largest of {expected.largest_marginal:,} cells",
        "to measure": f"about {expected.counted_cells:,} rows",
        "largest group": f"{expected.largest_group:,} queries",
        "disk": f"about {figure(expected.disk_bytes / 1e6)} MB",
        "memory": f"about {figure(expected.memory_bytes / 1e6)} MB",
        "time": times,
        "privacy": _promise(written),
        "unit": console.unit_in_words(written.unit),
    }
    if written.rounds > 1:
        facts["rounds"] = "2; the second is planned from the noisy answers to the first"
    if debited is not None:
        facts["ledger"] = debited["says"]
    warn(warnings)
    typer.secho(f"{spec}: valid", bold=True)
    console.print_facts(facts | {"data": found})
    console.print_schedules(written)
    for line in expected.suggestions:
        typer.echo(f"Long: {line}.")


def _promise(written: Specification) -> str:
    budget, least = written.budget, written.least
    if least is not None:
        most = "" if budget is None else f", at most {budget.words}"
        delta = "" if least.delta is None else f" at delta {least.delta}"
        return f"the smallest {least.kind}{delta} that meets the targets{most}; `select` prints it"
    if budget is None:
        return "no budget: `select` and `release` need one"
    return console.in_definitions(budget, natural_noise(budget))


def _validate_discovery(spec: Path, as_json: bool) -> None:
    from matrixdp.discovery import Schedule

    written, table, path = load_discovery(spec)
    schedule, budget = Schedule.of(written), written.budget
    attributes, found = schedule.attributes(), _data(table, written, "discover", schedule.check)
    warnings = (*written.advice, *delta_warnings(budget), *weak_privacy(budget))
    debited = None if path is None else has_left(path, budget, [schedule.cost])
    if as_json:
        told = {"valid": True, "attributes": attributes, "privacy": budget.as_dict(), "warnings": warnings}
        typer.echo(json.dumps(told | {"data": found, "ledger": debited}))
        return
    warn(warnings)
    typer.secho(f"{spec}: valid, for `discover`", bold=True)
    facts = {name: _cost(**told) for name, told in attributes.items()}
    facts |= {"privacy": budget.words, "unit": console.unit_in_words(written.person)}
    console.print_facts(facts | ({} if debited is None else {"ledger": debited["says"]}) | {"data": found})


def _cost(discover: str, max_values: int | None = None, persons: Sequence[int] = (), **figures: float) -> str:
    told = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
    if not persons:
        return f"{discover}, at {told}"
    of = "" if len(persons) == 1 else f" and no other, or {persons[1]:,} with {max_values:,} values each"
    how = "surely" if "epsilon" in figures else "half of the time"
    return f"{discover}, at {told}; one is found {how} if {counted(persons[0], 'person')} have it{of}"


def _data(
    data: str | Path | None,
    written: Specification | WrittenDiscovery,
    command: str,
    check: Callable[[Source], None],
) -> str:
    if data is None:
        return f"none named: give `{command}` the path by --data"
    name = str(data)
    try:
        source = open_source(name, table_name=written.table, quoted_newlines=written.quoted_newlines)
    except SourceError as error:
        if error.code != "file-missing":
            raise
        return f"not there yet ({error})"
    check(source)
    return f"{shown(name)} is there, with every column (no record was read)"


def draft(
    data: Annotated[
        str,
        Argument(
            metavar="DATA",
            help=f"The table: a path ({format_names()}; a pattern of files too) or the address of a "
            "database.",
        ),
    ],
    table: DatabaseTable = None,
    public_table: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="A table that is public, with columns of the same names: last year's, a published sample; "
            "or a code book, with columns such as variable, value and label.",
        ),
    ] = None,
    records: Annotated[
        int | None,
        Option(
            "--records",
            min=1,
            metavar="N",
            show_default="those of the public table",
            help="About how many records the table has, a public number. Pairs of attributes are proposed "
            "whose counts are mostly reliable.",
        ),
    ] = None,
    quoted_newlines: Annotated[
        bool, Option("--quoted-newlines", help="Quotes in CSV files may hold line ends.")
    ] = False,
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
    from matrixdp.draft import draft_specification

    how: dict[str, Any] = {"table": table, "public_table": public_table, "records": records}
    text = draft_specification(data, quoted_newlines=quoted_newlines, **how)
    typer.echo(text, nl=False)
    unfilled = parse_yaml(text).unfilled
    if unfilled:
        typer.echo(f"To fill in (TODO): {listed(map(format_place, unfilled), len(unfilled))}.", err=True)


def schema(
    document: Annotated[
        Literal["discovery", "release", "specification", "strategy"],
        Argument(
            metavar="DOCUMENT",
            help="specification, discovery (for `discover`), strategy (for `select --strategy-file`), or "
            "release (release.json).",
        ),
    ] = "specification",
) -> None:
    """Print the JSON Schema of specifications, of discoveries, of strategy files, or of release.json.

    Editors complete and check a specification with it: save it beside the file and begin the file with

    \b
      # yaml-language-server: $schema=matrixdp.schema.json
    """  # noqa: D301 - click reads the character itself
    from matrixdp.releases import release_schema
    from matrixdp.specification import discovery_schema, json_schema, strategy_schema

    schemas = {
        "discovery": discovery_schema,
        "release": release_schema,
        "specification": json_schema,
        "strategy": strategy_schema,
    }
    typer.echo(json.dumps(schemas[document](), indent=2, ensure_ascii=False))
