"""Strategies of one's own in Python: matrices of every kind, parts, saving and releases."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import matrixdp as mdp
from matrixdp.noise import LAPLACE
from matrixdp.plan import Pooled

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": range(4)})
HALVES = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 1, 0]])
PREFIXES = mdp.Workload(DOMAIN, mdp.product(age="prefix"))
BUDGET = mdp.Budget(mu=1)


def entries_of(strategy):
    return strategy.selection.plan.parts[0].blocks[0].matrix.entries


@pytest.mark.parametrize(
    "matrix",
    [
        HALVES,
        HALVES / 3.0,
        HALVES.tolist(),
        scipy.sparse.csr_array(HALVES),
        np.array([[Fraction(int(x), 7) for x in row] for row in HALVES]),
        [[Fraction(int(x), 3**20) for x in row] for row in HALVES],
    ],
    ids=["integers", "thirds", "lists", "sparse", "fractions", "large denominators"],
)
def test_a_matrix_of_any_kind_is_measured_as_the_same_integers(matrix):
    strategy = mdp.Strategy.from_matrix(DOMAIN, "age", matrix, workload=PREFIXES)
    np.testing.assert_array_equal(entries_of(strategy), HALVES)


def test_decimals_are_measured_as_they_are_written():
    hundredths = np.array([[17, 0, 131, 0], [0, 23, 0, 29], [11, 0, 0, 0], [0, 0, 13, 1009]])
    strategy = mdp.Strategy.from_matrix(DOMAIN, "age", hundredths / 100.0)
    np.testing.assert_array_equal(entries_of(strategy), hundredths)


def test_a_file_is_as_good_as_its_matrix(tmp_path: Path):
    np.save(tmp_path / "own.npy", HALVES)
    strategy = mdp.Strategy.from_matrix(DOMAIN, ["age"], tmp_path / "own.npy", workload=PREFIXES)
    np.testing.assert_array_equal(entries_of(strategy), HALVES)


def test_columns_are_cells_in_the_order_of_the_attributes():
    rows = np.zeros((8, 8))
    rows[np.arange(8), np.arange(8)] = np.arange(1, 9)
    by_age = mdp.Strategy.from_matrix(DOMAIN, ["age", "sex"], rows)
    assert np.diagonal(entries_of(by_age).reshape(8, 8)[:, [0, 4, 1, 5, 2, 6, 3, 7]]).tolist() == list(
        range(1, 9)
    )
    assert by_age.workload.queries == 8


def test_a_release_of_a_loaded_strategy_answers_without_bias(tmp_path: Path):
    parts = [{"product": {"age": {"matrix": HALVES}}, "share": 2}, mdp.marginals([["sex", "age"]])]
    workload = mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2]), mdp.product(age="range"))
    mdp.Strategy.from_parts(DOMAIN, parts, workload=workload).save(tmp_path / "own.mdp")
    strategy = mdp.Strategy.load(tmp_path / "own.mdp")
    assert (strategy.mechanism, strategy.noise) == ("given", "gaussian")
    assert strategy.certificate.gap > 0
    table = {"sex": ["female", "male"] * 100, "age": np.arange(200) % 4}
    budget = mdp.Budget(mu=1000)
    release = strategy.measure(table, budget, seed_not_private=3).reconstruct()
    totals = [row["estimate"] for row in release.answers.to_pylist() if row["group"] == "sex"]
    assert totals == pytest.approx([100.0, 100.0], abs=6 * strategy.max_stddev(budget))
    assert "given" in str(strategy.origin)


def test_parts_share_the_cost_as_they_are_told():
    entries = [mdp.marginals([["sex"]]), mdp.marginals([0, 1])]  # the second of three groups
    strategy = mdp.Strategy.from_parts(
        DOMAIN, [entries[0], mdp.marginals([["age"], ["sex", "age"]])], shares=[1, 3]
    )
    plan = strategy.selection.plan
    assert isinstance(plan, Pooled)
    assert [1 / part.variance for part in plan.parts] == pytest.approx([2 / 8, 3 / 8, 3 / 8])


def test_the_noise_with_narrower_intervals_is_taken():
    loose, tight = mdp.Budget(epsilon=1, delta=1e-9), mdp.Budget(epsilon=1)
    by_budget = mdp.Strategy.from_matrix(DOMAIN, "age", np.eye(4), budget=loose)
    other = mdp.Strategy.from_matrix(DOMAIN, "age", np.eye(4), noise="gaussian")
    assert by_budget.noise == "laplace"
    assert "% narrower intervals than gaussian noise" in by_budget.noise_reason
    assert by_budget.rmse(loose) < other.rmse(loose)
    assert mdp.Strategy.from_matrix(DOMAIN, "age", np.eye(4), budget=tight).noise == "laplace"
    # of a larger sensitivity Laplace noise still has less error, but its intervals are wider
    tall = np.repeat(np.eye(4), 8, axis=0)
    close = mdp.Budget(epsilon=1, delta=1e-6)
    for objective in ("sum", "max"):
        rmse = {}
        for noise in ("gaussian", "laplace", "auto"):
            strategy = mdp.Strategy.from_matrix(
                DOMAIN, "age", tall, budget=close, noise=noise, objective=objective
            )
            rmse[noise] = strategy.rmse(close)
        assert rmse["laplace"] < rmse["gaussian"] == rmse["auto"]
        assert rmse["laplace"] * LAPLACE.largest_quantile(0.95) > 1.96 * rmse["gaussian"]
    most = mdp.Strategy.from_matrix(DOMAIN, "age", np.eye(4), budget=loose, objective="max")
    assert most.noise == "laplace"
