"""The error of PrivBayes on a public table, by simulation.

Exact answers are computed, so what comes out is not private: never give it a confidential table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matrixdp.domain import OutOfDomain
from matrixdp.exact.linear import Array
from matrixdp.measure.noisy_answers import random_source
from matrixdp.mechanisms import DataDependent, Simulation, register
from matrixdp.noise import LAPLACE
from matrixdp.papers.door import Asked
from matrixdp.papers.privbayes.mechanism import prepared
from matrixdp.papers.privbayes.network import PrivateCounts
from matrixdp.papers.simulating import DEFAULT_SIMULATIONS, check_simulations, simulated
from matrixdp.privacy import Budget
from matrixdp.queries import Workload


@dataclass(frozen=True)
class PrivBayesSimulation(Simulation):
    """The error of PrivBayes on one public table. NOT PRIVATE: it was computed from exact answers.

    Attributes
    ----------
    simulations : int
        How often it was run.
    parents : float
        How many parents an attribute had, on average.
    sampled : int
        How often some answers were counts of drawn records.
    """

    simulations: int
    parents: float
    sampled: int


def simulate(
    workload: Workload,
    public_table: object,
    budget: Budget,
    simulations: int = DEFAULT_SIMULATIONS,
    out_of_domain: OutOfDomain | None = None,
    *,
    seed: int = 0,
    table_name: str | None = None,
    score: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PrivBayesSimulation:
    """Run PrivBayes many times on a PUBLIC table, and return its error.

    The exact answers are computed and compared with: the result is not private. NEVER GIVE IT A CONFIDENTIAL
    TABLE. What it says about other tables is no promise.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 2, "b": 3}), mdp.marginals(2))
    >>> result = simulate(workload, {"a": [0, 1] * 500, "b": [0, 1] * 500}, mdp.Budget(epsilon=1))
    >>> result.simulations, result.sampled, 0 < result.rmse < 50
    (20, 0, True)
    """
    check_simulations(simulations)
    ready = prepared(workload, budget, score)
    asked = Asked("privbayes", workload.domain, tuple(ready.sizes), budget, out_of_domain, table_name)
    counts = PrivateCounts(asked.open(public_table).counts)
    counts.fetch([group.attributes for group in workload])
    exact = [group.answers(counts.of(group.attributes).astype(np.float64)).ravel() for group in workload]
    random = random_source(seed)
    parents = sampled = 0

    def answers() -> Array:
        nonlocal parents, sampled
        network = ready.run(counts, random)
        parents += sum(len(own) for _, own in network.families)
        found, drawn = network.answers(workload, random)
        sampled += drawn
        return found

    found = simulated(answers, np.concatenate(exact), workload, simulations, progress)
    mean = parents / (simulations * len(ready.sizes))
    return PrivBayesSimulation(**vars(found), simulations=simulations, parents=mean, sampled=sampled)


register(
    DataDependent(
        "privbayes",
        "Zhang et al. 2017: a private Bayesian network, then noisy tables of its families",
        (LAPLACE,),
        simulate,
    )
)
