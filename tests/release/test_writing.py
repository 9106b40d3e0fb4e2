import hashlib
import json
import sys
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.answers import table as columns_module
from matrixdp.errors import StorageError, UnsupportedQueryError
from matrixdp.releases import files as writing
from matrixdp.releases.transaction import transaction

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 19}, "code": 6})
TABLE = {"sex": ["female", "male"] * 50, "age": [3] * 100, "code": [5] * 100}
WORKLOAD = mdp.Workload(
    DOMAIN, mdp.marginals([0, 1, 2, 3]), mdp.dense(np.eye(6), attributes=["code"], weight=2, name="codes")
)


@pytest.fixture(scope="module")
def strategy() -> mdp.Strategy:
    return mdp.select(WORKLOAD)


@pytest.fixture(scope="module")
def release(strategy: mdp.Strategy) -> mdp.Release:
    return strategy.measure(TABLE, mdp.Budget(rho=0.5)).reconstruct(confidence=0.9)


@pytest.fixture(scope="module")
def folder(release: mdp.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mdp.save_release(release, tmp_path_factory.mktemp("written") / "out", csv=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_files_agree_with_the_release(release: mdp.Release, folder: Path):
    assert names(folder) == ["answers.csv", "answers.parquet", "measurement.mdp", "release.json"]
    expected = release.answers.to_pylist()
    assert pq.read_table(folder / "answers.parquet").to_pylist() == expected
    assert pl.read_parquet(folder / "answers.parquet").to_dicts() == expected
    read = duckdb.read_parquet(str(folder / "answers.parquet"))
    assert read.columns == release.answers.schema.names
    assert len(read.fetchall()) == WORKLOAD.queries
    text = pl.read_csv(folder / "answers.csv", infer_schema_length=None)
    assert text["estimate"].to_list() == [row["estimate"] for row in expected]
    assert text["query"].to_list() == [row["query"] for row in expected]


def test_the_record_says_what_was_measured(release: mdp.Release, folder: Path):
    written = json.loads((folder / "release.json").read_text())
    assert written["private"] is True
    assert "warning" not in written
    rho = written["privacy"]["guarantees"][1]["parameters"]["rho"]
    assert rho == release.statement.rho
    # the scales of noise are rounded up from floating-point shares: never above the budget, and near it
    assert 0.5 * (1 - 1e-14) < rho <= 0.5
    assert written["privacy"]["text"] == release.statement.text
    assert written["authorization"]["ledger"] is None
    assert written["privacy"]["neighbours"] == "add_remove"
    assert written["privacy"]["out_of_domain"] == "drop"
    assert written["confidence"] == 0.9
    assert written["queries"] == WORKLOAD.queries
    assert written["workload"][1]["dense"] == {"shape": [6, 6]}
    assert written["domain"] == DOMAIN.to_spec()
    assert written["strategy"]["mechanism"] == "dense" or written["strategy"]["mechanism"] == "residual"
    assert written["strategy"]["certificate"]["loss"] > 0
    assert all(part["noise_stddev"] > 0 for part in written["strategy"]["parts"])
    assert written["privacy"]["versions"]["matrixdp"] == mdp.__version__
    assert written["privacy"]["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    stddev = release.answers.column("stddev").to_numpy()
    assert written["rmse"] == pytest.approx(np.sqrt((stddev**2).mean()))
    assert written["max_stddev"] == pytest.approx(stddev.max())
    for group in written["groups"]:
        own = stddev[group["first_row"] : group["first_row"] + group["queries"]]
        assert group["rmse"] == pytest.approx(np.sqrt((own**2).mean()))
    for name, entry in written["files"].items():
        content = (folder / name).read_bytes()
        assert entry == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_a_release_comes_back_whole(release: mdp.Release, folder: Path, tmp_path: Path):
    again = mdp.load_release(folder)
    assert again.answers.equals(release.answers)
    assert again.confidence == 0.9
    assert mdp.load_release(folder, confidence=0.5).confidence == 0.5
    assert again.statement == release.statement
    mdp.save_release(again, tmp_path / "again")
    first = json.loads((folder / "release.json").read_text())
    second = json.loads((tmp_path / "again" / "release.json").read_text())
    for written in (first, second):
        # the files are written anew, and their archives tell the time
        assert written["privacy"]["measurement"]["sha256"] == written["files"]["measurement.mdp"]["sha256"]
        written["files"] = written["privacy"]["measurement"] = None
    assert first == second


def test_many_batches_and_row_groups_give_the_same_answers(
    release: mdp.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writing, "BATCH_ROWS", 50)
    calls = []
    mdp.save_release(release, tmp_path / "out", progress=lambda done, total: calls.append((done, total)))
    file = pq.ParquetFile(tmp_path / "out" / "answers.parquet")
    assert file.num_row_groups > 3
    assert file.read().to_pylist() == release.answers.to_pylist()
    assert calls[-1] == (WORKLOAD.queries, WORKLOAD.queries)
    assert columns_module.BATCH_ROWS > 50


def test_above_the_limit_only_the_measurement_is_written(release: mdp.Release, tmp_path: Path):
    mdp.save_release(release, tmp_path / "out", csv=True, max_answers=WORKLOAD.queries - 1)
    assert names(tmp_path / "out") == ["measurement.mdp", "release.json"]
    written = json.loads((tmp_path / "out" / "release.json").read_text())
    assert "matrixdp answer" in written["answers"]["note"]
    assert written["rmse"] > 0
    assert mdp.load_release(tmp_path / "out").answers.equals(release.answers)


def test_a_seeded_release_is_labelled_everywhere(strategy: mdp.Strategy, tmp_path: Path):
    seeded = strategy.measure(TABLE, mdp.Budget(rho=0.5), seed_not_private=7).reconstruct()
    same = strategy.measure(TABLE, mdp.Budget(rho=0.5), seed_not_private=7).reconstruct()
    assert seeded.answers.equals(same.answers)
    mdp.save_release(seeded, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "release.json").read_text())
    assert written["private"] is False
    assert written["warning"].startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in written["privacy"]["text"]
    metadata = pq.read_schema(tmp_path / "out" / "answers.parquet").metadata
    assert metadata[b"matrixdp"].startswith(b"NOT PRIVATE")
    assert not mdp.load_release(tmp_path / "out").private


def test_an_unsupported_workload_writes_nothing(strategy: mdp.Strategy, tmp_path: Path):
    other = mdp.select(mdp.Workload(DOMAIN, mdp.marginals(1)))
    measured = other.measure(TABLE, mdp.Budget(rho=0.5))
    with pytest.raises(UnsupportedQueryError):
        mdp.save_release(measured.reconstruct(WORKLOAD), tmp_path / "out")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("place", "name", "error"),
    [(writing, "document", KeyboardInterrupt()), (pq.ParquetWriter, "write_table", OSError(28, "No space"))],
    ids=["crash", "full disk"],
)
def test_a_failure_while_writing_leaves_nothing(
    release: mdp.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place, name, error
):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(place, name, fail)
    with pytest.raises(type(error)):
        mdp.save_release(release, tmp_path / "out")
    assert names(tmp_path) == []


def test_what_is_there_is_never_lost(release: mdp.Release, tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    mdp.save_release(release, out)
    with pytest.raises(StorageError, match="earlier release"):
        mdp.save_release(release, out)
    mdp.save_release(release, out, csv=True, force=True)
    assert "answers.csv" in names(out)
    mdp.save_release(release, out, force=True)
    assert "answers.csv" not in names(out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match="other files"):
        mdp.save_release(release, out, force=True)
    assert "notes.txt" in names(out)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="found a file"):
        mdp.save_release(release, tmp_path / "file", force=True)
    (tmp_path / "link").symlink_to(out)
    with pytest.raises(StorageError, match="found a file"):
        mdp.save_release(release, tmp_path / "link", force=True)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "release.json").write_text("[]")
    with pytest.raises(StorageError, match="other files"):
        mdp.save_release(release, folder, force=True)
    assert names(tmp_path) == ["file", "folder", "link", "out"]


