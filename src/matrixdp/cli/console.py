"""What commands tell on screen: names with values, progress, and the figures of a strategy."""

from __future__ import annotations

import json
import math
import shutil
import textwrap
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import typer

import matrixdp as mdp
from matrixdp.answers.schedule import schedules
from matrixdp.display import counted, printable
from matrixdp.exact.resources import one_blas_thread, peak_memory_mb
from matrixdp.measure.statement import REFERENCE_DELTA, rounded_up, statement
from matrixdp.noise import Noise
from matrixdp.privacy import Budget, Unit
from matrixdp.queries import Workload
from matrixdp.queries.workload import group_targets
from matrixdp.specification import Specification

if TYPE_CHECKING:
    from rich.progress import Progress

    from matrixdp.answers.publication import PublishedTable


NOT_PRIVATE = "NOT PRIVATE: the noise was seeded. Do not release this output."
_NARROWEST = 20
_PATIENCE = 2.0


def _wrapped(text: str, beside: int = 0) -> list[str]:
    """Return a text in lines that fit beside something of a width."""
    width = max(shutil.get_terminal_size().columns - beside, _NARROWEST)
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def say(text: str, *, bold: bool = False) -> None:
    """Print a text as wide as the screen, without what would control a terminal."""
    for line in text.split("\n"):
        typer.secho("\n".join(_wrapped(printable(line))), bold=bold)


def print_facts(facts: Mapping[str, str]) -> None:
    """Print names and values in two columns, as wide as the screen.

    Examples
    --------
    >>> print_facts({"unit": "one record a person", "groups": "17"})
    unit    one record a person
    groups  17
    """
    names = max(map(len, facts), default=0)
    for name, value in facts.items():
        first, *others = _wrapped(value, names + 2)
        typer.echo(f"{typer.style(name.ljust(names), bold=True)}  {first}".rstrip())
        for line in others:
            typer.echo(f"{'':{names}}  {line}")


@final
class Reporter:
    """Show what is being done, once it has taken longer than two seconds; silent where stderr is a file.

    Without `elapsed` it says no time: while data are read, that would grow with the number of records.

    Examples
    --------
    >>> with Reporter() as reporter:
    ...     reporter.stage("selecting", 0.5)
    """

    def __init__(self, *, elapsed: bool = True) -> None:
        self._elapsed = elapsed
        self._lock = threading.RLock()
        self._shown: Progress | None = None
        self._now: tuple[str, float | None] = "working", None
        self._closed = False
        self._timer = threading.Timer(_PATIENCE, self._show)
        self._timer.daemon = True

    def _show(self) -> None:
        from rich import progress as bars
        from rich.console import Console

        console = Console(stderr=True)
        with self._lock:
            if self._closed or not console.is_terminal:
                return
            elapsed = [bars.TimeElapsedColumn()] * self._elapsed
            said = bars.TextColumn("{task.description}", markup=False)
            columns = bars.SpinnerColumn(), said, bars.BarColumn(), *elapsed
            self._shown = bars.Progress(*columns, console=console, transient=True)
            self._shown.add_task(self._now[0], total=None)
            self._shown.start()
            self.stage(*self._now)

    def stage(self, label: str, share: float | None = None) -> None:
        """Say what is being done and, where it is known, the share that is done."""
        with self._lock:
            self._now = label, share
            if self._shown is not None and not self._closed:
                total = None if share is None else 1.0
                task = self._shown.tasks[0].id
                self._shown.update(task, description=label, total=total, completed=share or 0.0)

    def counter(self, label: str) -> Callable[[int, int], None]:
        """Return a function that is called with how many are done and of how many."""
        self.stage(label)
        return lambda done, total: self.stage(label, done / total if total else None)

    def __enter__(self) -> Reporter:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._shown is not None:
                self._shown.stop()


# The figures of a strategy at a budget, as ``select`` shows them.


@dataclass(frozen=True)
class Row:
    """One line of a table of errors, in records: of a group, or of several, which name no attributes."""

    name: str
    attributes: tuple[str, ...]
    queries: int
    rmse: float
    max_stddev: float
    target: float | None = None
    groups: int = 1
    share: float | None = None


