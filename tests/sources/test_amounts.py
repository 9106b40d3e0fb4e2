"""Amounts are added up exactly, by every engine alike: sums are integers, whatever stands in the column."""

import itertools
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.domain.rules import Kind
from matrixdp.sources import counting, open_source
from tests import servers
from tests.sources.ways import TEXT, WAYS

DOMAIN = mdp.Domain(
    {
        "grade": ["A", "B"],
        "loan": {"amount": [0, 40000], "step": 0.01},
        "fee": {"amount": [-2.5, 7.5], "step": 0.25, "null": "none", "missing": ["N/A", 5.5]},
        "squared": {"column": "loan", "amount": [0, 40000], "step": 10, "squares": True},
        "class": {"column": "loan", "edges": [0, 100, 40000], "closed": True},
    }
)
SUBSETS = [
    (),
    ("grade",),
    ("loan",),
    ("grade", "loan"),
    ("fee", "loan", "grade"),
    ("fee",),
    ("squared", "grade"),
]
OTHER = {"loan": 0, "squared": 0, "class": 0}
RULE = mdp.OutOfDomain(OTHER, [None])
#: What the column says, and the hundredths that it stands for; None is out of domain, and counts as 0.
LOANS = {
    "100.29": 10029, "0.29": 29, " 1.10 ": 110, "35000": 3500000, "40000": 4000000, "40000.01": 4000000,
    "1e5": 4000000, "1e199": 4000000, "1e308": None, "-5": 0, "-1e99": 0, "0.005": 1, "0.004": 0,
    "39999.99": 3999999, "12345.67": 1234567, "nan": None, "inf": None, "-inf": None, "abc": None, "": None,
    "true": 100, "0.015": 2,
}  # fmt: skip
#: And quarters; without a number a record is in the value for that, and with another text out of domain.
FEES = {
    "-2.5": -10,
    "-2.4": -10,
    "-99": -10,
    "0": 0,
    "1.25": 5,
    "1.37": 5,
    "1.375": 6,
    "8": 30,
    "": "none",
    "x": None,
    "N/A": "none",
    "5.50": "none",
}


