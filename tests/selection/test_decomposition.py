"""The decomposition against dense brute force, its gradient, its caching, and inputs that break others."""

from fractions import Fraction

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import PrivacyError, WorkloadError
from matrixdp.measure.calibration import calibrate, plan_cost
from matrixdp.noise import GAUSSIAN, Cost
from matrixdp.selection.auto import select
from matrixdp.selection.compose import weight_vectors as weights
from matrixdp.selection.compose.decomposition import select_by_decomposition
from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.problem.residuals import split_workload

SMALL = mdp.Domain({"a": 5, "b": 4, "c": ["x", "y", "z"], "d": 5})
MIXES = [
    [mdp.kway(2, {"categorical": "identity", "numeric": "prefix"})],
    [mdp.kway([0, 1, 2, 3], "range"), mdp.marginals(2)],
    [mdp.pairwise("affine")],
    [mdp.pairwise("abs", ["a", "b"]), mdp.kway(3, "prefix"), mdp.kway(1, "range")],
    [mdp.product(a="prefix", c="identity", weight=3.0), mdp.product(a="range", weights=np.arange(1.0, 16.0))],
]
MECHANISMS = ["dense", "residual", "querysmasher", "fourier"]


@pytest.mark.parametrize("entries", MIXES)
def test_gradient_by_finite_differences(entries):
    split = split_workload(mdp.Workload(SMALL, *entries))
    objective = weights.Objective(split, gap=1e-9, joint_gap=1e-9)
    rng = np.random.default_rng(0)

    def deviation(size, scale):
        noise = rng.normal(size=size)
        return scale * (noise - noise.mean()) / size

    at = [
        np.full(n, 1 / n) + free * deviation(n, 0.2) for n, free in zip(split.sizes, split.free, strict=True)
    ]
    step = [free * deviation(n, 0.5) for n, free in zip(split.sizes, split.free, strict=True)]
    _, gradient = objective(at)
    h = 1e-3
    ends = [objective([a + s * h * d for a, d in zip(at, step, strict=True)])[0] for s in (-1, 1)]
    slope = sum(float(g @ d) for g, d in zip(gradient, step, strict=True))
    assert (ends[1] - ends[0]) / (2 * h) == pytest.approx(slope, rel=1e-4)


def test_equal_sub_problems_are_solved_once(monkeypatch):
    calls = []
    solve = ConvexSolver.gram

    def counted(self, gram, *args):
        calls.append(gram.size)
        return solve(self, gram, *args)

    monkeypatch.setattr(ConvexSolver, "gram", counted)
    counts = []
    for attributes in (4, 12):
        calls.clear()
        domain = mdp.Domain({f"a{i}": 9 for i in range(attributes)})
        workload = mdp.Workload(domain, mdp.kway([1, 2, 3], "prefix"), mdp.pairwise("affine"))
        select_by_decomposition(workload, GAUSSIAN, "querysmasher", 1e-6)
        counts.append(len(calls))
    assert counts == [3, 3]  # one attribute alone, one pair, and the prefixes of three


def test_large_mixed_sums_have_a_strategy():
    domain = mdp.Domain({"a": 60, "b": 50})
    workload = mdp.Workload(domain, mdp.kway(2, "prefix"), mdp.marginals(2), mdp.pairwise("affine"))
    selection = select(workload, mechanism="residual", noise=GAUSSIAN)
    assert selection.weighted_squared_error == pytest.approx(selection.certificate.loss, rel=5e-3)


BREAKING = [
    ("a single total", [mdp.marginals(0)]),
    ("a total by name", [mdp.product(a="total")]),
    ("an attribute that is ignored", [mdp.product(a="prefix", c="total")]),
    ("two differences", [mdp.product(a={"matrix": [[1, -1, 0, 0, 0], [0, 1, -1, 0, 0]]})]),
    ("duplicates", [mdp.marginals(1), mdp.marginals(1), mdp.product(a="identity")]),
    ("a zero query among others", [mdp.product(a={"matrix": [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]})]),
    ("a constant dense query", [mdp.dense(np.ones((1, 15)), ["a", "c"])]),
    ("a tiny weight", [mdp.product(a="prefix", weight=1e-200), mdp.marginals(1)]),
    ("a huge weight", [mdp.product(a="prefix", weight=1e100)]),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("name", "entries"), BREAKING, ids=[name for name, _ in BREAKING])
def test_nothing_is_measured_without_noise(name, entries, mechanism):
    try:
        selection = select(mdp.Workload(SMALL, *entries), mechanism=mechanism, noise=GAUSSIAN)
    except (WorkloadError, PrivacyError):
        return
    allowed = Cost(Fraction(1, 3), GAUSSIAN)
    scales, cost = calibrate(selection.plan, allowed, 2**33)
    assert cost <= allowed
    assert cost == plan_cost(selection.plan, scales)
    total = Fraction(0)
    for part, scale in zip(selection.plan.parts, scales, strict=True):
        assert scale.exact > 0
        assert part.column_power_sum(2) >= 1
        total += Fraction(part.column_power_sum(2)) / scale.exact**2
    assert total <= cost.value <= total + Fraction(len(scales), 2**150)
    assert np.isfinite(selection.total_squared_error)
