"""The tables that questions return: what they show, and what they become."""

import copy
import pickle
import sys

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.answers.result_table import ResultTable

DOMAIN = mdp.Domain({"sex": ["<b>f</b>", "m"], "age": {"min": 0, "max": 99, "bins": 50}})


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    workload = mdp.Workload(
        DOMAIN, mdp.marginals([[], ["sex"], ["sex", "age"]]), mdp.ask.mean("age", name="mean")
    )
    table = {"sex": ["m"] * 300, "age": [31] * 300}
    return mdp.select(workload).measure(table, mdp.Budget(rho=0.5), seed_not_private=1).reconstruct()


def test_every_question_returns_one(release: mdp.Release) -> None:
    by_sex = mdp.marginals([["sex"]])
    model = release.model(method="mixture", components=1, seed=0)
    asked = [release.answers, release.answer(by_sex), release.table("sex"), release.share(by_sex)]
    asked += [release.sql("SELECT sex, COUNT(*) AS n FROM t GROUP BY sex"), *release.statistics.values()]
    asked += [release.mean("age"), release.quantile("age", 0.5), model.answers, model.records(3)]
    assert {type(one) for one in asked} == {mdp.ResultTable}


def test_digits_follow_the_error_and_the_data_keeps_them_all(release: mdp.Release) -> None:
    found = release.table("sex")
    shown = repr(found).splitlines()
    assert shown[0].split() == ["sex", "estimate", "stddev", "lower", "upper"]
    stddev, estimate = found["stddev"][1].as_py(), found["estimate"][1].as_py()
    assert shown[2].split()[1:3] == [f"{estimate:.1f}", f"{stddev:.1f}"]
    assert estimate != round(estimate, 1)
    assert found.to_pandas()["estimate"][1] == found.to_polars()["estimate"][1] == estimate


def test_a_long_table_shows_its_first_rows_without_the_ends_of_bins(release: mdp.Release) -> None:
    long = release.answers
    assert "age_from" in long.column_names
    assert "age_from" not in repr(long)
    assert repr(long).endswith("20 of 107 rows.")
    assert len(repr(long).splitlines()) == 22


def test_a_notebook_shows_a_table_and_no_markup_of_the_domain(release: mdp.Release) -> None:
    page = release.table("sex")._repr_html_()
    assert "<table>" in page
    assert "&lt;b&gt;f&lt;/b&gt;" in page


def test_what_reads_arrow_reads_it(release: mdp.Release) -> None:
    found = release.table("sex")
    assert duckdb.sql("SELECT sex FROM found").fetchall() == [("<b>f</b>",), ("m",)]
    assert pl.DataFrame(found).height == pa.table(found).num_rows == len(found) == 2
    assert found.filter(pa.array([True, False])).num_rows == 1


def test_it_is_compared_copied_and_kept_like_a_value(release: mdp.Release) -> None:
    found = release.table("sex")
    assert found == release.table("sex")
    assert found == found.to_arrow()
    assert found != release.table("mean")
    assert copy.deepcopy(found) == pickle.loads(pickle.dumps(found)) == found  # noqa: S301 - its own


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_library_that_is_not_installed_is_named(library, release: mdp.Release, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(mdp.SpecificationError, match=library) as caught:
        getattr(release.table("sex"), f"to_{library}")()
    assert caught.value.code == "missing-library"


def test_an_empty_table_shows_its_columns() -> None:
    assert repr(ResultTable(pa.table({"sex": pa.array([], pa.utf8())}))) == "sex"


def test_length_rows_and_places_agree():
    table = ResultTable(pa.table({"sex": ["f", "m", "x"], "estimate": [1.0, 2.0, 3.0]}))
    rows = list(table)
    assert len(rows) == len(table) == 3
    assert [table[place] for place in (0, 1, -1)] == rows == table.to_pylist()
    assert table["estimate"].to_pylist() == [1.0, 2.0, 3.0]
    with pytest.raises(IndexError):
        table[3]
