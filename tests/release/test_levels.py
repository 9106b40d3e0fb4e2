"""Many answers at several levels of areas: files for each level, and questions answered from them."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp import mapped
from matrixdp.answers import table
from matrixdp.errors import StorageError
from matrixdp.exact import CenteredMatrix, IdentityMatrix
from matrixdp.measure.measurement import Measurement, measure
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Block, Part, Split, residual_weights
from matrixdp.plans import slices as sliced
from matrixdp.queries import Entry
from matrixdp.releases import files
from matrixdp.sources import open_source
from matrixdp.storage import archive
from tests.builders import key, keys
from tests.forging import forge_record, relist
from tests.independent import found
from tests.release.test_schema import faults

AREAS = 24
CODES = [f"{place:02}" for place in range(AREAS)]
COUNTIES = {f"c{place}": CODES[3 * place : 3 * place + 3] for place in range(7)} | {
    "far": CODES[22:20:-1],
    "": CODES[23:],
}
STATES = {"N": CODES[12:], "S": CODES[:12]}
DOMAIN = mdp.Domain(
    {
        "geo": {"categories": CODES, "levels": {"state/x": STATES, "county": COUNTIES}},
        "sex": ["f", "m"],
        "level": {"min": 0, "max": 2},
    }
)
WORKLOAD = mdp.Workload(
    DOMAIN,
    mdp.marginals([0, 1, 2], attributes=["sex", "level"], at={"geo": ["total", "state/x", "county", "geo"]}),
    mdp.product(geo={"sets": [["00", "05"], ["07"]]}, sex="identity", name="pairs"),
)


draw = np.random.default_rng(3)
TABLE = {
    "geo": draw.choice(CODES, 400),
    "sex": draw.choice(["f", "m"], 400),
    "level": draw.integers(0, 3, 400),
}


def measured() -> Measurement:
    """Measure every cell of every area, so that areas can be cut into slices."""
    sizes = {"sex": 2, "level": 3}
    parts = [
        Part(
            ("geo", *own),
            (Block(("geo",), IdentityMatrix(AREAS)), *(Block((n,), CenteredMatrix(sizes[n])) for n in own)),
            1.0,
        ).at_cost(GAUSSIAN, 0.25)
        for own in [(), ("sex",), ("level",), ("sex", "level")]
    ]
    weights = {name: residual_weights(size) for name, size in sizes.items()} | {"geo": np.zeros(AREAS)}
    return measure(Split(DOMAIN, tuple(parts), GAUSSIAN, weights), open_source(TABLE), mdp.Budget(rho=2))


RELEASE = mdp.Release(measured(), WORKLOAD)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred answers are many, and so are a hundred rows; measurements are cut, and lie in files."""
    monkeypatch.setattr(files, "MANY_ANSWERS", 100)
    monkeypatch.setattr(files, "PART_ROWS", 200)
    monkeypatch.setattr(table, "BATCH_ROWS", 70)
    monkeypatch.setattr(sliced, "LEAST_CUT", 10)
    monkeypatch.setattr(sliced, "_CELLS", 100)
    monkeypatch.setattr(mapped, "LARGEST_HELD", 16)
    monkeypatch.setattr(archive, "LARGEST_HELD", 16)


@pytest.fixture
def folder(many: None, tmp_path: Path) -> Path:
    return mdp.save_release(
        replace(RELEASE, measurement=replace(RELEASE.measurement)), tmp_path / "out", csv=True, key=key()
    )


def parts(folder: Path, level: str = "*") -> list[Path]:
    return sorted((folder / "answers").glob(f"level={level}/*.parquet"))