def shares(name: str, said: Any) -> list[Fraction]:
    """Return the shares of a record at the values of an amount."""
    if name == "loan":
        high = Fraction(said or 0, 4000000)
        return [1 - high, high]
    if name == "squared":
        high = Fraction(((said or 0) + 500) // 1000, 4000)
        return [(1 - high) ** 2, 2 * high * (1 - high), high**2]
    if said == "none":
        return [Fraction(0), Fraction(0), Fraction(1)]
    high = Fraction(said + 10, 40)
    return [1 - high, high, Fraction(0)]


def expected(records: list[tuple[str, str, str]], subset: tuple[str, ...]) -> np.ndarray[Any, Any]:
    shape = [DOMAIN[name].size for name in subset]
    found = np.full(shape, Fraction(0), dtype=object)
    for grade, loan, fee in records:
        if FEES[fee] is None:
            continue
        own = {
            "grade": [Fraction(code == "AB".index(grade)) for code in range(2)],
            "loan": shares("loan", LOANS[loan]),
            "fee": shares("fee", FEES[fee]),
            "squared": shares("squared", LOANS[loan]),
        }
        for cell in itertools.product(*map(range, shape)):
            weight = Fraction(1)
            for name, code in zip(subset, cell, strict=True):
                weight *= own[name][code]
            found[cell] += weight
    return found


def records() -> list[tuple[str, str, str]]:
    return [("AB"[(i * j) % 2], loan, fee) for i, loan in enumerate(LOANS) for j, fee in enumerate(FEES)]


@pytest.mark.parametrize("way", WAYS)
def test_every_engine_adds_up_the_same_integers(way, tmp_path):
    grades, loans, fees = zip(*records(), strict=True)
    table = pa.table({"grade": grades, "loan": loans, "fee": fees})
    with servers.one_connection() if way == "postgresql" else nullcontext():
        source = WAYS[way].opens(table, tmp_path)
        rule = RULE if source.counts_out_of_domain else mdp.OutOfDomain(OTHER)
        found = dict(source.marginals(DOMAIN, SUBSETS, rule))
    for subset in SUBSETS:
        weight = DOMAIN.weight(subset)
        assert found[subset].tolist() == np.asarray(expected(records(), subset) * weight).tolist(), subset
    total = sum(FEES[fee] is not None for _, _, fee in records())
    low, high = found["loan",]
    assert low + high == total * 4000000
    assert high == sum(LOANS[loan] or 0 for _, loan, fee in records() if FEES[fee] is not None)


@pytest.mark.parametrize("way", [way for way, own in WAYS.items() if own.kinds != TEXT])
def test_numbers_are_as_exact_as_texts(way, tmp_path):
    values = np.round(np.random.default_rng(0).uniform(-100, 41000, 200), 2)
    domain = mdp.Domain(
        {"loan": DOMAIN["loan"], "coarse": {"column": "loan", "amount": [0, 40000], "step": 500}}
    )
    table = (
        pa.table({"loan": values})
        if Kind.FLOAT in WAYS[way].kinds
        else pa.table({"loan": values.astype(str)})
    )
    with servers.one_connection() if way == "postgresql" else nullcontext():
        found = dict(
            WAYS[way].opens(table, tmp_path).marginals(domain, [("loan",), ("coarse",)], mdp.OutOfDomain())
        )
    clipped = [Fraction(repr(float(value))) for value in np.clip(values, 0, 40000)]
    assert found["loan",][1] == sum(clipped) * 100
    assert found["coarse",][1] == sum((value + 250) // 500 for value in clipped)


def test_amounts_at_once_and_one_after_the_other(monkeypatch):
    grades, loans, fees = zip(*records(), strict=True)
    source = open_source(pa.table({"grade": grades, "loan": loans, "fee": fees}))
    first = dict(source.marginals(DOMAIN, SUBSETS, RULE))
    monkeypatch.setattr(counting, "_BATCH", 2)
    monkeypatch.setattr(counting, "_MOST_AT_ONCE", 0)
    later = dict(source.marginals(DOMAIN, SUBSETS, RULE))
    assert first.keys() == later.keys()
    assert all(first[subset].tolist() == later[subset].tolist() for subset in first)


def test_products_of_amounts_have_any_width():
    amounts = {name: {"amount": [0, 10**9], "step": 1} for name in ("a", "b", "c")}
    domain = mdp.Domain(amounts)
    column = [0, 1, 123456789, 10**9 - 1, 10**9]
    table = {"a": column, "b": column[::-1], "c": [10**9] * 5}
    ((_, found),) = open_source(table).marginals(domain, [("a", "b", "c")], mdp.OutOfDomain())
    assert found[1, 1, 1] == sum(a * b * 10**9 for a, b in zip(column, column[::-1], strict=True))
    assert found.sum() == 5 * 10**27


def test_only_the_first_amounts_of_a_person_count():
    table = {"who": ["x", "y", "x", "x", None], "loan": ["1.5", "2", "40000", "7", "9"]}
    unit = mdp.Unit(records=2, id="who")
    domain = mdp.Domain({"loan": DOMAIN["loan"]})
    ((_, found),) = open_source(table).marginals(domain, [("loan",)], mdp.OutOfDomain(), unit)
    assert found[1] == 150 + 200 + 4000000
    assert found.sum() == 3 * 4000000


@pytest.mark.parametrize("way", ["pyarrow", "sqlite", "postgresql"])
@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("widths", [(2, 3), (10**6, 10**6 + 1), (3 * 10**9, 4 * 10**9), (2**40, 2**21)])
def test_a_record_is_one_record_however_wide_its_amounts_are(way, squares, widths, tmp_path):
    if squares:
        widths = tuple(min(width, 2**22) for width in widths)
    options = {"null": "none", "squares": squares}
    amounts = {name: {"amount": [-1, n - 1], **options} for name, n in zip(("a", "b"), widths, strict=True)}
    numbers = [[None, -1, 0, n // 2, n - 1] for n in widths]
    a, b = zip(*itertools.product(*numbers), strict=True)
    table = pa.table({"id": [str(place) for place in range(len(a))], "a": a, "b": b})
    domain = mdp.Domain({"id": len(a), **amounts})
    with servers.one_connection() if way == "postgresql" else nullcontext():
        source = WAYS[way].opens(table, tmp_path)
        ((_, found),) = source.marginals(domain, [("id", "a", "b")], mdp.OutOfDomain())
    for record, pair in zip(found, zip(a, b, strict=True), strict=True):
        own = [divided(number, width, squares) for number, width in zip(pair, widths, strict=True)]
        assert record.tolist() == [[one * other for other in own[1]] for one in own[0]], pair


def divided(number: int | None, steps: int, squares: bool) -> list[int]:
    """Return what a number weighs at each value of an amount from -1, with missing ones last."""
    whole = steps**2 if squares else steps
    if number is None:
        return [0] * (2 + squares) + [whole]
    high = number + 1
    low = steps - high
    return [*([low**2, 2 * low * high, high**2] if squares else [low, high]), 0]
