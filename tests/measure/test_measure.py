"""The one door: order of events, exactness, and that estimates vary as stated."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.exact import IntegerMatrix, IntegerTensor
from matrixdp.measure.measurement import NoiseScale, maximal_marginals, measure, noisy
from matrixdp.noise import GAUSSIAN, Cost, SystemSource
from matrixdp.plan import Block, Direct, Part
from matrixdp.privacy import Budget
from matrixdp.selection.auto import select
from matrixdp.sources import Source, open_source

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


def test_two_measurements_differ():
    plan = select(WORKLOAD, noise=GAUSSIAN).plan
    first, second = (measure(plan, open_source(TABLE), Budget(mu=1)) for _ in range(2))
    assert not np.array_equal(first.values[0], second.values[0])


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
