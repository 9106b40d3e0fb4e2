"""Strategies in Python: from a table to a release, and of one's own, from matrices and parts."""

import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import matrixdp as mdp
from matrixdp.errors import SourceError
from matrixdp.noise import LAPLACE
from matrixdp.plans import Pooled

RECORDS = 500
COLUMNS: dict[str, list[Any]] = {
    "sex": ["female", "male", "male", "female", "other"] * (RECORDS // 5),
    "age": (np.arange(RECORDS) * 7 % 120).tolist(),
}
DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": range(115)})


@pytest.fixture(scope="module")
def workload() -> mdp.Workload:
    return mdp.Workload(DOMAIN, mdp.marginals(2), mdp.product(sex="identity", age="prefix"))


@pytest.fixture(scope="module")
def strategy(workload: mdp.Workload) -> mdp.Strategy:
    return mdp.select(workload)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_the_five_lines_work_on_every_table(make, workload: mdp.Workload, strategy: mdp.Strategy):
    table = make(COLUMNS)
    release = strategy.measure(table, mdp.Budget(rho=0.1)).reconstruct(workload)
    assert len(nw.from_arrow(release.answers, backend="pyarrow")) == workload.queries
    assert release.answers.to_pandas().shape == (460, 9)  # age_from and age_to among them
    assert pl.DataFrame(release.answers).height == 460
    asked = release.answer(mdp.product(age={"ranges": [[0, 17]]}))
    assert asked.column("age").to_pylist() == ["0-17"]
    inside = sum(s != "other" and a <= 17 for s, a in zip(COLUMNS["sex"], COLUMNS["age"], strict=True))
    assert abs(asked.column("estimate")[0].as_py() - inside) < 6 * asked.column("stddev")[0].as_py()


def test_paths_and_relations_are_tables_too(strategy: mdp.Strategy, tmp_path):
    pl.DataFrame(COLUMNS).write_parquet(tmp_path / "t.parquet")
    budget = mdp.Budget(rho=1)
    by_path = strategy.measure(tmp_path / "t.parquet", budget, seed_not_private=5).reconstruct()
    relation = duckdb.read_parquet(str(tmp_path / "t.parquet"))
    by_relation = strategy.measure(relation, budget, seed_not_private=5).reconstruct()
    assert by_path.answers.equals(by_relation.answers)


def test_out_of_domain_takes_what_a_specification_says(strategy: mdp.Strategy):
    rule = {"sex": {"other": "male"}, "age": {"other": 114}}
    measured = strategy.measure(COLUMNS, mdp.Budget(mu=50), out_of_domain=rule)
    total = measured.reconstruct().answer(mdp.marginals(0)).column("estimate")[0].as_py()
    assert abs(total - RECORDS) < 5


def test_replace_costs_less_than_two_records(workload: mdp.Workload, strategy: mdp.Strategy):
    replacing = mdp.select(workload, neighbours="replace")
    budget = mdp.Budget(rho=1, neighbours="replace")
    ratio = replacing.rmse(budget) / strategy.rmse(mdp.Budget(rho=1))
    assert ratio == pytest.approx(math.sqrt(2), rel=0.05)
    assert replacing.certificate.gap == pytest.approx(ratio**2 - 1, rel=0.01)
    assert replacing.certificate.scope.endswith("a replacement costs no less than a removal")
    assert "add_remove" in replacing.selection.reason
    release = replacing.measure(COLUMNS, budget).reconstruct()
    assert release.statement.neighbours == "replace"
    assert "replacing one record" in release.statement.text


def test_a_strategy_tells_its_error_before_any_data(strategy: mdp.Strategy):
    budget = mdp.Budget(mu=1)
    assert strategy.rmse(mdp.Budget(mu=2)) == pytest.approx(strategy.rmse(budget) / 2)
    assert strategy.max_stddev(budget) >= strategy.rmse(budget)
    assert strategy.certificate.loss > 0
    assert strategy.mechanism in ("dense", "residual")
    assert strategy.origin["mechanism"] == strategy.mechanism
    sexes = mdp.marginals([["sex"]])
    variance = strategy.covariance(sexes, 0, sexes, 0, budget)
    assert variance > 0
    assert variance == pytest.approx(strategy.covariance(sexes, 0, sexes, 0, mdp.Budget(mu=2)) * 4)


def test_noise_is_fresh_every_time(strategy: mdp.Strategy):
    budget = mdp.Budget(rho=1)
    first, second = (strategy.measure(COLUMNS, budget).reconstruct().answers for _ in range(2))
    assert not np.array_equal(first.column("estimate").to_numpy(), second.column("estimate").to_numpy())


def test_errors_do_not_quote_the_table(strategy: mdp.Strategy):
    with pytest.raises(SourceError) as raised:
        strategy.measure({"sex": ["a secret"], "years": [1]}, mdp.Budget(rho=1))
    assert "secret" not in str(raised.value)
    assert "age" in str(raised.value)


def test_every_public_name_is_there():
    assert sorted(mdp.__all__) == mdp.__all__
    assert len(mdp.__all__) > 40
    for name in mdp.__all__:
        assert getattr(mdp, name) is not None
        assert name in dir(mdp)
    with pytest.raises(AttributeError, match="nothing"):
        _ = mdp.nothing  # type: ignore[attr-defined]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_is_light():
    code = "import sys, matrixdp; print(sorted({'numpy', 'scipy', 'pyarrow', 'duckdb'} & set(sys.modules)))"
    assert run(code).strip() == "[]"


def test_select_is_the_function_whatever_was_imported_before():
    code = (
        "import matrixdp.selection.auto; from matrixdp.selection.selection import Selection; "
        "import matrixdp as mdp; from matrixdp import select; print(mdp.select.__module__, select.__module__)"
    )
    assert run(code).split() == ["matrixdp.strategy.strategy", "matrixdp.strategy.strategy"]


# Strategies of one's own.

OWN = mdp.Domain({"sex": ["female", "male"], "age": range(4)})
HALVES = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 1, 0]])
PREFIXES = mdp.Workload(OWN, mdp.product(age="prefix"))


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
    strategy = mdp.Strategy.from_matrix(OWN, "age", matrix, workload=PREFIXES)
    np.testing.assert_array_equal(entries_of(strategy), HALVES)


