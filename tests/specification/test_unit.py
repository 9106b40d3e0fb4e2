"""The unit of privacy in specifications: read, checked with its line, and written back."""

from typing import Any

import jsonschema
import pytest

from matrixdp.errors import SpecificationError
from matrixdp.privacy import Unit
from matrixdp.specification import json_schema, load_specification

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
