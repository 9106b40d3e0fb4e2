"""The program ``matrixdp``: its commands, and what its exit status means.

What is heavy is imported inside commands, so that help appears at once.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from matrixdp.cli.plain import PlainCommand, PlainGroup

if TYPE_CHECKING:
    from collections.abc import Iterable

    app: typer.Typer

__all__ = ["app", "main"]

_ALLOCATIONS_A_COLLECTION = 100_000

_HELP = """
Differentially private answers to every query of a workload, with their standard errors.

Write a specification (domain, workload, privacy) as YAML, or begin with a draft of it; then:

\b
  matrixdp draft health.csv > health.yaml
  matrixdp validate health.yaml
  matrixdp select health.yaml
  matrixdp compare health.yaml
  matrixdp ledger init health.ledger --dataset health --total rho=1
  matrixdp release health.yaml --out released --ledger health.ledger
  matrixdp show released 'age CDF by sex'
  matrixdp answer released 'product: {age: {ranges: [[0, 17]]}}'
  matrixdp verify released --ledger health.ledger
  matrixdp report released

The ledger may be left out; with it all releases of the data together keep to its total.

Exit status: 0 success; 2 wrong input, with one line that says what is wrong and where; 3 a release whose
total is not what --expect says; 1 anything else, such as a release that does not hold.
"""

_MODULES = {
    "draft": "draft",
    "validate": "validate",
    "select": "select",
    "compare": "compare",
    "release": "release",
    "answer": "answer",
    "show": "show",
    "model": "model",
    "synthesize": "synthesize",
    "verify": "verify",
    "explain": "explain",
    "report": "report",
    "keys": "keys",
    "sign": "keys",
    "recover": "recover",
    "schema": "schema",
    "ledger": "ledger",
}
"""The commands, in the order of the help, and the module of each."""


def _version(wanted: bool) -> None:
    if wanted:
        from matrixdp.cli.version import versions

        typer.echo(versions())
        raise typer.Exit


def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Show the versions of this and of what it uses.",
        ),
    ] = False,
) -> None:
    """Take the options of the program itself; the help is `_HELP`."""


def _with(names: Iterable[str]) -> typer.Typer:
    """Return the program with some of its commands."""
    made = typer.Typer(
        name="matrixdp",
        cls=PlainGroup,
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # help without rich appears sooner
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(program)
    for name in names:
        command = getattr(import_module(f"matrixdp.cli.{_MODULES[name]}"), name)
        if isinstance(command, typer.Typer):
            made.add_typer(command)
        else:
            made.command(cls=PlainCommand)(command)
    return made


def __getattr__(name: str) -> typer.Typer:
    """Make the whole program when it is asked for: `main` needs one command of it."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = whole = _with(_MODULES)
    return whole


def main() -> None:
    """Run the program."""
    # of what a command imports nothing is garbage, and looking for it takes time
    gc.set_threshold(_ALLOCATIONS_A_COLLECTION)
    named = [name for name in sys.argv[1:2] if name in _MODULES]
    try:
        _with(named or _MODULES)()
    finally:
        # nor is it when the process ends, where Python looks several times; DuckDB's binding counts what is
        # not freed, and would complain
        if "duckdb" not in sys.modules:
            gc.freeze()
