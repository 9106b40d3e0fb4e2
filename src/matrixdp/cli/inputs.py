"""What commands are given, checked before anything is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from matrixdp.domain import Domain
from matrixdp.errors import SpecificationError
from matrixdp.privacy import Budget, delta_warnings
from matrixdp.specification import DEFAULT_MAX_RECORDS, Specification, load_specification

if TYPE_CHECKING:
    from matrixdp.strategy import Strategy

__all__ = ["advice", "budget_spent", "reference_budget", "specification_with_budget", "warn"]


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


def advice(written: Specification, expect: int | None = None) -> tuple[str, ...]:
    """Return what is likely to be a mistake in the domain, or in the delta of the budget, in sentences."""
    budget = written.budget
    if budget is None and written.least is not None:
        budget = written.least.reference()
    declared = expect or (None if written.max_records == DEFAULT_MAX_RECORDS else written.max_records)
    delta = () if budget is None else delta_warnings(budget, declared)
    return (*_domain_warnings(written.domain), *delta)


def _domain_warnings(domain: Domain) -> Iterator[str]:
    read = [attribute for attribute in domain.attributes if attribute.codebook.derivation is None]
    for attribute in read:
        if attribute.size - (attribute.null_code is not None) == 1:
            only = f"{attribute.label(0)!r} is the only value"
            yield f"domain.{attribute.name}: {only}; every record with another one is out of domain"
    for column, times in Counter(attribute.column for attribute in read).items():
        if times > 1:
            names = ", ".join(attribute.name for attribute in read if attribute.column == column)
            told = "which no rule relates: make a coarser one a level of the other"
            yield f"domain: {names} read one column, {column!r}, {told}"


def warn(written: Specification, expect: int | None = None) -> None:
    """Print to standard error what is likely to be a mistake."""
    for sentence in advice(written, expect):
        typer.echo(f"Warning: {sentence}.", err=True)
