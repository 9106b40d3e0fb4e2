"""What commands tell on screen: names with values, progress, and the figures of a strategy."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import typer

from matrixdp.display import counted
from matrixdp.measure.statement import REFERENCE_DELTA, statement
from matrixdp.queries import Group, Labelled, Matrix, ProductGroup

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from matrixdp.noise import Noise
    from matrixdp.privacy import Budget, Unit
    from matrixdp.queries import Workload
    from matrixdp.strategy import Strategy

_NARROWEST = 20


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns, as wide as the screen.

    Examples
    --------
    >>> print_facts([("unit", "one record a person"), ("groups", "17")])
    unit    one record a person
    groups  17
    """
    pairs = list(facts)
    names = max((len(name) for name, _ in pairs), default=0)
    width = max(shutil.get_terminal_size().columns - names - 2, _NARROWEST)
    for name, value in pairs:
        first, *others = textwrap.wrap(value, width, break_on_hyphens=False) or [""]
        typer.echo(f"{typer.style(name.ljust(names), bold=True)}  {first}".rstrip())
        for line in others:
            typer.echo(f"{'':{names}}  {line}")


_PATIENCE = 2.0


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
        self._lock = threading.Lock()
        self._shown: Progress | None = None
        self._task: TaskID | None = None
        self._label = "working"
        self._share: float | None = None
        self._closed = False
        self._timer = threading.Timer(_PATIENCE, self._show)
        self._timer.daemon = True

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        console = Console(stderr=True)
        if not console.is_terminal:
            return
        with self._lock:
            if self._closed:
                return
            columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn()]
            columns += [TimeElapsedColumn()] * self._elapsed
            self._shown = Progress(*columns, console=console, transient=True)
            self._task = self._shown.add_task(self._label, total=None)
            self._shown.start()
        self._update()

    def _update(self) -> None:
        with self._lock:
            if self._shown is not None and self._task is not None and not self._closed:
                total = None if self._share is None else 1.0
                self._shown.update(
                    self._task, description=self._label, total=total, completed=self._share or 0.0
                )

    def stage(self, label: str, share: float | None = None) -> None:
        """Say what is being done and, where it is known, the share that is done."""
        self._label, self._share = label, share
        self._update()

    def counter(self, label: str) -> Callable[[int, int], None]:
        """Return a function that is called with how many are done and of how many."""
        self.stage(label)

        def count(done: int, total: int) -> None:
            self.stage(label, done / total if total else None)

        return count

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
    groups: int
    queries: int
    rmse: float
    max_stddev: float
    target: float | None = None


def peak_memory_mb() -> float:
    """Return the largest memory that the process has held, in megabytes; 0 where the system does not tell."""
    told = Path("/proc/self/status")
    # what `getrusage` tells is at least what the process held from which this one came
    for line in told.read_text().splitlines() if told.exists() else []:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    try:
        import resource
    except ImportError:  # on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def unit_in_words(unit: Unit) -> str:
    """Return what is protected as one, and what that does to standard errors.

    Examples
    --------
    >>> from matrixdp.privacy import Unit
    >>> unit_in_words(Unit())
    'one record a person'
    >>> unit_in_words(Unit(records=3))
    'at most 3 records a person; standard errors are 3 times those for one'
    >>> unit_in_words(Unit(id="person"))
    "the first record of each person, whom the column 'person' names"
    """
    times = f"; standard errors are {unit.records:,} times those for one"
    if unit.id is None:
        return (
            "one record a person"
            if unit.records == 1
            else f"at most {unit.records:,} records a person{times}"
        )
    which = "record" if unit.records == 1 else f"{unit.records:,} records"
    return f"the first {which} of each person, whom the column {unit.id!r} names" + (
        times if unit.records > 1 else ""
    )


