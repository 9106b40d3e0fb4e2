"""Parts of specifications: units, public knowledge, strategies that are given, and YAML as it is read."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import scipy.sparse
import yaml
from jsonschema import Draft202012Validator

import matrixdp as mdp
from matrixdp.errors import SpecificationError, WorkloadError
from matrixdp.model.constraints import Constraints
from matrixdp.privacy import Unit
from matrixdp.specification import json_schema, load_given, load_specification, strategy_schema
from matrixdp.specification import load as yaml_text
from matrixdp.specification.load import parse_yaml
from tests.specification.refusals import PUBLIC

TEXT = "domain: {sex: [female, male], age: {min: 0, max: 9}}\nworkload: [marginals: [1]]\n"
PRIVACY = "privacy: {rho: 0.5}\n"
UNITS: dict[str, tuple[Unit, Any]] = {
    "": (Unit(), None),
    "unit: {records: 3}\n": (Unit(records=3), {"records": 3}),
    "unit: {id: a person's name, max_records: 1}\n": (
        Unit(id="a person's name"),
        {"id": "a person's name", "max_records": 1},
    ),
    "unit: {id: person, max_records: 2}\n": (
        Unit(records=2, id="person"),
        {"id": "person", "max_records": 2},
    ),
    "unit: {id: person, per: age, max_values: 12}\n": (
        Unit(10, "person", "age", 10),
        {"id": "person", "per": ["age"], "max_values": 12},
    ),
    "unit: {id: person, max_records: 5, per: age, max_records_each: 2, constant: sex}\n": (
        Unit(5, "person", "age", 5, 2, "sex"),
        {"id": "person", "max_records": 5, "per": ["age"], "max_records_each": 2, "constant": ["sex"]},
    ),
    "unit: {records: 12, per: [sex, age], max_values: 4, max_records_each: 3}\n": (
        Unit(per=["age", "sex"], max_values=4, max_records_each=3),
        {"records": 12, "per": ["sex", "age"], "max_values": 4, "max_records_each": 3},
    ),
}


@pytest.mark.parametrize("written", UNITS)
def test_the_budget_is_for_the_unit(written):
    found = load_specification(TEXT + PRIVACY + written)
    assert found.budget is not None
    assert (found.unit, found.document.get("unit")) == UNITS[written]
    assert found.budget.unit == found.unit
    assert found.document["privacy"] == {"rho": 0.5, "neighbours": "add_remove"}
    again = load_specification(found.document)
    assert (again.budget, again.unit, again.document) == (found.budget, found.unit, found.document)
    jsonschema.Draft202012Validator(json_schema()).validate(found.document)
    without = load_specification(TEXT + written)
    assert (without.budget, without.unit) == (None, found.unit)
    debited = load_specification(TEXT + "privacy: {rho: 0.5, ledger: own.ledger}\n" + written).document
    assert debited["privacy"] == {"rho": 0.5, "neighbours": "add_remove", "ledger": "own.ledger"}


@pytest.mark.parametrize("privacy", ["privacy: {minimize: rho}\n", "privacy: {rho: 100}\n"])
def test_the_least_budget_is_for_the_unit(privacy):
    found = load_specification(TEXT + privacy + "targets: {all: 5}\nunit: {records: 3}\n")
    assert found.least is not None
    assert found.least.unit == found.least.reference().unit == Unit(records=3)


WRITTEN: dict[str, list[Any]] = {
    "unit": [
        None, {}, {"records": 3}, {"records": 0}, {"records": 3, "id": None}, {"records": 2**53},
        {"records": "3"}, {"id": "person"}, {"id": "person", "max_records": 3},
        {"id": " ", "max_records": 3}, {"max_records": 3}, {"id": "person", "records": 3},
        {"records": 3, "max_records": 3}, {"id": "person", "records": 3, "max_records": 3},
        {"id": "person", "per": "age", "max_values": 3}, {"id": "person", "max_values": 3},
        {"id": "person", "per": ["age", "sex"], "max_values": 3, "constant": []},
        {"id": "person", "per": ["age", "age"], "max_values": 3},
        {"id": "person", "per": "age", "max_values": 0}, {"per": "age", "max_values": 3},
        {"records": 3, "max_records_each": 3}, {"records": 3, "per": "age", "constant": "sex"},
        {"records": 3, "per": "age"}, {"id": "person", "max_records": 3, "constant": "sex"},
        {"id": "person", "per": "age", "max_values": 3, "max_records_each": 2, "constant": "sex"},
        {"id": "person", "per": []}, {"id": "person", "per": "", "max_values": 3},
        {"id": "person", "per": "age"},
    ],
    "privacy": [
        {"rho": 0.5}, {"rho": 0}, {"mu": 1, "ledger": "health.ledger"}, {"mu": 1, "ledger": ""},
        {"mu": 1, "ledger": None}, {"ledger": "health.ledger"}, {"rho": 1, "mu": 1},
        {"rho": 1, "delta": 0.1}, {"delta": 0.1}, {"epsilon": 1},
        {"epsilon": 1, "delta": 0.1, "neighbours": "replace"}, {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": 0}, {"epsilon": 1, "minimize": "epsilon"},
    ],
}  # fmt: skip


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, own in WRITTEN.items() for value in own])
def test_the_schema_takes_the_units_and_budgets_that_are_read(key, value):
    written = {**load_specification(TEXT + PRIVACY).document, key: value}
    try:
        load_specification(written)
        read = True
    except SpecificationError:
        read = False
    assert jsonschema.Draft202012Validator(json_schema()).is_valid(written) == read


def test_they_are_read_and_kept_in_the_document():
    found = mdp.load_specification(PUBLIC)
    assert [one.counts for one in found.invariants] == [(50.0,), (30.0, 20.0)]
    again = mdp.load_specification(json.loads(json.dumps(found.document)))
    assert again.document == found.document
    for one in (found, again):
        known = Constraints.of(one.domain, one.invariants, one.structural_zeros)
        assert known.total == 50
        assert np.argwhere(~known.allowed(("age", "married"))).tolist() == [[age, 1] for age in range(15)]
    without = PUBLIC.partition("invariants")[0]
    assert mdp.load_specification(without).invariants == ()
    assert mdp.load_specification(without + "invariants: 50\n").invariants[0].counts == (50.0,)


DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": range(4), "other": 3})
WORKLOAD = mdp.Workload(DOMAIN, mdp.product(sex="identity", age="prefix"))
ROWS = np.arange(16.0).reshape(2, 8)


def test_a_list_of_parts_names_files_beside_it(tmp_path: Path):
    np.savetxt(tmp_path / "halves.csv", np.eye(4)[:2], delimiter=",")
    written = [
        {"product": {"age": {"matrix": "halves.csv"}, "sex": "identity"}, "share": 2},
        {"marginals": [["age"]]},
    ]
    assert not list(Draft202012Validator(strategy_schema()).iter_errors({"strategy": written}))
    for wrong in ({"marginals": 1, "share": 0}, {"marginals": 1, "shares": 1}):
        assert list(Draft202012Validator(strategy_schema()).iter_errors({"strategy": [wrong]}))
    for name in ("own.json", "own.yaml", "own.YML"):
        (tmp_path / name).write_text(json.dumps({"strategy": written}))
        first, second = load_given(tmp_path / name, WORKLOAD)
        assert (first.share, second.share) == (2.0, 1.0)
        [group] = first.entry.expand(DOMAIN)
        assert group.queries == 4


def test_a_matrix_is_over_the_attributes_that_are_asked_about(tmp_path: Path):
    np.save(tmp_path / "own.npy", ROWS)
    np.savez(tmp_path / "own.npz", ROWS)
    scipy.sparse.save_npz(tmp_path / "sparse.npz", scipy.sparse.csr_array(ROWS))
    np.savetxt(tmp_path / "own.csv", ROWS, delimiter=",")
    for name in ("own.npy", "own.npz", "sparse.npz", "own.csv"):
        [part] = load_given(tmp_path / name, WORKLOAD)
        [group] = part.entry.expand(DOMAIN)
        assert group.attributes == ("sex", "age")
        np.testing.assert_array_equal(group.rows(), ROWS)


def test_parts_in_python_are_named_where_they_stand():
    with pytest.raises(WorkloadError) as caught:
        mdp.Strategy.from_parts(DOMAIN, [mdp.marginals(1), mdp.product(agee="prefix")])
    assert (caught.value.code, caught.value.path) == ("unknown-name", ("parts", 1, "product", "agee"))


@pytest.mark.parametrize(("owner", "name"), [(yaml_text._Builder, "build"), (yaml, "compose")])
def test_values_nested_too_deeply_are_refused_wherever_they_are_found(owner, name, monkeypatch):
    def exhausted(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(owner, name, exhausted)
    with pytest.raises(SpecificationError) as caught:
        parse_yaml("a: 1")
    assert caught.value.code == "too-large"


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(yaml_text, "MAX_NODES", 3)
    assert parse_yaml("[1, 2]").value == [1, 2]
    with pytest.raises(SpecificationError) as caught:
        parse_yaml("[1, 2, 3]")
    assert caught.value.code == "too-large"


def test_texts_are_read_by_the_core_schema_and_todo_in_quotes_is_a_text():
    text = "domain: {sex: [yes, TODO]}\nworkload: [marginals: [1]]\nprivacy: {epsilon: 1, delta: 1e-6}\n"
    with pytest.raises(SpecificationError) as caught:
        mdp.load_specification(text)
    assert caught.value.path == ("domain", "sex", 1)
    specification = mdp.load_specification(text.replace("TODO", "'TODO'"))
    assert [specification.domain["sex"].label(code) for code in (0, 1)] == ["yes", "TODO"]
    assert specification.budget is not None
    assert float(specification.budget.delta) == 1e-6


@pytest.mark.parametrize("by", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize(
    "written", ["when", {"attribute": "when"}, {"attribute": "when", "periods": "fixed"}]
)
def test_a_series_names_its_periods(by, written):
    when = {"from": "2024-12-01", "to": "2026-01-31", "by": by}
    specification = {
        "domain": {"when": when},
        "workload": [{"marginals": 1}],
        "privacy": {"rho": 1},
        "series": written,
    }
    read = load_specification(specification)
    again = load_specification(read.document)
    for one in (read, again):
        assert one.series is not None
        assert (one.series.attribute, one.series.periods) == ("when", "fixed")
    Draft202012Validator(json_schema()).validate(specification)
    del specification["series"]
    assert load_specification(specification).series is None
