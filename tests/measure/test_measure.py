"""The one door: exact costs, order of events, exactness, and that estimates vary as stated."""

import json
from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import matrixdp as mdp
from matrixdp.exact import IntegerMatrix, IntegerTensor
from matrixdp.measure import calibration, noisy_answers
from matrixdp.measure.calibration import NoiseScale, calibrate
from matrixdp.measure.measurement import authorize, measure
from matrixdp.measure.noisy_answers import maximal_marginals, noisy
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost, SystemSource
from matrixdp.plans import Block, Direct, Part
from matrixdp.privacy import Budget
from matrixdp.selection.auto import select
from matrixdp.sources import Source, open_source
from matrixdp.storage.formats import load_measurement, save_measurement
from tests.measure.plans import BUDGETS, DOMAIN, TABLE, WORKLOAD, plan


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
    assert calibration.plan_cost(found, scales) == cost
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
    real = noisy_answers.noisy
    monkeypatch.setattr(
        noisy_answers, "noisy", lambda *given, **named: steps.append("noise") or real(*given, **named)
    )

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        strategy.measure(TABLE, Budget(mu=1), before_noise=stop)
    assert steps == []
    strategy.measure(TABLE, Budget(mu=1), before_noise=lambda: steps.append("before"))
    assert steps == ["before"] + ["noise"] * (len(steps) - 1)
    assert len(steps) > 1


def test_laplace_noise_serves_budgets_in_every_definition():
    for budget in (Budget(epsilon=2), Budget(rho=2), Budget(epsilon=2, delta=1e-6)):
        measured = measure(plan("direct"), open_source(TABLE), budget)
        assert float(measured.authorization.cost.value) == pytest.approx(2)
        assert measured.scales[0].variance == pytest.approx(2 * 80**2 / 2**2, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("kind", ["direct", "pooled", "local"])
def test_errors_are_distributed_and_estimates_vary_as_stated(kind, noise):
    """Standardized errors against exact moments; limits of 6.5 standard deviations, about 1e-10 each."""
    # with so little budget Laplace noise is continuous
    law, budget = ("norm", Budget(mu=1)) if noise is GAUSSIAN else ("laplace", Budget(epsilon=0.05))
    source, draws = open_source(TABLE), 120
    truth = np.zeros(DOMAIN.shape)
    np.add.at(truth, (TABLE["a"], TABLE["b"]), 1)
    standardized, errors = [], []
    for seed in range(draws):
        measured = measure(plan(kind, noise), source, budget, seed_not_private=seed)
        for part, drawn, values in zip(measured.plan.parts, measured.scales, measured.values, strict=True):
            marginal = truth if len(part.attributes) == 2 else truth.sum(axis=1)
            exact = part.answers(marginal.astype(np.int64), 2**33).values()
            scale = np.sqrt(drawn.variance / noise.variance_factor)
            standardized.append((values - np.array(exact, dtype=float)) / scale)
        estimates = measured.estimates
        answers = np.concatenate([estimates.answers(group) for group in WORKLOAD])
        errors.append(answers - np.concatenate([
            np.cumsum(truth, axis=0).ravel(), [500.0], truth.sum(axis=1), truth.sum(axis=0)
        ]))  # fmt: skip
    z = np.concatenate(standardized)
    assert stats.kstest(z, law).pvalue > 1e-9
    assert stats.kstest(1.4 * z, law).pvalue < 1e-6
    stated = np.concatenate([measured.analysis.variances(group) for group in WORKLOAD])
    found = np.array(errors) / np.sqrt(stated)
    assert np.abs(found.mean(axis=0)).max() < 6.5 / np.sqrt(draws)
    # the fourth moment of a combination of Laplace variables is at most 6, so squares vary by at most 5
    assert np.abs((found**2).mean(axis=0) - 1).max() < 6.5 * np.sqrt(5 / draws)
    assert abs((found**2).mean() - 1) < 6.5 * np.sqrt(5 / draws)


@pytest.mark.parametrize("kind", ["direct", "pooled", "local"])
def test_measurements_are_saved_whole(kind, tmp_path):
    measured = measure(plan(kind), open_source(TABLE), Budget(epsilon=1))
    save_measurement(tmp_path / "m.mdp", measured, WORKLOAD)
    again, _ = load_measurement(tmp_path / "m.mdp")
    assert again.plan.noise == LAPLACE
    assert again.plan.kind == kind
    assert again.authorization == measured.authorization
    for left, right in zip(again.values, measured.values, strict=True):
        np.testing.assert_array_equal(left, right)
    for group in WORKLOAD:
        np.testing.assert_array_equal(again.estimates.answers(group), measured.estimates.answers(group))
