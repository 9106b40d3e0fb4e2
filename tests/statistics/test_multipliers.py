"""Multipliers of sums and of ratios of queries under noise on integers: from their own distributions."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.inference import Inference
from matrixdp.noise import integers
from matrixdp.statistics.intervals import EVERY, Pairs, ratios

WORKLOAD = mdp.Workload(mdp.Domain({"a": 12}), mdp.marginals(1))


def inference(epsilon: float, *counts: int) -> Inference:
    strategy = mdp.select(WORKLOAD, noise="laplace", mechanism="identity")
    table = {"a": np.repeat(np.arange(len(counts)), counts)}
    measured = strategy.measure(table, mdp.Budget(epsilon=epsilon), seed_not_private=1)
    return measured.reconstruct().inference()


def query(*values: int) -> mdp.queries.Group:
    [group] = mdp.product(a={"sets": [list(values)]}).expand(WORKLOAD.domain)
    return group


def test_sums_of_queries_have_the_noise_of_what_is_left():
    known = inference(1.0, 9)
    one, two = query(0), query(0, 1)
    alone = known.multipliers((1.0, query(1), EVERY))
    # the first value cancels, twice the same adds up
    assert known.multipliers((1.0, two, EVERY), (-1.0, one, EVERY)) == pytest.approx(alone)
    assert known.multipliers((0.5, one, EVERY), (2.0, one, EVERY)) == pytest.approx(alone)
    assert alone == pytest.approx(3 / np.sqrt(integers.variance(1.0)))
    # one row for each number, of the queries at their places
    [cells] = mdp.marginals(1).expand(WORKLOAD.domain)
    found = known.multipliers((np.array([1.0, 0.0, 1.0]), cells, [0, 1, 2]), (-1.0, cells, [3, 3, 2]))
    both = known.multipliers((1.0, one, EVERY), (-1.0, query(1), EVERY))
    assert np.ravel(found)[:2] == pytest.approx([np.ravel(both)[0], np.ravel(alone)[0]])


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_no_ratio_outside_of_its_interval_is_within_the_noise(epsilon: float):
    known = inference(epsilon, 40, 90, 15)
    some, all_of = query(0), query(*range(12))
    values, variances = (
        [float(own(group)[0]) for group in (some, all_of)] for own in (known.estimates, known.variances)
    )
    covariance = known.analysis.covariances(some, all_of)[0]
    moments = [np.array([value]) for value in (*values, *variances)]
    pairs = Pairs(moments[0], moments[1], moments[2], moments[3], covariance)
    terms = [(1.0, some, EVERY)], [(1.0, all_of, EVERY)]
    found = known.ratios(pairs, *terms)
    far = ratios(pairs, known.multiplier)
    assert far.lower[0] < found.lower[0] < found.estimates[0] < found.upper[0] < far.upper[0]
    assert found.upper[0] - found.lower[0] < 0.9 * (far.upper[0] - far.lower[0])
    outside = [*np.linspace(-1, found.lower[0] - 1e-6, 9), *np.linspace(found.upper[0] + 1e-6, 2, 9)]
    for t in outside:
        spread = variances[0] - 2 * t * float(covariance[0]) + t * t * variances[1]
        enough = float(np.ravel(known.multipliers((1.0, some, EVERY), (-t, all_of, EVERY)))[0])
        assert abs(values[0] - t * values[1]) > enough * np.sqrt(spread)


def test_ratios_take_less_only_where_it_is_enough_at_both_ends():
    left, right, one = np.array([50.0, 2.0]), np.array([100.0, 4.0]), np.ones(2)
    pairs = Pairs(left, right, one, one, 0.0 * one)
    plain = ratios(pairs, 2.0)

    def dearer(t: np.ndarray) -> np.ndarray:
        return np.where(np.abs(t - 0.5) < 1e-12, 1.5, 1.8)

    found = ratios(pairs, 2.0, (5.0, dearer))
    # the second denominator is less than 5 standard errors from 0
    assert (found.lower[1], found.upper[1]) == (plain.lower[1], plain.upper[1])
    least = ratios(pairs, 1.8)
    assert plain.lower[0] < found.lower[0] <= least.lower[0] < least.upper[0] <= found.upper[0]
    wide = ratios(pairs, 2.0, (5.0, lambda t: np.full(t.shape, 3.0)))
    np.testing.assert_array_equal(wide.upper, plain.upper)
