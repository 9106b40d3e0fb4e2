"""What commands are given, checked before anything is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from matrixdp.errors import SpecificationError
from matrixdp.privacy import Budget, delta_warnings
from matrixdp.specification import DEFAULT_MAX_RECORDS, Specification, load_specification

if TYPE_CHECKING:
    from matrixdp.strategy import Strategy

__all__ = ["budget_spent", "delta_advice", "reference_budget", "specification_with_budget", "warn_of_delta"]


def specification_with_budget(path: Path) -> tuple[Specification, Budget]:
    """Return a specification and its budget."""
    written = load_specification(path, require_privacy=True)
    if written.budget is None:
        raise SpecificationError.at(
            ("privacy", "least"),
            "no budget",
            "a budget, at which errors are shown: {rho: 0.5}, {mu: 1.0} or {epsilon: 1.0, delta: 1.0e-6}",
        )
    return written, written.budget


def reference_budget(written: Specification) -> Budget:
    """Return the budget, or where targets decide it one of the same form: it decides the noise."""
    if written.budget is not None:
        return written.budget
    if written.least is None:
        raise SpecificationError.at(("privacy",), "nothing", "a budget")
    return written.least.reference()


def budget_spent(written: Specification, strategy: Strategy) -> Budget:
    """Return what a release spends: the budget, or with targets the least that meets them."""
    if written.least is None:
        return reference_budget(written)
    from matrixdp.strategy.choice import meet_targets

    return meet_targets(strategy, written.targets, written.least, written.workload)


def delta_advice(written: Specification, expect: int | None = None) -> tuple[str, ...]:
    """Return what is likely to be a mistake in the delta of the budget, or of the least one, in sentences."""
    budget = written.budget
    if budget is None and written.least is not None:
        budget = written.least.reference()
    declared = expect or (None if written.max_records == DEFAULT_MAX_RECORDS else written.max_records)
    return () if budget is None else delta_warnings(budget, declared)


def warn_of_delta(written: Specification, expect: int | None = None) -> None:
    """Print to standard error what is likely to be a mistake in the delta."""
    for sentence in delta_advice(written, expect):
        typer.echo(f"Warning: {sentence}.", err=True)
