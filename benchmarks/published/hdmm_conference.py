"""HDMM, the conference version."""

from __future__ import annotations

from published.tables import Paper

__all__ = ["PAPER"]

PAPER = Paper(
    "hdmm-conference",
    "HDMM, the conference version",
    "R. McKenna, G. Miklau, M. Hay and A. Machanavajjhala. Optimizing error of high-dimensional statistical "
    "queries under differential privacy. VLDB 2018.",
)
