"""Mechanisms whose error depends on the table: for comparison only, by simulation on public tables."""

from matrixdp.papers.dawa.dawa import DawaRelease, dawa
from matrixdp.papers.dawa.door import check_table
from matrixdp.papers.dawa.simulation import MECHANISMS, Simulation, simulate

__all__ = ["MECHANISMS", "DawaRelease", "Simulation", "check_table", "dawa", "simulate"]
