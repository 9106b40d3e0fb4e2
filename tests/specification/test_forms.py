"""Forms of predicate sets and entries in specifications, their schema, and the examples that use them."""

import json
from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from matrixdp.language import MarginalsEntry
from matrixdp.language.entries import ENTRIES
from matrixdp.language.predicates import NAMED_PREDICATES
from matrixdp.queries import Group, Permuted, Predicates, Prefix, ProductGroup, Stacked, Workload
from matrixdp.specification import json_schema, load_specification

EXAMPLES = Path(__file__).parents[2] / "examples"
DOMAIN = "domain:\n  sex: [female, male]\n  age: {min: 0, max: 3}\n  code: 3\n"

GOOD = {
    "marginals": "marginals: 2",
    "some marginals": "marginals: [0, 1]\nattributes: [age, sex]\nmax_cells: 4\nweight: 2\nname: m",
    "listed marginals": "marginals: [[age, sex], []]",
    "products by kind": "kway: 2\npredicates: {numeric: {sliding: 2}}\nattributes: [age, code]",
    "changes": "product: {age: {change: 1}}",
    "the first periods": "through: {attribute: age, periods: 2, entry: "
    "{product: {age: prefix}, weights: [1, 2, 3, 4]}}",
    "small products": "kway: [1, 2]\npredicates: prefix\nmax_cells: 10",
    "a weighted product": "product: {age: {ranges: [[0, 2], [3, 3]]}, sex: {sets: [[male], []]}}\n"
    "weight: 0.5\nweights: [1, 2, 3, 4]",
    "the total": "product: {}",
    "pairs": "pairwise: abs",
    "a weighted pair": "pairwise: affine\nattributes: [age, code]\nweight: 3",
    "a weighted matrix": "dense: [[0, 2, 0.5], [1, 0, -1]]\nattributes: [code]\nweights: [1, 2]\nname: d",
    "a stack": "product: {sex: [identity, total], age: prefix}",
    "a stack of one": "product: {age: [total]}",
    "mappings stacked": "product: {age: [{ranges: [[0, 1]]}, {sets: [[0, 2]]}, {matrix: [[1, 0, 0, 2]]}]}",
    "a stack by kind": "kway: 2\npredicates: {categorical: [identity, total], numeric: [prefix, total]}",
    "permuted by a seed": "product: {age: {permuted: range, seed: 7}}",
    "permuted by a list": "product: {sex: {permuted: prefix, order: [male, female]}}",
    "a permuted stack": "product: {age: [{permuted: [prefix, total], seed: 2}, identity]}",
    "permuted for all": "kway: 1\npredicates: {permuted: range, seed: 7}",
    "a disjunction": "any: {age: prefix, sex: identity}\nby: {code: [identity, total]}\nweight: 3",
    "cells": "cells:\n  - [{sex: male, age: {range: [0, 2]}}]\n  - {sex: [male]}\nby: {code: range}",
    "named sets": "product: {sex: {sets: {women: [female], all of them: [female, male]}}}",
    "named ranges": "product: {age: [{ranges: {young: [0, 1], old: [2, 3]}}, total]}",
    "a matrix by": "dense: [[1, 0], [0, 2]]\nattributes: [sex]\nby: {age: {matrix: [[1, 0, 0, 2]]}}",
}


def predicates_of(group: Group) -> tuple[Predicates, ...]:
    assert isinstance(group, ProductGroup)
    return group.predicates


def spec(entry: str) -> str:
    return DOMAIN + "workload:\n  - " + entry.replace("\n", "\n    ") + "\n"


@pytest.mark.parametrize("name", GOOD)
def test_what_is_read_is_written_and_read_again(name: str) -> None:
    first = load_specification(spec(GOOD[name]))
    again = load_specification(json.loads(json.dumps(first.document)))
    assert again.document == first.document
    for one, two in zip(first.workload, again.workload, strict=True):
        assert (one.name, one.attributes, one.weight) == (two.name, two.attributes, two.weight)
        assert one.key() == two.key()
        np.testing.assert_array_equal(one.query_weights, two.query_weights)
        np.testing.assert_array_equal(one.rows(), two.rows())


def test_forms_become_the_sets_that_they_say() -> None:
    [group] = load_specification(spec(GOOD["a stack"])).workload
    assert isinstance(group, ProductGroup)
    assert group.name == "sex, age: identity + total x prefix"
    assert isinstance(group.predicates[0], Stacked)
    [group] = load_specification(spec(GOOD["permuted by a list"])).workload
    assert isinstance(group, ProductGroup)
    assert group.predicates == (Permuted(Prefix(), (1, 0)),)
    assert group.name == "sex: permuted prefix"
    np.testing.assert_array_equal(group.rows(), [[0, 1], [1, 1]])


