"""The Matrix Mechanism."""

from __future__ import annotations

from published.tables import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    "matrix-mechanism",
    "The Matrix Mechanism",
    "C. Li, M. Hay, V. Rastogi, G. Miklau and A. McGregor. Optimizing linear counting queries under "
    "differential privacy. PODS 2010.",
)
