"""The exact cost of random plans of every mechanism, recomputed from the saved file alone.

What is read is measurement.mdp, by the reader beside this file; what a budget allows is decided by ball
arithmetic written here. ``MATRIXDP_AUDIT=20`` makes twenty times as many cases (`make audit`).
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq

import matrixdp as mdp
from matrixdp.measure.measurement import measure
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.plans import Direct, Plan
from matrixdp.selection.registry import _FILES, MECHANISMS, Mechanism
from matrixdp.sources import Source
from matrixdp.sources.base import OUT_OF_DOMAIN
from matrixdp.storage.formats import save_measurement
from matrixdp.strategy import Strategy, select
from matrixdp.testing.plugins import small_workloads
from tests.audit.cases import ROUNDS, SEED
from tests.audit.reading import read

# Random workloads and plans of every mechanism, and budgets of every kind, from a seed.

Generator = np.random.Generator
_ATTEMPTS = 4


def _predicates(rng: Generator, size: int) -> object:
    first, last = sorted(rng.integers(0, size, 2).tolist())
    chosen: list[object] = ["identity", "total", "prefix", "suffix", "range", "circular"]
    chosen.append({"ranges": [[first, last], [0, size - 1]]})
    chosen.append({"sets": [rng.permutation(size)[: rng.integers(1, size + 1)].tolist()]})
    entries = rng.normal(size=(rng.integers(1, size + 2), size))
    chosen.append({"matrix": np.round(entries, rng.integers(0, 4))})
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
        workload = given or random_workload(rng)
        with suppress(mdp.TooLargeError, mdp.UnsupportedQueryError, mdp.WorkloadError):
            return select(workload, noise.name, mechanism=mechanism)
    return None


def with_multipliers(rng: Generator, plan: Plan) -> Plan:
    """Return a plan with random row multipliers where it has one part, as a mechanism of somebody's may."""
    if not isinstance(plan, Direct) or rng.random() < 0.5 or plan.parts[0].walk is not None:
        return plan  # a walk has none
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


PAIRS = list(pairs())
BUDGETS = 10

# What they cost.


def ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def upper(a: arb) -> arb:
    """Return the normal tail probability."""
    return (a / arb(2).sqrt()).erfc() / 2


def honours(cost: Fraction, norm: int, budget: dict[str, Any]) -> bool:
    """Return whether a budget, as a file writes it, is proved to allow a cost."""
    # between neighbours it grows with the records that move, to the power of the norm
    moved = cost * (budget["unit"]["records"] * (2 if budget["neighbours"] == "replace" else 1)) ** norm
    given = {name: Fraction(budget[name]) for name in ("rho", "mu", "epsilon", "delta") if name in budget}
    with ctx.workprec(400):
        if "rho" in given:
            return (moved / 2 if norm == 2 else moved**2 / 2) <= given["rho"]
        if "mu" in given and norm == 2:
            return moved <= given["mu"] ** 2
        if "mu" in given:
            return bool((1 + ball(moved).exp()) * upper(ball(given["mu"]) / 2) <= 1)
        if norm == 1:
            return moved <= given["epsilon"]
        mu, epsilon = ball(moved).sqrt(), ball(given["epsilon"])
        delta = upper(epsilon / mu - mu / 2) - epsilon.exp() * upper(epsilon / mu + mu / 2)
        return bool(delta <= ball(given["delta"]))


class _Empty(Source):
    """A table without records: what is measured on it costs what it costs on any other."""

    counts_out_of_domain = True

    def count(self, request):
        counted = request.out_of_domain.counts
        marginals = [(subset, np.zeros(request.shape(subset), np.int64)) for subset in request.subsets]
        return iter(marginals + [(OUT_OF_DOMAIN, np.zeros(len(counted), np.int64))] * bool(counted))


def check_cost(
    plan: Plan, workload: mdp.Workload, budget: mdp.Budget, path: Path, rule: mdp.OutOfDomain
) -> None:
    """Measure a plan under a budget, and recompute what that cost from the file."""
    measurement = measure(plan, _Empty(), budget, out_of_domain=rule)
    save_measurement(path, measurement, workload)
    found = read(path)
    written = found.header["authorization"]
    assert found.agrees
    assert found.stated == measurement.authorization.cost.value
    # parts are added up, so the record that moves most may cost less, and never costs more
    most = found.stated * (1 if budget.neighbours == "add_remove" else 2**found.norm)
    assert found.largest_move(workload.domain.shape) <= most
    if budget.neighbours == "add_remove":
        # counts of what is out of domain take all that the parts leave them, and no more
        assert not rule.counts or found.cost_outside() >= found.stated * Fraction(999_999, 1_000_000)
    elif len(found.parts) * math.prod(workload.domain.shape) <= 64:
        assert found.largest_replacement(workload.domain.shape) <= found.stated * 2**found.norm
    assert honours(found.stated, found.norm, written["budget"])
    assert not honours(found.stated * Fraction(1_000_001, 1_000_000), found.norm, written["budget"])
    assert all(scale > 0 for scale in found.scales)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_the_cost_of_random_plans_is_what_their_files_say(noise, tmp_path: Path):
    seen: Counter[str] = Counter()
    multiplied = 0
    mechanisms = {name for name, own in PAIRS if own == noise}
    for number in range(ROUNDS):
        for mechanism in sorted(mechanisms):
            rng = np.random.default_rng([SEED, number, *mechanism.encode(), *noise.name.encode()])
            strategy = random_strategy(rng, mechanism, noise)
            assert strategy is not None, f"{mechanism}: every workload is refused"
            plan = with_multipliers(rng, strategy.selection.plan)
            multiplied += plan.parts[0].multipliers is not None
            for _ in range(BUDGETS):
                budget = random_budget(rng, noise)
                asked = [None, *strategy.workload.domain.names]
                rule = mdp.OutOfDomain(counts=asked[: rng.integers(len(asked) + 1)])
                check_cost(plan, strategy.workload, budget, tmp_path / "measurement.mdp", rule)
                seen[mechanism] += 1
    assert seen == dict.fromkeys(mechanisms, ROUNDS * BUDGETS)
    assert multiplied > 0
