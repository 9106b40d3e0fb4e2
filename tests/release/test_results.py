"""Answers in the shape of a statement's result, and what a refusal says."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.answers.table import FIGURES
from matrixdp.errors import UnsupportedQueryError
from matrixdp.queries import Entry

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 9}, "code": ["a", "b", "c"]})
RANDOM = np.random.default_rng(5)
VALUES: dict[str, list[str] | range] = {"sex": ["female", "male"], "age": range(10), "code": ["a", "b", "c"]}
TABLE = pd.DataFrame({name: RANDOM.choice(values, 400) for name, values in VALUES.items()})
STATEMENTS = {
    "aliases": "SELECT code AS c, sex, COUNT(*) AS n FROM t WHERE age >= 3 GROUP BY ALL",
    "a count before its key": "SELECT COUNT(*) AS n, sex FROM t GROUP BY sex",
    "two counts": "SELECT sex, COUNT(*) AS n, COUNT(*) FILTER (WHERE age < 5) AS young FROM t GROUP BY sex",
    "rolled up": "SELECT sex, code, COUNT(*) AS n FROM t GROUP BY ROLLUP (sex, code)",
    "a bucket": "SELECT CASE WHEN age < 5 THEN 'young' ELSE 'old' END AS w, COUNT(*) AS n FROM t GROUP BY 1",
    "a total": "SELECT COUNT(*) AS n FROM t WHERE sex = 'male' OR age = 3",
}


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    workload = mdp.Workload(DOMAIN, mdp.marginals([["sex", "age", "code"]]))
    return mdp.select(workload).measure(TABLE, mdp.Budget(mu=1e4)).reconstruct()


@pytest.fixture(scope="module")
def narrow() -> mdp.Release:
    """What was measured of sex and age, of age and code, and of no other pair."""
    workload = mdp.Workload(DOMAIN, mdp.marginals([["sex", "age"], ["age", "code"]]))
    return mdp.select(workload).measure(TABLE, mdp.Budget(mu=1e4)).reconstruct()


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_result_is_what_the_engine_says(release: mdp.Release, name: str) -> None:
    """With next to no noise every row and count is DuckDB's own, under the same names."""
    t = TABLE  # noqa: F841 - the statement's table
    truth = duckdb.sql(STATEMENTS[name]).to_arrow_table()
    found = release.sql(STATEMENTS[name])
    endings = ("_stddev", "_lower", "_upper")
    assert [column for column in found.column_names if not column.endswith(endings)] == truth.column_names
    counts = [column for column in truth.column_names if f"{column}_stddev" in found.column_names]
    keys = [column for column in truth.column_names if column not in counts]

    def rows(table: object) -> set[tuple[object, ...]]:
        listed = table.to_pylist()  # type: ignore[attr-defined]
        return {(*(row[k] for k in keys), *(round(row[c]) for c in counts)) for row in listed}

    assert counts
    assert rows(found) == rows(truth)
    for count in counts:
        lower, value, upper = (found[f"{count}{end}"].to_numpy() for end in ("_lower", "", "_upper"))
        assert (lower < value).all()
        assert (value < upper).all()
        np.testing.assert_allclose(upper - value, 1.959964 * found[f"{count}_stddev"].to_numpy(), rtol=1e-5)


def test_a_result_has_the_figures_of_the_same_query(release: mdp.Release) -> None:
    """Estimates and errors are those of the entry that asks the same."""
    rows = release.sql("SELECT sex, COUNT(*) AS n FROM t WHERE age BETWEEN 2 AND 4 GROUP BY sex")
    same = release.answer(mdp.product(sex="identity", age={"ranges": [[2, 4]]}))
    for own, other in zip(("n", "n_stddev", "n_lower", "n_upper"), FIGURES, strict=True):
        np.testing.assert_allclose(rows[own].to_numpy(), same[other].to_numpy(), rtol=1e-9)


