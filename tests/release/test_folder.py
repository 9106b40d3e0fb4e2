"""The folder of a release: what is written, how it comes back, and what is never lost."""

import hashlib
import json
import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.answers import table as columns_module
from matrixdp.errors import StorageError, UnsupportedQueryError
from matrixdp.releases import record as record_module
from matrixdp.releases.record import exact_scale, measured
from matrixdp.releases.schema import checked_origin
from matrixdp.releases.transaction import transaction
from tests.builders import DOMAIN, TABLE, WORKLOAD, copied, names, release, signed, strategy
from tests.forging import forge_measurement, forge_record, put


def record(folder: Path) -> dict:
    return json.loads((folder / "release.json").read_text())


def test_the_files_agree_with_the_release():
    expected = release().answers.to_pylist()
    assert pq.read_table(signed() / "answers.parquet").to_pylist() == expected
    assert pl.read_parquet(signed() / "answers.parquet").to_dicts() == expected
    read = duckdb.read_parquet(str(signed() / "answers.parquet"))
    assert read.columns == release().answers.schema.names
    assert len(read.fetchall()) == WORKLOAD.queries
    text = pl.read_csv(signed() / "answers.csv", infer_schema_length=None)
    for name in ("estimate", "query"):
        assert text[name].to_list() == [row[name] for row in expected]


def test_the_record_says_what_was_measured():
    written, statement = record(signed()), release().statement
    privacy = written["privacy"]
    assert "warning" not in written
    assert privacy["guarantees"][0]["parameters"]["mu"] == statement.mu
    # the scales of noise are rounded up from floating-point shares: never above the budget, and near it
    delta = privacy["guarantees"][3]["parameters"]["delta"]
    assert 1e-6 * (1 - 1e-10) < delta <= 1e-6
    own: dict[str, object] = {"text": statement.text, "neighbours": "add_remove", "out_of_domain": "drop"}
    assert own.items() <= privacy.items()
    own = {"private": True, "confidence": 0.9, "queries": WORKLOAD.queries, "domain": DOMAIN.to_spec()}
    assert own.items() <= written.items()
    assert written["authorization"]["ledger"] is None
    assert written["workload"][1]["dense"] == {"shape": [4, 4]}
    assert written["strategy"]["mechanism"] == strategy().mechanism
    assert written["strategy"]["certificate"]["loss"] > 0
    assert all(part["noise_stddev"] > 0 for part in written["strategy"]["parts"])
    versions = {"matrixdp": mdp.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
    assert versions.items() <= privacy["versions"].items()
    stddev = release().answers.column("stddev").to_numpy()
    assert written["rmse"] == pytest.approx(np.sqrt((stddev**2).mean()))
    assert written["max_stddev"] == pytest.approx(stddev.max())
    for group in written["groups"]:
        rows = stddev[group["first_row"] : group["first_row"] + group["queries"]]
        assert group["rmse"] == pytest.approx(np.sqrt((rows**2).mean()))
    for name, entry in written["files"].items():
        content = (signed() / name).read_bytes()
        assert entry == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


WIDE = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 9}, "code": 3})


@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [
        (mechanism, budget)
        for budget in (mdp.Budget(rho=0.5), mdp.Budget(epsilon=1))
        for mechanism in ("residual", "hdmm", "opt-m", "hierarchical", "identity")
        if mechanism != "residual" or budget.rho is not None  # residual is for Gaussian noise alone
    ],
)
def test_the_cost_follows_from_the_record(mechanism: str, budget: mdp.Budget, tmp_path: Path):
    """The cost is the sum of sensitivity / scale^p over the parts, by what release.json says alone."""
    workload = mdp.Workload(WIDE, mdp.marginals([0, 1, 2]), mdp.product(age="prefix", code="identity"))
    chosen = mdp.select(workload, mechanism=mechanism, noise="auto", budget=budget)
    own = chosen.measure({"sex": ["female"], "age": [3], "code": [0]}, budget).reconstruct()
    written = record(mdp.save_release(own, tmp_path / "out"))
    norm = written["privacy"]["mechanism"]["sensitivity_norm"]
    name = {1: "sensitivity", 2: "squared_sensitivity"}[norm]
    told, total, rows = [], Fraction(0), 0
    for row in written["strategy"]["parts"]:
        scale = Fraction(row["scale"]["numerator"]) / Fraction(2) ** row["scale"]["exponent"]
        assert str(scale) == row["scale"]["text"]
        for part in row["attributes"]:
            total += Fraction(row[name]) / scale**norm
            rows += row["rows"]
            attributes = tuple(WIDE.sort([name for block in part for name in block]))
            blocks = tuple(tuple(block) for block in part)
            told.append((attributes, blocks, scale, row["lattice_exponent"]))
    # the cost is rounded up in the 160th bit of each part
    scales = own.measurement.scales
    assert total <= Fraction(written["privacy"]["cost"]) <= total + Fraction(len(scales), 1 << 160)
    assert written["strategy"]["measured_rows"] == rows
    assert sorted(told) == sorted(
        (part.attributes, tuple(block.attributes for block in part.blocks), scale.exact, -scale.power)
        for part, scale in zip(own.measurement.plan.parts, scales, strict=True)
    )


