"""Every kind of plan: what is analysed is what is reconstructed, and pooled plans are least squares."""

import math
from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact import CenteredMatrix, DeficientMatrix, IdentityMatrix, IntegerMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE, NOISES
from matrixdp.plans import PLAN_KINDS, Block, Direct, Joint, Local, Part, Plan, Pooled, Rounds, Split, Union
from matrixdp.plans.split import residual_weights
from matrixdp.testing import check_plan, dense_measurement

DOMAIN = mdp.Domain({"a": 3, "b": 4, "c": 2})
SIZES = (3, 4, 2)
RNG = np.random.default_rng(7)
TALL = IntegerMatrix(np.vstack([5 * np.eye(4, dtype=np.int64), [[1, 1, 1, 1], [1, 2, 0, 0]]]))
PAIR = IntegerMatrix(RNG.integers(-3, 4, (12, 12)) + 20 * np.eye(12, dtype=np.int64))


def identity(attributes, variance):
    blocks = tuple(Block((name,), IdentityMatrix(DOMAIN[name].size)) for name in attributes)
    return Part(attributes, blocks, variance)


def at_unit_cost(kind, parts, noise, **own):
    """A plan of parts whose variances have the given proportions."""
    total = math.fsum(noise.share(part, part.variance) for part in parts) ** (1 if noise == GAUSSIAN else 2)
    return kind(DOMAIN, tuple(replace(part, variance=part.variance * total) for part in parts), noise, **own)


def plans(noise):
    tall = Part(("a", "b"), (Block(("b",), TALL), Block(("a",), IdentityMatrix(3))), 3.0)
    weighted = Part(
        ("b", "c"),
        (Block(("b",), TALL), Block(("c",), IdentityMatrix(2))),
        900.0,
        np.arange(1, 13, dtype=np.int64).reshape(6, 2),
    )
    total = Part((), (), 9.0)
    only_total = Part(("b",), (Block(("b",), DeficientMatrix(np.ones((1, 4), dtype=np.int64))),), 2.0)
    centered = Part(("a",), (Block(("a",), CenteredMatrix(3)),), 40.0)
    weights = {name: residual_weights(DOMAIN[name].size) for name in DOMAIN.names}
    pooled = [identity(names, v) for names, v in [(("a", "b"), 4.0), (("b", "c"), 7.0), (("a",), 5.0)]]
    local = [tall, weighted, total, identity(("a",), 11.0), only_total, identity(("a",), 2.0)]
    union = [tall, Part(("b", "c"), weighted.blocks, 4.0), total, only_total, identity(("a", "c"), 2.0)]
    joint = [
        identity(("a", "b"), 2.0),
        Part(("b", "c"), (Block(("b",), TALL), Block(("c",), IdentityMatrix(2))), 90.0),
    ]
    marks = {"parts": np.ones(2)}
    return {
        "direct": at_unit_cost(Direct, [tall], noise),
        "split": at_unit_cost(Split, [total, centered, identity(("b",), 2.0)], noise, weights=weights),
        "rounds": at_unit_cost(
            Rounds,
            [total, centered, identity(("b",), 2.0), replace(centered, variance=7.0), identity(("b",), 5.0)],
            noise,
            weights=weights,
        ),
        "pooled": at_unit_cost(Pooled, pooled, noise),
        "local": at_unit_cost(Local, local, noise),
        "union": at_unit_cost(Union, union, noise),
        "joint": at_unit_cost(Joint, joint, noise, weights=weights, whole=marks),
    }


WORKLOADS = {
    "direct": mdp.Workload(DOMAIN, mdp.product(a="prefix", b="range"), mdp.marginals([0, 1], ["a", "b"])),
    "split": mdp.Workload(DOMAIN, mdp.marginals([0, 1], ["a", "b"]), mdp.product(b="prefix")),
    "union": mdp.Workload(
        DOMAIN,
        mdp.product(a="prefix", b="range"),
        mdp.marginals([0, 1]),
        mdp.product(a="identity", c="identity", weights=np.arange(1.0, 7.0)),
        mdp.dense(RNG.integers(0, 2, (3, 8)), ["b", "c"]),
    ),
}


WORKLOADS["rounds"] = WORKLOADS["split"]
WORKLOADS |= dict.fromkeys(
    ("pooled", "local", "joint"),
    mdp.Workload(
        DOMAIN,
        mdp.product(a="prefix", b="range"),
        mdp.marginals([0, 1]),
        mdp.dense(np.vstack([RNG.integers(0, 2, (3, 8)), np.zeros((1, 8))]), ["b", "c"]),
    ),
)

#: Other tests add kinds of their own.
KINDS = [kind for kind, plan in PLAN_KINDS.items() if plan.__module__.startswith("matrixdp.")]


def test_no_kind_is_forgotten():
    assert set(plans(GAUSSIAN)) == set(WORKLOADS) == set(KINDS)


