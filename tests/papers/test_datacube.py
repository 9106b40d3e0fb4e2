"""DataCube against exhaustive search, dense matrices and published figures."""

import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schemas import cps

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import Trials

MU = {LAPLACE: 1.0, GAUSSIAN: 0.236704}  # epsilon = 1; (epsilon, delta) = (1, 1e-6)
ALL_CPS = mdp.Workload(cps(), mdp.marginals([0, 1, 2, 3, 4, 5]))


def select_datacube(workload, noise):
    return Trials(workload, noise, {}).choose("datacube")


def largest_variance(domain, asked, measured, noise):
    """The largest variance of a cell that is computed from one marginal, in units of the variance factor."""
    summed = max(
        min(
            math.prod(domain[name].size for name in source if name not in target)
            for source in measured
            if set(target) <= set(source)
        )
        for target in asked
    )
    return summed * len(measured) ** (2 if noise == LAPLACE else 1)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(2, 60), min_size=1, max_size=3),
    st.integers(1, 255),
    st.sampled_from([GAUSSIAN, LAPLACE]),
)
def test_the_largest_variance_is_within_the_bound_of_the_paper(sizes, which, noise):
    names = "abc"[: len(sizes)]
    subsets = [c for k in range(len(sizes) + 1) for c in combinations(names, k)]
    asked = [subset for place, subset in enumerate(subsets) if which >> place & 1] or [tuple(names)]
    domain = mdp.Domain(dict(zip(names, sizes, strict=True)))
    plan, _ = select_datacube(mdp.Workload(domain, mdp.marginals(asked)), noise)
    found = largest_variance(domain, asked, [part.attributes for part in plan.parts], noise)
    least = min(
        largest_variance(domain, asked, measured, noise)
        for count in range(1, len(asked) + 1)
        for measured in combinations(asked, count)
        if all(any(set(target) <= set(source) for source in measured) for target in asked)
    )
    power = 2 if noise == LAPLACE else 1
    assert found <= least * (math.log(len(asked)) + 1) ** power * (1 + 1e-12)


def test_a_large_table_is_not_summed_and_a_small_one_is():
    """Summing 2 cells doubles a variance; a third measurement multiplies it by 9/4, or 3/2."""
    domain = mdp.Domain({"a": 2, "b": 2, "c": 90})
    asked = [("a",), ("a", "b"), ("a", "b", "c")]
    workload = mdp.Workload(domain, mdp.marginals(asked))
    for noise, expected in ((LAPLACE, asked[1:]), (GAUSSIAN, asked)):
        plan, _ = select_datacube(workload, noise)
        assert sorted(part.attributes for part in plan.parts) == expected


@pytest.mark.parametrize(("noise", "ours", "largest"), [(LAPLACE, 15.2292, 512), (GAUSSIAN, 16.0847, 32)])
def test_all_marginals_of_cps(noise, ours, largest):
    """Those of one greedy cover are printed: see the figures."""
    plan, certificate = select_datacube(ALL_CPS, noise)
    assert math.sqrt(certificate.loss / ALL_CPS.queries) / MU[noise] == pytest.approx(ours, abs=5e-5)
    measured = [part.attributes for part in plan.parts]
    assert largest_variance(cps(), [group.attributes for group in ALL_CPS], measured, noise) == largest
