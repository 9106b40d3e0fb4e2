"""COA, convex optimization for linear query processing."""

from __future__ import annotations

from published.tables import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    "coa",
    "COA",
    "G. Yuan, Y. Yang, Z. Zhang and Z. Hao. Convex optimization for linear query processing under "
    "approximate differential privacy. KDD 2016.",
)
