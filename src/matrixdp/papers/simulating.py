"""Errors of mechanisms that depend on the table, by simulation on a public one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from matrixdp.errors import WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.mechanisms import Simulation
from matrixdp.queries import Group, Workload

#: How often a mechanism is run where nothing else is said.
DEFAULT_SIMULATIONS = 20


def group_weights(group: Group) -> Array:
    """Return the weight of every query of a group, shape (queries,)."""
    own = np.ones(group.queries) if group.query_weights is None else group.query_weights
    return np.asarray(group.weight * own)


def check_simulations(simulations: object) -> None:
    """Refuse fewer than two simulations."""
    if isinstance(simulations, bool) or not isinstance(simulations, int) or simulations < 2:
        raise WorkloadError(f"simulations: found {simulations!r}; expected a whole number of at least 2")


def simulated(
    answers: Callable[[], Array],
    exact: Array,
    workload: Workload,
    simulations: int,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Return the errors of answers that are drawn repeatedly, shape (queries,) each."""
    squares = np.zeros(len(exact))
    means: list[float] = []
    for run in range(simulations):
        errors = (answers() - exact) ** 2
        squares += errors
        means.append(float(errors.mean()))
        if progress is not None:
            progress(run + 1, simulations)
    squares /= simulations
    weights = np.concatenate([group_weights(group) for group in workload])
    rmse = math.sqrt(float(squares.mean()))
    spread = float(np.std(means, ddof=1)) / math.sqrt(simulations)
    return Simulation(
        rmse,
        math.sqrt(float((weights * squares).mean())),
        spread / (2.0 * rmse) if rmse > 0 else 0.0,
        math.sqrt(float(squares.max())),
    )