def test_what_no_record_fits_is_zero_without_error(release: mdp.Release) -> None:
    asked = "SELECT sex, COUNT(*) FILTER (WHERE sex = 'male') AS men, COUNT(*) AS n FROM t GROUP BY sex"
    women, men = release.sql(asked).to_pylist()
    assert [women[name] for name in ("men", "men_stddev", "men_lower", "men_upper")] == [0, 0, 0, 0]
    assert women["n_stddev"] > 0
    assert men["men"] == pytest.approx(men["n"])


def test_names_that_stand_twice(release: mdp.Release) -> None:
    found = release.sql("SELECT sex AS n, COUNT(*) AS n, COUNT(*) AS n_stddev FROM t GROUP BY sex")
    assert found.column_names[:4] == ["n", "n_1", "n_stddev", "n_lower"]
    assert len(set(found.column_names)) == len(found.column_names)


def test_laplace_intervals_are_those_of_each_query() -> None:
    """Where multipliers differ from query to query, each row has its own."""
    workload = mdp.Workload(DOMAIN, mdp.marginals([["sex", "code"]]))
    release = mdp.select(workload, noise="laplace").measure(TABLE, mdp.Budget(epsilon=1)).reconstruct()
    rows = release.sql("SELECT code, COUNT(*) AS n FROM t GROUP BY code")
    same = release.answer(mdp.marginals([["code"]]))
    np.testing.assert_allclose(rows["n_lower"].to_numpy(), same["lower"].to_numpy(), rtol=1e-9)


APART = "the same without sex or without code"
REFUSED: list[tuple[Entry, str, Entry]] = [
    (mdp.marginals([["sex", "code"]]), APART, mdp.marginals(1)),
    (mdp.marginals([["sex", "age", "code"]]), APART, mdp.marginals([["age", "code"], ["sex", "age"]])),
    (
        mdp.cells([[{"sex": "male"}, {"code": "a"}]]),
        "what the workload asks, such as 'sex, age'",
        mdp.marginals([["sex", "age"]]),
    ),
]


@pytest.mark.parametrize(("entry", "works", "instead"), REFUSED)
def test_a_refusal_says_what_works_and_what_to_add(
    narrow: mdp.Release, release: mdp.Release, entry: Entry, works: str, instead: Entry
) -> None:
    """What is named as working works, and with what is to be added the query is answered."""
    with pytest.raises(UnsupportedQueryError, match="was not measured") as caught:
        narrow.answer(entry)
    assert f"What works now: {works}. To have it in a later release, add `marginals: [[" in str(caught.value)
    assert narrow.answer(instead).num_rows
    assert release.answer(entry).num_rows


def test_statements_and_workloads_are_refused_in_the_same_words(narrow: mdp.Release) -> None:
    statement = "SELECT sex, code, COUNT(*) AS n FROM t GROUP BY sex, code"
    workload = mdp.Workload(DOMAIN, mdp.sql(statement))
    for refused in (
        lambda: narrow.sql(statement),
        lambda: mdp.select(narrow.workload).check_workload(workload),
    ):
        with pytest.raises(
            UnsupportedQueryError, match=r"add `marginals: \[\[sex, code\]\]` to its workload"
        ):
            refused()


def test_part_of_an_attribute_that_was_not_measured(narrow: mdp.Release) -> None:
    """Where the attribute itself was measured too coarsely, another group of the workload is named."""
    workload = mdp.Workload(DOMAIN, mdp.product(age={"ranges": [[0, 4], [5, 9]]}), mdp.marginals([["sex"]]))
    coarse = mdp.select(workload).measure(TABLE, mdp.Budget(mu=1)).reconstruct()
    with pytest.raises(UnsupportedQueryError) as caught:
        coarse.answer(mdp.product(age="identity"))
    assert "such as 'age: ranges'. " in str(caught.value)
    assert "`marginals: [[age]]`" in str(caught.value)
