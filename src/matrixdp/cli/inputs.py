"""What commands are given, checked before anything is done."""

from __future__ import annotations

from pathlib import Path

from matrixdp.errors import SpecificationError
from matrixdp.privacy import Budget
from matrixdp.specification import Specification, load_specification

__all__ = ["specification_with_budget"]


def specification_with_budget(path: Path) -> tuple[Specification, Budget]:
    """Return a specification and its budget.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    SpecificationError
        If the specification is wrong, or has no budget.
    """
    written = load_specification(path, require_privacy=True)
    if written.budget is None:
        raise SpecificationError("privacy", "nothing", "a budget")
    return written, written.budget
