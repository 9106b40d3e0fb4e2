"""The program ``matrixdp``: its commands, and what its exit status means.

What is heavy is imported inside commands, so that help appears at once.
"""

from __future__ import annotations

import gc
from typing import Annotated

import typer

from matrixdp.cli.answer import answer
from matrixdp.cli.compare import compare
from matrixdp.cli.draft import draft
from matrixdp.cli.explain import explain
from matrixdp.cli.keys import keys, sign
from matrixdp.cli.ledger import ledger
from matrixdp.cli.model import model
from matrixdp.cli.recover import recover
from matrixdp.cli.release import release
from matrixdp.cli.report import report
from matrixdp.cli.schema import schema
from matrixdp.cli.select import select
from matrixdp.cli.show import show
from matrixdp.cli.synthesize import synthesize
from matrixdp.cli.validate import validate
from matrixdp.cli.verify import verify

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

app = typer.Typer(
    name="matrixdp",
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help without rich appears in half the time
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from matrixdp.cli.version import versions

        typer.echo(versions())
        raise typer.Exit


@app.callback()
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


for command in (
    draft,
    validate,
    select,
    compare,
    release,
    answer,
    show,
    model,
    synthesize,
    verify,
    explain,
    report,
    keys,
    sign,
    recover,
    schema,
):
    app.command()(command)
app.add_typer(ledger)


def main() -> None:
    """Run the program."""
    # of what a command imports nothing is garbage, and looking for it takes a tenth of a short command
    gc.set_threshold(_ALLOCATIONS_A_COLLECTION)
    app()
