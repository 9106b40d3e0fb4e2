"""Amounts in a measurement: a divided record costs no more than a whole one, and sums are unbiased."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.exact import IdentityMatrix, apply_kronecker
from matrixdp.measure.calibration import NoiseScale, calibrate, plan_cost
from matrixdp.measure.noisy_answers import noisy
from matrixdp.noise import GAUSSIAN, LAPLACE, SeededSource
from matrixdp.sources import open_source

DOMAIN = mdp.Domain(
    {
        "grade": ["A", "B", "C"],
        "loan": {"amount": [0, 40000]},
        "fee": {"amount": [-1, 2], "step": 0.01, "squares": True, "null": "none"},
    }
)
WORKLOAD = mdp.Workload(
    DOMAIN, mdp.marginals(1), mdp.ask.sum("loan", by=["grade"]), mdp.ask.variance("fee", by=["grade"])
)
ENDS = [(g, loan, fee) for g in "ABC" for loan in (0, 40000) for fee in (-1, 2, None)]


def answers(plan, records):
    """Return the exact answers of all parts about some records."""
    columns = zip(*records, strict=True) if records else ([], [], [])
    source = open_source(dict(zip(DOMAIN.names, map(list, columns), strict=True)))
    found = dict(source.marginals(DOMAIN, list(plan.positions), mdp.OutOfDomain()))
    exact = []
    for part in plan.parts:
        weight = DOMAIN.weight(part.attributes)
        held = part.answers(found[part.attributes], 2**33 * weight).values()
        exact.append(np.array([Fraction(value, weight) for value in held]))
    return exact


def cost(plan, scales, before, after):
    """Return the privacy cost of what moves between two tables, exactly."""
    norm = plan.noise.norm
    pairs = zip(answers(plan, before), answers(plan, after), scales, strict=True)
    return sum(sum(abs(moved) ** norm for moved in b - a) / scale.exact**norm for a, b, scale in pairs)


@pytest.mark.parametrize(
    ("noise", "mechanism"), [("gaussian", "dense"), ("gaussian", "residual"), ("laplace", "opt-plus")]
)
def test_divided_records_move_answers_by_at_most_the_largest_column(noise, mechanism):
    plan = mdp.select(WORKLOAD, noise=noise, mechanism=mechanism).selection.plan
    kind = {"gaussian": GAUSSIAN, "laplace": LAPLACE}[noise]
    assert plan.noise == kind
    scales, added = calibrate(plan, kind.cost(mdp.Budget(epsilon=1, delta=1e-6)), 2**33)
    replaced = plan_cost(plan, scales, "replace").value * 2**kind.norm
    rng = np.random.default_rng(5)
    table = [("A", 7, 0.5), ("C", 123.4, None)]
    whole = max(cost(plan, scales, table, [*table, record]) for record in ENDS)
    assert whole <= added.value
    assert float(whole) == pytest.approx(float(added.value), rel=0.2)
    for _ in range(12):
        loan, fee = float(rng.uniform(-5000, 45000)), [None, float(rng.uniform(-2, 3))][rng.integers(2)]
        record = ("ABC"[rng.integers(3)], loan, fee)
        assert cost(plan, scales, table, [*table, record]) <= whole
        assert cost(plan, scales, table, [record, table[1]]) <= replaced


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 2**80), min_size=1, max_size=4),
    st.sampled_from([-30, -3, 0, 5, 40]),
    st.integers(2, 2**50),
)
def test_quotients_of_weights_are_exact(values, power, weight):
    values = [value * weight >> 40 for value in values]
    if max(values) // weight >> max(power, 0) << max(-power, 0) >= 2**61:
        return
    tensor = apply_kronecker([IdentityMatrix(len(values))], np.array(values, dtype=object), 2**140)
    quotient, fraction, exact = tensor.split(power, weight)
    for i, value in enumerate(values):
        assert int(quotient[i]) + exact(i) == Fraction(value, weight) / Fraction(2) ** power
        assert 0 <= exact(i) < 1
        assert abs(Fraction(float(fraction[i])) - exact(i)) <= Fraction(1, 2**53)


def test_noise_on_shares_is_that_on_counts_moved_by_a_part_of_a_step():
    weight, steps = 3, Fraction(5000)
    scale = NoiseScale(steps, -2, GAUSSIAN)
    cells = np.full(4000, 10, dtype=object)
    tensor = apply_kronecker([IdentityMatrix(4000)], cells, 2**33 * weight)
    found = noisy(tensor, scale, SeededSource(3), weight=weight)
    # 10 / 3 is 13 steps of 1/4 and a third: with the same bits, the noise is rounded from there
    offsets = np.full(4000, 1 / 3)
    drawn = GAUSSIAN.draw_rounded(
        steps, 4000, offsets=offsets, exact_offset=lambda _: Fraction(1, 3), source=SeededSource(3)
    )
    np.testing.assert_array_equal(found, 13 + drawn)
    assert abs(found.mean() - 40 / 3) < 4 * 5000 / 4000**0.5


@pytest.mark.parametrize("step", [1, 0.01])
def test_sums_of_money_have_no_bias_and_the_error_that_is_said(step):
    rng = np.random.default_rng(11)
    grades = rng.choice(list("ABCDEFG"), 2000, p=[0.24, 0.3, 0.26, 0.12, 0.04, 0.02, 0.02])
    # heaped at round numbers, as money is, and some beyond the ends
    loans = np.round(rng.gamma(2.5, 6500, 2000) / 500) * 500 + step * rng.integers(0, 2, 2000)
    domain = mdp.Domain({"grade": list("ABCDEFG"), "loan": {"amount": [0, 40000], "step": step}})
    asked = mdp.ask.sum("loan", by=["grade"]), mdp.ask.mean("loan")
    strategy = mdp.select(mdp.Workload(domain, *asked))
    clipped = np.clip(loans, 0, 40000)
    truth = np.array([clipped[grades == grade].sum() for grade in "ABCDEFG"])
    normal, inside, held = [], [], []
    for seed in range(60):
        table = {"grade": grades, "loan": loans}
        release = strategy.measure(table, mdp.Budget(mu=1), seed_not_private=seed).reconstruct()
        sums, means = release.sum("loan", by=["grade"]), release.mean("loan")
        deviations = sums["stddev"].to_numpy()
        normal.append((sums["estimate"].to_numpy() - truth) / deviations)
        inside.append((sums["lower"].to_numpy() <= truth) & (truth <= sums["upper"].to_numpy()))
        assert sums["upper"].to_numpy() - sums["lower"].to_numpy() == pytest.approx(
            2 * 1.96 * deviations, 1e-3
        )
        held.append(means["lower"][0].as_py() <= clipped.mean() <= means["upper"][0].as_py())
        assert "binning" not in sums.column_names
    z = np.array(normal)
    assert abs(z.mean()) < 4 / z.size**0.5
    assert abs((z**2).mean() - 1) < 4 * (2 / z.size) ** 0.5
    assert abs(np.mean(inside) - 0.95) < 4 * (0.95 * 0.05 / z.size) ** 0.5
    assert sum(held) >= 50
    assert (np.abs(z) < 1.96).mean() == pytest.approx(0.95, abs=0.045)


@pytest.mark.parametrize("written", [{"amount": [-10, 110], "squares": True}, {"min": -10, "max": 110}])
def test_variances_have_the_error_that_is_said(written):
    rng = np.random.default_rng(2)
    ages = np.clip(np.round(rng.normal(40, 18, 3000)), -10, 110)
    domain = mdp.Domain({"sex": ["f", "m"], "age": written})
    strategy = mdp.select(mdp.Workload(domain, mdp.ask.variance("age", by=["sex"])))
    sexes = rng.choice(["f", "m"], 3000, p=[0.8, 0.2])
    truth = np.array([ages[sexes == sex].var() for sex in "fm"])
    normal, held = [], []
    for seed in range(60):
        table = {"sex": sexes, "age": ages}
        release = strategy.measure(table, mdp.Budget(mu=1), seed_not_private=seed).reconstruct()
        found = release.variance("age", by=["sex"])
        normal.append((found["estimate"].to_numpy() - truth) / found["stddev"].to_numpy())
        held.append((found["lower"].to_numpy() <= truth) & (truth <= found["upper"].to_numpy()))
    z = np.array(normal)
    assert abs(z.mean()) < 4 / z.size**0.5
    assert abs((z**2).mean() - 1) < 4 * (2 / z.size) ** 0.5
    assert np.mean(held) >= 0.95