def unit_in_words(unit: Unit) -> str:
    """Return a sentence about the privacy unit and its effect on standard errors.

    Examples
    --------
    >>> unit_in_words(Unit())
    'one record a person'
    >>> unit_in_words(Unit(records=3))
    'at most 3 records a person; standard errors are 3 times those for one'
    >>> unit_in_words(Unit(id="person"))
    "the first record of each person, whom the column 'person' names"
    >>> unit_in_words(Unit(id="who", per="d", max_values=7))
    "the first 7 records of each person, whom the column 'who' names, at most one in each of 7 values of 'd'"
    """
    several = unit.records > 1
    records = f"{unit.records:,} records"
    if unit.id is None:
        told = f"at most {records} a person" if several else "one record a person"
    else:
        told = (
            f"the first {records if several else 'record'} of each person, whom the column {unit.id!r} names"
        )
    if unit.per:
        return f"{told}{unit.spread}"
    return f"{told}; standard errors are {unit.records:,} times those for one" if several else told


def privacy_figures(budget: Budget, noise: Noise) -> dict[str, Any]:
    """Return a budget with what follows from it, as plain values.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> privacy_figures(Budget(rho=0.5), GAUSSIAN)["mu"]
    1.0
    """
    cost = noise.cost(budget)
    promise = statement(cost, budget, private=True)
    return {
        "budget": budget.as_dict(),
        "neighbours": budget.neighbours,
        "unit": budget.unit.as_dict(),
        "noise": noise.name,
        "cost": float(cost.value),
        **{name: getattr(promise, name) for name in ("mu", "rho", "epsilon", "delta")},
        "epsilon_at_delta": {"epsilon": promise.epsilon_at_reference_delta, "delta": float(REFERENCE_DELTA)},
    }


def in_definitions(budget: Budget, noise: Noise) -> str:
    """Return a budget with what follows from it, rounded up as in the statement of a release."""
    exact = statement(noise.cost(budget), budget, private=True).exact
    mu, rho = f"{rounded_up(exact.mu)}-GDP", f"{rounded_up(exact.rho)}-zCDP"
    if exact.pure_epsilon is not None:
        pure = "" if budget.kind == "pure" else f", by epsilon {rounded_up(exact.pure_epsilon)}"
        return f"{budget.words}{pure} (pure), which implies {mu} and {rho}"
    return f"{budget.words}, which is {mu}, {rho} and ({rounded_up(exact.epsilon)}, 1e-06)-DP"


def by_group(strategy: mdp.Strategy, budget: Budget) -> list[Row]:
    """Return one row for each query group."""
    from matrixdp.selection.shares import has_shares

    selection, cost = strategy.priced(budget), strategy.selection.noise.error_scale(budget)
    workload, asked = strategy.workload, strategy.selection.targets
    targets = group_targets(workload, asked) if asked else [None] * len(workload)
    at_one, shared = strategy.selection, has_shares(strategy.selection)
    rows = []
    for place, (group, error, target) in enumerate(zip(workload, selection.errors, targets, strict=True)):
        rmse, largest = math.sqrt(error.total / group.queries / cost), math.sqrt(error.largest / cost)
        share = at_one.errors[place].weighted / at_one.weighted_squared_error if shared else None
        rows.append(Row(group.name, group.attributes, group.queries, rmse, largest, target, share=share))
    return rows


#: Answers to larger groups are not computed to say how many are reliable.
_MOST_JUDGED = 1_000_000


def reliable_rows(release: mdp.Release, table: PublishedTable) -> int | None:
    """Return how many answers of a table of counts are reliable; None for others, and for very large ones."""
    from matrixdp.answers.figures import reliable

    group = table.group
    if group is None or group.queries > _MOST_JUDGED or not release.measurement.whole:
        return None
    with one_blas_thread():
        answers = release.measurement.estimates.answers(group)
        return reliable(answers, release.analysis.variances(group))


def print_release(release: mdp.Release, folder: Path, **more: object) -> None:
    """Print what a release in a folder came to as one JSON object: nothing that its files do not say."""
    counts = release.out_of_domain_counts
    found = {
        "folder": str(folder),
        "private": release.private,
        "queries": release.workload.queries,
        "confidence": release.confidence,
        "privacy": release.statement.as_dict(),
        "size": release.size.as_dict(),
        "out_of_domain": [{"attribute": name, **own.as_dict()} for name, own in counts.items()],
        "warnings": list(release.warnings),
        "files": sorted(path.name for path in folder.iterdir()),
    }
    typer.echo(json.dumps(found | more, ensure_ascii=False))


