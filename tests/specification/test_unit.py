"""The unit of privacy in specifications: read, checked with its line, and written back."""

from typing import Any

import jsonschema
import pytest

from matrixdp.errors import SpecificationError
from matrixdp.privacy import Unit
from matrixdp.specification import json_schema, load_specification

TEXT = """domain: {sex: [female, male], age: {min: 0, max: 9}}
workload:
  - marginals: [1]
"""
PRIVACY = "privacy: {rho: 0.5}\n"

UNITS = {
    "": Unit(),
    "unit: {records: 3}\n": Unit(records=3),
    "unit: {id: person, max_records: 2}\n": Unit(records=2, id="person"),
    "unit: {id: a person's name, max_records: 1}\n": Unit(id="a person's name"),
}


def is_read(written: dict[str, Any]) -> bool:
    try:
        load_specification(written)
    except SpecificationError:
        return False
    return True


@pytest.mark.parametrize("written", UNITS)
def test_the_budget_is_for_the_unit(written):
    found = load_specification(TEXT + PRIVACY + written)
    assert found.unit == UNITS[written]
    assert found.budget is not None
    assert found.budget.unit == UNITS[written]
    assert found.document.get("unit") == (None if not written else written_form(UNITS[written]))
    assert found.document["privacy"] == {"rho": 0.5, "neighbours": "add_remove"}
    again = load_specification(found.document)
    assert (again.budget, again.unit, again.document) == (found.budget, found.unit, found.document)
    jsonschema.Draft202012Validator(json_schema()).validate(found.document)


def written_form(unit):
    return {"records": unit.records} if unit.id is None else {"id": unit.id, "max_records": unit.records}


@pytest.mark.parametrize("privacy", ["privacy: {minimize: rho}\n", "privacy: {rho: 100}\n"])
def test_the_least_budget_is_for_the_unit(privacy):
    found = load_specification(TEXT + privacy + "targets: {all: 5}\nunit: {records: 3}\n")
    assert found.least is not None
    assert found.least.unit == Unit(records=3)
    assert found.least.reference().unit == Unit(records=3)


def test_a_unit_without_a_budget():
    found = load_specification(TEXT + "unit: {records: 3}\n")
    assert (found.budget, found.unit) == (None, Unit(records=3))


WRONG = {
    "unit:": ("unit", "found nothing (null); expected a mapping"),
    "unit: {records: 3, id: }": ("unit.id", "found nothing (null); expected text that is not empty"),
    "unit: 3": ("unit", "found 3; expected a mapping"),
    "unit: {}": ("unit", "found nothing; expected {records: 3}, or {id: person, max_records: 3}"),
    "unit: {id: person}": ("unit", "found id; expected {records: 3}, or {id: person, max_records: 3}"),
    "unit: {max_records: 3}": ("unit", "found max_records; expected"),
    "unit: {id: person, records: 3}": ("unit", "found records and id; expected"),
    "unit: {id: person, records: 3, max_records: 3}": (
        "unit",
        "found records and id and max_records; expected",
    ),
    "unit: {records: 0}": ("unit.records", "found 0; expected an integer from 1 to 2^53 - 1"),
    "unit: {records: 1.5}": ("unit.records", "found 1.5; expected an integer from 1 to 2^53 - 1"),
    "unit: {records: true}": ("unit.records", "found true; expected an integer from 1"),
    "unit: {id: person, max_records: 9007199254740992}": ("unit.max_records", "found 9007199254740992; exp"),
    "unit: {id: '', max_records: 3}": ("unit.id", "found ''; expected text that is not empty"),
    "unit: {id: 7, max_records: 3}": ("unit.id", "found 7; expected text that is not empty"),
    "unit: {id: age, max_records: 3}": ("unit.id", "found the attribute 'age'; expected a column that is no"),
    "unit: {person: id}": ("unit.person", "found the unknown key 'person'; expected one of records, id, max"),
}


@pytest.mark.parametrize("written", WRONG)
def test_wrong_units_are_named_with_their_line(written):
    place, message = WRONG[written]
    with pytest.raises(SpecificationError) as caught:
        load_specification(TEXT + written + "\n" + PRIVACY)
    assert str(caught.value).startswith(f"{place} (line 4): {message}")


@pytest.mark.parametrize(
    "unit",
    [
        None,
        {},
        {"records": 3},
        {"records": 0},
        {"records": 3, "id": None},
        {"records": 2**53},
        {"records": "3"},
        {"id": "person"},
        {"id": "person", "max_records": 3},
        {"id": " ", "max_records": 3},
        {"max_records": 3},
        {"id": "person", "records": 3},
        {"records": 3, "max_records": 3},
        {"id": "person", "records": 3, "max_records": 3},
    ],
)
def test_the_schema_takes_the_units_that_are_read(unit):
    written = {**load_specification(TEXT + PRIVACY).document, "unit": unit}
    assert jsonschema.Draft202012Validator(json_schema()).is_valid(written) == is_read(written)


def test_a_ledger_that_is_left_blank_is_not_taken_for_none():
    with pytest.raises(SpecificationError, match=r"privacy\.ledger \(line 4\): found nothing"):
        load_specification(TEXT + "privacy: {rho: 0.5, ledger: }\n")


@pytest.mark.parametrize(
    "privacy",
    [
        {"rho": 0.5},
        {"rho": 0},
        {"mu": 1, "ledger": "health.ledger"},
        {"mu": 1, "ledger": ""},
        {"mu": 1, "ledger": None},
        {"ledger": "health.ledger"},
        {"rho": 1, "mu": 1},
        {"rho": 1, "delta": 0.1},
        {"delta": 0.1},
        {"epsilon": 1},
        {"epsilon": 1, "delta": 0.1, "neighbours": "replace"},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "minimize": "epsilon"},
    ],
)
def test_the_schema_takes_the_budgets_that_are_read(privacy):
    written = {**load_specification(TEXT + PRIVACY).document, "privacy": privacy}
    assert jsonschema.Draft202012Validator(json_schema()).is_valid(written) == is_read(written)
