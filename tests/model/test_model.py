import io
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import SpecificationError, TooLargeError, UnsupportedQueryError, WorkloadError
from matrixdp.model import model as held
from matrixdp.model.mixture import Mixture
from matrixdp.model.model import Model
from tests.model.builders import measured

FIGURES = ["estimate", "stddev", "lower", "upper"]


def test_unbiased_answers_stay_beside_the_modelled_ones_row_by_row(release: Any, model: Model):
    answers = model.answers
    assert answers.column_names == [*release.answers.column_names, "modelled", "extrapolated"]
    beside = answers.drop_columns(["modelled", "extrapolated"])
    unmarked = release.answers.replace_schema_metadata(None)
    assert beside.cast(unmarked.schema).equals(unmarked)  # a model's columns admit nulls
    expected = np.concatenate([model.tables.answers(group) for group in release.workload])
    assert answers.column("modelled").to_pylist() == expected.tolist()
    assert not any(answers.column("extrapolated").to_pylist())
    assert model.schema.names == answers.column_names
    assert b"BIASED" in answers.schema.metadata[b"matrixdp"]


def test_what_was_not_measured_is_marked_and_has_no_figures(release: Any, model: Model):
    with pytest.raises(UnsupportedQueryError):
        release.answer(mdp.marginals([["age", "region"]]))
    table = model.answer(mdp.marginals([["sex", "age"], ["age", "region"]]))
    pq.write_table(table, io.BytesIO())  # which refuses nulls where a column says that it has none
    asked = table.to_pylist()
    assert [row["extrapolated"] for row in asked] == [False] * 24 + [True] * 36
    assert all(row[name] is None for row in asked[24:] for name in FIGURES)
    assert all(row[name] is not None for row in asked[:24] for name in FIGURES)
    expected = model.tables.marginal(["age", "region"]).ravel()
    assert [row["modelled"] for row in asked[24:]] == expected.tolist()


def test_a_query_that_is_determined_as_a_sum_over_more_is_no_extrapolation(release: Any):
    table = {"sex": ["male"] * 9, "age": [3] * 9, "region": ["a"] * 9}
    asked, sexes = mdp.marginals([["sex", "age"]]), mdp.marginals([["sex"]])
    own = measured(release.domain, table, asked, mechanism="opt-0").reconstruct()
    even = {name: np.full((1, size), 1 / size) for name, size in (("sex", 2), ("age", 12), ("region", 3))}
    tables = Mixture(release.domain, 9.0, np.ones(1), even)
    rows = Model(own.measurement, own.workload, tables).answer(sexes).to_pylist()
    expected = own.answer(sexes).to_pylist()
    assert [row["estimate"] for row in rows] == [row["estimate"] for row in expected]
    assert [row["extrapolated"] for row in rows] == [False, False]


def test_records_are_the_released_number_and_follow_the_model(model: Model):
    records = model.records()
    assert records.num_rows == model.size == 400
    assert records.column_names == list(model.domain.names)
    assert b"SYNTHETIC" in records.schema.metadata[b"matrixdp"]
    rows = records.to_pylist()
    assert all((row["age"] >= 8) == (row["adult"] == "true") for row in rows)
    counts = [sum(row["region"] == value for row in rows) for value in ("a", "b", "c")]
    assert counts == pytest.approx(model.tables.marginal(["region"]), abs=3 + 1)
    assert model.records().equals(records)
    assert not model.records(seed=5).equals(records)
    assert model.records(7, values="data").column_names == ["sex", "age", "region"]
    assert "region side" in model.records(7, levels=True).column_names


def test_counted_answers_are_those_of_the_records(model: Model):
    counted = model.counted({"marginals": [[], ["region", "adult"]]}).to_pylist()
    rows = model.records().to_pylist()
    assert counted[0]["count"] == 400
    for row in counted[1:]:
        expected = sum(r["region"] == row["region"] and r["adult"] == row["adult"] for r in rows)
        assert row["count"] == expected
    assert model.counted({"marginals": 0}, 50, seed=3).column("count").to_pylist() == [50]


def test_what_does_not_fit_is_refused(model: Model, release: Any, monkeypatch: pytest.MonkeyPatch):
    other = Mixture(mdp.Domain({"x": 1}), 1.0, np.ones(1), {"x": np.ones((1, 1))})
    with pytest.raises(WorkloadError, match="another domain"):
        Model(model.measurement, model.workload, other)
    tables: Any = model.tables
    many = Mixture(release.domain, 1e12, tables.weights, tables.factors)
    vast = Model(model.measurement, model.workload, many)
    with pytest.raises(SpecificationError, match="rows: found none beside a total of 1,000,000,000,000"):
        vast.records()
    assert vast.records(3).num_rows == 3
    monkeypatch.setattr(held, "MAX_TABLE_ROWS", 5)
    asked = {"marginals": 1}
    for refused in (model.records, lambda: model.answer(asked), lambda: model.counted(asked)):
        with pytest.raises(TooLargeError, match="at most 5"):
            refused()
