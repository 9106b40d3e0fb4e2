"""One clean table of a group, found by its title; and several tables as one."""

from datetime import date
from typing import get_type_hints

import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.answers.table import joined

DOMAIN = mdp.Domain(
    {"sex": ["female", "male"], "age": {"min": 0, "max": 3}, "size": ["estimate", "male", "male_lower"]}
)


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    workload = mdp.Workload(
        DOMAIN,
        mdp.marginals([0, 1, 2]),
        mdp.product(sex="identity", age="prefix"),
        mdp.dense(np.eye(2), ["sex"], name="d"),
        mdp.product(sex="identity", age={"sets": [[0, 2]]}, size="total"),
    )
    table = {"sex": ["female", "male"], "age": [0, 3], "size": ["male", "male"]}
    return mdp.select(workload, mechanism="residual").measure(table, mdp.Budget(mu=1)).reconstruct()


def test_a_table_has_the_rows_of_its_group_and_its_own_columns(release: mdp.Release) -> None:
    table = release.table("AGE cdf by sex")
    figures = ["estimate", "stddev", "lower", "upper"]
    assert table.column_names == ["sex", "age", "age_from", "age_to", *figures]
    rows = [row for row in release.answers.to_pylist() if row["group"] == "sex, age: identity x prefix"]
    assert table.to_pylist() == [{name: row[name] for name in table.column_names} for row in rows]
    assert release.table("total").column_names == figures
    assert release.table("d").column_names == ["query", *figures]


def test_what_is_no_table_is_refused(release: mdp.Release) -> None:
    with pytest.raises(mdp.WorkloadError, match="did you mean 'sex'"):
        release.table("sexes")


def test_tables_are_declared_as_what_they_are() -> None:
    answers = vars(mdp.Release)["answers"].func
    for asked in (mdp.Release.answer, mdp.Release.sql, mdp.Release.table, answers):
        assert get_type_hints(asked)["return"] is mdp.ResultTable


def test_a_release_that_was_saved_reconstructs(release: mdp.Release, tmp_path) -> None:
    again = mdp.Release.load(release.save(tmp_path / "out"), confidence=0.5)
    assert again.confidence == 0.5
    assert again.table("sex").column("estimate").equals(release.table("sex").column("estimate"))
    other = again.reconstruct(mdp.Workload(DOMAIN, mdp.product(age="range")), confidence=0.9, expect=7)
    assert (other.confidence, other.expect, other.answers.num_rows) == (0.9, 7, 10)
    assert other.size.expect == 7
    assert other.reconstruct().expect == 7
    assert mdp.load_release(other.save(tmp_path / "other")).answers.equals(other.answers)
    with pytest.raises(mdp.WorkloadError, match="another domain"):
        again.reconstruct(mdp.Workload(mdp.Domain({"x": 2}), mdp.marginals(1)))


def test_columns_of_several_types_become_text_and_numbers_numbers() -> None:
    days = pa.table({"estimate": pa.array([date(2013, 1, 31)]), "rank": [1]})
    codes = pa.table({"sex": pa.array(["female"]).dictionary_encode(), "estimate": [0.5], "rank": [2.5]})
    both = joined([("days", days), ("shares", codes)], "statistic")
    assert both.to_pylist() == [
        {"statistic": "days", "rank": 1.0, "sex": None, "estimate": "2013-01-31"},
        {"statistic": "shares", "rank": 2.5, "sex": "female", "estimate": "0.5"},
    ]


def test_an_attribute_may_be_called_as_the_column_of_names() -> None:
    table = pa.table({"statistic": ["x"], "warning": pa.nulls(1), "lower": [1.0]})
    names = ["statistic_name", "statistic", "lower", "warning"]
    assert joined([("a", table)], "statistic").column_names == names
    assert joined([], "statistic").column_names == ["statistic"]
