"""The error of data-dependent mechanisms on a public table, by simulation.

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
from matrixdp.papers.dawa.dawa import prepared
from matrixdp.papers.door import Asked
from matrixdp.papers.simulating import DEFAULT_SIMULATIONS, check_simulations, simulated
from matrixdp.privacy import Budget
from matrixdp.queries import Workload


@dataclass(frozen=True)
class DawaSimulation(Simulation):
    """The error of DAWA on one public table. NOT PRIVATE: it was computed from exact answers.

    Attributes
    ----------
    simulations : int
        How often it was run.
    buckets : float
        How many buckets were measured, on average.
    """

    simulations: int
    buckets: float


def simulate(
    workload: Workload,
    public_table: object,
    budget: Budget,
    simulations: int = DEFAULT_SIMULATIONS,
    out_of_domain: OutOfDomain | None = None,
    *,
    seed: int = 0,
    table_name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DawaSimulation:
    """Run DAWA many times on a PUBLIC table, and return its error.

    The exact answers are computed and compared with: the result is not private. NEVER GIVE IT A CONFIDENTIAL
    TABLE. What it says about other tables is no promise.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": range(64)}), mdp.product(a="prefix"))
    >>> result = simulate(workload, {"a": list(range(64)) * 100}, mdp.Budget(epsilon=1))
    >>> result.simulations, 0 < result.rmse < 5
    (20, True)
    """
    check_simulations(simulations)
    ready = prepared(workload, budget)
    questions = ready.questions
    attributes = (questions.attribute,)
    asked = Asked("dawa", workload.domain, attributes, budget, out_of_domain, table_name)
    counts = asked.open(public_table).counts([attributes])[attributes]
    random = random_source(seed)
    buckets = 0

    def answers() -> Array:
        nonlocal buckets
        partition, _, cells = ready.run(counts, random)
        buckets += partition.buckets
        return questions.answers(cells)

    exact = questions.answers(counts.astype(np.float64))
    found = simulated(answers, exact, workload, simulations, progress)
    return DawaSimulation(**vars(found), simulations=simulations, buckets=buckets / simulations)


register(
    DataDependent(
        "dawa", "Li et al. 2014: a private partition into buckets, then GreedyH", (LAPLACE,), simulate
    )
)
