"""Mechanisms whose error depends on the table: for comparison only, by simulation on public tables."""

from matrixdp.papers.dawa.dawa import DawaRelease as DawaRelease
from matrixdp.papers.dawa.dawa import dawa as dawa
from matrixdp.papers.dawa.simulation import DawaSimulation as DawaSimulation
from matrixdp.papers.dawa.simulation import simulate as simulate