@pytest.mark.parametrize("noise", NOISES.values(), ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_plans_keep_their_contract(kind, noise):
    check_plan(plans(noise)[kind], WORKLOADS[kind])


@pytest.mark.parametrize("noise", NOISES.values(), ids=str)
def test_attributes_that_stay_whole_keep_the_contract(noise):
    weights = {name: np.zeros(DOMAIN[name].size) for name in DOMAIN.names}
    parts = [identity(("a",), 3.0), identity(("a", "b"), 5.0)]
    plan = at_unit_cost(Split, parts, noise, weights=weights)
    check_plan(plan, mdp.Workload(DOMAIN, mdp.product(a="prefix"), mdp.product(a="range", b="prefix")))


def twice(terms):
    return {place: 2 * own for place, own in terms.items()}


def unsigned(terms):
    return {place: np.abs(own) for place, own in terms.items()}


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("variances", lambda right: lambda group: 1.01 * right(group), "variances"),
        ("covariance", lambda right: lambda *pair: right(*pair) + 1.0, "covariance"),
        ("noise_terms", lambda right: lambda *asked: twice(right(*asked)), "noise_terms"),
        ("noise_terms", lambda right: lambda *asked: unsigned(right(*asked)), "noise_terms"),
        ("group", lambda right: lambda group: replace(right(group), weighted=1.0), "sums"),
        ("estimates", lambda right: lambda values: right([0.99 * value for value in values]), "biased"),
        ("check_support", lambda _right: lambda _group: None, "biased"),
    ],
)
def test_wrong_analyses_are_found(monkeypatch, name, wrong, message):
    plan = plans(GAUSSIAN)["split"]
    monkeypatch.setattr(plan.analysis, name, wrong(getattr(plan.analysis, name)))
    with pytest.raises(AssertionError, match=message):
        check_plan(plan, WORKLOADS["split"])


def test_marginals_of_local_and_pooled_plans():
    for kind in ("pooled", "local", "union"):
        plan = plans(GAUSSIAN)[kind]
        truth = RNG.integers(0, 9, SIZES)
        values = [dense_measurement(part, DOMAIN) @ truth.ravel() for part in plan.parts]
        estimates = plan.analysis.estimates(values)
        np.testing.assert_allclose(estimates.marginal(("a", "b")), truth.sum(axis=2), atol=1e-10)
        np.testing.assert_allclose(estimates.marginal(("a",)), truth.sum(axis=(1, 2)), atol=1e-10)


def test_two_kinds_of_plans_have_two_names():
    with pytest.raises(TypeError, match="'direct'"):

        class Other(Plan, kind="direct"):
            pass


def test_sensitivities_with_multipliers_are_exact():
    first = np.array([[11998, 10261], [12205, 2728]])
    second = np.array([[14317, 14964], [14481, 28803]])
    multipliers = np.array([[3850, 1416], [2405, 2006]])
    blocks = (Block(("a",), IntegerMatrix(first)), Block(("b",), IntegerMatrix(second)))
    measured = (
        np.kron(first.astype(object), second.astype(object)) * multipliers.ravel().astype(object)[:, None]
    )
    part = Part(("a", "b"), blocks, 1.0, multipliers)
    assert part.column_power_sum(2) == max((measured * measured).sum(axis=0))
    assert part.column_power_sum(1) == max(abs(measured).sum(axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_costs_are_those_of_the_dense_matrices(kind):
    rows = [dense_measurement(part, DOMAIN) for part in plans(GAUSSIAN)[kind].parts]
    for part, dense in zip(plans(GAUSSIAN)[kind].parts, rows, strict=True):
        assert part.column_power_sum(2) == int(np.rint((dense**2).sum(axis=0).max()))
        assert part.column_power_sum(1) == int(np.rint(np.abs(dense).sum(axis=0).max()))
    gaussian, laplace = plans(GAUSSIAN)[kind], plans(LAPLACE)[kind]
    assert gaussian.cost == pytest.approx(sum(p.column_power_sum(2) / p.variance for p in gaussian.parts))
    scales = [math.sqrt(p.variance / 2) for p in laplace.parts]
    epsilon = sum(p.column_power_sum(1) / b for p, b in zip(laplace.parts, scales, strict=True))
    assert laplace.cost == pytest.approx(epsilon**2)
    assert gaussian.cost == pytest.approx(1.0)
    assert laplace.cost == pytest.approx(1.0)
    louder = tuple(replace(part, variance=4.0 * part.variance) for part in laplace.parts)
    assert replace(laplace, parts=louder).cost == pytest.approx(0.25)


def test_marginals_whose_parts_list_their_attributes_otherwise_have_their_own_errors():
    domain, centered = mdp.Domain(dict.fromkeys("bcdef", 3)), CenteredMatrix(3)
    joint = IntegerMatrix(
        np.vstack([np.kron([[1, -1, 0], [0, 5, -5]], [[3, -3, 0], [0, 1, -1]]), np.eye(9)]).astype(int)
    )
    parts = [
        Part(("b", "c", "d"), (Block(("d",), centered), Block(("b", "c"), joint)), 1e5),
        Part(("d", "e", "f"), (Block(("d",), centered), Block(("e", "f"), joint)), 1e5),
    ]
    weights = {name: np.full(3, 1 / 3) for name in domain.names}
    for order in (parts, parts[::-1]):
        analysis = Split(domain, tuple(order), GAUSSIAN, weights).analysis
        for names in ("bcd", "def"):
            sets = (np.array([[1.0, -1.0, 0.0]]), np.array([[0.0, 1.0, -1.0]]), np.array([[1.0, 0.0, -1.0]]))
            group = mdp.queries.ProductGroup(
                "x", tuple(names), tuple(map(mdp.queries.Matrix, sets)), (3, 3, 3)
            )
            assert analysis.group(group).weighted == pytest.approx(analysis.variances(group).sum(), rel=1e-9)
