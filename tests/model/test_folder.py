import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import StorageError
from matrixdp.model import LocalTables, Model
from matrixdp.model.folder import MODEL_FILES, MODEL_FORMAT
from matrixdp.storage.archive import ArchiveWriter, entry


@pytest.fixture(scope="module")
def saved(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model.save(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def forged(folder: Path, header: Callable[[Callable[[Any], str]], Any], made: Any) -> None:
    """Write another model, and let the record list the files as they are: the next check is reached."""
    (folder / "model.mdp").unlink()
    with ArchiveWriter(folder / "model.mdp") as archive:
        form = {"format": MODEL_FORMAT, "format_version": 3, "made": made, "model": header(archive.add)}
        archive.close(form)
    record = json.loads((folder / "model.json").read_text())
    record["files"] = {name: entry(folder / name) for name in MODEL_FILES[1:]}
    (folder / "model.json").write_text(json.dumps(record))


def test_a_model_is_read_back(saved: Path, model: Model, release: Any, tmp_path: Path):
    assert sorted(path.name for path in saved.iterdir()) == sorted(MODEL_FILES)
    again = Model.load(saved)
    assert again.answers.equals(model.answers)
    assert again.records().equals(model.records())
    assert (again.made, again.confidence) == (dict(model.made), 0.9)
    asked = mdp.marginals([["age", "region"]])
    assert again.answer(asked).equals(model.answer(asked))
    written = pq.read_table(saved / "answers_consistent.parquet")
    assert written.replace_schema_metadata(None).equals(
        model.answers.replace_schema_metadata(None).cast(written.schema.remove_metadata())
    )
    assert b"BIASED" in written.schema.metadata[b"biased"]
    # the rows are those of the release's own file, in the same order, and so is the measurement
    folder = mdp.save_release(release, tmp_path / "released")
    own = pq.read_table(folder / "answers.parquet")
    assert own.equals(written.select(own.column_names).cast(own.schema))
    record = json.loads((saved / "model.json").read_text())
    digest = json.loads((folder / "release.json").read_text())["files"]["measurement.mdp"]["sha256"]
    listed = {record["privacy"]["measurement"]["sha256"], record["files"]["measurement.mdp"]["sha256"]}
    assert listed | {model.measurement_digest, again.measurement_digest} == {digest}
    # it says that it is biased, and what is promised
    assert record["biased"].startswith("BIASED")
    assert record["privacy"]["text"] == release.statement.text
    assert record["warning"].startswith("NOT PRIVATE")
    assert (record["method"], record["accepted"], record["made"]["seed"]) == ("mixture", True, 4)


def test_tables_of_pairs_are_read_back(release: Any, tmp_path: Path):
    shares = {"sex": 2, "age": 12, "region": 3}
    tables: dict[tuple[str, ...], Any] = {(name,): np.full(n, 12 / n) for name, n in shares.items()}
    tables["sex", "region"] = np.full((2, 3), 2.0)
    local = Model(release.measurement, release.workload, LocalTables(release.domain, 12.0, tables))
    again = Model.load(local.save(tmp_path / "local"))
    assert again.method == "local"
    assert again.answers.equals(local.answers)


@pytest.mark.parametrize("name", MODEL_FILES)
def test_every_changed_missing_or_linked_file_is_found(name: str, folder: Path, tmp_path: Path):
    whole = (folder / name).read_bytes()
    shutil.copy(folder / name, tmp_path / "elsewhere")
    (folder / name).unlink()
    with pytest.raises(StorageError, match=r"no such file|found no model\.json"):
        Model.load(folder)
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link"):
        Model.load(folder)
    (folder / name).unlink()
    for changed in (whole[:-20], b"", whole[:-30] + b"x" + whole[-29:]):
        (folder / name).write_bytes(changed)
        with pytest.raises(StorageError):
            Model.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "else"}, "holds something else"),
        ({"format_version": 1}, "found format version 1; expected 3"),
        ({"files": {}}, "does not list the files"),
        ({"confidence": "0.9"}, "confidence"),
        ({"biased": "unbiased"}, "biased says 'unbiased'|biased says \"unbiased\""),
        ({"accepted": False}, "accepted says false"),
        ({"private": True}, "private says true"),
        (lambda record: record["made"].update(seed=5), "made.seed says 5; 4 follows"),
        (lambda record: record["privacy"]["guarantees"][0].update(definition="none"), "definition says"),
        (lambda record: record.pop("total"), "total is missing"),
        ({"more": 1}, "more is no part of it"),
    ],
)
def test_a_record_that_says_something_else_is_refused(change: Any, message: str, folder: Path):
    record = json.loads((folder / "model.json").read_text())
    record.update(change) if isinstance(change, dict) else change(record)
    (folder / "model.json").write_text(json.dumps(record))
    with pytest.raises(StorageError, match=message):
        Model.load(folder)


