"""The command ``compare``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from matrixdp.cli.guard import guarded
from matrixdp.cli.options import Spec, noise_name

if TYPE_CHECKING:
    from matrixdp.privacy import Budget

__all__ = ["compare"]


Mechanisms = Annotated[
    str | None,
    typer.Option(
        "--mechanisms", metavar="A,B,...", help="Only these, separated by commas.", show_default="all"
    ),
]
NoisesOption = Annotated[
    str,
    typer.Option(
        "--noise",
        parser=partial(noise_name, ("auto", "both")),
        metavar="<auto|gaussian|laplace|both>",
        help="auto: Laplace for pure differential privacy (epsilon alone), both for epsilon with delta, "
        "Gaussian for rho and mu.",
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit",
        min=1.0,
        metavar="SECONDS",
        help="For all mechanisms together; the quickest come first.",
    ),
]
TimeLimitEach = Annotated[
    float, typer.Option("--time-limit-each", min=1.0, metavar="SECONDS", help="For each mechanism.")
]
Why = Annotated[bool, typer.Option("--why", help="Say why mechanisms do not apply, or did not finish.")]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Draw the errors: PNG, SVG or PDF by its ending."),
]
PublicTable = Annotated[
    Path | None,
    typer.Option(
        "--public-table",
        metavar="FILE",
        help="Simulate mechanisms whose error depends on the data (dawa) on this table. Its EXACT "
        "ANSWERS ARE COMPUTED, so the output is NOT PRIVATE: never give a confidential table.",
        show_default=False,
    ),
]
Simulations = Annotated[
    int,
    typer.Option("--simulations", min=2, max=100_000, metavar="N", help="How often, with --public-table."),
]


@guarded
def compare(
    spec: Spec,
    mechanisms: Mechanisms = None,
    noise: NoisesOption = "auto",
    time_limit: TimeLimit = 180.0,
    time_limit_each: TimeLimitEach = 60.0,
    why: Why = False,
    picture: Picture = None,
    public_table: PublicTable = None,
    simulations: Simulations = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare the expected error of mechanisms, without the data.

    Every mechanism selects its strategy in a process of its own; the errors are at the specification's
    budget. Mechanisms that do not apply are named, and --why gives the reasons. The specification's own
    table is never read; a table that is given as --public-table is, and must be public.
    """
    from matrixdp.cli.comparison import Limits, compare_mechanisms
    from matrixdp.cli.comparison_table import Live, print_comparison
    from matrixdp.cli.figures import unit_in_words
    from matrixdp.cli.inputs import specification_with_budget
    from matrixdp.errors import SpecificationError
    from matrixdp.sources import open_source

    written, budget = specification_with_budget(spec)
    names = _mechanisms(mechanisms)
    if picture is not None:
        from matrixdp.cli.pictures import check_picture

        check_picture(picture)
    if public_table is not None:
        open_source(str(public_table))
    kinds = _noises(noise, budget)
    limits = Limits(time_limit, time_limit_each)
    with Live() as live:
        rows = compare_mechanisms(spec, names, kinds, limits, live.report, public_table, simulations)
    if picture is not None:
        from matrixdp.cli.pictures import draw_comparison

        parameters = budget.as_dict() | budget.unit.as_dict()
        figures = ", ".join(f"{name} {value}" for name, value in parameters.items() if name != "unit")
        draw_comparison(rows, picture, f"{written.workload.queries:,} queries; {figures}")
    if as_json:
        printed = {
            "queries": written.workload.queries,
            "privacy": budget.as_dict(),
            "time_limit": time_limit,
            "time_limit_each": time_limit_each,
            "public_table": None if public_table is None else str(public_table),
            "mechanisms": [row.as_dict() for row in rows],
        }
        typer.echo(json.dumps(printed))
        return
    print_comparison(rows, why=why or all(row.rmse is None for row in rows))
    if picture is not None:
        typer.echo(f"drawn: {picture}")
    typer.echo(f"unit: {unit_in_words(budget.unit)}")
    if all(row.rmse is None for row in rows):
        raise SpecificationError.at(
            ("--mechanisms",), "none that applies, see above", "at least one that applies"
        )


def _mechanisms(given: str | None) -> list[str]:
    from matrixdp.errors import SpecificationError
    from matrixdp.forms import unknown_name
    from matrixdp.selection.mechanisms.table import MECHANISMS

    if given is None:
        return list(MECHANISMS)
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name != "auto" and name not in MECHANISMS:
            raise SpecificationError(unknown_name(("--mechanisms",), name, "a mechanism", MECHANISMS))
    if not names:
        raise SpecificationError.at(("--mechanisms",), "nothing", "names separated by commas")
    return list(dict.fromkeys(names))


def _noises(noise: str, budget: Budget) -> list[str]:
    from matrixdp.noise import NOISES, natural_noise

    if noise == "auto" and budget.kind != "approx":
        return [natural_noise(budget).name]
    if noise in ("auto", "both"):
        return [name for name, other in NOISES.items() if other.honours(budget)]
    return [noise]
