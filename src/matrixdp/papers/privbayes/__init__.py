"""PrivBayes: a Bayesian network chosen from the table, and noisy tables of its families. For comparison."""

from matrixdp.papers.privbayes.mechanism import PrivBayesRelease as PrivBayesRelease
from matrixdp.papers.privbayes.mechanism import privbayes as privbayes
from matrixdp.papers.privbayes.simulation import PrivBayesSimulation as PrivBayesSimulation
from matrixdp.papers.privbayes.simulation import simulate as simulate
