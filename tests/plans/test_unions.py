"""Unions of products: their answers are the least squares of all that was measured."""

import math
from itertools import combinations

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact import DeficientMatrix, IdentityMatrix, IntegerMatrix
from matrixdp.language import Entry
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plans import Block, Local, Part, Union
from matrixdp.plans.least_squares import Schur
from matrixdp.plans.pair import Pair
from matrixdp.testing import check_plan, dense_measurement, dense_queries

SIZES = {"a": 3, "b": 4, "c": 2, "d": 2, "one": 1}
DOMAIN = mdp.Domain({name: range(size) for name, size in SIZES.items()})
RNG = np.random.default_rng(11)
PREFIX = IntegerMatrix(np.tril(np.ones((4, 4), dtype=np.int64)))
TALL = IntegerMatrix(RNG.integers(0, 3, (6, 4)) + 4 * np.eye(6, 4, dtype=np.int64))
#: Their values are measured alike, with and without a total that is measured apart.
ALIKE = IntegerMatrix(7 * np.eye(4, dtype=np.int64) - 1)
TOTALS = IntegerMatrix(np.vstack([np.full((1, 4), 3), 2 * np.eye(4, dtype=np.int64)]))
#: Of rank 3, the total among what it determines.
HALVES = DeficientMatrix(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]]))
#: Says of an attribute no more than the total.
SUM = DeficientMatrix(np.ones((1, 4), dtype=np.int64))
#: Of rank 2, without the total.
ENDS = DeficientMatrix(np.array([[1, 0, 0, 0], [0, 0, 0, 1]]))
ENTRIES = np.array([[64, 64, 0, 0], [0, 0, 64, 64], [1, -1, 0, 0], [0, 0, 1, -1]])
#: Measures two differences, but so weakly that nobody may ask for them.
WEAK = IntegerMatrix(ENTRIES, np.array([[1.0, -1, 0, 0], [0, 0, 1, -1]]) / math.sqrt(2))


def part(variance, **matrices):
    names = DOMAIN.sort(matrices)
    found = {name: own or IdentityMatrix(SIZES[name]) for name, own in matrices.items()}
    return Part(names, tuple(Block((name,), found[name]) for name in reversed(names)), variance)