def test_answers_are_in_files_for_each_level(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert not (folder / "answers.parquet").exists()
    assert len(parts(folder, "geo")) > 1
    monkeypatch.setattr(files, "MANY_ANSWERS", 10**6)
    single = mdp.save_release(RELEASE, tmp_path / "single")
    one, other = pq.read_table(single / "answers.parquet"), pq.read_table(folder / "answers")
    texts = ["group", "geo", "sex", "level_attribute", "level_from", "level_to"]
    called = dict(zip(["group", "geo", "sex", "level", "level_from", "level_to"], texts, strict=True))
    one = one.rename_columns([called.get(name, name) for name in one.column_names])
    rows = {tuple(row[name] for name in texts): row for row in one.to_pylist()}
    assert len(rows) == other.num_rows == WORKLOAD.queries
    for row in other.to_pylist():
        own = rows[tuple(row[name] for name in texts)]
        assert row["estimate"] == pytest.approx(own["estimate"], abs=1e-9)
        assert row["stddev"] == pytest.approx(own["stddev"], rel=1e-9)
    levels = dict(zip(*np.unique(other["level"].to_pylist(), return_counts=True), strict=True))
    assert levels == {"total": 12, "state/x": 24, "county": 96, "geo": 288, "other": 4}
    path = str(folder / "answers")
    assert pl.read_parquet(path, hive_partitioning=True)["estimate"].sum() == pytest.approx(
        pa.compute.sum(other["estimate"]).as_py()
    )
    counted = duckdb.read_parquet(f"{path}/*/*.parquet", hive_partitioning=True).filter("level = 'state/x'")
    assert len(counted.fetchall()) == 24
    assert other.to_pandas()["level"].value_counts()["county"] == 96


def test_workers_write_the_same_answers(folder: Path, tmp_path: Path):
    def often(function: Callable[[int], Any], numbers: Iterable[int]) -> Iterator[Any]:
        """Run every task twice at once, in another order; one more is killed while it writes."""
        with ThreadPoolExecutor(2) as pool:
            tasks = [(number, pool.submit(function, number)) for number in [*numbers] * 2][::-1]
            found = {number: task.result() for number, task in tasks}
        staged = next(path for path in tmp_path.glob(".*") if (path / "answers").exists())
        (staged / ".draft-1" / "answers").mkdir(parents=True)
        yield from (found[number] for number in sorted(found))

    release = replace(RELEASE, measurement=replace(RELEASE.measurement))
    calls: list[tuple[int, int]] = []
    workers = mdp.Workers(often, tmp_path)
    other = mdp.save_release(
        release, tmp_path / "by", workers=workers, progress=lambda *own: calls.append(own), key=key()
    )
    assert calls[-1] == (WORKLOAD.queries, WORKLOAD.queries)
    assert len(parts(other, "geo")) > 1
    for level in ("total", "state%2Fx", "county", "geo"):
        one = pa.concat_tables(pq.read_table(path, partitioning=None) for path in parts(folder, level))
        two = pa.concat_tables(pq.read_table(path, partitioning=None) for path in parts(other, level))
        assert two.equals(one)
    assert mdp.verify_release(other, key=keys()[1]).holds
    assert not [*other.glob(".*")]
    assert not [*tmp_path.glob("matrixdp-*")]


def test_the_files_of_a_level_are_sorted_by_area(folder: Path):
    county = [pq.read_table(path, partitioning=None) for path in parts(folder, "county")]
    for group, rows in pa.concat_tables(county).to_pandas().groupby("group", observed=True):
        assert rows["geo"].is_monotonic_increasing or group is None
    for path in parts(folder, "geo"):
        held = pq.ParquetFile(path).metadata
        for place in range(held.num_row_groups):
            own = held.row_group(place).column(1).statistics
            assert int(own.max) - int(own.min) < 16


def test_a_release_with_levels_is_whole(folder: Path):
    record = mdp.check_signature(folder, keys()[1])
    assert faults(record) == []
    assert record["answers"]["levels_of"] == "geo"
    assert {group["level"] for group in record["groups"]} == {"total", "state/x", "county", "geo", "other"}
    assert mdp.verify_release(folder, key=keys()[1]).holds
    assert found(folder)[1] == []
    assert "answers/level=geo/part-00001.parquet" in mdp.explain_release(folder)
    header = (folder / "answers.csv").read_text().splitlines()[0]
    assert header.startswith('"group","level","geo","sex","level_attribute"')


ASKED = [
    mdp.product(geo={"sets": [["07"]]}, sex="identity"),
    mdp.product(geo={"sets": [["07"], ["03"], ["22"]]}, sex="identity", level="identity"),
    mdp.product(geo={"sets": [COUNTIES["c1"][::-1]]}, level="identity"),
    mdp.product(geo={"sets": [COUNTIES["far"]]}, level="identity"),
    mdp.marginals(2, attributes=["sex", "level"], at={"geo": ["total", "county"]}),
    mdp.marginals(0),
]
COMPUTED = [
    mdp.product(geo={"sets": [["07"]]}, level="prefix"),
    mdp.product(geo={"sets": [["07"], COUNTIES["c1"]]}, sex="identity"),
    mdp.product(geo={"sets": [["07", "09"]]}, sex="identity"),
    mdp.product(geo={"sets": [["07"], ["07"]]}, sex="identity"),
    mdp.marginals(1, attributes=["sex"], at={"geo": "geo"}),
]


@pytest.mark.parametrize("entry", [*ASKED, *COMPUTED])
def test_questions_have_the_same_answers(folder: Path, entry: Entry):
    own, other = mdp.load_release(folder).answer(entry), RELEASE.answer(entry)
    figures = ["estimate", "lower", "upper", "stddev"]
    assert own.drop_columns(figures).equals(other.drop_columns(figures))
    for name in figures:
        assert own[name].to_numpy() == pytest.approx(other[name].to_numpy(), abs=1e-9)


def test_areas_may_stand_behind_other_attributes(many: None, tmp_path: Path):
    domain = mdp.Domain([DOMAIN["sex"], DOMAIN["geo"], DOMAIN["level"]])
    workload = mdp.Workload(
        domain, mdp.marginals(2, attributes=["sex", "level"], at={"geo": ["county", "geo"]})
    )
    release = mdp.select(workload).measure(TABLE, mdp.Budget(rho=2)).reconstruct()
    folder = mdp.save_release(release, tmp_path / "out")
    entry = mdp.product(geo={"sets": [["07"], ["03"]]}, sex="identity", level="identity")
    own, other = mdp.load_release(folder).answer(entry), release.answer(entry)
    assert own["estimate"].to_pylist() == pytest.approx(other["estimate"].to_pylist(), abs=1e-9)
    assert own["geo"].to_pylist() == other["geo"].to_pylist()


def test_two_groups_of_one_name_are_told_apart(many: None, tmp_path: Path):
    at = {"geo": ["county", "geo"]}
    named = [mdp.product({name: "identity"}, at=at, name="counts") for name in ("sex", "level")]
    release = mdp.Release(RELEASE.measurement, mdp.Workload(DOMAIN, *named))
    folder = mdp.save_release(release, tmp_path / "out")
    assert mdp.verify_release(folder).holds
    for entry in named:
        own, other = mdp.load_release(folder).answer(entry), release.answer(entry)
        assert own["estimate"].to_pylist() == pytest.approx(other["estimate"].to_pylist(), abs=1e-9)


def every_area(release: mdp.Release) -> None:
    """Ask one area after the other."""
    for code in CODES:
        release.answer(mdp.product(geo={"sets": [[code]]}, sex="identity", level="identity"))


def damage(folder: Path) -> None:
    """Flip a bit of the noisy answers."""
    path = folder / "measurement.mdp"
    content = bytearray(path.read_bytes())
    content[content.index(b"header.json") - 200] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("entry", ASKED)
def test_what_was_answered_is_read_and_nothing_else(folder: Path, entry: Entry):
    damage(folder)
    assert mdp.load_release(folder).answer(entry).num_rows
    assert not mdp.verify_release(folder).holds


@pytest.mark.parametrize("entry", COMPUTED)
def test_all_else_needs_the_whole_measurement(folder: Path, entry: Entry):
    damage(folder)
    with pytest.raises(StorageError, match="checksum") as error:
        mdp.load_release(folder).answer(entry)
    assert error.value.code == "damaged-file"


def test_a_forged_answer_is_told(folder: Path):
    path = parts(folder, "county")[0]
    held = pq.read_table(path, partitioning=None)
    estimates = held["estimate"].to_numpy().copy()
    estimates[4] += 1
    forged = held.set_column(
        held.column_names.index("estimate"), held.schema.field("estimate"), pa.array(estimates)
    )
    pq.write_table(forged, path)
    name = path.relative_to(folder).as_posix()
    assert f"{name} has another digest or size than is listed" in str(list(mdp.verify_release(folder)))
    relist(folder, name)
    told = [one.words for one in mdp.verify_release(folder).failed if one.subject == "answers"]
    assert len(told) == 1
    assert told[0].startswith("answers/level=county, row 4: estimate says")


def _missing(folder: Path) -> Path:
    path = parts(folder, "geo")[1]
    path.unlink()
    return path


def _changed(folder: Path) -> Path:
    path = parts(folder, "geo")[1]
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    return path


def _cut(folder: Path) -> Path:
    path = parts(folder, "geo")[1]
    path.write_bytes(path.read_bytes()[:-20])
    return path


def _linked(folder: Path) -> Path:
    path = parts(folder, "geo")[1]
    moved = folder.parent / "elsewhere"
    path.rename(moved)
    path.symlink_to(moved)
    return path


def _extra(folder: Path) -> Path:
    return Path(shutil.copy(parts(folder, "geo")[1], parts(folder, "geo")[1].with_name("part-9.parquet")))


def _other_level(folder: Path) -> Path:
    made = folder / "answers" / "level=block"
    made.mkdir()
    return Path(shutil.copy(parts(folder, "geo")[1], made / "part-0.parquet"))


def _outside(folder: Path) -> Path:
    shutil.move(folder / "answers", folder.parent / "answers")
    (folder / "answers").symlink_to(folder.parent / "answers")
    return folder / "answers"


FORGED = [_missing, _changed, _cut, _linked, _extra, _other_level, _outside]


@pytest.mark.parametrize("forge", FORGED)
def test_other_files_than_those_listed_are_rejected(folder: Path, forge: Callable[[Path], Path]):
    path = forge(folder)
    with pytest.raises(StorageError) as error:
        mdp.check_signature(folder, keys()[1])
    assert error.value.code in ("storage", "file-missing")
    assert str(path.relative_to(folder)) in str(error.value) or forge is _outside
    told = [one.words for one in mdp.verify_release(folder).failed if one.subject == "files"]
    assert told if forge is not _linked else True
    assert found(folder)[1] or forge in (_linked, _outside)


@pytest.mark.parametrize("forge", [_missing, _changed, _cut, _linked])
def test_a_question_names_the_file_that_is_another(folder: Path, forge: Callable[[Path], Path]):
    path = forge(folder)
    release = mdp.load_release(folder)
    with pytest.raises(StorageError, match="part-00001") as error:
        every_area(release)
    assert error.value.code in ("damaged-file", "file-missing")
    assert str(path) in str(error.value)


def test_a_file_that_is_listed_twice_has_too_many_rows(folder: Path):
    relist(folder, _extra(folder).relative_to(folder).as_posix())
    told = [one.words for one in mdp.verify_release(folder).failed]
    assert any(words.startswith("answers/level=geo has more than the 288 rows") for words in told)
    release = mdp.load_release(folder)
    with pytest.raises(StorageError, match="not in the form") as error:
        every_area(release)
    assert error.value.code == "damaged-file"


@pytest.mark.parametrize("said", [None, {}, {"levels_of": "geo", "attributes": {"geo": 3}}])
def test_a_record_without_columns_is_rejected(folder: Path, said: object):
    forge_record(folder, lambda record: record.update(answers=said))
    if said:
        with pytest.raises(StorageError) as error:
            mdp.load_release(folder).answer(ASKED[0])
        assert error.value.code == "damaged-file"
    else:
        assert mdp.load_release(folder).answer(ASKED[0]).num_rows == 2


def test_a_release_with_levels_is_replaced_and_removed(folder: Path, monkeypatch: pytest.MonkeyPatch):
    fresh = mdp.load_release(folder)
    with pytest.raises(StorageError) as error:
        mdp.save_release(fresh, folder)
    assert error.value.code == "file-exists"
    (folder / "answers" / "notes.txt").write_text("mine")
    with pytest.raises(StorageError, match="other files"):
        mdp.save_release(fresh, folder, force=True)
    (folder / "answers" / "notes.txt").unlink()
    mdp.save_release(fresh, folder, force=True)
    assert mdp.verify_release(folder).holds
    monkeypatch.setattr(files, "MANY_ANSWERS", 10**6)
    mdp.save_release(mdp.load_release(folder), folder, force=True)
    assert not (folder / "answers").exists()
    assert mdp.verify_release(folder).holds


def test_an_earlier_release_with_one_file_is_verified(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(files, "MANY_ANSWERS", 10**6)
    earlier = mdp.save_release(RELEASE, tmp_path / "earlier")
    forge_record(earlier, lambda record: record["files"]["measurement.mdp"].pop("header"))
    monkeypatch.setattr(files, "MANY_ANSWERS", 100)
    assert mdp.verify_release(earlier).holds
    assert mdp.load_release(earlier).answer(ASKED[0]).num_rows == 2
    damage(earlier)
    with pytest.raises(StorageError):
        mdp.load_release(earlier)


def test_another_measurement_of_the_same_size_is_rejected(folder: Path, tmp_path: Path):
    other = mdp.save_release(mdp.Release(measured(), WORKLOAD), tmp_path / "other")
    shutil.copy(other / "measurement.mdp", folder / "measurement.mdp")
    with pytest.raises(StorageError, match="checksum is another"):
        mdp.load_release(folder)
