"""The one door: exact costs, order of events, exactness, and that estimates vary as stated."""

import json
from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.exact import IntegerMatrix, IntegerTensor
from matrixdp.measure import measurement
from matrixdp.measure.measurement import NoiseScale, authorize, calibrate, maximal_marginals, measure, noisy
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost, SystemSource
from matrixdp.plan import Block, Direct, Part
from matrixdp.privacy import Budget
from matrixdp.selection.auto import select
from matrixdp.sources import Source, open_source
from tests.measure.plans import BUDGETS, plan

DOMAIN = mdp.Domain({"a": 5, "b": 4, "c": ["x", "y", "z"]})
WORKLOAD = mdp.Workload(DOMAIN, mdp.kway([1, 2], {"categorical": "identity", "numeric": "prefix"}))
RNG = np.random.default_rng(0)
TABLE = {
    "a": RNG.integers(0, 5, 300),
    "b": RNG.integers(0, 4, 300),
    "c": np.array(["x", "y", "z"])[RNG.integers(0, 3, 300)],
}


def test_cost_and_labels():
    plan = select(WORKLOAD, noise=GAUSSIAN).plan
    seeded = measure(plan, open_source(TABLE), Budget(rho=0.5), seed_not_private=1)
    real = measure(plan, open_source(TABLE), Budget(rho=0.5))
    assert not seeded.private
    assert real.private
    assert real.authorization.cost <= GAUSSIAN.cost(Budget(rho=0.5)) == Cost(Fraction(1), GAUSSIAN)
    assert float(real.authorization.cost.value) > 1 - 1e-9
    assert real.plan is plan
    for part, values, scale in zip(plan.parts, real.values, real.scales, strict=True):
        assert scale.variance > 0
        assert len(values) == part.rows
        np.testing.assert_array_equal(np.rint(np.ldexp(values, -scale.power)), np.ldexp(values, -scale.power))


def test_a_table_above_the_public_bound_gives_the_same():
    plan = select(WORKLOAD, mechanism="residual", noise=GAUSSIAN).plan
    ends = [
        measure(plan, open_source(TABLE), Budget(mu=1), max_records=bound, seed_not_private=5)
        for bound in (100, 2**33)
    ]
    for small, large in zip(*(end.values for end in ends), strict=True):
        np.testing.assert_array_equal(small, large)


class _Counted(Source):
    def __init__(self, counts):
        self.counts = counts

    def count(self, request):
        yield request.subsets[0], self.counts


@pytest.mark.parametrize("counts", [[2**60 + 100, 2**60], [2**58 + 31, 2**58]])
def test_a_table_above_the_public_bound_that_needs_a_second_limb_is_measured_exactly(counts):
    domain = mdp.Domain({"a": 2})
    block = Block(("a",), IntegerMatrix(np.array([[5, -5], [3, 2]])))
    plan = Direct(domain, (Part(("a",), (block,), 1e6),), GAUSSIAN)
    source = _Counted(np.array(counts))
    small, large = (
        measure(plan, source, Budget(mu=0.005), max_records=bound, seed_not_private=1)
        for bound in (50, 2**61)
    )
    np.testing.assert_array_equal(small.values[0], large.values[0])


def test_the_part_of_an_answer_within_a_step_counts():
    """Answers half-way between two steps, noise of one step: the mean of 10,000 is 50 deviations above 0."""
    answers = IntegerTensor([np.full(10_000, 2.0)], 40)
    drawn = noisy(answers, NoiseScale(Fraction(1), 2, GAUSSIAN), SystemSource())
    assert 0.4 < drawn.mean() < 0.6


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcde")).map(lambda s: tuple(sorted(s))), min_size=1, unique=True))
def test_every_marginal_is_counted_once(marginals):
    groups = maximal_marginals(marginals)
    assert sorted(m for members in groups.values() for m in members) == sorted(marginals)
    assert all(set(member) <= set(holder) for holder, members in groups.items() for member in members)
    holders = list(groups)
    assert not any(set(a) < set(b) for a in holders for b in holders)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("kind", ["direct", "pooled", "local"])
@pytest.mark.parametrize("allowed", [Fraction(1, 10), Fraction(1), Fraction(7, 3)])
def test_the_exact_cost_is_just_below_what_is_allowed(noise, kind, allowed):
    found = plan(kind, noise)
    scales, cost = calibrate(found, Cost(allowed, noise), 2**33)
    assert 0.9999999 * allowed < cost.value <= allowed
    assert measurement.plan_cost(found, scales) == cost
    pairs = zip(found.parts, scales, strict=True)
    exact = sum(Fraction(noise.power_sum(part)) / scale.exact**noise.norm for part, scale in pairs)
    assert exact <= cost.value < exact * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_whole_budget_may_be_spent(budget):
    allowed = GAUSSIAN.cost(budget).value
    for cost in (allowed, allowed - Fraction(1, 10**100), Fraction(1, 10**100)):
        assert authorize(Cost(cost, GAUSSIAN), budget).cost.value == cost
    assert authorize(Cost(Fraction(1, 2), LAPLACE), Budget(epsilon=1)).cost.noise == LAPLACE


def test_the_record():
    record = authorize(Cost(Fraction(1), GAUSSIAN), Budget(mu=1))
    assert isinstance(record.cost.value, Fraction)
    assert record.ledger is None
    assert "No ledger" in record.note
    assert datetime.fromisoformat(record.time).utcoffset() == timedelta(0)
    assert json.loads(json.dumps(record.as_dict()))["cost"] == "1"
    with pytest.raises(FrozenInstanceError):
        record.cost = Cost(Fraction(2), GAUSSIAN)  # type: ignore[misc]


def test_no_noise_is_drawn_where_what_comes_before_it_fails(monkeypatch):
    strategy, steps = mdp.select(WORKLOAD), []
    real = measurement.noisy
    monkeypatch.setattr(measurement, "noisy", lambda *given: steps.append("noise") or real(*given))

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        strategy.measure(TABLE, Budget(mu=1), before_noise=stop)
    assert steps == []
    strategy.measure(TABLE, Budget(mu=1), before_noise=lambda: steps.append("before"))
    assert steps == ["before"] + ["noise"] * (len(steps) - 1)
    assert len(steps) > 1
