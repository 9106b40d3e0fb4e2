"""Strategies of one's own in Python: matrices of every kind, parts, saving and releases."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import matrixdp as mdp
from matrixdp.errors import (
    PrivacyError,
    SpecificationError,
    TooLargeError,
    UnsupportedQueryError,
    WorkloadError,
)
from matrixdp.noise import LAPLACE
from matrixdp.plan import Pooled
from matrixdp.strategy import strategy as given

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
    with pytest.raises(WorkloadError, match="shares: found 1 shares; expected 2, one for each part"):
        mdp.Strategy.from_parts(DOMAIN, entries, shares=[1])
    with pytest.raises(mdp.MatrixDPError, match=r"shares\[1\]: found 0; expected a number above 0"):
        mdp.Strategy.from_parts(DOMAIN, entries, shares=[1, 0])
    empty: list[object] = [[], entries[0], None]
    for none in empty:
        with pytest.raises(WorkloadError, match="expected a list of at least one entry"):
            mdp.Strategy.from_parts(DOMAIN, none)  # type: ignore[arg-type]
    with pytest.raises(mdp.MatrixDPError, match=r"parts\[0\]\.share: found 'half'"):
        mdp.Strategy.from_parts(DOMAIN, [{"marginals": 1, "share": "half"}])


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


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch):
    make = mdp.Strategy.from_matrix
    with pytest.raises(WorkloadError, match="matrix: found a matrix of 4 columns; expected 8, one for each"):
        make(DOMAIN, ["sex", "age"], HALVES)
    with pytest.raises(WorkloadError, match=r"matrix: found .*NaN or infinite \(row 2, column 3\)"):
        make(DOMAIN, "age", np.where(np.arange(16).reshape(4, 4) == 6, np.nan, HALVES))
    for wrong in (object(), [[1], [1, 2]], [["a"]]):
        with pytest.raises(WorkloadError, match="matrix: found"):
            make(DOMAIN, "age", wrong)
    with pytest.raises(WorkloadError, match=r"attributes.*'agee'.*did you mean 'age'"):
        make(DOMAIN, "agee", HALVES)
    with pytest.raises(WorkloadError, match="fractions that are too large together"):
        make(DOMAIN, "age", np.array([[Fraction(1, 3**40), Fraction(1), 0, 0]], dtype=object))
    with pytest.raises(UnsupportedQueryError, match="asks more of age"):
        make(DOMAIN, "age", HALVES[:2], workload=PREFIXES)
    with pytest.raises(WorkloadError, match="another domain than that of the strategy"):
        make(mdp.Domain({"age": range(4)}), "age", HALVES, workload=PREFIXES)
    with pytest.raises(WorkloadError, match="workload: found a str"):
        make(DOMAIN, "age", HALVES, workload="prefix")  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="budget: found a int"):
        make(DOMAIN, "age", HALVES, budget=1)  # type: ignore[arg-type]
    monkeypatch.setattr(given, "MAX_EXPLICIT_ENTRIES", 15)
    with pytest.raises(TooLargeError, match="matrix: 16 entries; the limit is 15"):
        make(DOMAIN, "age", scipy.sparse.csr_array(HALVES))


def test_errors_of_a_file_tell_the_line(tmp_path: Path):
    from matrixdp.specification import load_given

    file = tmp_path / "own.yaml"
    file.write_text("strategy:\n  - product: {age: identity}\n    share: 1\n  - marginal: 1\n")
    with pytest.raises(SpecificationError, match=r"strategy\[1\] \(line 4\).*did you mean 'marginals'"):
        load_given(file, PREFIXES)
    file.write_text("parts: []\n")
    with pytest.raises(SpecificationError, match="unknown key 'parts'"):
        load_given(file, PREFIXES)
    file.write_text("strategy: []\n")
    with pytest.raises(SpecificationError, match="a list of entries, each with a share"):
        load_given(file, PREFIXES)
