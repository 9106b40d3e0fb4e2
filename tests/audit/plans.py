"""Random workloads and plans of every mechanism, and budgets of every kind, from a seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.errors import TooLargeError, UnsupportedQueryError, WorkloadError
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.plan import Direct, Plan
from matrixdp.selection.mechanisms.table import _FILES, MECHANISMS, Mechanism
from matrixdp.strategy import Strategy, select
from matrixdp.testing import small_workloads

Generator = np.random.Generator
_REFUSALS = (TooLargeError, UnsupportedQueryError, WorkloadError)
_ATTEMPTS = 4


def _predicates(rng: Generator, size: int) -> object:
    first, last = sorted(rng.integers(0, size, 2).tolist())
    chosen: list[object] = ["identity", "total", "prefix", "suffix", "range", "circular"]
    chosen.append({"ranges": [[first, last], [0, size - 1]]})
    chosen.append({"sets": [rng.permutation(size)[: rng.integers(1, size + 1)].tolist()]})
    chosen.append(
        {"matrix": np.round(rng.normal(size=(rng.integers(1, size + 2), size)), rng.integers(0, 4))}
    )
    return chosen[rng.integers(len(chosen))]


def random_workload(rng: Generator) -> mdp.Workload:
    """Return a workload of products or of marginals over one to three attributes of a few values each."""
    names = "abc"[: rng.integers(1, 4)]
    domain = mdp.Domain({name: range(int(rng.integers(2, 6))) for name in names} | {"unasked": 2})
    if rng.random() < 0.25:
        ways = list(range(int(rng.integers(0, 2)), int(rng.integers(1, len(names) + 1)) + 1))
        return mdp.Workload(domain, mdp.marginals(ways, list(names)))
    entries = []
    for _ in range(rng.integers(1, 4)):
        asked = [name for name in names if rng.random() < 0.75] or ["a"]
        sets = {name: _predicates(rng, domain[name].size) for name in asked}
        entries.append(mdp.product(sets, weight=float(np.round(rng.uniform(0.1, 9), 2))))
    return mdp.Workload(domain, *entries)


def random_strategy(rng: Generator, mechanism: str, noise: Noise) -> Strategy | None:
    """Return what a mechanism selects for a random workload, or a small one where it refuses those."""
    small = list(small_workloads().values())
    fallback = [small[place] for place in rng.permutation(len(small))]
    for given in [None] * _ATTEMPTS + fallback:
        workload = random_workload(rng) if given is None else given
        try:
            return select(workload, noise.name, mechanism=mechanism)
        except _REFUSALS:
            continue
    return None


def with_multipliers(rng: Generator, plan: Plan) -> Plan:
    """Return a plan with random row multipliers where it has one part, as a mechanism of somebody's may."""
    if not isinstance(plan, Direct) or rng.random() < 0.5:
        return plan
    [part] = plan.parts
    multiplied = dataclasses.replace(part, multipliers=rng.integers(1, 6, part.shape))
    return Direct(plan.domain, (multiplied.at_cost(plan.noise),), plan.noise)


def pairs() -> Iterator[tuple[str, Noise]]:
    """Every mechanism of ours with every noise that it selects for, and `auto` with each noise."""
    for noise in (GAUSSIAN, LAPLACE):
        yield "auto", noise
        for name in _FILES:
            mechanism = MECHANISMS[name]
            if isinstance(mechanism, Mechanism) and noise.norm in mechanism.norms:
                yield name, noise


def random_budget(rng: Generator, noise: Noise) -> mdp.Budget:
    """Return a budget of any kind that the noise honours, from hardly anything to no protection at all."""
    size = float(np.format_float_positional(10.0 ** rng.uniform(-3, 2.5), precision=int(rng.integers(1, 17))))
    size = max(size, 1e-3)
    kinds: list[dict[str, Any]] = [{"rho": size}, {"mu": size}, {"epsilon": size}]
    kinds.append({"epsilon": size, "delta": float(10.0 ** -rng.integers(1, 13))})
    rest: dict[str, Any] = {"neighbours": ("add_remove", "replace")[rng.integers(2)]}
    rest["unit"] = {"records": int(rng.choice([1, 2, 3, 1000]))}
    while True:
        budget = mdp.Budget(**kinds[rng.integers(4)], **rest)
        if noise.honours(budget):
            return budget
