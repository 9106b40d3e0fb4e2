"""What commands are given, checked before anything is done."""

from __future__ import annotations

from pathlib import Path

from matrixdp.errors import SpecificationError
from matrixdp.privacy import Budget
from matrixdp.specification import Specification, load_specification
from matrixdp.strategy import Strategy
from matrixdp.strategy.choice import meet_targets

__all__ = ["budget_spent", "reference_budget", "specification_with_budget"]


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
    return meet_targets(strategy, written.targets, written.least, written.workload)
