"""Mechanisms whose error depends on the table: for comparison only, by simulation on public tables."""

from matrixdp.papers.dawa.dawa import DawaRelease, dawa
from matrixdp.papers.dawa.simulation import DawaSimulation, simulate

__all__ = ["DawaRelease", "DawaSimulation", "dawa", "simulate"]
