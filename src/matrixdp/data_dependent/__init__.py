"""Mechanisms whose error depends on the table: for comparison only, by simulation on public tables."""

from matrixdp.data_dependent.dawa import DawaRelease, dawa
from matrixdp.data_dependent.door import check_table
from matrixdp.data_dependent.simulation import MECHANISMS, Simulation, simulate

__all__ = ["MECHANISMS", "DawaRelease", "Simulation", "check_table", "dawa", "simulate"]