def test_decimals_are_measured_as_they_are_written():
    hundredths = np.array([[17, 0, 131, 0], [0, 23, 0, 29], [11, 0, 0, 0], [0, 0, 13, 1009]])
    strategy = mdp.Strategy.from_matrix(OWN, "age", hundredths / 100.0)
    np.testing.assert_array_equal(entries_of(strategy), hundredths)


def test_a_file_is_as_good_as_its_matrix(tmp_path: Path):
    np.save(tmp_path / "own.npy", HALVES)
    strategy = mdp.Strategy.from_matrix(OWN, ["age"], tmp_path / "own.npy", workload=PREFIXES)
    np.testing.assert_array_equal(entries_of(strategy), HALVES)


def test_columns_are_cells_in_the_order_of_the_attributes():
    by_age = mdp.Strategy.from_matrix(OWN, ["age", "sex"], np.diag(np.arange(1.0, 9.0)))
    found = np.diagonal(entries_of(by_age).reshape(8, 8)[:, [0, 4, 1, 5, 2, 6, 3, 7]])
    assert found.tolist() == list(range(1, 9))
    assert by_age.workload.queries == 8


def test_a_release_of_a_loaded_strategy_answers_without_bias(tmp_path: Path):
    parts = [{"product": {"age": {"matrix": HALVES}}, "share": 2}, mdp.marginals([["sex", "age"]])]
    workload = mdp.Workload(OWN, mdp.marginals([0, 1, 2]), mdp.product(age="range"))
    mdp.Strategy.from_parts(OWN, parts, workload=workload).save(tmp_path / "own.mdp")
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
    entries = [mdp.marginals([["sex"]]), mdp.marginals([["age"], ["sex", "age"]])]
    strategy = mdp.Strategy.from_parts(OWN, entries, shares=[1, 3])
    plan = strategy.selection.plan
    assert isinstance(plan, Pooled)
    assert [1 / part.variance for part in plan.parts] == pytest.approx([2 / 8, 3 / 8, 3 / 8])


def test_the_noise_with_narrower_intervals_is_taken():
    loose, tight = mdp.Budget(epsilon=1, delta=1e-9), mdp.Budget(epsilon=1)
    by_budget = mdp.Strategy.from_matrix(OWN, "age", np.eye(4), budget=loose)
    other = mdp.Strategy.from_matrix(OWN, "age", np.eye(4), noise="gaussian")
    assert by_budget.noise == "laplace"
    assert "% narrower intervals than gaussian noise" in by_budget.noise_reason
    assert by_budget.rmse(loose) < other.rmse(loose)
    assert mdp.Strategy.from_matrix(OWN, "age", np.eye(4), budget=tight).noise == "laplace"
    # of a larger sensitivity Laplace noise still has less error, but the bound for its intervals is wider
    tall = np.repeat(np.eye(4), 8, axis=0)
    close = mdp.Budget(epsilon=1, delta=1e-6)
    for objective in ("sum", "max"):
        rmse, given = {}, cast("Any", {"budget": close, "objective": objective})
        for noise in ("gaussian", "laplace", "auto"):
            rmse[noise] = mdp.Strategy.from_matrix(OWN, "age", tall, noise=noise, **given).rmse(close)
        taken = (
            "laplace" if objective == "sum" else "gaussian"
        )  # by the intervals of each answer, or the bound
        assert rmse["laplace"] < rmse["gaussian"]
        assert rmse["auto"] == rmse[taken]
        assert rmse["laplace"] * LAPLACE.largest_quantile(0.95) > 1.96 * rmse["gaussian"]
    most = mdp.Strategy.from_matrix(OWN, "age", np.eye(4), budget=loose, objective="max")
    assert most.noise == "laplace"
