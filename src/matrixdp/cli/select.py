"""The command ``select``."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

import matrixdp as mdp
from matrixdp.answers.schedule import schedules
from matrixdp.cli import console
from matrixdp.cli import options as given
from matrixdp.cli.app import AllOption, JsonOption, wrong
from matrixdp.cli.ledger import has_left
from matrixdp.display import counted, figure, listed
from matrixdp.queries.workload import largest_value
from matrixdp.selection.limits import LIMITS
from matrixdp.specification import load_given
from matrixdp.specification.advice import declared

if TYPE_CHECKING:
    from matrixdp.selection.explain import Explanation
    from matrixdp.selection.selection import PartMethod

#: What becomes of a candidate, in the words of the table.
_FATES = {
    "tried": "try it",
    "tried if needed": "try it if needed",
    "skipped": "leave it out",
    "too large": "leave it out: too large",
}
#: What the errors of a strategy say of one that is measured in rounds: half of the budget doubles variances.
_IN_ROUNDS = (
    "2: the errors above are those of one round; the second is planned from the noisy answers to the first, "
    "to publish more counts. Standard errors may grow, by at most a factor of sqrt(2)"
)
#: With more groups than this the screen shows them joined.
_SHOWN_GROUPS = 30
#: With more classes of marginals than this it shows those that take longest.
_SHOWN_CLASSES = 12


def select(
    spec: given.Spec,
    mechanism: given.MechanismOption = "auto",
    noise: given.NoiseOption = "auto",
    objective: given.ObjectiveOption = "sum",
    sub_solver: given.SubSolverOption = None,
    seed: Annotated[
        int | None,
        Option(
            min=0,
            show_default="0",
            help="Seeds the searches for a strategy that start from random points. It does not affect the "
            "noise.",
        ),
    ] = None,
    restarts: Annotated[
        int | None,
        Option(
            min=0,
            show_default="10",
            help="With Laplace noise, random covers by marginals that opt-m and generalized-marginals try.",
        ),
    ] = None,
    option: given.OptionOption = None,
    as_json: JsonOption = False,
    save: Annotated[
        Path | None, Option(metavar="STRATEGY", help="Save the strategy here, for `release --strategy`.")
    ] = None,
    ignore_targets: Annotated[
        bool, Option("--ignore-targets", help="Select for the budget; ignore accuracy targets.")
    ] = False,
    every: AllOption = False,
    expect: given.ExpectOption = None,
    picture: given.PictureOption = None,
    strategy_file: Annotated[
        Path | None,
        Option(
            "--strategy-file",
            metavar="FILE",
            help="Use this strategy instead of choosing one: YAML or JSON that lists what is measured under "
            "`strategy`, or a matrix (.npy, .npz or .csv) over the cells of the attributes that are asked "
            "about.",
        ),
    ] = None,
    certify: given.CertifyOption = False,
    explain_choice: Annotated[
        bool,
        Option(
            "--explain-choice",
            help="Only say which mechanisms would be compared, why others would not, and how every marginal "
            "would be solved. Nothing is selected.",
        ),
    ] = False,
) -> None:
    """Choose the strategy for a workload, without touching the data.

    Prints the expected error of every query group at the specification's budget, and a certified lower bound
    where one is known: no strategy can do better. All errors are standard errors of counts. With accuracy
    targets, the budget is the smallest that meets them.
    """
    started = time.perf_counter()
    from matrixdp.strategy.strategy import meet_targets, payable_noise

    options = given.mechanism_options(
        mechanism, option, certify=certify, sub_solver=sub_solver, seed=seed, restarts=restarts
    )
    given.check_output("--save", save)
    given.check_output("--picture", picture, endings=given.PICTURES)
    if ignore_targets:
        written, budget = given.with_budget(spec)
        targets = None
    else:
        written = mdp.load_specification(spec, require_privacy=True)
        reference, targets = written.reference_budget, written.targets or None
        assert reference is not None  # privacy is required
        budget = reference
    given.warn(mdp.advice(written, expect))
    if explain_choice:
        given.warn(given.one_round(written))
        if strategy_file is not None:
            raise wrong("--explain-choice", "a strategy that is given", "one that is selected", "conflict")
        options.pop("certify", None)  # it only raises the bound
        _explain(mdp.explain_choice(written.workload, noise, budget, mechanism, **options), as_json)
        return
    if written.ledger is not None and written.least is None and strategy_file is None:
        with suppress(mdp.MatrixDPError):  # the ledger's own figure says what is wrong
            own = payable_noise(noise, budget, mechanism, mdp.Ledger.open(written.ledger))
            given.warn([] if own == noise else [f"the ledger has too little left but for {own} noise"])
            noise = own
    how: dict[str, Any] = {"noise": noise, "budget": budget, "objective": objective, "targets": targets}
    with console.Reporter() as reporter:
        if strategy_file is None and written.series is not None:
            if mechanism != "auto" or options or objective != "sum":
                expected = "auto: a strategy whose rows can be measured one period after another"
                raise wrong("--mechanism", "options of a selection beside a series", expected, "conflict")
            from matrixdp.strategy.series import select_over_time

            asked = written.workload, written.series.attribute
            strategy = select_over_time(*asked, budget, noise, reporter.stage)
        elif strategy_file is None:
            asking: dict[str, Any] = {"progress": reporter.stage, "rounds": written.rounds}
            strategy = mdp.select(written.workload, mechanism=mechanism, **asking, **how, **options)
        else:
            if mechanism != "auto" or options:
                found = "a strategy beside --mechanism, its options or --certify"
                expected = "one of the two: a given strategy is not selected by a mechanism"
                raise wrong("--strategy-file", found, expected, "conflict")
            reporter.stage("evaluating the strategy")
            parts = load_given(strategy_file, written.workload)
            strategy = mdp.Strategy.from_parts(written.domain, parts, workload=written.workload, **how)
        reporter.stage("analysing the error")
        if targets is not None and written.least is not None:
            budget = meet_targets(strategy, targets, written.least, written.workload)
        figures = console.selection_figures(strategy, budget)
        if (records := declared(written, expect)) is not None:
            from matrixdp.strategy.reliability import expected_counts, reliable_counts

            good, counts = reliable_counts(expected_counts(strategy, budget, records))
            figures["reliable"] = {"records": records, "counts": counts, "reliable": good}
    if written.ledger is not None:
        figures["ledger"] = has_left(written.ledger, budget, [strategy.selection.noise.cost(budget)])
    figures["seconds"] = time.perf_counter() - started
    if save is not None:
        strategy.save(save)
    if picture is not None:
        strategy.plot(budget).savefig(picture, dpi=150)
    if written.rounds > 1:
        figures["rounds"] = written.rounds
    if written.series is not None:
        figures["answers_come"] = schedules(written.workload, written.series.attribute)
    if as_json:
        typer.echo(json.dumps({**figures, "choice": strategy.choice.as_dict()}))
    else:
        _show(strategy, budget, figures, every, save)
        console.print_schedules(written)


def _class(part: PartMethod) -> str:
    alike = f" and {part.marginals - 1:,} alike" if part.marginals > 1 else ""
    return (" x ".join(part.attributes) or "total") + alike


def _explain(choices: Sequence[Explanation], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"choices": [one.as_dict() for one in choices]}))
        return
    from matrixdp.cli.tables import Column, print_columns
    from matrixdp.cli.tables import console as screen_of

    for choice in choices:
        screen = screen_of()
        typer.secho(f"With {choice.noise.capitalize()} noise", bold=True)
        candidates, parts, facts = choice.candidates, choice.parts, {}
        matrices = [choice.matrices.get(one.mechanism) for one in candidates]
        print_columns(
            screen,
            [
                Column("mechanism", [one.mechanism for one in candidates], whole=True),
                Column("auto will", [_FATES[one.status] for one in candidates], whole=True),
                Column("largest matrix", ["" if one is None else f"{one:,}" for one in matrices], True),
                Column("because", [one.reason for one in candidates]),
            ],
        )
        if parts:
            shown = sorted(parts, key=lambda part: (-part.matrix, -part.cells))[:_SHOWN_CLASSES]
            print_columns(
                screen,
                [
                    Column("solved once", [_class(part) for part in shown]),
                    Column("values", [" x ".join(f"{size:,}" for size in part.sizes) for part in shown]),
                    Column("solved by", [part.method for part in shown], whole=True),
                    Column("largest matrix", [f"{part.matrix:,}" for part in shown], True),
                    Column("because", [part.reason for part in shown]),
                ],
            )
            if len(parts) > len(shown):
                facts["and"] = f"{len(parts) - len(shown):,} smaller classes; --json has all"
        if searched := [f"{_class(part)} as {part.search}" for part in parts if part.search]:
            facts["weight search"] = listed(searched, len(searched))
        merged = [
            f"{name}: {n:,} values, of which queries tell {k:,} apart"
            for name, (n, k) in choice.merged.items()
        ]
        merged += [
            f"{name}: {n:,} values, of which 2 stand for each of {k:,} groups that may trade places"
            for name, (n, k) in choice.paired.items()
        ]
        if merged:
            facts["merged"] = listed(merged, len(merged))
        console.print_facts(facts | {"lower bound from": "; else ".join(choice.bounds)})
    if len(choices) > 1:
        other = choices[1].noise.capitalize()
        console.say(f"{other} noise is tried only if a quick trial promises narrower intervals.")


def _show(
    strategy: mdp.Strategy, budget: mdp.Budget, figures: dict[str, Any], every: bool, save: Path | None
) -> None:
    from matrixdp.answers.publication import helper_tables
    from matrixdp.cli import tables
    from matrixdp.selection.shares import in_words

    def number(key: str) -> str:
        return figure(figures[key])

    rows, workload, targets = console.by_group(strategy, budget), strategy.workload, figures["targets"]
    served = {one.place for one in helper_tables(workload)}
    shown = [
        replace(row, name=f"{row.name} (for a statistic)") if place in served else row
        for place, row in enumerate(rows)
    ]
    together = len(rows) > _SHOWN_GROUPS and not every
    tables.print_errors(tables.console(), console.by_entry(workload, rows) if together else shown)
    if together:
        typer.echo(f"{len(rows):,} query groups, joined; --all shows every one, and so does --json.")
    if targets:
        bound = f"ratio of stddev to target at least {number('lower_bound_target_ratio')}"
    else:
        bound = number("lower_bound_max_stddev" if figures["objective"] == "max" else "lower_bound_rmse")
    gap = figures["gap"]
    bound = "none" if gap is None else f"{bound} (gap {gap:.2g} in squared error)"
    rmse = f"{number('rmse')} (before rounding to integers {number('rmse_before_rounding')})"
    largest = number("max_stddev")
    counts = [row for row, group in zip(rows, workload, strict=True) if not largest_value(group)]
    mixed = len(counts) < len(rows)  # sums have the unit of their attribute
    if mixed:
        all_counts = console.joined("counts", counts)
        errors = all_counts.rmse, all_counts.max_stddev
        rmse, largest = (f"{figure(value)} of the counts" for value in errors)
        bound = bound if gap is None or targets else f"gap {gap:.2g} in weighted squared error"
    facts = {
        "mechanism": f"{strategy.mechanism} ({figures['reason']})",
        "noise": f"{strategy.noise} ({strategy.noise_reason})",
        "queries": f"{workload.queries:,} in {counted(len(workload), 'group')}",
    }
    if targets:
        told = [
            f"{o['name']!r} {figure(o['error'])} of {figure(o['target'])}" for o in figures["target_figures"]
        ]
        met = f"met; the largest ratio of stddev to target is {number('target_ratio')}"
        facts["targets"] = "; ".join([met, *told])
    elif figures["weighted_rmse"] != figures["rmse"] and not mixed:
        about = "" if gap is None else " (the lower bound is for this)"
        facts["weighted RMSE"] = f"{number('weighted_rmse')}{about}"
    if any(one["asked"] for one in figures["shares"] or ()):
        facts["budget shares"] = in_words(strategy.selection)
    facts |= {
        "RMSE": rmse,
        "largest stddev": largest,
        "lower bound": f"{bound}; {figures['lower_bound_scope']}",
        "privacy": console.in_definitions(budget, strategy.selection.noise),
        "unit": console.unit_in_words(budget.unit),
        "time, memory": f"{number('seconds')} s, {number('peak_memory_mb')} MB",
    }
    if "reliable" in figures:
        own = figures["reliable"]
        what = "counts should have a standard error of at most a third of them, if"
        good = f"{own['reliable']:,} of {own['counts']:,}"
        facts["reliable"] = f"{good} {what} {own['records']:,} records are spread evenly"
    if "rounds" in figures:
        facts["rounds"] = _IN_ROUNDS
    if "ledger" in figures:
        facts["ledger"] = figures["ledger"]["says"]
    if save is not None:
        facts["saved"] = str(save)
    console.print_facts(facts)
    large = [one.mechanism for one in strategy.selection.candidates if one.status == "too large"]
    if large and gap is not None and gap > LIMITS.far:
        most = figure((1 + gap) ** 0.5)
        given.warn([f"errors are up to {most} times the lower bound; too large to try: {', '.join(large)}"])
