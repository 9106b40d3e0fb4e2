"""Strategies that are given: integers as they are, errors of the dense matrices, and bounds that hold."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plans import Direct, Local, Pooled, Union, least_squares, pair
from matrixdp.selection.custom import certified, evaluate_given, exact_integers, given_part, given_plan
from matrixdp.testing import check_plan, dense_error, dense_gram, dense_measurement, dense_queries
from tests.limits import Override

DOMAIN = mdp.Domain({"age": 8, "sex": 2, "county": 4})
TREE = np.vstack([np.kron(np.eye(8 // width), np.ones(width)) for width in (8, 4, 2, 1)])
LEVELS = [mdp.product(age={"matrix": TREE[rows]}) for rows in (slice(1), slice(1, 3), slice(7, 15))]
RANGES = mdp.Workload(DOMAIN, mdp.product(age="range"))
MIXED = mdp.Workload(DOMAIN, mdp.marginals([["age"], ["county"], ["age", "sex"]]))
REAL = np.random.default_rng(0).normal(size=(9, 8))

CASES = {
    "one matrix": ([mdp.product(age={"matrix": TREE})], [1.0], RANGES, Direct, 1e-12),
    "levels": (LEVELS, [1.0, 2.5, 3.0], RANGES, Direct, 3e-5),
    "shares that are no fractions": (LEVELS, [1.0, math.pi, 3.0], RANGES, Direct, 2e-4),
    "real numbers": ([mdp.product(age={"matrix": REAL})], [1.0], RANGES, Direct, 1e-3),
    "real numbers beside whole ones": (
        [mdp.product(age={"matrix": REAL}), mdp.product(age="identity")],
        [1.0, 1.0],
        RANGES,
        Direct,
        1e-3,
    ),
    "marginals": ([mdp.marginals(2)], [1.0], mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2])), Pooled, 1e-12),
    "different attributes": (
        [
            mdp.product(age="prefix", sex="identity"),
            mdp.marginals([["county"]]),
            mdp.dense(np.tri(8)[:5], ["sex", "county"]),
        ],
        [1.0, 2.0, 3.0],
        MIXED,
        Direct,
        1e-3,
    ),
}


def groups_of(entries, shares):
    groups, each = [], []
    for entry, share in zip(entries, shares, strict=True):
        own = entry.expand(DOMAIN)
        groups += own
        each += [share / len(own)] * len(own)
    return groups, each


def dense_rows(groups, shares, noise):
    """The rows of all groups, each scaled to its share of the cost 1."""
    rows = []
    for group, share in zip(groups, shares, strict=True):
        own = dense_queries(group, DOMAIN)
        rows.append(own * (share / sum(shares)) ** (1 / noise.norm) / noise.column_norms(own).max())
    return np.vstack(rows)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_errors_are_those_of_the_dense_matrices(case, noise):
    entries, shares, workload, kind, rounding = CASES[case]
    groups, each = groups_of(entries, shares)
    selection = certified(evaluate_given(workload, groups, each, noise=noise))
    assert isinstance(selection.plan, kind)
    check_plan(selection.plan, workload)
    rows = dense_rows(groups, each, noise)
    if kind is Direct:  # what one matrix costs is the largest sum over a column, not the sum of largest ones
        rows /= noise.column_norms(rows).max()
    expected = noise.variance_factor * dense_error(dense_gram(workload), rows)
    assert selection.certificate.loss == pytest.approx(expected, rel=rounding)
    assert selection.certificate.loss == pytest.approx(selection.weighted_squared_error, rel=1e-12)
    assert 0 < selection.certificate.lower_bound <= selection.certificate.loss


def test_the_bound_is_met_by_what_is_optimal():
    cells = mdp.marginals([["age", "sex"]]).expand(DOMAIN)
    workload = mdp.Workload(DOMAIN, mdp.marginals([["age", "sex"]]))
    selection = certified(evaluate_given(workload, cells, [1.0], noise=GAUSSIAN))
    assert selection.certificate.gap < 1e-6
    assert isinstance(selection.plan.parts[0].blocks[0].matrix, IdentityMatrix)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 10, 60, 1000]), st.sampled_from(["whole", "decimal"]))
def test_fractions_become_the_same_matrix_of_integers(seed, denominator, written):
    rng = np.random.default_rng(seed)
    whole = rng.integers(-9, 10, (3, 4))
    whole[0, 0] = 1  # no common factor
    rows = np.asarray(whole * 2.0 if written == "whole" else whole / denominator, dtype=float)
    found = exact_integers(rows)
    np.testing.assert_array_equal(found, whole)


def test_numbers_are_kept_exactly_where_they_have_a_small_denominator():
    assert exact_integers(np.array([[0.1, 0.25]])).tolist() == [[2, 5]]
    assert exact_integers(np.array([[1.0, 2.0**40]])).tolist() == [[1, 2**40]]
    assert exact_integers(np.array([[0.0, 0.0]])).tolist() == [[0, 0]]
    assert exact_integers(np.array([[1e-9, 1.0]])) is None
    assert exact_integers(REAL) is None
    assert exact_integers(np.arange(1.0, 5001.0)[None, :] * math.pi) is None
    assert float(Fraction(repr(0.1))) == 0.1


def test_targets_and_the_largest_variance_have_bounds_too():
    groups, shares = groups_of([mdp.product(age={"matrix": TREE})], [1.0])
    largest = certified(evaluate_given(RANGES, groups, shares, noise=GAUSSIAN, objective="max"))
    assert largest.certificate.loss == pytest.approx(largest.max_variance)
    assert 0 < largest.certificate.lower_bound < largest.certificate.loss
    aimed = certified(evaluate_given(RANGES, groups, shares, noise=GAUSSIAN, targets={"age: range": 2.0}))
    assert aimed.certificate.loss == pytest.approx(largest.max_variance / 4.0)
    assert aimed.certificate.lower_bound == pytest.approx(largest.certificate.lower_bound / 4.0)
    assert (aimed.objective, aimed.targets) == ("max", {"age: range": 2.0})


def test_many_cells_are_a_union_or_answered_part_by_part(monkeypatch: pytest.MonkeyPatch, limits: Override):
    limits(MAX_STACKED_CELLS=7)

    def plan_of(*entries):
        return given_plan(DOMAIN, [given_part(entry.expand(DOMAIN)[0], 1.0) for entry in entries], GAUSSIAN)

    products = mdp.product(age="prefix", sex="identity"), mdp.product(age="identity", sex="identity")
    union = plan_of(*products)
    assert isinstance(union, Union)
    check_plan(union, RANGES)
    written_out = plan_of(products[0], mdp.dense(np.tri(16), ["age", "sex"]))
    monkeypatch.setattr(pair, "MAX_CELLS", 15)
    monkeypatch.setattr(least_squares, "MAX_COMMON", 1)
    for plan in (written_out, plan_of(*products)):
        assert isinstance(plan, Local)
        check_plan(plan, RANGES)


def test_a_total_and_a_table_of_pairs_are_parts_like_others():
    groups, shares = groups_of([mdp.marginals([0, 2], ["age", "sex"]), mdp.marginals([["age"]])], [1.0, 3.0])
    plan = given_plan(DOMAIN, [given_part(g, s) for g, s in zip(groups, shares, strict=True)], LAPLACE)
    assert isinstance(plan, Pooled)
    epsilons = [part.column_power_sum(1) / math.sqrt(part.variance / 2.0) for part in plan.parts]
    assert epsilons == pytest.approx([1 / 8, 1 / 8, 6 / 8])
    assert dense_measurement(plan.parts[0], DOMAIN).tolist() == [[1.0] * 64]


def test_totals_alone_are_measured_once_together():
    total = mdp.marginals(0)
    strategy = mdp.Strategy.from_parts(DOMAIN, [total, total], [1.0, 3.0], noise="laplace")
    assert strategy.selection.total_squared_error == pytest.approx(2 * 2.0)
    check_plan(strategy.selection.plan, strategy.workload)
