"""DataCube against exhaustive search, dense matrices and published figures."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plan import Block, Part, Pooled
from matrixdp.selection.mechanisms.trials import Trials
from matrixdp.testing import dense_error, dense_gram, dense_measurement

MU_SQUARED = 0.236704**2  # (epsilon, delta) = (1, 1e-6)
CPS = mdp.Domain({"income": 100, "age": 50, "marital": 7, "race": 4, "sex": 2})
ALL_CPS = mdp.Workload(CPS, mdp.marginals([0, 1, 2, 3, 4, 5]))


def select_datacube(workload, noise):
    return Trials(workload, noise, {}).choose("datacube")


def rmse(loss, workload, noise):
    return math.sqrt(loss / workload.queries / (MU_SQUARED if noise == GAUSSIAN else 1.0))


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


@pytest.mark.parametrize(
    "entry",
    [mdp.product(a="prefix"), mdp.product(a="range", b="identity"), mdp.dense([[1.0, 2.0, 1.0]], ["a"])],
)
def test_other_workloads_are_refused(entry):
    workload = mdp.Workload(mdp.Domain({"a": 3, "b": 2}), entry, mdp.marginals(1))
    with pytest.raises(WorkloadError, match="datacube"):
        select_datacube(workload, LAPLACE)


def test_too_many_marginals_are_refused():
    many = mdp.Domain({f"a{i}": 2 for i in range(13)})
    with pytest.raises(TooLargeError, match="datacube"):
        select_datacube(mdp.Workload(many, mdp.marginals(list(range(14)))), LAPLACE)


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


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_the_loss_is_that_of_the_dense_pseudo_inverse(noise):
    domain = mdp.Domain({"a": 4, "b": 2, "c": 3})
    workload = mdp.Workload(domain, mdp.marginals([0, 1, 2]), mdp.marginals([["b"]], weight=3.0))
    plan, certificate = select_datacube(workload, noise)
    assert plan.cost == pytest.approx(1.0, rel=1e-12)
    assert np.ptp([part.variance for part in plan.parts]) < 1e-9
    strategy = np.vstack([dense_measurement(part, domain) for part in plan.parts])
    expected = plan.parts[0].variance * dense_error(dense_gram(workload), strategy)
    assert certificate.loss == pytest.approx(expected, rel=1e-10)
    assert certificate.lower_bound is None


@pytest.mark.parametrize(
    ("noise", "published", "ours"), [(LAPLACE, 18.49, 15.2292), (GAUSSIAN, 19.53, 16.0847)]
)
def test_all_marginals_of_cps(noise, published, ours):
    plan, certificate = select_datacube(ALL_CPS, noise)
    assert rmse(certificate.loss, ALL_CPS, noise) == pytest.approx(ours, abs=5e-5)
    assert ours < published
    measured = [part.attributes for part in plan.parts]
    asked = [group.attributes for group in ALL_CPS]
    assert largest_variance(CPS, asked, measured, noise) == (512 if noise == LAPLACE else 32)


@pytest.mark.parametrize(("noise", "published"), [(LAPLACE, 18.49), (GAUSSIAN, 19.53)])
def test_what_the_published_figure_of_cps_is_that_of(noise, published):
    """The printed figures belong to eight marginals that sum up to 28 cells; others sum only 8."""
    numeric = [(), ("income",), ("age",), ("income", "age")]
    chosen = [kept + rest for kept in numeric for rest in ((), ("marital", "race", "sex"))]
    variance = 2.0 * 64 if noise == LAPLACE else 8.0
    parts = tuple(
        Part(names, tuple(Block((n,), IdentityMatrix(CPS[n].size)) for n in names), variance)
        for names in chosen
    )
    analysis = Pooled(CPS, parts, noise).analysis
    loss = math.fsum(analysis.group(group).weighted for group in ALL_CPS)
    assert round(rmse(loss, ALL_CPS, noise), 2) == published


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_the_order_of_attributes_changes_nothing(noise):
    sizes = {"a": 3, "b": 50, "c": 2, "d": 7}
    found = set()
    for names in ("abcd", "dcba", "bdac"):
        domain = mdp.Domain({name: sizes[name] for name in names})
        plan, certificate = select_datacube(mdp.Workload(domain, mdp.marginals([0, 1, 2])), noise)
        found.add((frozenset(frozenset(part.attributes) for part in plan.parts), round(certificate.loss, 6)))
    assert len(found) == 1


@pytest.mark.parametrize(("noise", "printed"), [(LAPLACE, 18.49), (GAUSSIAN, 19.53)])
def test_one_greedy_cover_has_the_figures_of_a_comparison(noise, printed):
    """McKenna et al., HDMM, journal version, Tables 6 and 7: CPS, all marginals."""
    loss = Trials(ALL_CPS, noise, {"search": "once"}).choose("datacube")[1].loss
    assert rmse(loss, ALL_CPS, noise) == pytest.approx(printed, abs=0.005)
    assert select_datacube(ALL_CPS, noise)[1].loss < loss
