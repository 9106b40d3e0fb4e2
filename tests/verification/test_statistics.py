"""Whether statistics on disk follow from the measurement."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.language import read_entry
from matrixdp.storage.archive import entry

NAME = "statistics.parquet"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    domain = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 9}})
    asked = (mdp.ask.quantile("age", by=["sex"]), mdp.ask.cdf("age"), mdp.ask.mean("age"))
    strategy = mdp.select(mdp.Workload(domain, *asked))
    table = {"sex": ["female", "male"] * 200, "age": [1, 2, 3, 8] * 100}
    release = strategy.measure(table, mdp.Budget(mu=1)).reconstruct()
    return mdp.save_release(release, tmp_path_factory.mktemp("statistics") / "out")


def replaced(released: Path, folder: Path, change: Callable[[Any], Any]) -> mdp.Verification:
    """Verify a copy of a release with other statistics, whose record lists their digest."""
    shutil.copytree(released, folder)
    table = change(pq.read_table(released / NAME))
    if table is None:
        (folder / NAME).unlink()
    elif isinstance(table, bytes):
        (folder / NAME).write_bytes(table)
    else:
        pq.write_table(table, folder / NAME)
    record = json.loads((folder / "release.json").read_text())
    record["files"].pop(NAME, None)
    if (folder / NAME).exists():
        record["files"][NAME] = entry(folder / NAME)
    (folder / "release.json").write_text(json.dumps(record))
    return mdp.verify_release(folder)


def with_column(table: Any, name: str, change: Callable[[list[Any]], None]) -> Any:
    values = table[name].to_pylist()
    change(values)
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(name), pa.array(values, table[name].type))


def test_statistics_follow(released: Path) -> None:
    found = mdp.verify_release(released)
    assert found.holds
    assert {f.subject: f.words for f in found}["statistics"] == "3 tables follow from the measurement"


def test_a_digest_that_is_not_listed_fails(released: Path, tmp_path: Path) -> None:
    shutil.copytree(released, tmp_path / "out")
    (tmp_path / "out" / NAME).write_bytes(b"other")
    failed = {finding.subject for finding in mdp.verify_release(tmp_path / "out").failed}
    assert failed == {"files", "statistics"}


def test_figures_that_differ_by_rounding_follow(released: Path, tmp_path: Path) -> None:
    def nudge(values: list[Any]) -> None:
        values[:] = [None if value is None else value * (1 + 1e-12) for value in values]

    assert replaced(released, tmp_path / "out", lambda table: with_column(table, "lower", nudge)).holds


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an estimate": (
        lambda table: with_column(table, "estimate", lambda v: v.__setitem__(7, v[7] + 0.01)),
        "statistics.parquet, row 7: estimate says",
    ),
    "a share": (
        lambda table: with_column(table, "share_upper", lambda v: v.__setitem__(8, v[8] + 1e-4)),
        "statistics.parquet, row 8: share_upper says",
    ),
    "a share's estimate": (
        lambda table: with_column(table, "share", lambda v: v.__setitem__(8, v[8] + 1e-4)),
        "statistics.parquet, row 8: share says",
    ),
    "a number where there is none": (
        lambda table: with_column(table, "stddev", lambda v: v.__setitem__(0, 1.0)),
        "statistics.parquet, row 0: stddev says 1.0; None follows",
    ),
    "none where there is a number": (
        lambda table: with_column(table, "quantile", lambda v: v.__setitem__(1, None)),
        "statistics.parquet, row 1: quantile says None; 0.5 follows",
    ),
    "a label": (
        lambda table: with_column(table, "sex", lambda v: v.__setitem__(0, "male")),
        "statistics.parquet, row 0: sex says male; female follows",
    ),
    "fewer rows": (lambda table: table.slice(1), "has 16 rows; 17 follow"),
    "other columns": (lambda table: table.drop_columns(["sex"]), "has other columns than those that follow"),
    "no mark": (lambda table: table.replace_schema_metadata(), "does not say whether the noise was seeded"),
    "no table": (lambda _: b"PAR1 nothing", "cannot be read"),
    "no file": (lambda _: None, "statistics.parquet is missing"),
}


@pytest.mark.parametrize("name", WRONG)
def test_statistics_that_do_not_follow_are_found(name: str, released: Path, tmp_path: Path) -> None:
    change, says = WRONG[name]
    failed = [f for f in replaced(released, tmp_path / "out", change).failed if f.subject == "statistics"]
    assert len(failed) == 1
    assert pc.match_substring_regex(pa.array([failed[0].words]), says)[0].as_py(), failed[0].words


def test_statistics_that_nothing_asks_for_are_found(released: Path, tmp_path: Path) -> None:
    domain = mdp.Domain({"sex": ["female", "male"]})
    measured = mdp.select(mdp.Workload(domain, mdp.marginals(1))).measure({"sex": ["male"]}, mdp.Budget(mu=1))
    plain = mdp.save_release(measured.reconstruct(), tmp_path / "plain")
    shutil.copy(released / NAME, plain / NAME)
    failed = {finding.subject: finding.words for finding in mdp.verify_release(plain).failed}
    assert failed["statistics"] == "statistics.parquet is there, and nothing is asked that it could hold"
    assert set(failed) == {"files", "statistics"}


def test_levels_may_have_the_names_that_earlier_versions_gave_their_columns(tmp_path: Path) -> None:
    ages = {"min": 0, "max": 3, "levels": {"band": {"young": [0, 1], "old": [2, 3]}}}
    entry = read_entry({"top": {"sex": 1}, "by": {"age": {"level": "band"}}})
    workload = mdp.Workload(mdp.Domain({"age": ages, "sex": ["female", "male"]}), entry)
    table = {"age": [1, 2], "sex": ["male"] * 2}
    release = mdp.select(workload).measure(table, mdp.Budget(mu=1)).reconstruct()
    folder = mdp.save_release(release, tmp_path / "new")

    def earlier(names: list[str]) -> list[str]:
        assert "band" in names
        return ["age" if name == "band" else name for name in names]

    record = json.loads((folder / "release.json").read_text())
    record["statistics"][0]["columns"] = earlier(record["statistics"][0]["columns"])
    (folder / "release.json").write_text(json.dumps(record))

    def renamed(found: Any) -> Any:
        return found.rename_columns(earlier(found.column_names)).replace_schema_metadata(
            found.schema.metadata
        )

    assert replaced(folder, tmp_path / "old", renamed).failed == ()
