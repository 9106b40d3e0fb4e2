"""Tables as files: the figures of the release with the digits that errors justify, and descriptions."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.answers.figures import decimals_by_subject, decimals_of, with_digits
from matrixdp.answers.titles import file_name
from matrixdp.errors import TooLargeError
from matrixdp.exports import files as table_files
from matrixdp.exports import registry

INCOME, DAY = {"edges": ["-inf", 0, 10.5, "inf"]}, {"from": "2024-01-30", "to": "2024-03-02", "by": "month"}
DOMAIN = mdp.Domain({"sex": ["female", "male"], "income": INCOME, "day": DAY})
NAMED = "Income, \u00fcber alles!"
WORKLOAD = mdp.Workload(
    DOMAIN,
    mdp.marginals([0, 1]),
    mdp.marginals([["sex"]]),
    mdp.product(sex="identity", income="prefix", name=NAMED),
    mdp.dense(np.eye(2), ["sex"], name="***"),
)
TABLE = {"sex": ["female", "male"], "income": [-1.0, 10.5], "day": ["2024-01-31", "2024-03-01"]}


def released(**options: Any) -> mdp.Release:
    strategy = mdp.select(WORKLOAD, mechanism="residual")
    return strategy.measure(TABLE, mdp.Budget(mu=1), **options).reconstruct()


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    return released()


@pytest.fixture(scope="module")
def csv(release: mdp.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.save_tables(tmp_path_factory.mktemp("home") / "a" / "tables")


def test_digits_are_two_of_the_standard_error() -> None:
    for stddev in 10.0 ** np.linspace(-5, 7, 50):
        decimals = decimals_of(stddev)
        assert decimals is not None
        assert 10 * (1 - 1e-9) <= stddev * 10.0**decimals < 100 * (1 + 1e-9)
    assert decimals_of(math.inf) is None


def test_intervals_are_rounded_outward_and_estimates_to_the_nearest() -> None:
    values = np.random.default_rng(1).normal(0, 1e4, 200)
    columns = {"estimate": values, "stddev": np.full(200, 123.0), "lower": values - 1, "upper": values + 1}
    table = pa.table(columns)
    assert decimals_by_subject(table)[""] == decimals_of(123.0)
    for decimals in (-2, 0, 3):
        step = 10.0**-decimals
        found = {name: with_digits(table, decimals).column(name).to_numpy() for name in columns}
        assert (np.abs(found["estimate"] - values) <= step / 2 + 1e-9).all()
        for outward in (values - 1 - found["lower"], found["upper"] - values - 1):
            assert (outward >= 0).all()
            assert (outward < step + 1e-9).all()
        assert np.allclose(found["estimate"] / step, np.rint(found["estimate"] / step))
    assert with_digits(table, None).column("estimate").to_numpy().tolist() == values.tolist()


def test_names_of_files_keep_every_letter() -> None:
    taken: set[str] = set()
    kept = ["\u5e74\u9f62", "\u05d4\u05e9\u05db\u05dc\u05d4", "\u0438\u0439", "\u0915\u093f", "\u0663"]
    plain = ["Haushaltsgr\u00f6\u00dfe", "\u0141\u00f3d\u017a, \u00c6r\u00f8", "e\u0301 \u0130", "***", "#"]
    assert [file_name(title, taken) for title in (*kept, *plain, kept[0])] == [
        *kept, "haushaltsgrosse", "lodz-aero", "e-i", "table", "table-2", f"{kept[0]}-2",
    ]  # fmt: skip
    assert len(file_name(kept[0] * 100, taken).encode()) <= 80


@pytest.mark.parametrize("reserved", ["con", "PRN", "aux", "nul", "com1", "LPT9", "COM\u00b2"])
def test_names_of_files_are_none_that_windows_keeps(reserved: str) -> None:
    assert file_name(reserved, set()) == f"{reserved.casefold().replace(chr(178), '2')}-table"


def test_every_group_has_a_file_of_its_own(csv: Path, release: mdp.Release) -> None:
    names = ["total", "sex", "income", "day", "sex-2", "income-uber-alles", "table"]
    expected = {f"{name}.csv" for name in names} | {"croissant.json", "datapackage.json"}
    assert {path.name for path in csv.iterdir()} == expected
    frame, table = pacsv.read_csv(csv / "income-uber-alles.csv"), release.table(NAMED)
    assert frame.column_names == table.column_names
    assert frame.column("income").to_pylist() == table.column("income").to_pylist()
    assert frame.column("income_to").to_pylist() == [0, 10.5, None] * 2
    decimals = decimals_by_subject(table)[""]
    assert decimals is not None
    own = table.column("estimate").to_numpy()
    assert np.allclose(frame.column("estimate").to_numpy(), np.round(own, decimals), rtol=0, atol=1e-9)
    days = pacsv.read_csv(csv / "day.csv").column("day_from")
    assert [str(day) for day in days.to_pylist()] == ["2024-01-30", "2024-02-01", "2024-03-01"]


def test_descriptions_list_what_is_there_with_the_promise(csv: Path, release: mdp.Release) -> None:
    package = json.loads((csv / "datapackage.json").read_text())
    croissant = json.loads((csv / "croissant.json").read_text())
    assert package["privacy"] == json.loads(json.dumps(release.statement.as_dict()))
    assert release.statement.text in package["description"]
    assert croissant["rai:personalSensitiveInformation"] == release.statement.text
    files = {file["@id"]: file for file in croissant["distribution"]}
    for resource, records in zip(package["resources"], croissant["recordSet"], strict=True):
        content = (csv / resource["path"]).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        assert (resource["bytes"], resource["hash"]) == (len(content), f"sha256:{digest}")
        assert files[resource["path"]]["sha256"] == digest
        header = pacsv.read_csv(csv / resource["path"]).column_names
        assert [field["name"] for field in resource["schema"]["fields"]] == header
        assert [field["source"]["extract"]["column"] for field in records["field"]] == header
    fields = {field["name"]: field for field in package["resources"][5]["schema"]["fields"]}
    assert fields["income"]["categories"] == ["(-inf, 0)", "(-inf, 10.5)", "(-inf, inf)"]
    assert (fields["income_to"]["type"], fields["estimate"]["type"]) == ("number", "number")
    assert package["resources"][3]["schema"]["fields"][1]["type"] == "date"


def test_parquet_has_every_digit_and_says_what_it_is(release: mdp.Release, tmp_path: Path) -> None:
    folder = release.save_tables(tmp_path / "t", format="parquet")
    found = pq.read_table(folder / "income-uber-alles.parquet")
    assert release.table(NAMED).equals(found)
    said = json.loads(found.schema.metadata[b"matrixdp"])
    assert (said["title"], said["confidence"]) == (NAMED, 0.95)
    assert said["privacy"]["text"] == release.statement.text
    description = found.schema.field("stddev").metadata[b"description"].decode()
    assert description == "Standard error of the estimate, from the noise alone"
    resource = json.loads((folder / "datapackage.json").read_text())["resources"][1]
    assert ("bytes" in resource, resource["mediatype"]) == (False, "application/vnd.apache.parquet")


def test_tables_of_many_batches_have_one_number_of_digits(
    release: mdp.Release, tmp_path: Path, csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matrixdp.answers.table.BATCH_ROWS", 2)
    again = release.save_tables(tmp_path / "t")
    for path in csv.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes()


def test_tables_of_seeded_noise_say_so_in_their_names(tmp_path: Path) -> None:
    folder = released(seed_not_private=1).save_tables(tmp_path / "t")
    assert all(path.name.startswith("NOT-PRIVATE-") for path in folder.glob("*.csv"))
    assert json.loads((folder / "datapackage.json").read_text())["title"].startswith("NOT PRIVATE")


def test_what_cannot_be_written_is_refused_and_leaves_nothing(
    release: mdp.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_files, "entry", lambda path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        release.save_tables(tmp_path / "t")
    monkeypatch.setattr(registry, "_MOST_TABLES", 6)
    with pytest.raises(TooLargeError, match="found 7 tables; expected at most 6"):
        release.save_tables(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []
