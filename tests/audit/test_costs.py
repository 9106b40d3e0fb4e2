"""The exact cost of random plans of every mechanism, recomputed from the saved file alone.

What is read is measurement.mdp, by the reader beside this file; what a budget allows is decided by ball
arithmetic written here. ``MATRIXDP_AUDIT=20`` makes twenty times as many cases (`make audit`).
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq

import matrixdp as mdp
from matrixdp.measure.measurement import measure
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plan import Plan
from matrixdp.sources import Source
from matrixdp.sources.base import OUT_OF_DOMAIN
from matrixdp.storage.formats import save_measurement
from tests.audit.plans import pairs, random_budget, random_strategy, with_multipliers
from tests.audit.reading import read
from tests.audit.settings import ROUNDS, SEED

PAIRS = list(pairs())
BUDGETS = 10


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
