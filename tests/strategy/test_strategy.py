import math
import subprocess
import sys
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.errors import SourceError

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
    assert len(nw.from_native(release.answers)) == workload.queries
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


def test_a_saved_strategy_measures_alike(strategy: mdp.Strategy, tmp_path):
    strategy.save(tmp_path / "s.mdp")
    again = mdp.Strategy.load(tmp_path / "s.mdp")
    budget = mdp.Budget(rho=0.3)
    assert again.rmse(budget) == pytest.approx(strategy.rmse(budget))
    first = strategy.measure(COLUMNS, budget, seed_not_private=1)
    second = again.measure(COLUMNS, budget, seed_not_private=1)
    for left, right in zip(first.measurement.values, second.measurement.values, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_strategy_is_checked_against_another_workload(strategy: mdp.Strategy):
    strategy.check_workload(mdp.Workload(DOMAIN, mdp.marginals([0, 1]), mdp.dense(np.eye(2), ["sex"])))


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
