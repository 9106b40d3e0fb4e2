"""The unit of privacy and targets through the commands, from a specification to the files of a release."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.releases import release_schema
from tests.cli.commands import figures, run, words

SPEC = """data: people.csv
domain: {sex: [female, male], visits: {min: 0, max: 3}}
workload:
  - marginals: [0, 1, 2]
  - {product: {visits: prefix}, name: visits CDF}
"""
PERSONS = "unit: {id: person, max_records: 2}\n"
LARGE, WEAK = "privacy: {mu: 1000}\n", "--accept-weak-privacy"
RHO = "privacy: {rho: 0.5}\n"


@pytest.fixture(autouse=True)
def home(here: Path):
    # ann has 50 records, of which the first two count, one of them out of domain; nobody is no one
    records = ["x,0,ann", "male,1, 7", *["female,3,ann"] * 49, "male,2,07", "male,2,7.0", "female,0,"]
    Path("people.csv").write_text("\n".join(["sex,visits,person", *records, ""]))


def spec(text: str) -> str:
    Path("spec.yaml").write_text(SPEC + text)
    return "spec.yaml"


def release(text: str, *options: object, status: int = 0):
    return run("release", spec(text), "--out", "out", *options, status=status)


def test_a_release_counts_the_first_records_of_each_person():
    told = release(PERSONS + LARGE, WEAK).stdout
    table = pq.read_table("out/answers.parquet")
    # one record of ann, two of 7
    expected = {(None, None): 3, ("female", None): 1, ("male", None): 2, (None, "1"): 1, (None, "2"): 1}
    found = {
        (row["sex"], None if row["visits"] is None else str(row["visits"])): row["estimate"]
        for row in table.to_pylist()
        if row["group"] != "visits CDF"
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=0.2)
    promise = json.loads(Path("out/release.json").read_text())["privacy"]
    assert promise["unit"] == promise["budget"]["unit"] == {"id": "person", "records": 2}
    (mu,) = promise["guarantees"][0]["parameters"].values()
    assert 1000 * (1 - 1e-9) <= mu <= 1000
    assert "at most 2 were counted: the first in the order of the table" in promise["text"]
    assert "adding or removing all records of one person" in promise["text"]
    assert promise["text"] in " ".join(told.split())
    authorization = mdp.load_release("out").measurement.authorization
    assert authorization.budget.unit == mdp.Unit(2, "person")
    assert 1 - 1e-6 <= authorization.cost.value * 4 / 1000**2 <= 1


def test_a_release_counts_few_records_in_each_value_and_says_so():
    release("unit: {id: person, per: visits, max_values: 2, constant: sex}\n" + LARGE, WEAK)
    made = mdp.load_release("out")
    unit = {
        "id": "person", "records": 2, "per": ["visits"], "max_values": 2, "max_records_each": 1,
        "constant": ["sex"],
    }  # fmt: skip
    # one record of ann, two of 7
    found = made.answer({"marginals": [["visits"]]})["estimate"].to_pylist()
    assert found == pytest.approx([0, 1, 1, 1], abs=0.2)
    record = json.loads(Path("out/release.json").read_text())
    jsonschema.Draft202012Validator(release_schema()).validate(record)
    assert record["privacy"]["unit"] == record["privacy"]["budget"]["unit"] == unit
    says = "at most 2 were counted, at most one in each of 2 values of 'visits', all with the same 'sex'"
    assert says in made.statement.text
    assert made.measurement.authorization.budget.unit == mdp.Unit(2, "person", "visits", constant="sex")
    assert mdp.verify_release("out").holds
    assert "at most one in each of 2 values of 'visits'" in words("validate", "spec.yaml")


def test_a_missing_id_is_named_before_anything_is_counted_or_spent():
    done = release("unit: {id: patient, max_records: 2}\n" + LARGE, WEAK, status=2)
    assert "the table has no column 'patient'" in done.stderr
    assert "ann" not in done.stderr + done.stdout
    assert not Path("out").exists()
    Path("people.csv").write_text("sex,visits,person\n")
    release(PERSONS + LARGE, WEAK)


def test_figures_follow_the_unit():
    errors = []
    for unit in ("", "unit: {records: 3}\n", "unit: {id: person, max_records: 3}\n"):
        chosen, checked = (figures(command, spec(unit + RHO)) for command in ("select", "validate"))
        errors.append([chosen["rmse"], chosen["max_stddev"]])
        assert checked["unit"] == checked["privacy"]["unit"] == chosen["privacy"]["unit"]
        assert checked["privacy"]["mu"] == chosen["privacy"]["mu"] == 1
    one, three, named = errors
    np.testing.assert_allclose(three, 3 * np.array(one), rtol=1e-12)
    assert named == three
    assert figures("validate", spec(""))["unit"] == {"records": 1}


@pytest.mark.parametrize("command", [["validate"], ["select"], ["compare", "--mechanisms", "residual"]])
def test_commands_say_the_unit(command: list[str]):
    says = "the first 2 records of each person, whom the column 'person' names; standard errors are 2"
    assert says in words(*command, spec(RHO + PERSONS))


def test_the_least_budget_is_selected_printed_and_spent():
    text = "targets: {visits CDF: 5.0, all: 8.0}\nprivacy: {minimize: rho}\n"
    chosen = figures("select", spec(text))
    budget = chosen["privacy"]["budget"]
    assert set(budget) == {"rho", "neighbours", "unit"}
    assert 0.999 < chosen["target_ratio"] <= 1.0
    assert chosen["lower_bound_target_ratio"] <= chosen["target_ratio"]
    for group in chosen["groups"]:
        assert group["max_stddev"] <= group["target"]
    shown = words("select", "spec.yaml")
    assert "targets" in shown
    assert f"rho {budget['rho']}" in shown
    assert f"which is spent: rho {budget['rho']}" in release(text).stderr
    made = mdp.load_release("out")
    assert float(made.statement.rho) == pytest.approx(budget["rho"], rel=1e-6)
    assert max(made.answers["stddev"].to_pylist()) <= 8.0


def test_a_budget_beside_targets_is_a_limit():
    text = "targets: {visits CDF: 5.0}\nprivacy: {epsilon: 0.01}\n"
    assert "targets: found targets that take epsilon " in release(text, status=2).stderr
    assert not Path("out").exists()
    assert "at most epsilon 0.01" in words("validate", "spec.yaml")


def test_a_saved_strategy_spends_what_the_targets_take():
    text = "targets: {visits CDF: 5.0}\nprivacy: {minimize: mu}\n"
    run("select", spec(text), "--save", "strategy.mdp")
    release(text.replace("5.0", "10.0"), "--strategy", "strategy.mdp")
    assert 5 < max(mdp.load_release("out").answers["stddev"].to_pylist()[-4:]) <= 10


def test_the_comparison_is_at_the_budget():
    text = spec("targets: {visits CDF: 5.0}\nprivacy: {rho: 0.25}\n")
    [row] = figures("compare", text, "--mechanisms", "residual")["mechanisms"]
    chosen = figures("select", text, "--mechanism", "residual", "--ignore-targets")
    assert (chosen["privacy"]["budget"]["rho"], chosen["targets"]) == (0.25, {})
    assert row["rmse"] == pytest.approx(chosen["rmse"], rel=1e-3)