def union(parts, noise=GAUSSIAN, kind=Union):
    total = sum(noise.share(own, own.variance) for own in parts) ** (2 // noise.norm)
    return kind(DOMAIN, tuple(Part(p.attributes, p.blocks, p.variance * total) for p in parts), noise)


PAIRS = {
    "one marginal twice": [part(3.0, a=None, b=PREFIX), part(5.0, a=None, b=TALL)],
    "overlap": [part(3.0, a=None, b=PREFIX), part(50.0, b=TALL, c=None)],
    "nothing in common but the total": [part(3.0, a=None), part(2.0, b=PREFIX, c=None)],
    "one within the other": [part(3.0, a=None, b=PREFIX, c=None), part(1.0, b=None)],
    "the total": [part(3.0, a=None, b=PREFIX), part(1.0)],
    "deficient": [part(3.0, a=None, b=HALVES), part(2.0, b=PREFIX, c=None)],
    "without the total": [part(3.0, a=None, b=ENDS), part(2.0, a=None, c=None)],
    "both without the total": [part(3.0, a=None, b=ENDS), part(2.0, b=ENDS, c=None)],
    "weak directions": [part(3.0, a=None, b=WEAK), part(2.0, b=PREFIX, c=None)],
    "a value alone": [part(3.0, a=None, one=None), part(2.0, b=PREFIX, one=None)],
}
MANY = {
    "ring": [part(3.0, a=None, b=PREFIX), part(50.0, b=TALL, c=None), part(2.0, a=None, c=None)],
    "star": [part(1.0, b=PREFIX), *(part(2.0, b=None, **{n: None}) for n in "acd"), part(9.0)],
    "nested": [part(1.0, a=None, b=PREFIX, c=None), part(2.0, a=None, b=None), part(4.0, b=TALL)],
    "deficient": [part(3.0, a=None, b=HALVES), part(2.0, b=HALVES, c=None), part(2.0, a=None)],
    "one deficient": [part(3.0, a=None, b=HALVES), part(2.0, b=PREFIX, c=None), part(2.0, c=None)],
    "weak directions": [part(3.0, a=None, b=WEAK), part(2.0, b=WEAK, c=None), part(2.0, a=None)],
    "a value alone": [part(3.0, a=None, one=None), part(2.0, b=PREFIX, one=None), part(1.0, one=None)],
    "values alike": [part(3.0, a=None, b=ALIKE), part(2.0, b=TOTALS, c=None), part(5.0, b=None, d=None)],
    "no contrasts": [part(3.0, a=None, b=SUM), part(2.0, b=PREFIX, c=None), part(2.0, a=None, b=TALL)],
    "three alike": [part(3.0, a=None, b=own) for own in (PREFIX, TALL, None)],
}
CASES = {**PAIRS, **{f"many: {name}": parts for name, parts in MANY.items()}}


def workload_of(plan):
    """Everything up to two attributes that some part determines, in several forms."""
    entries: list[Entry] = []
    for names in [names for k in range(3) for names in combinations(SIZES, k)]:
        sizes = [SIZES[name] for name in names]
        forms = ("identity", "prefix", {"ranges": [[0, 0]]})
        entries += [mdp.product(dict.fromkeys(names, form), weight=2.0) for form in forms]
        if names:
            weights = np.arange(1.0, 1.0 + math.prod(sizes))
            entries.append(mdp.product(dict.fromkeys(names, "identity"), weights=weights))
            rows = np.vstack([np.ones(math.prod(sizes)), np.arange(math.prod(sizes)) % 2])
            entries += [mdp.dense(row[None], list(names), weights=[3.0]) for row in rows]
    found = []
    for entry in entries:
        [group] = entry.expand(DOMAIN)
        try:
            plan.analysis.check_support(group)
        except UnsupportedQueryError:
            continue
        found.append(entry)
    return mdp.Workload(DOMAIN, *found)


def dense_covariance(plan, queries):
    rows = [dense_measurement(own, DOMAIN) / math.sqrt(own.variance) for own in plan.parts]
    return queries @ np.linalg.pinv(sum(own.T @ own for own in rows), rcond=1e-12) @ queries.T


@pytest.fixture(params=[2, 4], ids=["one unknown", "every value"])
def few_values(request, monkeypatch):
    """Attributes of more values count as one unknown where all parts measure them value by value."""
    monkeypatch.setattr("matrixdp.plans.least_squares.FEW_VALUES", request.param)


@pytest.mark.usefixtures("few_values")
@pytest.mark.parametrize("name", CASES)
def test_answers_are_the_least_squares_of_everything(name):
    plan = union(CASES[name])
    assert isinstance(plan.analysis.combination, Pair if name in PAIRS else Schur)
    workload = workload_of(plan)
    check_plan(plan, workload)
    queries = np.vstack([dense_queries(group, DOMAIN) for group in workload])
    expected = np.diagonal(dense_covariance(plan, queries))
    found = np.concatenate([plan.analysis.variances(group) for group in workload])
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    average = union(CASES[name], kind=Local)
    assert all(
        (plan.analysis.group(g).total <= average.analysis.group(g).total * (1 + 1e-9)) for g in workload
    )


@pytest.mark.usefixtures("few_values")
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize(
    "name", ["overlap", "deficient", "many: ring", "many: deficient", "many: values alike"]
)
def test_losses_and_gradients_are_those_of_the_plan(name, noise):
    plan = union(CASES[name], noise)
    workload = workload_of(plan)
    evaluate = plan.analysis.loss(workload)
    precisions = np.array([1.0 / own.variance for own in plan.parts])
    loss, gradient = evaluate(precisions)
    assert loss == pytest.approx(math.fsum(plan.analysis.group(g).weighted for g in workload), rel=1e-9)
    for place, slope in enumerate(gradient):
        step = 1e-5 * precisions * (np.arange(len(precisions)) == place)
        difference = evaluate(precisions + step)[0] - evaluate(precisions - step)[0]
        assert difference / (2.0 * step[place]) == pytest.approx(slope, rel=1e-6)


def test_attributes_of_many_values_need_no_matrix_over_them():
    """Of which every value would be an unknown: 100,000 of them."""
    domain = mdp.Domain({"a": 100_000, "b": 4, "c": 2})
    a, b, c = (Block((name,), IdentityMatrix(domain[name].size)) for name in "abc")
    prefix = Block(("b",), PREFIX)
    parts = [(("a", "b"), (a, prefix), 3.0), (("a", "c"), (a, c), 2.0), (("b", "c"), (b, c), 5.0)]
    plan = Union(domain, tuple(Part(names, blocks, 3.0 * own) for names, blocks, own in parts), GAUSSIAN)
    workload = mdp.Workload(domain, mdp.marginals([0, 1]), mdp.product(a="identity", b="prefix"))
    analysis = plan.analysed([own.variance for own in plan.parts])
    expected = math.fsum(analysis.group(group).weighted for group in workload)
    precisions = np.array([1.0 / own.variance for own in plan.parts])
    assert analysis.loss(workload)(precisions)[0] == pytest.approx(expected)
    # every value of a, from the last prefix of b, and from a sum over c; b and c say little of it
    [values] = mdp.product(a="identity").expand(domain)
    np.testing.assert_allclose(analysis.variances(values), 1.0 / (1.0 / 9.0 + 1.0 / 12.0), rtol=1e-4)
