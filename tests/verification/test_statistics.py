"""Whether statistics on disk follow from the measurement."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from tests.forging import forge_record, relist, with_value

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
    if (folder / NAME).exists():
        relist(folder, NAME)
    else:
        forge_record(folder, lambda record: record["files"].pop(NAME))
    return mdp.verify_release(folder)


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
    def nudge(table: Any) -> Any:
        place = table.schema.get_field_index("lower")
        return table.set_column(place, table.schema.field(place), pc.multiply(table["lower"], 1 + 1e-12))

    assert replaced(released, tmp_path / "out", nudge).holds


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (with_value("estimate", 7, lambda value: value + 0.01), "row 7: estimate says"),
        (with_value("share_upper", 8, lambda value: value + 1e-4), "row 8: share_upper says"),
        (with_value("share", 8, lambda value: value + 1e-4), "row 8: share says"),
        (with_value("stddev", 0, 1.0), "row 0: stddev says 1.0; None follows"),
        (with_value("quantile", 1, None), "row 1: quantile says None; 0.5 follows"),
        (with_value("sex", 0, "male"), "row 0: sex says male; female follows"),
        (lambda table: table.slice(1), "has 16 rows; 17 follow"),
        (with_value("sex", 0, "x" * 2**27), "cannot be read"),
        (with_value("sex", 0, "x" * 2**20), f"row 0: sex says {'x' * 80}; female follows"),
        (lambda table: table.drop_columns(["sex"]), "has other columns than those that follow"),
        (lambda table: table.replace_schema_metadata(), "does not say whether the noise was seeded"),
        (lambda _: b"PAR1 nothing", "cannot be read"),
        (lambda _: None, "statistics.parquet is missing"),
    ],
)
def test_statistics_that_do_not_follow_are_found(
    change: Callable[[Any], Any], says: str, released: Path, tmp_path: Path
) -> None:
    failed = [f for f in replaced(released, tmp_path / "out", change).failed if f.subject == "statistics"]
    assert len(failed) == 1
    assert says in failed[0].words


def test_statistics_that_nothing_asks_for_are_found(released: Path, tmp_path: Path) -> None:
    domain = mdp.Domain({"sex": ["female", "male"]})
    measured = mdp.select(mdp.Workload(domain, mdp.marginals(1))).measure({"sex": ["male"]}, mdp.Budget(mu=1))
    plain = mdp.save_release(measured.reconstruct(), tmp_path / "plain")
    shutil.copy(released / NAME, plain / NAME)
    failed = {finding.subject: finding.words for finding in mdp.verify_release(plain).failed}
    assert failed["statistics"] == "statistics.parquet is there, and nothing is asked that it could hold"
    assert set(failed) == {"files", "statistics"}
