"""Units that say in how many values of an attribute a person has records, through the reader of tables."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.domain import OutOfDomain
from matrixdp.errors import DomainError
from matrixdp.testing.tables import counted_records
from tests.sources.ways import counts

DOMAIN = mdp.Domain({"table": 40, "month": 4, "region": 3, "sex": 2})
IDS = ["ann", "ben", "1", None, "", "cy"]


def some_unit(rng) -> mdp.Unit:
    forms = [("month",), ("month", "region"), ("region",)]
    per = forms[rng.integers(len(forms))]
    constant = [(), ("sex",), ("sex", "region") if "region" not in per else ()][rng.integers(3)]
    values, each = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    records = None if rng.random() < 0.4 else int(rng.integers(1, values * each + 1))
    return mdp.Unit(records, "person", per, values, each, constant)


def some_tables(rng) -> dict[str, list]:
    """Return the records of 40 tables, which have persons of their own, in one order."""
    rows = [
        (table, *rng.integers(-1, (4, 3, 2)), IDS[rng.integers(len(IDS))])
        for table in range(40)
        for _ in range(rng.integers(40))
    ]
    rng.shuffle(rows)
    columns = dict(zip((*DOMAIN.names, "person"), map(list, zip(*rows, strict=True)), strict=True))
    columns["person"] = [
        who and f"{who} {place}" for place, who in zip(columns["table"], columns["person"], strict=True)
    ]
    return columns


def expected(columns: dict[str, list], unit: mdp.Unit) -> tuple[np.ndarray, list[bool]]:
    codes = {
        name: [int(code) if 0 <= code < DOMAIN[name].size else None for code in columns[name]]
        for name in DOMAIN.names
    }
    kept = counted_records(columns["person"], codes, unit)
    found = np.zeros([DOMAIN[name].size for name in DOMAIN.names], dtype=int)
    for place in np.flatnonzero(kept):
        found[tuple(codes[name][place] for name in DOMAIN.names)] += 1
    return found, kept


@pytest.mark.parametrize("seed", range(25))
def test_what_counts_is_a_function_of_each_person_alone(seed):
    rng = np.random.default_rng(seed)
    unit, columns = some_unit(rng), some_tables(rng)
    found = np.array(counts(columns, DOMAIN, unit=unit))
    right, kept = expected(columns, unit)
    np.testing.assert_array_equal(found, right)
    # without one person of each table all others count as before
    gone = [who is not None and who.startswith("ann") for who in columns["person"]]
    fewer = {
        name: [value for value, away in zip(own, gone, strict=True) if not away]
        for name, own in columns.items()
    }
    without = np.array(counts(fewer, DOMAIN, unit=unit))
    assert (found - without).min() >= 0
    lost = [place for place, (taken, away) in enumerate(zip(kept, gone, strict=True)) if taken and away]
    assert (found - without).sum() == len(lost)
    persons: dict[str, list[int]] = {}
    for place in np.flatnonzero(kept):
        persons.setdefault(columns["person"][place], []).append(int(place))
    for own in persons.values():
        values = [tuple(columns[name][place] for name in unit.per) for place in own]
        assert len(own) <= unit.records
        assert len(set(values)) <= unit.max_values
        assert max(map(values.count, values)) <= unit.max_records_each
        assert all(len({columns[name][place] for place in own}) == 1 for name in unit.constant)


@pytest.mark.parametrize("subset", [(), ("sex",), ("table", "month")])
def test_every_marginal_has_the_same_records(subset):
    rng = np.random.default_rng(7)
    unit, columns = mdp.Unit(id="person", per="month", max_values=2, constant="region"), some_tables(rng)
    whole, _ = expected(columns, unit)
    away = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in subset)
    assert counts(columns, DOMAIN, subset, unit=unit) == whole.sum(axis=away).tolist()


def test_records_that_do_not_count_use_nothing_up():
    columns = {
        "person": ["ann"] * 6,
        "month": [9, 0, 0, 1, 2, 1],  # out of domain, kept, a second one, another value, a third one, kept
        "sex": [0, 0, 0, 1, 0, 0],  # the fourth is of another sex than the first in the domain
    }
    domain = mdp.Domain({"month": 4, "sex": 2})
    one = mdp.Unit(id="person", per="month", max_values=2, constant="sex")
    assert counts(columns, domain, unit=one) == [[1, 0], [0, 0], [1, 0], [0, 0]]
    several = mdp.Unit(3, "person", "month", 2, 2)
    assert counts(columns, domain, unit=several) == [[2, 0], [0, 1], [0, 0], [0, 0]]


def test_values_that_count_as_another_are_that_one():
    domain = mdp.Domain({"month": [1, 2, "other"]})
    columns = {"person": ["ann", "ann", "ann"], "month": [7, 8, 1]}
    rule = OutOfDomain({"month": 2})
    unit = mdp.Unit(id="person", per="month", max_values=2)
    assert counts(columns, domain, rule=rule, unit=unit) == [1, 0, 1]


def test_derived_attributes_bound_records_too():
    old = {"of": ["age"], "map": {4: "yes", 5: "yes"}, "otherwise": "no"}
    domain = mdp.Domain({"age": 6, "old": old})
    table = {"person": ["a", "a", "a", "b", "b"], "age": [1, 2, 4, 5, 4]}
    unit = mdp.Unit(id="person", per="old", max_values=2)
    assert counts(table, domain, ("age",), unit=unit) == [0, 1, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("unit", "path", "code"),
    [
        (mdp.Unit(id="person", per="mouth", max_values=2), ("unit", "per"), "unknown-name"),
        (mdp.Unit(id="person", per="sum", max_values=2), ("unit", "per"), "wrong-type"),
        (mdp.Unit(2, per="mouth"), ("unit", "per"), "unknown-name"),
        (mdp.Unit(2, "person", "month", constant="sum"), ("unit", "constant"), "wrong-type"),
        (mdp.Unit(2, "month", "sex"), ("unit", "id"), "conflict"),
    ],
)
def test_a_unit_that_does_not_fit_the_domain_is_rejected(unit, path, code):
    domain = mdp.Domain({"month": 4, "sex": 2, "sum": {"amount": [0, 10]}})
    with pytest.raises(DomainError) as caught:
        counts({"person": [], "month": [], "sex": [], "sum": []}, domain, ("month",), unit=unit)
    assert (caught.value.path, caught.value.code) == (path, code)


def test_records_out_of_domain_are_not_counted_beside_such_a_unit():
    rule = OutOfDomain(counts=[None])
    with pytest.raises(DomainError) as caught:
        counts(some_tables(np.random.default_rng(0)), DOMAIN, (), rule, mdp.Unit(2, "person", "month"))
    assert caught.value.code == "not-supported"