def test_a_failure_while_replacing_keeps_the_old_release(release: mdp.Release, tmp_path: Path):
    out = mdp.save_release(release, tmp_path / "out")
    before = (out / "release.json").read_bytes()

    def fail() -> None:
        with transaction(out, force=True, keep=False) as run:
            (run.folder / "release.json").write_text("{}")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (out / "release.json").read_bytes() == before
    assert names(tmp_path) == ["out"]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StorageError, match="cannot be written"),
        transaction(tmp_path / "file" / "out", keep=False),
    ):
        pass


def test_damaged_releases_are_refused(release: mdp.Release, folder: Path, tmp_path: Path):
    with pytest.raises(StorageError, match=r"no release\.json"):
        mdp.load_release(tmp_path)
    out = mdp.save_release(release, tmp_path / "out")
    other = mdp.save_release(release, tmp_path / "other")
    record = (out / "release.json").read_text()
    for text in ("", "[]", '{"format": "matrixdp release"}', '{"format": "other"}'):
        (out / "release.json").write_text(text)
        with pytest.raises(StorageError):
            mdp.load_release(out)
    (out / "release.json").write_text(record.replace('"sha256": "', '"sha256": "0'))
    with pytest.raises(StorageError, match="checksum"):
        mdp.load_release(out)
    (out / "release.json").write_text(record)
    (out / "measurement.mdp").write_bytes((other / "measurement.mdp").read_bytes()[:-1])
    with pytest.raises(StorageError):
        mdp.load_release(out)
