"""The commands ``ledger init``, ``ledger show`` and ``ledger recover``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import matrixdp as mdp
from matrixdp.cli.app import ForceOption, JsonOption, as_written, wrong
from matrixdp.display import printable
from matrixdp.errors import MatrixDPError, PrivacyError, SpecificationError
from matrixdp.errors import Path as Place
from matrixdp.privacy.unit import UNIT_KEYS

_Ledger = Annotated[Path, Argument(metavar="LEDGER", help="The file of the ledger.")]
BUDGETS = "one of rho=1, mu=1, epsilon=1,delta=1e-6 or epsilon=1"
#: The options that parts of a total are given by; all others are in its own.
_OPTIONS: dict[Place, Place] = {
    ("budget", "neighbours"): ("--neighbours",),
    **{("budget", "unit", name): (f"--unit-{name.replace('_', '-')}",) for name in UNIT_KEYS},
}


@contextmanager
def _told_by(option: str) -> Iterator[None]:
    """Let errors of a budget name the options that give it."""
    try:
        yield
    except PrivacyError as error:
        problem = error.problem
        if problem is not None:
            problem = replace(problem, path=_OPTIONS.get(problem.path, (option, *problem.path[1:])))
        raise SpecificationError(problem or str(error), error.code) from None


def budget_in(text: str, option: str) -> mdp.Budget:
    """Return the budget that an option gives, for one record a person."""
    with _told_by(option):
        return mdp.Budget(**_parameters(text, option))


def _parameters(text: str, option: str) -> dict[str, Any]:
    """Return the parameters of a budget that an option gives, read to the last digit.

    Examples
    --------
    >>> _parameters("epsilon=0.1,delta=1e-6", "--total")
    {'epsilon': Decimal('0.1'), 'delta': Decimal('0.000001')}
    """
    given: dict[str, Any] = {}
    unreadable = wrong(option, repr(text), BUDGETS)
    for pair in text.split(","):
        name, sign, value = (part.strip() for part in pair.partition("="))
        if name not in ("rho", "mu", "epsilon", "delta") or not sign or name in given:
            raise unreadable
        try:
            given[name] = Decimal(value)
        except InvalidOperation:
            raise unreadable from None
        if len(value) > 100 or abs(given[name].adjusted()) > 1000:
            place = (option, name)
            raise SpecificationError.at(place, "a number out of range", "fewer digits", code="out-of-range")
    return given


def init(
    path: _Ledger,
    dataset: Annotated[str, Option(metavar="NAME", help="Name of the dataset.")],
    total: Annotated[str, Option(metavar="BUDGET", help=f"What all releases together may spend: {BUDGETS}.")],
    neighbours: Annotated[str, Option(help="add_remove or replace, as in every release.")] = "add_remove",
    unit_records: Annotated[
        int | None, Option(metavar="K", help="The most records of one person; 1 where it is left out.")
    ] = None,
    unit_id: Annotated[
        str | None, Option(metavar="COLUMN", help="The column that names the person, if any.")
    ] = None,
    unit_per: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="An attribute in whose values records are bounded; may be repeated."),
    ] = None,
    unit_max_values: Annotated[
        int | None, Option(metavar="K", help="In how many values of --unit-per a person counts at most.")
    ] = None,
    unit_max_records_each: Annotated[
        int | None, Option(metavar="M", help="The most records of a person in each of these values.")
    ] = None,
    unit_constant: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="An attribute that a person's records agree in; may be repeated."),
    ] = None,
) -> None:
    """Create a ledger: a file that records what all releases of a dataset spend.

    Its total is what all releases that are debited to it may spend together, between the same neighbours and
    for the same unit of privacy. It can never be raised, and no debit is ever taken back.
    """
    with _told_by("--total"):
        given = _parameters(total, "--total")
        bounds = unit_per or (), unit_max_values, unit_max_records_each, unit_constant or ()
        unit = mdp.Unit(unit_records, unit_id, *bounds)
        budget = mdp.Budget(**given, neighbours=neighbours, unit=unit)  # type: ignore[arg-type]  # checked there
    made = mdp.Ledger.create(path, dataset, budget)
    typer.echo(f"{path}: the ledger of {made.dataset}, with a total of {budget.words}; nothing is spent yet.")


def show(path: _Ledger, as_json: JsonOption = False) -> None:
    """Show what was spent of a ledger, what is left, and every debit.

    What is left is the most that one further release may spend, in the definition of the total. Every debit
    counts, even if its release was never finished.
    """
    from matrixdp.cli.console import print_facts, unit_in_words
    from matrixdp.cli.tables import Column, console, print_columns
    from matrixdp.ledger import in_words, report

    opened = mdp.Ledger.open(path)
    found = report(opened)
    if as_json:
        typer.echo(json.dumps(found))
        return
    facts = {
        "dataset": found["dataset"],
        "total": f"{in_words(found['total'])} ({found['definition']}, {found['neighbours']} neighbours)",
        "unit": unit_in_words(opened.total.unit).partition(";")[0],
        "spent": in_words(found["spent"], ROUND_CEILING),
        "left": in_words(found["left"], ROUND_FLOOR),
    }
    print_facts(facts)
    if not found["entries"]:
        typer.echo("No release was debited yet.")
        return
    rows = [("time (UTC)", "state", "noise", "budget", "release")]
    for entry in found["entries"]:
        budget = {name: value for name, value in entry["budget"].items() if isinstance(value, float)}
        when = entry["time"].removesuffix("+00:00").replace("T", " ")
        rows.append((when, entry["state"], entry["noise"], in_words(budget), entry["release"] or "-"))
    columns = (map(printable, texts) for texts in zip(*rows, strict=True))
    print_columns(console(), [Column(head, texts) for head, *texts in columns])


def recover(path: _Ledger, force: ForceOption = False) -> None:
    """Settle the debits of releases that were stopped.

    A measurement that was written whole becomes its release, at no further cost. Other leftovers are removed,
    and their debit is abandoned: its budget counts as spent. Releases that still run are left alone.
    """
    from matrixdp.cli.console import Reporter

    with Reporter() as reporter:
        progress = reporter.counter("writing answers")
        found = mdp.recover_ledger(mdp.Ledger.open(path), force=force, progress=progress)
    for one in found:
        typer.echo(f"{one.entry}: {one.state}: {printable(one.says)}.")
    if not found:
        typer.echo("Nothing to recover: every debit is settled.")


COMMANDS = (init, show, recover)


def has_left(path: Path, budget: mdp.Budget | None, costs: Sequence[Any]) -> dict[str, Any]:
    """Return the rest of a ledger and, where costs are known, whether one of them can still be debited.

    There are several where selection has yet to choose the noise. The ledger alone is read. A budget for
    other neighbours or another unit than its own is refused.
    """
    from matrixdp.ledger import in_words, report

    told: dict[str, Any] = {"path": str(path)}
    try:
        found = mdp.Ledger.open(path)
        shown = report(found)
    except MatrixDPError as error:
        return told | {"enough": False, "says": str(error)}
    if budget is not None:
        found.account.check_terms(budget)
    told |= {name: shown[name] for name in ("dataset", "total", "spent", "left")}
    left, total = in_words(shown["left"], ROUND_FLOOR), in_words(shown["total"])
    says = f"{left} left of {total} for {found.dataset}"
    if budget is None or not costs:
        return told | {"enough": None, "says": says}
    try:
        found.payable(budget, costs)
    except PrivacyError as error:
        return told | {"enough": False, "says": f"{says}: not enough: {as_written(error)}"}
    return told | {"enough": True, "says": f"{says}: enough"}
