import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import StorageError, TooLargeError
from matrixdp.model import Mixture, Model
from matrixdp.storage.archive import entry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"], "code": 3}), mdp.marginals([0, 1, 2]))
    measured = mdp.select(workload).measure(
        {"sex": ["male"], "code": [1]}, mdp.Budget(mu=1), seed_not_private=1
    )
    factors = {"sex": np.array([[0.25, 0.75]]), "code": np.array([[0.5, 0.25, 0.25]])}
    tables = Mixture(workload.domain, 8.0, np.ones(1), factors)
    model = Model(measured.measurement, workload, tables, {"method": "mixture", "accepted": True})
    return model.save(tmp_path / "model")


def altered(folder: Path, out: Path, **made: object) -> Path:
    """Save a model again, whose record says other things."""
    model = Model.load(folder)
    return Model(model.measurement, model.workload, model.tables, {**model.made, **made}).save(out)


def outcomes(folder: Path) -> list[tuple[str, str]]:
    return [(finding.subject, finding.outcome) for finding in mdp.verify_model(folder)]


def test_a_model_that_is_whole_holds(folder: Path):
    seen: list[tuple[int, int]] = []
    found = mdp.verify_model(folder, progress=lambda *at: seen.append(at))
    assert found.holds
    assert seen[-1] == (12, 12)
    assert outcomes(folder) == [("model", "ok"), ("model", "ok"), ("answers", "ok"), ("fit", "not checked")]


@pytest.mark.parametrize(
    "column", ["modelled", "estimate", "stddev", "lower", "outside", "extrapolated", "sex"]
)
def test_an_answer_that_does_not_follow_is_found_under_right_digests(column: str, folder: Path):
    path = folder / "answers_consistent.parquet"
    table = pq.read_table(path)
    place = table.column_names.index(column)
    values = table.column(column).to_pylist()
    others = {"outside": None, "extrapolated": True, "sex": "male"}
    values[7] = others[column] if column in others else values[7] + 0.01
    changed = table.column(column).type
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(values).cast(changed)), path)
    record = json.loads((folder / "model.json").read_text())
    record["files"][path.name] = entry(path)
    (folder / "model.json").write_text(json.dumps(record))
    found = mdp.verify_model(folder)
    assert not found.holds
    assert f"row 7: {column} says" in found.failed[0].words


def test_a_damaged_folder_is_told(folder: Path):
    (folder / "model.mdp").write_bytes(b"")
    assert outcomes(folder) == [("model", "failed"), ("answers", "not checked"), ("fit", "not checked")]


@pytest.mark.parametrize(
    ("known", "outcome", "words"),
    [
        ({"invariants": 8}, "ok", "it keeps the published counts"),
        ({"invariants": [{"marginals": [["sex"]], "counts": [2, 6]}]}, "ok", "it keeps the published counts"),
        (
            {"invariants": [{"marginals": [["sex"]], "counts": [3, 5]}]},
            "failed",
            "sex: other counts than were",
        ),
        ({"invariants": 9}, "failed", "the total: other counts than were published"),
        (
            {"structural_zeros": [{"sex": "male", "code": [0, 2]}]},
            "failed",
            "sex, code: records in a combination",
        ),
        ({"structural_zeros": [{"age": 3}]}, "failed", "structural_zeros"),
    ],
)
def test_what_the_record_says_is_known_is_checked(
    known: dict[str, object], outcome: str, words: str, folder: Path, tmp_path: Path
):
    [_, found, *_] = mdp.verify_model(altered(folder, tmp_path / "known", **known))
    assert (found.subject, found.outcome) == ("model", outcome)
    assert words in found.words


def test_what_is_known_of_more_attributes_than_a_model_has_tables_of_is_not_checked(tmp_path: Path):
    workload = mdp.Workload(mdp.Domain({"a": 2, "b": 2, "c": 2}), mdp.marginals(1))
    table = {"a": [0], "b": [1], "c": [1]}
    release = mdp.select(workload).measure(table, mdp.Budget(mu=1), seed_not_private=1).reconstruct()
    rule = [{"a": 0, "b": 1, "c": 1}]
    folder = release.model("local", structural_zeros=rule, accept_anyway=True).save(tmp_path / "model")
    assert ("model", "not checked") in outcomes(folder)


def test_tests_that_have_another_outcome_are_found(folder: Path, tmp_path: Path):
    for made, words in (
        ({"accepted": False}, "its record says that its tests reject it; they accept it"),
        ({"tests": {"loss": 1.0}}, "its record says a loss of 1.0"),
        ({"tests": {"degrees": 99}}, "its record says 99 degrees of freedom"),
    ):
        assert words in mdp.verify_model(altered(folder, tmp_path / words[-4:], **made)).failed[0].words


def test_a_model_that_is_far_from_its_measurement_is_not_accepted(folder: Path, tmp_path: Path):
    model = Model.load(folder)
    assert isinstance(model.tables, Mixture)
    far = Mixture(model.domain, 1000.0, model.tables.weights, model.tables.factors)
    held = Model(model.measurement, model.workload, far, dict(model.made)).save(tmp_path / "far")
    [found] = mdp.verify_model(held).failed
    assert found.words == "its record says that its tests accept it; they reject it"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(TooLargeError("a table of 9 cells"), "not checked"), (StorageError("no such marginal"), "failed")],
)
def test_tests_that_cannot_be_made_again_are_told(
    error: Exception, outcome: str, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    def fails(_: Model) -> None:
        raise error

    monkeypatch.setattr("matrixdp.verification.verify.tests_of", fails)
    found = [one for one in mdp.verify_model(folder) if one.words == f"the tests of its fit: {error}"]
    assert [(one.subject, one.outcome) for one in found] == [("model", outcome)]