def test_parts_that_differ_in_their_attributes_alone_are_one_row():
    domain = mdp.Domain({f"a{place}": 3 for place in range(12)})
    own = mdp.select(mdp.Workload(domain, mdp.marginals([1, 2])))
    taken = own.measure({name: [0] for name in domain.names}, mdp.Budget(rho=0.5))
    assert [len(row["attributes"]) for row in measured(taken.measurement)["parts"]] == [1, 12, 66]


def test_scales_are_integers_over_powers_of_two():
    for scale in (Fraction(3, 8), Fraction(2**80), Fraction(5, 2**90)):
        written = exact_scale(scale)
        assert Fraction(written["numerator"]) / Fraction(2) ** written["exponent"] == scale
        assert written["numerator"] % 2 == 1
        assert Fraction(written["text"]) == scale


def test_a_release_comes_back_whole(tmp_path: Path):
    again = mdp.load_release(signed())
    assert again.answers.equals(release().answers)
    assert (again.confidence, again.statement) == (0.9, release().statement)
    assert mdp.load_release(signed(), confidence=0.5).confidence == 0.5
    both = [record(signed()), record(mdp.save_release(again, tmp_path / "again", csv=True))]
    for written in both:
        # the files are written anew, and their archives tell the time
        assert written["privacy"]["measurement"]["sha256"] == written["files"]["measurement.mdp"]["sha256"]
        written["files"] = written["privacy"]["measurement"] = None
    assert both[0] == both[1]


def test_an_origin_keeps_what_is_known_of_it():
    kept = dict(mdp.load_release(signed()).origin)
    assert set(kept) == {"mechanism", "reason", "objective", "certificate"}
    assert checked_origin({**kept, "seconds": 3}) == kept
    assert mdp.Release(release().measurement, WORKLOAD).origin == {}


def test_many_batches_and_row_groups_give_the_same_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    expected = release().answers.to_pylist()
    monkeypatch.setattr(columns_module, "BATCH_ROWS", 2)
    calls = []
    mdp.save_release(release(), tmp_path / "out", progress=lambda done, total: calls.append((done, total)))
    file = pq.ParquetFile(tmp_path / "out" / "answers.parquet")
    assert file.num_row_groups > 3
    assert file.read().to_pylist() == expected
    assert calls[-1] == (WORKLOAD.queries, WORKLOAD.queries)


def test_above_the_limit_only_the_measurement_is_written(tmp_path: Path):
    out = mdp.save_release(release(), tmp_path / "out", csv=True, max_answers=WORKLOAD.queries - 1)
    assert names(out) == ["measurement.mdp", "release.json"]
    written = record(out)
    assert "matrixdp answer" in written["answers"]["note"]
    assert written["rmse"] > 0
    assert mdp.load_release(out).answers.equals(release().answers)


def test_a_seeded_release_is_labelled_everywhere(tmp_path: Path):
    budget = mdp.Budget(rho=0.5)
    seeded, same = (strategy().measure(TABLE, budget, seed_not_private=7).reconstruct() for _ in range(2))
    assert seeded.answers.equals(same.answers)
    out = mdp.save_release(seeded, tmp_path / "out")
    told = [record(out)["warning"], pq.read_schema(out / "answers.parquet").metadata[b"matrixdp"].decode()]
    assert all(text.startswith("NOT PRIVATE") for text in told)
    assert "NOT PRIVATE" in record(out)["privacy"]["text"]
    assert not mdp.load_release(out).private


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for place, name in ((record_module, "document"), (pq.ParquetWriter, "write_table")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fail)
            with pytest.raises(KeyboardInterrupt):
                mdp.save_release(release(), tmp_path / "out")
        assert names(tmp_path) == []
    sexes = mdp.select(mdp.Workload(DOMAIN, mdp.marginals([["sex"]])))
    other = sexes.measure(TABLE, mdp.Budget(rho=0.5))
    with pytest.raises(UnsupportedQueryError):
        mdp.save_release(other.reconstruct(WORKLOAD), tmp_path / "out")
    assert names(tmp_path) == []


