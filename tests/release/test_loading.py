import copy
import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import matrixdp as mdp
from matrixdp.errors import SpecificationError, StorageError
from matrixdp.releases.schema import checked_origin

WORKLOAD = mdp.Workload(mdp.Domain({"sex": ["female", "male"], "age": 4}), mdp.marginals([0, 1]))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = {"sex": ["male", "female"], "age": [1, 2]}
    measured = mdp.select(WORKLOAD).measure(table, mdp.Budget(epsilon=1, delta=1e-6))
    return mdp.save_release(measured.reconstruct(), tmp_path_factory.mktemp("saved") / "out")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "out"))


def forge(folder: Path, place: tuple[str | int, ...], value: object) -> None:
    path = folder / "release.json"
    written = json.loads(path.read_text())
    inner = written
    for step in place[:-1]:
        inner = inner[step]
    assert inner[place[-1]] != value or type(inner[place[-1]]) is not type(value)
    inner[place[-1]] = value
    path.write_text(json.dumps(written))


FORGERIES: list[tuple[tuple[str | int, ...], object, str]] = [
    (("private",), False, "private says (false|1); true follows"),
    (("private",), 1, "private says (false|1); true follows"),
    (("privacy", "private"), False, r"privacy\.private"),
    (("privacy", "private"), "true", r"privacy\.private"),
    (("privacy", "neighbours"), "replace", r"privacy\.neighbours"),
    (("privacy", "unit"), {"records": 2}, r"privacy\.unit"),
    (("privacy", "noise"), "laplace", r"privacy\.noise"),
    (("privacy", "cost"), "1/100", r"privacy\.cost"),
    (("privacy", "budget", "epsilon"), 0.1, r"privacy\.budget"),
    (("privacy", "budget", "exact", "delta"), "1/10000000", r"privacy\.budget"),
    (("privacy", "ledger"), {"dataset": "people"}, r"privacy\.ledger"),
    (("privacy", "out_of_domain"), {"sex": "male"}, r"privacy\.out_of_domain"),
    (("privacy", "max_records"), 10, r"privacy\.max_records"),
    (("privacy", "time"), "2020-01-01T00:00:00+00:00", r"privacy\.time"),
    (("privacy", "guarantees"), [], r"privacy\.guarantees"),
    (("privacy", "guarantees"), {}, r"privacy\.guarantees"),
    (("privacy", "guarantees", 0), 3, r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "definition"), "pure DP", r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "parameters", "mu"), 0.1, r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "parameters", "mu"), True, r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "parameters", "mu"), 10**400, r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "parameters"), {}, r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "parameters"), [], r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "exact", "mu"), "1/10", r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "exact", "mu"), "1e999999999", r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "exact", "mu"), "1/0", r"privacy\.guarantees"),
    (("privacy", "guarantees", 0, "exact", "mu"), 0.25, r"privacy\.guarantees"),
    (("privacy", "guarantees", 3, "exact", "delta"), "1/100000000", r"privacy\.guarantees"),
    (("privacy",), None, "not the record"),
    (("privacy", "measurement", "sha256"), "0" * 64, "not the record"),
    (("privacy", "measurement", "file"), "other.mdp", "not the record"),
    (("authorization", "cost"), "1", r"authorization\.cost"),
    (("authorization", "time"), "now", r"authorization\.time"),
    (("authorization",), [], r"authorization\.noise is missing"),
    (("domain",), {"sex": ["female", "male"], "age": 5}, r"domain\.age says 5; 4 follows"),
    (("queries",), 5, "queries says 5; 7 follows"),
    (("strategy", "noise"), "laplace", r"strategy\.noise"),
    (("strategy", "parts", 0, "scale", "numerator"), 3, r"strategy\.parts"),
    (("strategy", "parts", 0, "squared_sensitivity"), "7", r"strategy\.parts"),
    (("strategy", "matrices"), [], r"strategy\.matrices"),
    (("strategy", "measured_rows"), 1, r"strategy\.measured_rows"),
    (("strategy",), 3, "damaged"),
    (("strategy", "mechanism"), 3, r"origin\.mechanism: found a int; expected a valid string"),
    (("strategy", "reason"), {"a": 1}, r"origin\.reason"),
    (("strategy", "objective"), "least", r"origin\.objective"),
    (("strategy", "certificate"), "good", r"origin\.certificate"),
    (("strategy", "certificate", "loss"), "small", r"origin\.certificate\.loss"),
    (("strategy", "certificate", "gap"), True, r"origin\.certificate\.gap"),
    (("strategy", "certificate", "scope"), None, r"origin\.certificate\.scope"),
    (("confidence",), "0.9", "not the record"),
    (("confidence",), True, "not the record"),
    (("confidence",), None, "not the record"),
    (("confidence",), 1.5, "confidence: found 1.5"),
    (("confidence",), 10**400, "not the record"),
    (("files",), [], "not the record"),
    (("files", "measurement.mdp", "bytes"), 1, "checksum is another"),
    (("format",), "other", "something else"),
    (("format_version",), 1, "found format version 1; expected 3 or 4"),
    (("format_version",), "2" * 500, "found format version"),
]


