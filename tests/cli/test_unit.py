"""The unit of privacy through the commands, from a specification to the files of a release."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import matrixdp as mdp
from matrixdp.cli.app import app

SPEC = """data: people.csv
domain: {sex: [female, male], visits: {min: 0, max: 3}}
workload:
  - marginals: [0, 1, 2]
"""
PERSONS = "unit: {id: person, max_records: 2}\n"
LARGE = "privacy: {mu: 1000}\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    # ann has 50 records, of which the first two count, one of them out of domain; nobody is no one
    records = ["x,0,ann", *["male,1, 7"] * 1, *["female,3,ann"] * 49, "male,2,07", "male,2,7.0", "female,0,"]
    (tmp_path / "people.csv").write_text("\n".join(["sex,visits,person", *records, ""]))
    return tmp_path


def run(home: Path, *arguments: str, text: str) -> Result:
    (home / "spec.yaml").write_text(text)
    return CliRunner().invoke(app, [arguments[0], str(home / "spec.yaml"), *arguments[1:]])


def test_a_release_counts_the_first_records_of_each_person(home: Path) -> None:
    done = run(home, "release", "--out", str(home / "out"), text=SPEC + PERSONS + LARGE)
    assert done.exit_code == 0, done.stderr
    table = pq.read_table(home / "out" / "answers.parquet")
    # one record of ann, two of 7
    expected = {(None, None): 3, ("female", None): 1, ("male", None): 2, (None, "1"): 1, (None, "2"): 1}
    rows = zip(
        table["sex"].to_pylist(), table["visits"].to_pylist(), table["estimate"].to_pylist(), strict=True
    )
    found = {(sex, None if visits is None else str(visits)): value for sex, visits, value in rows}
    for key, count in expected.items():
        assert found[key] == pytest.approx(count, abs=0.2)
    written = json.loads((home / "out" / "release.json").read_text())
    promise = written["privacy"]
    assert promise["unit"] == promise["budget"]["unit"] == {"id": "person", "records": 2}
    (mu,) = promise["guarantees"][0]["parameters"].values()
    assert mu == pytest.approx(1000, rel=1e-9)
    assert mu <= 1000
    assert "at most 2 were counted: the first in the order of the table" in promise["text"]
    assert "adding or removing all records of one person" in promise["text"]
    assert promise["text"] in " ".join(done.stdout.split())
    again = mdp.load_release(home / "out")
    assert again.measurement.authorization.budget.unit == mdp.Unit(2, "person")
    cost = again.measurement.authorization.cost.value
    assert cost * 4 <= 1000**2
    assert float(cost) == pytest.approx(1000**2 / 4, rel=1e-6)


def test_a_missing_id_is_named_before_anything_is_counted_or_spent(home: Path) -> None:
    text = SPEC + "unit: {id: patient, max_records: 2}\n" + LARGE
    done = run(home, "release", "--out", str(home / "out"), text=text)
    assert done.exit_code == 2
    assert "the table has no column 'patient'" in done.stderr
    assert "ann" not in done.stderr + done.stdout
    assert not (home / "out").exists()
    (home / "people.csv").write_text("sex,visits,person\n")
    assert run(home, "release", "--out", str(home / "out"), text=SPEC + PERSONS + LARGE).exit_code == 0


def test_figures_follow_the_unit(home: Path) -> None:
    privacy = "privacy: {rho: 0.5}\n"
    errors = {}
    for unit in ("", "unit: {records: 3}\n", "unit: {id: person, max_records: 3}\n"):
        chosen = run(home, "select", "--json", text=SPEC + unit + privacy)
        assert chosen.exit_code == 0, chosen.stderr
        figures = json.loads(chosen.stdout)
        errors[unit] = figures["rmse"], figures["max_stddev"]
        checked = json.loads(run(home, "validate", "--json", text=SPEC + unit + privacy).stdout)
        assert checked["unit"] == checked["privacy"]["unit"] == figures["privacy"]["unit"]
        assert checked["privacy"]["mu"] == figures["privacy"]["mu"] == 1
    one, three, named = errors.values()
    np.testing.assert_allclose(three, 3 * np.array(one), rtol=1e-12)
    assert named == three
    assert json.loads(run(home, "validate", "--json", text=SPEC).stdout)["unit"] == {"records": 1}


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ("", "one record a person"),
        ("unit: {records: 3}\n", "at most 3 records a person; standard errors are 3 times those for one"),
        (
            PERSONS,
            "the first 2 records of each person, whom the column 'person' names; standard errors are 2",
        ),
        ("unit: {id: person, max_records: 1}\n", "the first record of each person, whom the column 'person'"),
    ],
)
def test_commands_say_the_unit(home: Path, unit: str, words: str) -> None:
    text = SPEC + unit + "privacy: {rho: 0.5}\n"
    for arguments in (["validate"], ["select"]):
        done = run(home, *arguments, text=text)
        assert done.exit_code == 0, done.stderr
        assert words in " ".join(done.stdout.split())
    if unit == PERSONS:
        done = run(home, "compare", "--mechanisms", "residual", text=text)
        assert words in " ".join(done.stdout.split())
