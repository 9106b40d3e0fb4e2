"""The command ``discover``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

import matrixdp as mdp
from matrixdp.cli import options
from matrixdp.cli.app import ForceOption
from matrixdp.cli.console import NOT_PRIVATE, Reporter, print_facts, say
from matrixdp.display import counted
from matrixdp.specification import load_discovery


def discover(
    spec: options.Spec,
    out: Annotated[Path, Option(metavar="FILE", help="Where the found domain goes: a new YAML file.")],
    data: Annotated[
        str | None, Option(help="The table, in place of the specification's: a path or an address.")
    ] = None,
    table: options.DatabaseTable = None,
    ledger: Annotated[
        Path | None,
        Option(metavar="LEDGER", help="The ledger that is debited, in place of the specification's."),
    ] = None,
    force: ForceOption = False,
    seed_not_private: Annotated[
        int | None,
        Option(min=0, metavar="N", help="Draw from a seed, for a demonstration. THE RESULT IS NOT PRIVATE."),
    ] = None,
    accept_weak_privacy: options.AcceptWeak = False,
) -> None:
    """Find a domain in private columns, for a price, before any selection.

    Attributes that are marked `discover: values` get the values that enough persons have, and one for all
    others; those with `discover: bounds` get the range outside of which few records lie. The file is an
    ordinary domain that later specifications take by `domain_from: FILE`; `matrixdp verify FILE` checks it.
    With a ledger, it is debited before any record is read.
    """
    if ledger is not None and seed_not_private is not None:
        typer.echo(f"Seeded noise: {ledger} is not debited.", err=True)
    options.warn(load_discovery(spec)[0].advice)
    with Reporter(elapsed=False) as reporter:
        found = mdp.discover(
            spec,
            out,
            table=data,
            table_name=table,
            ledger=ledger,
            force=force,
            seed_not_private=seed_not_private,
            accept_weak_privacy=accept_weak_privacy,
            progress=reporter.stage,
        )
    if not found.private:
        typer.secho(f"{NOT_PRIVATE}\n", bold=True)
    say(found.statement)
    print_facts({"file": str(out), **{name: _told(own) for name, own in found.found.domain.items()}})
    check = f"`matrixdp verify {shlex.quote(str(out))}` checks it"
    say(f"A specification takes it by `domain_from: {out.name}`; {check}.")


def _told(spec: dict[str, Any]) -> str:
    if "categories" in spec:
        values = len(spec["categories"]) - 1
        return f"{counted(values, 'value')}, and {spec['categories'][-1]!r} for all others"
    low, high = spec["amount"] if "amount" in spec else (spec["min"], spec["max"])
    return f"from {low:g} to {high:g}"