def test_what_is_there_is_never_lost(tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    mdp.save_release(release(), out)
    with pytest.raises(StorageError):
        mdp.save_release(release(), out)
    mdp.save_release(release(), out, csv=True, force=True)
    assert "answers.csv" in names(out)
    mdp.save_release(release(), out, force=True)
    assert "answers.csv" not in names(out)
    (out / "notes.txt").write_text("mine")
    before = record(out)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(out)
    for name in ("out", "file", "link"):
        with pytest.raises(StorageError):
            mdp.save_release(release(), tmp_path / name, force=True)
    assert names(tmp_path) == ["file", "link", "out"]
    assert names(out) == ["answers.parquet", "measurement.mdp", "notes.txt", "release.json"]
    assert record(out) == before


def test_a_failure_while_replacing_keeps_the_old_release(tmp_path: Path):
    out = copied(tmp_path)
    before = record(out)

    def fail() -> None:
        with transaction(out, force=True, keep=False) as run:
            (run.folder / "release.json").write_text("{}")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert record(out) == before
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("part", ["privacy", "authorization"])
def test_the_time_cannot_be_forged(part: str, tmp_path: Path):
    out = copied(tmp_path)
    forge_record(out, lambda written: put(written, (part, "time"), lambda _: "2020-01-01T00:00:00+00:00"))
    with pytest.raises(StorageError, match=f"{part}.time says"):
        mdp.load_release(out)


@pytest.mark.parametrize(
    ("version", "later"), [("0.0.9", False), ("0.1.0", False), ("0.1.1", True), ("10", True), ("none", False)]
)
def test_a_release_of_a_later_version_is_called_that(version: str, later: bool, tmp_path: Path):
    out = copied(tmp_path)
    forge_record(out, lambda written: put(written, ("publication",), lambda _: {"more": "of later"}))
    forge_record(out, lambda written: put(written, ("privacy", "versions", "matrixdp"), lambda _: version))
    with pytest.raises(StorageError) as caught:
        mdp.load_release(out)
    assert caught.value.code == ("other-version" if later else "damaged-file")
    assert (f"written by matrixdp {version}, a later version than this one" in str(caught.value)) == later
    assert "publication" in str(caught.value) or "more" in str(caught.value)


def test_the_measurement_is_the_one_that_is_listed(tmp_path: Path):
    out = copied(tmp_path)
    content = (out / "measurement.mdp").read_bytes()
    for changed in (content + b"\0", content[:-1]):
        (out / "measurement.mdp").write_bytes(changed)
        with pytest.raises(StorageError, match="checksum"):
            mdp.load_release(out)
    # the digests of the answers are not looked at, as they are not read
    (out / "measurement.mdp").write_bytes(content)
    (out / "answers.parquet").write_bytes(b"")
    assert mdp.load_release(out).answers.num_rows == WORKLOAD.queries


def test_every_array_is_named_by_something(tmp_path: Path):
    out = copied(tmp_path)
    forge_measurement(out, lambda _, members: members.update({"arrays/more.npy": members["arrays/0.npy"]}))
    with pytest.raises(StorageError, match="refers to some of its arrays nowhere"):
        mdp.load_release(out)
    assert not mdp.verify_release(out).holds


def test_the_last_bits_of_a_conversion_may_differ(tmp_path: Path):
    """A later version may prove a bound that is tighter in its last digits."""
    out = copied(tmp_path)
    place = ("privacy", "guarantees", 2, "parameters", "epsilon")
    forge_record(out, lambda written: put(written, place, lambda epsilon: epsilon * (1 + 1e-12)))
    mdp.load_release(out)
    forge_record(out, lambda written: put(written, place, lambda epsilon: epsilon * (1 - 1e-6)))
    with pytest.raises(StorageError, match="guarantees"):
        mdp.load_release(out)
