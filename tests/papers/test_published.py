"""Published figures: root mean squared error at privacy cost 1 (mu = 1)."""

from itertools import combinations

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.auto import select
from matrixdp.selection.compose.residual_planner import select_residual_planner_plus
from matrixdp.selection.compose.weight_vectors import uniform_weights
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.mechanisms.trials import Trials
from matrixdp.selection.view.pieces import Pieces
from matrixdp.selection.view.sub_workloads import split_workload

HYBRID = {"categorical": "identity", "numeric": "prefix"}


def _schema(categorical, numeric):
    attributes = {f"c{i}": [str(v) for v in range(n)] for i, n in enumerate(categorical)}
    return mdp.Domain(attributes | {f"n{i}": n for i, n in enumerate(numeric)})


def _equal(size, count):
    return mdp.Domain({f"a{i}": size for i in range(count)})


CPS = _schema([7, 4, 2], [100, 50])
ADULT = _schema([42, 16, 15, 9, 7, 6, 5, 2, 2], [100, 100, 100, 99, 85])


def _mix(size, count):
    entries = mdp.kway(1, "range"), mdp.pairwise("affine"), mdp.kway(3, "prefix")
    return mdp.Workload(_equal(size, count), *entries)


def _before_rounding(workload, mechanism):
    # without a bound on all strategies, which no figure needs
    plan, certificate = Trials(workload, GAUSSIAN, {}, bounded=False).choose(mechanism)
    before = (certificate.loss / workload.queries) ** 0.5
    after = (sum(plan.analysis.group(group).total for group in workload) / workload.queries) ** 0.5
    assert before <= after * (1 + 1e-9)
    assert after <= 1.005 * before
    return before


#: Of schemas and numbers of attributes: certified, printed for Fourier, and what optimized weights pass.
HYBRIDS = [
    (CPS, 1, 3.1350, 3.589, None), (CPS, 2, 6.1918, 7.841, None), (CPS, 3, 7.8860, 10.267, None),
    (CPS, [1, 2, 3], 8.1400, 10.594, 7.57), (ADULT, 1, 5.0468, 5.804, None),
    (ADULT, 2, 17.1902, 22.493, 16.78), (ADULT, 3, 45.5516, 66.934, None),
    (ADULT, [1, 2, 3], 45.4649, 66.794, 43.7),
]  # fmt: skip


@pytest.mark.parametrize(("domain", "ways", "certified", "fourier", "optimized"), HYBRIDS)
def test_hybrids(domain, ways, certified, fourier, optimized):
    workload = mdp.Workload(domain, mdp.kway(ways, HYBRID))
    assert _before_rounding(workload, "querysmasher") == pytest.approx(certified, rel=5e-4)
    assert _before_rounding(workload, "fourier") == pytest.approx(fourier, abs=0.00051)
    assert optimized is None or _before_rounding(workload, "residual") <= optimized


@pytest.mark.parametrize(
    ("entries", "querysmasher", "fourier"),
    [
        ([mdp.kway([1, 2], "prefix")], 33.6934, 39.70),
        ([mdp.kway([1, 2], "range")], 41.0759, 41.36),
        ([mdp.kway([1, 2], "circular")], 39.7721, 39.77),
        ([mdp.kway(1, "prefix"), mdp.pairwise("affine")], 28.0097, 45.23),
        ([mdp.kway(1, "prefix"), mdp.pairwise("abs")], 30.1029, 64.11),
        ([mdp.marginals([1, 2])], 23.4766, 23.48),
    ],
)
def test_forty_attributes(entries, querysmasher, fourier):
    workload = mdp.Workload(_equal(10, 40), *entries)
    assert _before_rounding(workload, "querysmasher") == pytest.approx(querysmasher, rel=5e-4)
    assert _before_rounding(workload, "fourier") == pytest.approx(fourier, abs=0.0051)


@pytest.mark.parametrize(
    ("size", "count", "certified"), [(10, 10, 20.4104), (10, 20, 51.5455), (20, 10, 33.7509)]
)
def test_the_mix(size, count, certified):
    assert _before_rounding(_mix(size, count), "querysmasher") == pytest.approx(certified, rel=5e-4)


def test_the_mix_with_optimized_weights():
    assert _before_rounding(_mix(10, 10), "residual") <= 19.3


@pytest.mark.parametrize("mechanism", ["auto", "residual", "querysmasher", "fourier"])
def test_pure_marginals_are_equal_and_certified(mechanism):
    selection = select(
        mdp.Workload(_equal(10, 40), mdp.marginals([1, 2])), mechanism=mechanism, noise=GAUSSIAN
    )
    assert (selection.total_squared_error / 78400) ** 0.5 == pytest.approx(23.4766, rel=1e-5)
    if mechanism != "fourier":
        assert selection.certificate.gap < 1e-9


def test_a_billion_queries_cost_three_sub_problems():
    workload = mdp.Workload(_equal(50, 40), mdp.kway([1, 2], "range"))
    assert workload.queries == 40 * 1275 + 780 * 1275**2
    selection = select(workload, mechanism="residual", noise=GAUSSIAN)
    assert len(selection.plan.parts) == 821
    assert len({block.matrix.digest() for part in selection.plan.parts for block in part.blocks}) == 1


def test_comparisons_of_pairs_as_querysmasher_counts_them():
    """Table 3: ResidualPlanner+ on CPS to the printed digits, and the number of queries on Adult."""
    pairs = mdp.pairwise("affine")
    numeric = mdp.Domain({"c0": 7, "c1": 4, "c2": 2, "x0": 100, "x1": 50})
    single = [mdp.product({name: "identity" if name[0] == "c" else "prefix"}) for name in numeric.names]
    workload = mdp.Workload(numeric, *single, pairs)
    bases = {}
    for name in numeric.names:
        size = numeric[name].size
        centred = np.tri(size) - np.tri(size).mean(axis=1, keepdims=True)
        bases[name] = np.eye(size) if name[0] == "c" else solve_gram(centred.T @ centred + 1.0).rows
    _, certificate = select_residual_planner_plus(workload, GAUSSIAN, bases)
    assert (certificate.loss / workload.queries) ** 0.5 == pytest.approx(10.012, abs=0.00051)
    sizes = [one.size for one in ADULT]
    adult = mdp.Domain({f"a{i}": size for i, size in enumerate(sizes)})
    assert mdp.Workload(adult, mdp.kway(1, "prefix"), pairs).queries == 8_141
    # pairs of two numeric attributes have products of prefixes in the place of comparisons
    crossed = sum((a - 1) * (b - 1) for a, b in combinations(sizes[9:], 2))
    assert 8_141 + crossed == 99_830


def test_querysmasher_figures_1_and_2():
    workload = mdp.Workload(mdp.Domain({"a": 2, "b": 3}), mdp.dense([[0, 1, 1, 0, 0, 1]], ["a", "b"]))
    split = split_workload(workload)
    pieces = Pieces(split, uniform_weights(split))
    for kept, printed in (
        ((False, False), [1 / 2]),
        ((True, False), [1 / 6, -1 / 6]),
        ((False, True), [-1 / 2, 0, 1 / 2]),
        ((True, True), [-1 / 6, 1 / 3, -1 / 6, 1 / 6, -1 / 3, 1 / 6]),
    ):
        assert pieces.explicit_rows(0, kept).ravel() == pytest.approx(printed, abs=1e-12)
