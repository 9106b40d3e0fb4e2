"""The error of data-dependent mechanisms on a public table, by simulation.

Exact answers are computed, so what comes out is not private: never give it a confidential table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import OutOfDomain
from matrixdp.errors import WorkloadError
from matrixdp.measure.measurement import random_source
from matrixdp.mechanisms import DataDependent, Simulation, register
from matrixdp.noise import LAPLACE
from matrixdp.papers.dawa.dawa import prepared
from matrixdp.papers.dawa.door import read_counts
from matrixdp.privacy import Budget
from matrixdp.queries import Workload

__all__ = ["DEFAULT_SIMULATIONS", "DawaSimulation", "simulate"]

Array = NDArray[np.float64]

DEFAULT_SIMULATIONS = 20


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
    *,
    simulations: int = DEFAULT_SIMULATIONS,
    seed: int = 0,
    table_name: str | None = None,
    out_of_domain: OutOfDomain | None = None,
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
    if isinstance(simulations, bool) or not isinstance(simulations, int) or simulations < 2:
        raise WorkloadError(f"simulations: found {simulations!r}; expected a whole number of at least 2")
    ready = prepared(workload, budget)
    questions = ready.questions
    rule = OutOfDomain.drop() if out_of_domain is None else out_of_domain
    counts = read_counts(public_table, workload, questions.attribute, rule, table_name, budget.unit)
    exact, weights = counts.astype(np.float64), questions.weights
    random = random_source(seed)
    squares = np.zeros(workload.queries)
    means: list[float] = []
    buckets = 0
    for run in range(simulations):
        partition, cells = ready.run(counts, random)
        errors = questions.answers(cells - exact) ** 2
        squares += errors
        means.append(float(errors.mean()))
        buckets += partition.buckets
        if progress is not None:
            progress(run + 1, simulations)
    squares /= simulations
    rmse = math.sqrt(float(squares.mean()))
    spread = float(np.std(means, ddof=1)) / math.sqrt(simulations)
    return DawaSimulation(
        rmse,
        math.sqrt(float((weights * squares).mean())),
        spread / (2.0 * rmse) if rmse > 0 else 0.0,
        math.sqrt(float(squares.max())),
        simulations,
        buckets / simulations,
    )


register(
    DataDependent(
        "dawa",
        "Li et al. 2014: a private partition into buckets, then GreedyH",
        (LAPLACE,),
        lambda workload, table, budget, simulations, rule: simulate(
            workload, table, budget, simulations=simulations, out_of_domain=rule
        ),
    )
)
