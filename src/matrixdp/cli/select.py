"""The command ``select``."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matrixdp.cli.app import AllOption, JsonOption, guarded
from matrixdp.cli.ledger import ledger_figures
from matrixdp.cli.options import (
    PICTURES,
    CertifyOption,
    MechanismOption,
    NoiseOption,
    Objective,
    ObjectiveOption,
    OptionOption,
    PictureOption,
    RestartsOption,
    SeedOption,
    Spec,
    SubSolverOption,
    check_output,
    mechanism_options,
)
from matrixdp.errors import SpecificationError

if TYPE_CHECKING:
    from matrixdp.privacy import Budget
    from matrixdp.queries import Workload
    from matrixdp.strategy import Strategy

_Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="STRATEGY", help="Save the strategy here, for `release --strategy`."),
]
_IgnoreTargets = Annotated[
    bool, typer.Option("--ignore-targets", help="Select for the budget; ignore accuracy targets.")
]
_StrategyFile = Annotated[
    Path | None,
    typer.Option(
        "--strategy-file",
        "--given",
        metavar="FILE",
        help="Use this strategy instead of choosing one: YAML or JSON that lists what is measured under "
        "`strategy`, or a matrix (.npy, .npz or .csv) over the cells of the attributes that are asked about.",
    ),
]
#: With more groups than this the screen shows them joined.
_SHOWN_GROUPS = 30


@guarded
def select(
    spec: Spec,
    mechanism: MechanismOption = "auto",
    noise: NoiseOption = "auto",
    objective: ObjectiveOption = Objective.sum,
    sub_solver: SubSolverOption = None,
    seed: SeedOption = None,
    restarts: RestartsOption = None,
    option: OptionOption = None,
    as_json: JsonOption = False,
    save: _Save = None,
    ignore_targets: _IgnoreTargets = False,
    every: AllOption = False,
    picture: PictureOption = None,
    strategy_file: _StrategyFile = None,
    certify: CertifyOption = False,
) -> None:
    """Choose the strategy for a workload, without touching the data.

    Prints the expected error of every query group at the specification's budget, and a certified lower bound
    where one is known: no strategy can do better. All errors are standard errors of counts. With accuracy
    targets, the budget is the smallest that meets them.
    """
    started = time.perf_counter()
    from matrixdp.cli import options as inputs
    from matrixdp.cli.console import Reporter, selection_figures
    from matrixdp.specification import load_specification
    from matrixdp.strategy import select as select_strategy

    options = mechanism_options(mechanism, sub_solver, option, seed=seed, restarts=restarts, certify=certify)
    check_output("--save", save)
    check_output("--picture", picture, endings=PICTURES)
    written = (
        inputs.specification_with_budget(spec)[0]
        if ignore_targets
        else load_specification(spec, require_privacy=True)
    )
    reference = inputs.reference_budget(written)
    inputs.warn(written)
    with Reporter() as reporter:
        how: dict[str, Any] = {
            "noise": noise,
            "budget": reference,
            "objective": objective.value,
            "targets": None if ignore_targets else written.targets or None,
        }
        if strategy_file is None:
            strategy = select_strategy(
                written.workload, mechanism=mechanism, progress=reporter.stage, **how, **options
            )
        else:
            reporter.stage("evaluating the strategy")
            strategy = _evaluated(written.workload, strategy_file, mechanism, how, options)
        reporter.stage("analysing the error")
        budget = reference if ignore_targets else inputs.budget_spent(written, strategy)
        figures = selection_figures(strategy, budget)
    figures |= ledger_figures(written.ledger, budget, strategy)
    figures["seconds"] = time.perf_counter() - started
    if save is not None:
        strategy.save(save)
    if picture is not None:
        strategy.plot(budget).savefig(picture, dpi=150)
    if as_json:
        typer.echo(json.dumps(figures))
    else:
        _show(strategy, budget, figures, every, save)


def _evaluated(
    workload: Workload, given: Path, mechanism: str, how: dict[str, Any], options: dict[str, Any]
) -> Strategy:
    """Return the strategy that a file gives."""
    from matrixdp.specification import load_given
    from matrixdp.strategy import Strategy

    if mechanism != "auto" or options:
        found = "a strategy beside --mechanism, its options or --certify"
        expected = "one of the two: a given strategy is not selected by a mechanism"
        raise SpecificationError.at(("--strategy-file",), found, expected, code="conflict")
    return Strategy.from_parts(workload.domain, load_given(given, workload), workload=workload, **how)


def _show(
    strategy: Strategy, budget: Budget, figures: dict[str, object], every: bool, save: Path | None
) -> None:
    from matrixdp.cli.console import by_entry, by_group, counts_records, print_facts, unit_in_words
    from matrixdp.cli.tables import console, print_errors
    from matrixdp.display import figure
    from matrixdp.measure.statement import statement

    def number(key: str) -> str:
        value = figures[key]
        return figure(value) if isinstance(value, float) else "-"

    screen = console()
    rows = by_group(strategy, budget)
    joined = len(rows) > _SHOWN_GROUPS and not every
    print_errors(screen, by_entry(strategy.workload, rows) if joined else rows)
    if joined:
        screen.print(f"{len(rows):,} query groups, joined; --all shows every one, and so does --json.")
    gap = strategy.certificate.gap
    targets = strategy.selection.targets
    if targets:
        value, bound = "lower_bound_target_ratio", "ratio of stddev to target at least "
    elif strategy.selection.objective == "max":
        value, bound = "lower_bound_max_stddev", ""
    else:
        value, bound = "lower_bound_rmse", ""
    bound = "none" if gap is None else f"{bound}{number(value)} (gap {gap:.2g} in squared error)"
    counted = [row for row, group in zip(rows, strategy.workload, strict=True) if counts_records(group)]
    mixed = len(counted) < len(rows)  # sums have the unit of their attribute
    rmse = f"{number('rmse')} (before rounding to integers {number('rmse_before_rounding')})"
    largest = number("max_stddev")
    if mixed:
        total = math.fsum(row.rmse**2 * row.queries for row in counted)
        rmse = f"{figure(math.sqrt(total / max(sum(row.queries for row in counted), 1)))} of the counts"
        largest = f"{figure(max((row.max_stddev for row in counted), default=0.0))} of the counts"
        bound = bound if gap is None or targets else f"gap {gap:.2g} in weighted squared error"
    promise = statement(strategy.selection.noise.cost(budget), budget, private=True)
    facts = [
        ("mechanism", f"{strategy.mechanism} ({strategy.selection.reason})"),
        ("noise", f"{strategy.noise} ({strategy.noise_reason})"),
        ("queries", f"{strategy.workload.queries:,} in {len(strategy.workload):,} groups"),
        ("RMSE", rmse),
        ("largest stddev", largest),
        ("lower bound", f"{bound}; {strategy.certificate.scope}"),
        ("privacy", f"{budget!r}, which is {figure(promise.mu)}-GDP and {figure(promise.rho)}-zCDP"),
        ("unit", unit_in_words(budget.unit)),
        ("time, memory", f"{number('seconds')} s, {number('peak_memory_mb')} MB"),
    ]
    if targets:
        facts.insert(
            3, ("targets", f"met; the largest ratio of stddev to target is {number('target_ratio')}")
        )
    elif figures["weighted_rmse"] != figures["rmse"] and not mixed:
        facts.insert(3, ("weighted RMSE", f"{number('weighted_rmse')} (the lower bound is for this)"))
    debited = figures.get("ledger")
    if isinstance(debited, dict):
        facts.append(("ledger", debited["says"]))
    if save is not None:
        facts.append(("saved", str(save)))
    print_facts(facts)