def privacy_figures(budget: Budget, noise: Noise) -> dict[str, object]:
    """Return a budget with what follows from it, as plain values.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.privacy import Budget
    >>> privacy_figures(Budget(rho=0.5), GAUSSIAN)["mu"]
    1.0
    """
    cost = noise.cost(budget)
    promise = statement(cost, budget, private=True)
    reference = {"epsilon": promise.epsilon_at_reference_delta, "delta": float(REFERENCE_DELTA)}
    return {
        "budget": budget.as_dict(),
        "neighbours": budget.neighbours,
        "unit": budget.unit.as_dict(),
        "noise": noise.name,
        "cost": float(cost.value),
        **{name: getattr(promise, name) for name in ("mu", "rho", "epsilon", "delta")},
        "epsilon_at_delta": reference,
    }


def by_group(strategy: Strategy, budget: Budget) -> list[Row]:
    """Return one row for each query group."""
    from matrixdp.queries.workload import group_targets

    cost = strategy.selection.noise.error_scale(budget)
    asked = strategy.selection.targets
    targets = group_targets(strategy.workload, asked) if asked else [None] * len(strategy.workload)
    rows = []
    for group, target in zip(strategy.workload, targets, strict=True):
        error = strategy.selection.analysis.group(group)
        rmse, largest = math.sqrt(error.total / group.queries / cost), math.sqrt(error.largest / cost)
        rows.append(Row(group.name, group.attributes, 1, group.queries, rmse, largest, target))
    return rows


def counts_records(group: Group) -> bool:
    """Return whether the answers of a group are numbers of records, and no sums of an attribute's values."""
    return not isinstance(group, ProductGroup) or not any(
        isinstance(own, Labelled) and isinstance(own.predicates, Matrix) for own in group.predicates
    )


def by_entry(workload: Workload, rows: list[Row]) -> list[Row]:
    """Return one row for each entry of the workload and number of attributes."""
    joined: list[Row] = []
    for number, (entry, places) in enumerate(zip(workload.entries, workload.places, strict=True)):
        pieces: dict[int, list[Row]] = {}
        for row in rows[places.start : places.stop]:
            pieces.setdefault(len(row.attributes), []).append(row)
        for ways, members in pieces.items():
            queries = sum(row.queries for row in members)
            total = math.fsum(row.rmse**2 * row.queries for row in members)
            name = f"workload[{number}] {_title(entry.to_spec())}, {counted(ways, 'attribute')}"
            largest = max(row.max_stddev for row in members)
            target = min((row.target for row in members if row.target is not None), default=None)
            joined.append(Row(name, (), len(members), queries, math.sqrt(total / queries), largest, target))
    return joined


def _title(spec: Mapping[str, object]) -> str:
    if "name" in spec:
        return str(spec["name"])
    kind, value = next(iter(spec.items()))
    short = kind == "pairwise" or (isinstance(value, list) and len(str(value)) < 40 and kind != "dense")
    return f"{kind} {value}" if short else kind


def selection_figures(strategy: Strategy, budget: Budget) -> dict[str, object]:
    """Return what ``select --json`` prints."""
    from matrixdp.selection.targets import largest_ratio

    selection, cost = strategy.selection, strategy.selection.noise.error_scale(budget)
    certificate, queries = selection.certificate, strategy.workload.queries

    def root(squared_error: float) -> float:
        return math.sqrt(squared_error / queries / cost)

    bound = certificate.lower_bound
    largest, aimed = selection.objective == "max", bool(selection.targets)
    errors = strategy.target_errors() if aimed else []
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
        "target_ratio": largest_ratio(errors) / math.sqrt(cost) if aimed else None,
        "lower_bound_target_ratio": None if bound is None or not aimed else math.sqrt(bound / cost),
        "lower_bound_scope": certificate.scope,
        "gap": certificate.gap,
        "groups": [
            {name: value for name, value in asdict(row).items() if name != "groups"}
            for row in by_group(strategy, budget)
        ],
        "privacy": privacy_figures(budget, selection.noise),
        "peak_memory_mb": peak_memory_mb(),
    }