def mixture(write: Callable[[Any], str], tables: Any, **change: Any) -> dict[str, Any]:
    """The header of a mixture, with other contents of some of its keys."""
    own = {"total": 1.0, "weights": tables.weights, "factors": tables.factors} | change
    factors = {name: write(factor) for name, factor in own["factors"].items()}
    return own | {"weights": write(own["weights"]), "factors": factors}


@pytest.mark.parametrize(
    "forge",
    [
        lambda w, s: mixture(w, s, total=True),
        lambda w, s: mixture(w, s, total=-1.0),
        lambda w, s: mixture(w, s, weights=2 * s.weights),
        lambda w, s: mixture(w, s, factors={"sex": s.factors["sex"]}),
        lambda w, s: mixture(w, s, factors={name: -factor for name, factor in s.factors.items()}),
        lambda w, s: mixture(w, s, weights=np.ones(3, np.int64)),
        lambda w, s: mixture(w, s) | {"weights": "arrays/9.npy"},
        lambda w, s: {"total": 1.0, "tables": [[["sex"], w(np.ones(2))]]},
        lambda w, s: {"total": 1.0, "tables": [[[7], w(np.ones(2))]]},
        lambda w, s: ["no mapping"],
    ],
)
def test_arrays_that_are_no_tables_are_refused(forge: Callable[..., Any], folder: Path, model: Model):
    forged(folder, lambda write: forge(write, model.tables), dict(model.made))
    with pytest.raises(StorageError, match=r"model\.mdp: damaged or altered"):
        Model.load(folder)


def test_only_models_are_replaced_and_only_on_request(folder: Path, model: Model, tmp_path: Path):
    with pytest.raises(StorageError, match=r"found an earlier model.*with --force \(in Python: force=True\)"):
        model.save(folder)
    before = (folder / "model.json").stat().st_ino
    seen: list[tuple[int, int]] = []
    model.save(folder, force=True, progress=lambda done, total: seen.append((done, total)))
    assert (folder / "model.json").stat().st_ino != before
    assert seen[-1] == (model.workload.queries, model.workload.queries)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match="found a folder with other files"):
        model.save(folder, force=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="found a file; expected a folder"):
        model.save(tmp_path / "file", force=True)
    with pytest.raises(StorageError, match="cannot be written"):
        model.save(tmp_path / "file" / "inner")
    (tmp_path / "empty").mkdir()
    assert Model.load(model.save(tmp_path / "empty")).size == 400


def test_a_folder_appears_whole_or_not_at_all(folder: Path, model: Model, monkeypatch: pytest.MonkeyPatch):
    def fails(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("matrixdp.model.folder._write_answers", fails)
    for target in (folder, folder.with_name("new")):
        with pytest.raises(KeyboardInterrupt):
            model.save(target, force=True)
    monkeypatch.undo()
    real = Path.replace

    def refused(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(OSError, match="No space"):
        model.save(folder, force=True)
    monkeypatch.undo()
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert Model.load(folder).size == 400


def test_how_it_was_made_is_plain_values(folder: Path):
    forged(folder, lambda write: {}, [])
    with pytest.raises(StorageError, match="does not say how it was made"):
        Model.load(folder)