def print_schedules(written: Specification) -> None:
    """Say when the answers of each group of a series come."""
    if written.series is not None:
        for words, names in schedules(written.workload, written.series.attribute).items():
            say(f"Answers come {words}: {'; '.join(names)}.")


def joined(name: str, rows: list[Row]) -> Row:
    """Return some rows as one."""
    queries = sum(row.queries for row in rows)
    rmse = math.sqrt(math.fsum(row.rmse**2 * row.queries for row in rows) / max(queries, 1))
    largest = max((row.max_stddev for row in rows), default=0.0)
    target = min((row.target for row in rows if row.target is not None), default=None)
    known = [row.share for row in rows if row.share is not None]
    share = math.fsum(known) if len(known) == len(rows) else None
    return Row(name, (), queries, rmse, largest, target, len(rows), share)


def by_entry(workload: Workload, rows: list[Row]) -> list[Row]:
    """Return one row for each entry of the workload and number of attributes."""
    found = []
    for number, (entry, places) in enumerate(zip(workload.entries, workload.places, strict=True)):
        own = [rows[place] for place in places]
        for ways in dict.fromkeys(len(row.attributes) for row in own):
            name = f"workload[{number}] {_title(entry.to_spec())}, {counted(ways, 'attribute')}"
            found.append(joined(name, [row for row in own if len(row.attributes) == ways]))
    return found


def _title(spec: Mapping[str, object]) -> str:
    if "name" in spec:
        return str(spec["name"])
    kind, value = next(iter(spec.items()))
    short = kind == "pairwise" or (isinstance(value, list) and len(str(value)) < 40 and kind != "dense")
    return f"{kind} {value}" if short else kind


def entry_shares(strategy: mdp.Strategy) -> list[dict[str, object]]:
    """Return the share of the privacy cost that serves each entry, and the share that it asks for."""
    pairs = zip(strategy.workload.entries, strategy.budget_shares, strict=True)
    return [
        {"entry": place, "share": share, "asked": getattr(entry, "budget_share", None)}
        for place, (entry, share) in enumerate(pairs)
    ]


def selection_figures(strategy: mdp.Strategy, budget: Budget) -> dict[str, Any]:
    """Return the figures that ``select --json`` prints."""
    from matrixdp.selection.shares import has_shares
    from matrixdp.selection.targets import check_targets, largest_ratio

    selection, cost = strategy.priced(budget), strategy.selection.noise.error_scale(budget)
    certificate, queries = selection.certificate, strategy.workload.queries

    def root(squared_error: float) -> float:
        return math.sqrt(squared_error / queries / cost)

    bound = certificate.lower_bound
    largest, aimed = selection.objective == "max", bool(selection.targets)
    errors = check_targets(strategy.workload, selection.targets, selection.analysis) if aimed else []
    rows = [vars(row) for row in by_group(strategy, budget)]
    return {
        "mechanism": selection.mechanism,
        "reason": selection.reason,
        "noise": selection.noise.name,
        "queries": queries,
        "rmse": root(selection.total_squared_error),
        "rmse_before_rounding": root(selection.squared_error_before_rounding),
        "weighted_rmse": root(selection.weighted_squared_error),
        "total_squared_error": selection.weighted_squared_error / cost,
        "max_stddev": math.sqrt(selection.max_variance / cost),
        "objective": selection.objective,
        "lower_bound_rmse": None if bound is None or largest else root(bound),
        "lower_bound_max_stddev": None if bound is None or not largest or aimed else math.sqrt(bound / cost),
        "targets": dict(selection.targets),
        "target_figures": [
            {"name": error.group, "target": error.target, "error": error.stddev / math.sqrt(cost)}
            for error in errors[len(strategy.workload) :]
        ],
        "target_ratio": largest_ratio(errors) / math.sqrt(cost) if aimed else None,
        "lower_bound_target_ratio": None if bound is None or not aimed else math.sqrt(bound / cost),
        "lower_bound_scope": certificate.scope,
        "gap": certificate.gap,
        "groups": [{name: row[name] for name in row if name != "groups"} for row in rows],
        "shares": entry_shares(strategy) if has_shares(selection) else None,
        "privacy": privacy_figures(budget, selection.noise),
        "peak_memory_mb": peak_memory_mb(),
    }
