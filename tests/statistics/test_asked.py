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
from matrixdp.errors import TooLargeError
from matrixdp.releases import release_schema
from matrixdp.statistics.counts import SimultaneousEntry

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 9}, "hours": {"edges": [0, 5, 20]}})
TABLE = {
    "sex": ["female"] * 600 + ["male"] * 400,
    "age": [3] * 600 + [7] * 400,
    "hours": [1] * 500 + [9] * 500,
}
SEXES: dict[str, Any] = {"marginals": [["sex"]]}
ASKED = (
    mdp.ask.quantile("age", 0.5, by=["sex"]),
    mdp.ask.cdf("age"),
    mdp.ask.mean("hours", by=["sex"], name="hours"),
    mdp.ask.sum("hours"),
    mdp.ask.top("age", 1),
    mdp.ask.share(SEXES),
    mdp.ask.ratio(SEXES, {"marginals": 0}),
    mdp.ask.difference(SEXES, {"marginals": 0}),
    mdp.ask.combination([([1, -1], SEXES)]),
    mdp.ask.simultaneous(SEXES),
    mdp.ask.cdf("age"),
)


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
        "median of age by sex",
        "CDF of age",
        "hours",
        "sum of hours",
        "top 1 of age",
        "share: marginals [[sex]]",
        "ratio: marginals [[sex]] over marginals [0]",
        "difference: marginals [[sex]] less marginals [0]",
        "combination: (2 coefficients) marginals [[sex]]",
        "simultaneous: marginals [[sex]]",
        "CDF of age (2)",
    ]
    assert release.statistics["median of age by sex"]["estimate"].to_pylist() == [3, 7]
    np.testing.assert_allclose(
        release.statistics["share: marginals [[sex]]"]["estimate"], [0.6, 0.4], atol=0.01
    )
    np.testing.assert_allclose(
        release.statistics["hours"]["estimate"], [2.5 + 10 / 6, 12.5], atol=0.2
    )  # 500 of 600 women are in [0, 5), all men in [5, 20)


def test_statistics_are_those_of_the_methods(release: mdp.Release) -> None:
    methods = (
        release.quantile("age", 0.5, by=["sex"]),
        release.cdf("age"),
        release.mean("hours", by=["sex"]),
        release.sum("hours"),
        release.top("age", 1),
        release.share(SEXES),
        release.ratio(SEXES, {"marginals": 0}),
        release.difference(SEXES, {"marginals": 0}),
        release.combination([([1, -1], SEXES)]),
        release.simultaneous(SEXES),
    )
    for entry, table in zip(ASKED, methods, strict=False):
        assert release.answer(entry).equals(table), entry.title
        assert release.answer(entry.to_spec()).equals(table), entry.title


def test_what_is_asked_for_was_measured_for() -> None:
    """Where nothing but the queries of a workload of one statistic is measured, it is determined."""
    for entry in ASKED[:-1]:
        workload = mdp.Workload(DOMAIN, entry)
        measured = mdp.select(workload, mechanism="workload").measure(TABLE, mdp.Budget(mu=20))
        alone = measured.reconstruct()
        assert list(alone.statistics) == [entry.title]
    with pytest.raises(mdp.UnsupportedQueryError):
        alone.mean("hours")


def test_selection_makes_the_error_of_what_is_asked_for_least() -> None:
    """A mean by itself has less noise than beside all cells, and than where these alone are asked for."""
    by_sex = mdp.ask.mean("age", by=["sex"])
    alone, cells = released(by_sex), released(mdp.marginals([["sex", "age"]]))
    own = alone.statistics[by_sex.title]["stddev"].to_numpy()
    other = cells.mean("age", by=["sex"])["stddev"].to_numpy()
    assert (own < 0.7 * other).all()


def test_a_folder_has_them_and_its_record_says_so(release: mdp.Release, folder: Path) -> None:
    record = json.loads((folder / "release.json").read_text())
    assert [error.message for error in Draft202012Validator(release_schema()).iter_errors(record)] == []
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
    assert list(loaded) == list(release.statistics)
    for name, table in release.statistics.items():
        assert loaded[name].equals(table)


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
    assert [error.message for error in Draft202012Validator(release_schema()).iter_errors(record)] == []
    assert record["statistics"][0] == {
        "name": "all",
        "statistic": "simultaneous",
        "first_row": 0,
        "rows": 0,
        "note": "too many numbers",
    }
    assert statistics_table(partly.asked)["statistic"].to_pylist() == ["CDF of age"] * 10
    assert mdp.verify_release(out).holds
    none = mdp.save_release(released(failing), tmp_path / "none")
    assert not (none / "statistics.parquet").exists()
    assert mdp.verify_release(none).holds