@pytest.mark.parametrize(("place", "value", "says"), FORGERIES, ids=lambda value: str(value)[:40])
def test_what_follows_from_the_measurement_cannot_be_forged(
    place: tuple[str | int, ...], value: object, says: str, folder: Path
):
    mdp.load_release(folder)
    forge(folder, place, value)
    with pytest.raises(StorageError, match=says) as error:
        mdp.load_release(folder)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    "place",
    [("privacy", name) for name in ("private", "unit", "cost", "guarantees", "max_records", "ledger")]
    + [("authorization", "cost"), ("strategy", "parts"), ("domain",), ("private",)],
)
def test_nothing_can_be_left_out(place: tuple[str, ...], folder: Path):
    path = folder / "release.json"
    written = json.loads(path.read_text())
    inner = written
    for step in place[:-1]:
        inner = inner[step]
    del inner[place[-1]]
    path.write_text(json.dumps(written))
    with pytest.raises(StorageError, match=r"(is missing|others follow) from measurement"):
        mdp.load_release(folder)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "3", '{"a": NaN}', "\ufeff{}", "{" * 9000, '{"a": 1, "a": 1}']
)
def test_records_that_readers_may_read_in_two_ways(text: str, folder: Path):
    (folder / "release.json").write_text(text)
    with pytest.raises(StorageError, match=r"all read alike|expected an object"):
        mdp.load_release(folder)
    (folder / "release.json").write_bytes(b"\xff")
    with pytest.raises(StorageError, match="all read alike"):
        mdp.load_release(folder)


def test_a_key_given_twice_cannot_hide_what_is_acted_on(folder: Path):
    path = folder / "release.json"
    text = path.read_text()
    path.write_text(text.replace('"confidence": 0.95', '"confidence": 0.5, "confidence": 0.95'))
    with pytest.raises(StorageError, match="a key is given twice"):
        mdp.load_release(folder)


def test_the_measurement_is_the_one_that_is_listed(folder: Path):
    path = folder / "measurement.mdp"
    content = path.read_bytes()
    path.write_bytes(content + b"\0")
    with pytest.raises(StorageError, match="checksum"):
        mdp.load_release(folder)
    path.unlink()
    with pytest.raises(StorageError, match="no such file"):
        mdp.load_release(folder)
    # the digests of the answers are not looked at, as they are not read
    path.write_bytes(content)
    (folder / "answers.parquet").write_bytes(b"")
    assert mdp.load_release(folder).answers.num_rows == WORKLOAD.queries
    assert json.loads((folder / "release.json").read_text())["files"]["measurement.mdp"] == {
        "bytes": len(content),
        "sha256": sha256(content).hexdigest(),
    }


def test_the_last_bits_of_a_conversion_may_differ(folder: Path):
    """A later version may prove a bound that is tighter in its last digits."""
    written = json.loads((folder / "release.json").read_text())
    epsilon = written["privacy"]["guarantees"][2]["parameters"]["epsilon"]
    forge(folder, ("privacy", "guarantees", 2, "parameters", "epsilon"), epsilon * (1 + 1e-12))
    mdp.load_release(folder)
    forge(folder, ("privacy", "guarantees", 2, "parameters", "epsilon"), epsilon * (1 - 1e-6))
    with pytest.raises(StorageError, match="guarantees"):
        mdp.load_release(folder)


@pytest.mark.parametrize(
    ("origin", "place"),
    [
        ([], ("origin",)),
        ({"mechanism": 3}, ("origin", "mechanism")),
        ({"objective": "least"}, ("origin", "objective")),
        ({"objective": ["sum"]}, ("origin", "objective")),
        ({"certificate": 3}, ("origin", "certificate")),
        ({"certificate": {"loss": float("nan")}}, ("origin", "certificate", "loss")),
        ({"certificate": {"lower_bound": "1"}}, ("origin", "certificate", "lower_bound")),
    ],
)
def test_origins_are_checked_when_a_release_is_made(saved: Path, origin: Any, place: tuple[str, ...]):
    release = mdp.load_release(saved)
    with pytest.raises(SpecificationError) as error:
        mdp.Release(release.measurement, release.workload, 0.9, origin)
    assert error.value.problem is not None
    assert error.value.problem.path == place


def test_what_is_known_of_an_origin_is_kept(saved: Path):
    release = mdp.load_release(saved)
    kept = copy.deepcopy(dict(release.origin))
    assert set(kept) == {"mechanism", "reason", "objective", "certificate"}
    assert checked_origin({**kept, "seconds": 3}) == kept
    assert mdp.Release(release.measurement, release.workload).origin == {}
