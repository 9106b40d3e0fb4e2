"""The command ``compare``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.console import Group as Lines
from rich.spinner import Spinner
from rich.text import Text
from typer import Option

import matrixdp as mdp
from matrixdp.cli.app import JsonOption, wrong
from matrixdp.cli.console import say, unit_in_words
from matrixdp.cli.options import (
    PICTURES,
    PictureOption,
    Spec,
    check_output,
    noise_name,
    one_round,
    warn,
    with_budget,
)
from matrixdp.cli.tables import Column, console, print_columns, table_of
from matrixdp.errors import within
from matrixdp.strategy.compare import Outcome, Report, error_columns, named, weighted


def compare(
    spec: Spec,
    mechanisms: Annotated[
        str | None, Option(metavar="A,B,...", help="Only these, separated by commas.", show_default="all")
    ] = None,
    noise: Annotated[
        str,
        Option(
            parser=partial(noise_name, ("auto", "both")),
            metavar="<auto|gaussian|laplace|both>",
            help="auto: Laplace for pure differential privacy (epsilon alone), both for epsilon with delta, "
            "Gaussian for rho and mu.",
        ),
    ] = "auto",
    time_limit: Annotated[
        float,
        Option(
            min=1.0,
            metavar="SECONDS",
            help="For all mechanisms together: half for auto, the rest for the others, the quickest first.",
        ),
    ] = 180.0,
    time_limit_each: Annotated[float, Option(min=1.0, metavar="SECONDS", help="Limit for each one.")] = 60.0,
    why: Annotated[bool, Option("--why", help="Say why mechanisms do not apply, or did not finish.")] = False,
    picture: PictureOption = None,
    public_table: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Also say which share of the counts would be reliable on this table, and simulate "
            "mechanisms whose error depends on the data (dawa, privbayes). "
            "Its EXACT ANSWERS ARE COMPUTED, so the output is NOT PRIVATE: never give a confidential table.",
        ),
    ] = None,
    simulations: Annotated[
        int, Option(min=2, max=100_000, metavar="N", help="How often, with --public-table.")
    ] = 20,
    as_json: JsonOption = False,
) -> None:
    """Compare the expected error of mechanisms, without the data.

    Every mechanism selects its strategy in a process of its own; the errors are at the specification's
    budget. Mechanisms that do not apply are named, and --why gives the reasons. The specification's own
    table is never read; a table that is given as --public-table is, and must be public.
    """
    written, budget = with_budget(spec)
    warn(one_round(written))
    with within("--mechanisms"):
        names = named(None if mechanisms is None else filter(None, map(str.strip, mechanisms.split(","))))
    check_output("--picture", picture, endings=PICTURES)
    with live() as report:
        found = mdp.compare(
            written.workload,
            budget,
            mechanisms=names,
            noise=noise,
            time_limit=time_limit,
            time_limit_each=time_limit_each,
            public_table=public_table,
            simulations=simulations,
            out_of_domain=written.out_of_domain,
            progress=report,
        )
    if picture is not None:
        with within("--picture"):
            found.plot().savefig(picture, dpi=150)
    if as_json:
        limits = {"time_limit": time_limit, "time_limit_each": time_limit_each}
        table = None if public_table is None else str(public_table)
        typer.echo(json.dumps(found.as_dict() | limits | {"public_table": table}))
    else:
        print_comparison(found.outcomes, why=why or not found.applies)
        if picture is not None:
            typer.echo(f"drawn: {picture}")
        typer.echo(f"unit: {unit_in_words(budget.unit)}")
    if not found.applies:
        raise wrong("--mechanisms", "none that applies, see above", "one that applies", "not-supported")


def _columns(rows: Sequence[Outcome]) -> list[Column]:
    """Return the rows that apply as columns."""
    found = error_columns(rows)
    mechanisms, noises = found.pop("mechanism"), found.pop("noise")
    return [
        Column("mechanism", [name.replace(" ", "\n") for name in mechanisms]),
        Column("noise", noises, whole=True),
        *(Column(name.replace(" ", "\n"), texts, number=True, whole=True) for name, texts in found.items()),
    ]


def print_comparison(rows: Sequence[Outcome], *, why: bool) -> None:
    """Print the table, what its columns mean, and which mechanisms are not in it."""
    if any(row.rmse is not None for row in rows):
        print_columns(console(), _columns(rows), plain=True)
        minimized = "weighted RMSE" if weighted(rows) else "RMSE"
        say(
            f"to best: ratio of the {minimized} to the smallest one, simulations apart. to bound: ratio to "
            "the lower bound for the same noise."
        )
    for row in rows:
        if row.note and (why or row.rmse is not None):
            say(f"{row.mechanism} ({row.noise}): {row.note.removeprefix(f'{row.mechanism}: ')}")
    for words, unfinished in {"did not finish": True, "do not apply": False}.items():
        missing = [row for row in rows if row.rmse is None and row.unfinished == unfinished]
        if missing and not why:
            say(f"{words} (--why says why): {_listed(missing)}")


def _listed(rows: Sequence[Outcome]) -> str:
    """Return the names of mechanisms, each once; with the noise where it is not so for every noise."""
    noises: dict[str, list[str]] = {}
    for row in rows:
        noises.setdefault(row.mechanism, []).append(row.noise)
    most = max(map(len, noises.values()))
    return ", ".join(
        name if len(own) == most else f"{name} ({', '.join(own)})" for name, own in noises.items()
    )


@contextmanager
def live() -> Iterator[Report]:
    """Yield a function that shows the growing table on a terminal, and nothing where output is redirected.

    Examples
    --------
    >>> with live() as report:
    ...     report("identity (gaussian), 1 of 9", [])
    """
    errors = Console(stderr=True, highlight=False)
    if not (errors.is_terminal and console().is_terminal):
        yield lambda *_: None
        return
    from rich.live import Live

    with Live(console=errors, transient=True, vertical_overflow="crop") as screen:

        def report(label: str, rows: Sequence[Outcome]) -> None:
            """Show what is being done, below what came of it so far."""
            working = Spinner("dots", text=Text(label))
            shown = any(row.rmse is not None for row in rows)
            screen.update(Lines(table_of(_columns(rows), plain=True), working) if shown else working)

        yield report