def test_matrices_in_new_places_are_relative_to_the_file(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", np.array([[1.0, 0, 0, 2]]))
    for entry in (
        "product: {age: [total, {matrix: m.npy}]}",
        "product: {age: {permuted: {matrix: m.npy}, seed: 1}}",
        "cells: [{sex: male}]\nby: {age: {matrix: m.npy}}",
        "kway: 1\nattributes: [age]\npredicates: {numeric: [{matrix: m.npy}]}",
    ):
        (tmp_path / "s.yaml").write_text(spec(entry))
        [group] = load_specification(tmp_path / "s.yaml").workload
        assert group.rows().max() == 2


def test_the_schema_knows_every_form() -> None:
    Draft202012Validator.check_schema(json_schema())
    definitions = json_schema()["$defs"]
    assert {form.__name__: name for name, form in ENTRIES.items()}.items() <= {
        name: next(iter(own.get("properties", ())), None) for name, own in definitions.items()
    }.items()
    for form in ("DisjunctionEntry", "CellsEntry", "DenseEntry"):
        assert "by" in definitions[form]["properties"]
    sets = definitions["ProductEntry"]["properties"]["product"]["additionalProperties"]
    assert sets == {"$ref": "#/$defs/PredicateSets"}
    one, several = definitions["PredicateSets"]["anyOf"]
    assert several == {"type": "array", "minItems": 1, "items": one}
    assert one == {"$ref": "#/$defs/PredicateSet"}
    names, *mappings = definitions["PredicateSet"]["anyOf"]
    assert names == {"enum": [*NAMED_PREDICATES]}
    keys = {key for form in mappings for key in definitions[form["$ref"].split("/")[-1]]["properties"]}
    assert keys == {"sliding", "change", "ranges", "sets", "level", "matrix", "permuted", "seed", "order"}


# The Census workload. Queries by table, as the paper's table of SF1 products gives them.

TABLES = {
    "P1": 1, "P3": 8, "P4": 3, "P5": 17, "P8": 71, "P9": 73, "P10": 71, "P11": 73, "P12": 49,
    "P12A-G": 343, "P12H": 49, "P12I": 49, "PCT12": 209, "PCT12A-G": 1463, "PCT12H": 209, "PCT12I-O": 1463,
}  # fmt: skip


def by_table(workload: Workload) -> dict[str, int]:
    found: dict[str, int] = {}
    for group in workload:
        table = group.name.partition(":")[0]
        found[table] = found.get(table, 0) + group.queries
    return found


def test_sf1_asks_what_the_census_publishes() -> None:
    specification = load_specification(EXAMPLES / "sf1.yaml")
    assert specification.domain.shape == (2, 2, 64, 17, 115)
    assert by_table(specification.workload) == TABLES
    assert len(specification.workload) == 33
    assert specification.workload.queries == 4151
    assert specification.budget is not None
    assert specification.budget.kind == "pure"


def test_sf1_predicates_by_their_definitions() -> None:
    groups = {group.name: group for group in load_specification(EXAMPLES / "sf1.yaml").workload}
    races = [bin(mask).count("1") for mask in range(64)]
    seven = [[float(mask == 2**i) for mask in range(64)] for i in range(6)]
    seven.append([float(races[mask] != 1) for mask in range(64)])
    np.testing.assert_array_equal(groups["P3: race"].rows(), seven)
    seventy = [[float(mask == one) for mask in range(64)] for one in range(1, 64)]
    seventy += [[float(count == k) for count in races] for k in range(1, 7)]
    seventy.append([float(count >= 2) for count in races])
    np.testing.assert_array_equal(groups["P8: race"].rows(), seventy)
    starts = [0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85, 115]
    ages = [[float(a <= age < b) for age in range(115)] for a, b in pairwise(starts)]
    np.testing.assert_array_equal(predicates_of(groups["P12: sex by age"])[1].rows(115), ages)
    starts = [*range(100), 100, 105, 110, 115]
    ages = [[float(a <= age < b) for age in range(115)] for a, b in pairwise(starts)]
    np.testing.assert_array_equal(predicates_of(groups["PCT12: sex by age"])[1].rows(115), ages)
    adults = predicates_of(groups["P10: adults"])[0].rows(115)
    np.testing.assert_array_equal(adults, [[float(age >= 18) for age in range(115)]])
    domain = load_specification(EXAMPLES / "sf1.yaml").domain
    not_hispanic = predicates_of(groups["P9: not hispanic by race"])[0]
    assert not_hispanic.describe(domain["hispanic"]) == ["no"]


def test_sf1plus_is_sf1_nationally_and_by_state() -> None:
    plain = load_specification(EXAMPLES / "sf1.yaml").workload
    plus = load_specification(EXAMPLES / "sf1plus.yaml").workload
    assert plus.domain.cells() == 25_524_480
    assert plus.queries == 215_852
    assert by_table(plus) == {table: 52 * queries for table, queries in TABLES.items()}
    for one, two in zip(plain, plus, strict=True):
        assert two.name == one.name
        assert two.attributes == ("state", *one.attributes)
        assert predicates_of(two)[0].symmetric(51) == (1.0, 1.0)
        key = two.key()
        assert isinstance(key, tuple)
        assert key[1:] == one.key()


def test_records_are_frozen_and_know_their_fields():
    entry: Any = MarginalsEntry(which=(1,))
    assert "which=(1,)" in repr(entry)
    with pytest.raises(FrozenInstanceError):
        entry.weight = 2.0
    with pytest.raises(FrozenInstanceError):
        del entry.weight
    with pytest.raises(TypeError, match="wieght"):
        MarginalsEntry(which=(1,), wieght=2.0)  # type: ignore[call-arg]
    assert (replace(entry, weight=3.0).weight, entry.weight) == (3.0, 1.0)
