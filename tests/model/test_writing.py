import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from matrixdp.errors import SpecificationError, StorageError
from matrixdp.model.model import Model
from matrixdp.model.writing import beside
from matrixdp.storage.archive import entry


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_records_are_written_and_say_what_they_are(ending: str, model: Model, release: Any, tmp_path: Path):
    seen: list[tuple[int, int]] = []
    path = tmp_path / f"people.{ending}"
    assert model.save_records(path, 120, seed=8, levels=True, progress=lambda *at: seen.append(at)) == path
    assert seen[-1] == (120, 120)
    expected = model.records(120, seed=8, levels=True)
    read = pl.read_csv(path, infer_schema=False) if ending == "csv" else pl.read_parquet(path)
    assert [tuple(map(str, row)) for row in read.rows()] == [
        tuple(str(value) for value in row.values()) for row in expected.to_pylist()
    ]
    record = json.loads(beside(path).read_text())
    assert record["synthetic"].startswith("SYNTHETIC")
    assert (record["rows"], record["seed"], record["values"]) == (120, 8, "labels")
    assert record["columns"] == read.columns
    assert record["privacy"]["text"] == release.statement.text
    assert record["privacy"]["measurement"]["sha256"] == model.measurement_digest
    assert record["files"] == {path.name: entry(path)}
    assert record["model"] == {"method": "mixture", "accepted": True, "made": dict(model.made)}
    if ending == "parquet":
        assert pq.read_schema(path).metadata[b"matrixdp"].startswith(b"NOT PRIVATE")


def test_nothing_is_replaced_but_on_request(model: Model, tmp_path: Path):
    path = tmp_path / "inner" / "people.parquet"
    model.save_records(path, 5)
    with pytest.raises(StorageError, match=r"people\.parquet: is there already.*or --force"):
        model.save_records(path, 6)
    model.save_records(path, 6, force=True)
    assert pq.read_metadata(path).num_rows == 6
    path.unlink()
    with pytest.raises(StorageError, match=r"people\.parquet\.json: is there already"):
        model.save_records(path, 6)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(StorageError, match="is there already"):
        model.save_records(tmp_path / "folder.csv", 6, force=True)


def test_wrong_names_are_refused_and_failures_leave_nothing(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(SpecificationError, match=r"out: found 'people\.xlsx'; expected a name that ends in"):
        model.save_records(tmp_path / "people.xlsx")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        model.save_records(tmp_path / "file" / "people.csv")

    def fails(*_: object) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.save_records(tmp_path / "people.csv", progress=fails)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
