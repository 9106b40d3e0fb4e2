"""Texts whose case is ignored, and numbers that are rounded or clipped."""

import math
import sys

import pytest

from matrixdp.domain import Categorical, Domain, attribute_from_spec, encode_value
from matrixdp.domain.rules import case_foldings, fold_case


def test_folding_is_that_of_letters_one_by_one():
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    folded = fold_case(every)
    assert len(folded) == len(every)
    assert fold_case(folded) == folded
    changed = [(letter, other) for letter, other in zip(every, folded, strict=True) if letter != other]
    assert [fold_case(letter) for letter, _ in changed] == [other for _, other in changed]
    assert sorted(zip(*case_foldings(other for _, other in changed), strict=True)) == changed
    assert [fold_case(text) for text in ("ÉCOLE", "e\u0301", "STRASSE", "Straße", "ẞ", "ΣΑΣ")] == [
        "école", "e\u0301", "strasse", "straße", "ß", "σασ",
    ]  # fmt: skip
    others, letters = case_foldings(["sk"])
    assert sorted(zip(others, letters, strict=True)) == [("K", "k"), ("S", "s"), ("ſ", "s"), ("\u212a", "k")]
    assert case_foldings(["12"]) == ("", "")


@pytest.mark.parametrize("kind", [None, "text"])
def test_case(kind):
    spec = {"categories": ["École", "New York", "3e0"], "case": "ignore"}
    spec |= {} if kind is None else {"type": kind}
    attribute = attribute_from_spec("a", spec)
    assert attribute.to_spec() == spec
    values = ["ÉCOLE", "école", "NEW YORK", "3E0", "New  York", "ecole", " école", "e\u0301cole", None]
    assert [encode_value(attribute, value) for value in values] == [0, 0, 1, 2, *[None] * 5]
    assert attribute.code_of("NEW YORK") == 1
    assert attribute.label(1) == "New York"
    exact = attribute_from_spec("a", {**spec, "case": "match"})
    assert attribute != exact
    assert exact.to_spec() == (
        {"categories": spec["categories"], "type": kind} if kind else spec["categories"]
    )
    assert encode_value(exact, "ÉCOLE") is None
    answer = Categorical("a", ("No", "Maybe"), case="ignore")
    assert [encode_value(answer, value) for value in (False, "F", "MAYBE", "no")] == [0, 0, 1, 0]


#: A number, the one below, and the nearest one.
ROUNDED = [
    (0.5, 0, 1), (-0.5, -1, 0), (1.5, 1, 2), (2.5, 2, 3), (0.49999999999999994, 0, 0), (3.9, 3, 4),
    (-1, -1, -1), (-1.1, -2, -1), ("2.50", 2, 3), ("-1e-199", -1, 0), (5e-324, 0, 0), (-5e-324, -1, 0),
    (4.99, 4, None), (4.5, 4, None),
    (True, 1, 1), ("1e199", None, None), (1e300, None, None), (math.inf, None, None), (None, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "floor", "nearest"), ROUNDED, ids=str)
def test_rounding(value, floor, nearest):
    for way, number in (("floor", floor), ("nearest", nearest)):
        spec = {"min": -2, "max": 4, "round": way}
        attribute = attribute_from_spec("a", spec)
        assert attribute.to_spec() == spec
        assert encode_value(attribute, value) == (None if number is None else number + 2)


#: A value, and its code among the integers 0 to 3 and among [0, 1), [1, 2.5), [2.5, 3), all of them clipped.
CLIPPED = [
    (-1, 0, 0), ("-1e199", 0, 0), (-0.0, 0, 0), (False, 0, 0), (" 5 ", 3, 2), ("007", 3, 2), (3, 3, 2),
    (2.5, None, 2), (3.5, 3, 2), (-0.5, 0, 0), (1e300, 3, 2), (2**63, 3, 2), ("1e400", None, None),
    (10**400, None, None), (math.inf, None, None), (-math.inf, None, None), (math.nan, None, None),
    (None, None, None), ("", None, None), ("many", None, None), ("inf", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "whole", "bin_"), CLIPPED, ids=str)
def test_clipping_is_for_numbers_alone(value, whole, bin_):
    specs = {"whole": {"min": 0, "max": 3, "clip": True}, "bins": {"edges": [0, 1, 2.5, 3], "clip": True}}
    domain = Domain(specs)
    assert domain.to_spec() == specs
    assert [encode_value(attribute, value) for attribute in domain] == [whole, bin_]


def test_clipped_days_count_as_the_first_and_the_last():
    spec = {"from": "2020-02-10", "to": "2020-04-09", "by": "month", "clip": True}
    month = attribute_from_spec("m", spec)
    assert month.to_spec() == spec
    values = ["2020-02-01", "1999-12-31T10:00", "2020-04-10", "9999-12-31", "2020-03-31", "soon", None]
    assert [encode_value(month, value) for value in values] == [0, 0, 2, 2, 1, None, None]
