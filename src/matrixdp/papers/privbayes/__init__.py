"""PrivBayes: a Bayesian network chosen from the table, and noisy tables of its families. For comparison."""

from matrixdp.papers.privbayes.mechanism import PrivBayesRelease, privbayes
from matrixdp.papers.privbayes.simulation import PrivBayesSimulation, simulate

__all__ = ["PrivBayesRelease", "PrivBayesSimulation", "privbayes", "simulate"]
