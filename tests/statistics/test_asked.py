"""Statistics that a workload asks for: in a release, in its folder, and when it is loaded again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

import matrixdp as mdp
from matrixdp.answers.inference import statistics_table
from matrixdp.answers.titles import title
from matrixdp.errors import TooLargeError
from matrixdp.releases import release_schema
from matrixdp.statistics.counts import SimultaneousEntry

DOMAIN = mdp.Domain(
    {
        "sex": ["female", "male"],
        "age": {"min": 0, "max": 9},
        "hours": {"edges": [0, 5, 20]},
        "month": {"from": "2025-01-01", "to": "2025-03-31", "by": "month"},
    }
)
TABLE = {
    "sex": ["female"] * 600 + ["male"] * 400,
    "age": [3] * 600 + [7] * 400,
    "hours": [1] * 500 + [9] * 500,
    "month": ["2025-01-05"] * 500 + ["2025-02-05"] * 300 + ["2025-03-05"] * 200,
}
SEXES: dict[str, Any] = {"marginals": [["sex"]]}
#: Functions of `ask` and methods of a release, and what they are given.
CALLS: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("quantile", ("age", 0.5), {"by": ["sex"]}),
    ("cdf", ("age",), {}),
    ("mean", ("hours",), {"by": ["sex"]}),
    ("sum", ("hours",), {}),
    ("top", ("age", 1), {}),
    ("share", (SEXES,), {}),
    ("ratio", (SEXES, {"marginals": 0}), {}),
    ("difference", (SEXES, {"marginals": 0}), {}),
    ("percent_change", ({"marginals": [["month"]]},), {"over": "period"}),
    ("combination", ([([1, -1], SEXES)],), {}),
    ("simultaneous", (SEXES,), {}),
)
ONCE = [getattr(mdp.ask, name)(*given, **options) for name, given, options in CALLS]
ASKED = [*ONCE, mdp.ask.cdf("age"), mdp.ask.sum("hours", name="all hours")]


def released(*entries: Any) -> mdp.Release:
    workload = mdp.Workload(DOMAIN, *entries)
    return mdp.select(workload).measure(TABLE, mdp.Budget(mu=20)).reconstruct()


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    return released(mdp.marginals(0), *ASKED)


@pytest.fixture(scope="module")
def folder(release: mdp.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mdp.save_release(release, tmp_path_factory.mktemp("asked") / "out")


def test_every_statistic_that_is_asked_for_is_there(release: mdp.Release) -> None:
    assert list(release.statistics) == [
        *(entry.called(DOMAIN, title) for entry in ONCE),
        "CDF of age (2)",
        "all hours",
    ]
    median, shares, means = (
        release.statistics[name]["estimate"].to_pylist()
        for name in ("median of age by sex", "share of sex", "mean of hours by sex")
    )
    assert median == [3, 7]
    np.testing.assert_allclose(shares, [0.6, 0.4], atol=0.01)
    # 500 of 600 women are in [0, 5), all men in [5, 20)
    np.testing.assert_allclose(means, [2.5 + 10 / 6, 12.5], atol=0.2)


def test_statistics_are_those_of_the_methods(release: mdp.Release) -> None:
    for entry, (name, given, options) in zip(ONCE, CALLS, strict=True):
        table = getattr(release, name)(*given, **options)
        assert release.answer(entry).equals(table), entry.called(DOMAIN, title)
        assert release.answer(entry.to_spec()).equals(table), entry.called(DOMAIN, title)
        assert release.statistics[entry.called(DOMAIN, title)].equals(table), entry.called(DOMAIN, title)


def test_what_is_asked_for_was_measured_for() -> None:
    """Where nothing but the queries of a workload of one statistic is measured, it is determined."""
    for entry in ONCE:
        strategy = mdp.select(mdp.Workload(DOMAIN, entry), mechanism="workload")
        alone = strategy.measure(TABLE, mdp.Budget(mu=20)).reconstruct()
        assert list(alone.statistics) == [entry.called(DOMAIN, title)]
    with pytest.raises(mdp.UnsupportedQueryError):
        alone.mean("hours")


def test_selection_makes_the_error_of_what_is_asked_for_least() -> None:
    """A mean by itself has less noise than beside all cells, and than where these alone are asked for."""
    by_sex = mdp.ask.mean("age", by=["sex"])
    alone, cells = released(by_sex), released(mdp.marginals([["sex", "age"]]))
    own = alone.statistics[by_sex.called(DOMAIN, title)]["stddev"].to_numpy()
    other = cells.mean("age", by=["sex"])["stddev"].to_numpy()
    assert (own < 0.7 * other).all()


def test_a_folder_has_them_and_its_record_says_so(release: mdp.Release, folder: Path) -> None:
    record = json.loads((folder / "release.json").read_text())
    Draft202012Validator(release_schema()).validate(record)
    assert [(row["name"], row["statistic"]) for row in record["statistics"]] == [
        (name, entry.kind) for name, entry in zip(release.statistics, ASKED, strict=True)
    ]
    written = pq.read_table(folder / "statistics.parquet")
    for row, table in zip(record["statistics"], release.statistics.values(), strict=True):
        part = written.slice(row["first_row"], row["rows"])
        assert row["columns"] == table.column_names
        assert part["statistic"].to_pylist() == [row["name"]] * table.num_rows
        for name in table.column_names:
            assert part[name].to_pylist() == table[name].to_pylist()
    assert written.num_rows == sum(row["rows"] for row in record["statistics"])
    assert written.schema.metadata == {b"matrixdp": b"private"}


def test_a_release_that_is_loaded_has_them(release: mdp.Release, folder: Path) -> None:
    loaded = mdp.load_release(folder).statistics
    assert list(loaded.items()) == list(release.statistics.items())


def test_a_release_without_statistics_says_nothing_of_them(tmp_path: Path) -> None:
    plain = released(mdp.marginals(0))
    out = mdp.save_release(plain, tmp_path / "out")
    assert (plain.asked, plain.statistics) == ((), {})
    assert not (out / "statistics.parquet").exists()
    assert "statistics" not in json.loads((out / "release.json").read_text())


def test_what_cannot_be_computed_does_not_cost_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The budget is spent by then, so that the release is written, and says why something is missing."""

    def refuse(*_: object) -> pa.Table:
        raise TooLargeError("too many numbers")

    monkeypatch.setattr(SimultaneousEntry, "evaluate", refuse)
    failing, both = mdp.ask.simultaneous(SEXES, name="all"), mdp.ask.cdf("age")
    partly = released(failing, both)
    with pytest.raises(TooLargeError, match="too many numbers"):
        _ = partly.statistics
    out = mdp.save_release(partly, tmp_path / "out")
    record = json.loads((out / "release.json").read_text())
    Draft202012Validator(release_schema()).validate(record)
    said = {"name": "all", "statistic": "simultaneous", "first_row": 0, "rows": 0}
    assert record["statistics"][0] == said | {"note": "too many numbers"}
    assert statistics_table(partly.asked)["statistic"].to_pylist() == ["CDF of age"] * 10
    assert mdp.verify_release(out).holds
    none = mdp.save_release(released(failing), tmp_path / "none")
    assert not (none / "statistics.parquet").exists()
    assert mdp.verify_release(none).holds
