import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.domain import Bins, Categorical, Coded, Integers, attribute_from_spec, canonical_text
from matrixdp.errors import DomainError

SPECS = [
    ["female", "male"],
    [3, 3.5, True, "x"],
    {"min": -3, "max": 114},
    {"edges": [0, 10000, 25000.5]},
    {"edges": [0, 1, 5], "closed": True},
    {"min": 0, "max": 100, "bins": 20},
    {"min": 0.1, "max": 0.7, "bins": 6},
    40,
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_specification_comes_back(spec):
    attribute = attribute_from_spec("a", spec)
    again = attribute_from_spec("a", attribute.to_spec())
    assert again == attribute
    assert hash(again) == hash(attribute)
    assert again.size == attribute.size >= 1


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_values_and_codes_are_inverse(spec):
    attribute = attribute_from_spec("a", spec)
    for code in range(attribute.size):
        assert attribute.code_of(attribute.value(code)) == code
        assert attribute.label(code) == attribute.range_label(code, code)
    for code in (-1, attribute.size):
        with pytest.raises(DomainError, match="codes 0 to"):
            attribute.label(code)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_attributes_are_frozen(spec):
    attribute = attribute_from_spec("a", spec)
    with pytest.raises(AttributeError):
        attribute.name = "b"  # type: ignore[misc]  # what a user might try


@pytest.mark.parametrize(
    ("spec", "first", "last", "text"),
    [
        ({"min": 0, "max": 114}, 0, 17, "0-17"),
        ({"min": -9, "max": 114}, 0, 4, "-9..-5"),
        (40, 3, 4, "3-4"),
        (["a", "x", "b"], 0, 2, "a..b"),
        ({"edges": [0, 10000, 25000]}, 0, 1, "[0, 25000)"),
        ({"min": 0, "max": 100, "bins": 20}, 19, 19, "[95, 100]"),
        ({"min": 0, "max": 100, "bins": 20}, 0, 18, "[0, 95)"),
    ],
)
def test_range_labels(spec, first, last, text):
    assert attribute_from_spec("a", spec).range_label(first, last) == text


@pytest.mark.parametrize(
    ("spec", "low", "high", "codes"),
    [
        ({"min": 18, "max": 90}, 18, 64, (0, 46)),
        (40, 3, 3, (3, 3)),
        (["a", 2, "b"], "a", 2.0, (0, 1)),
        ({"edges": [0, 10, 25, 50]}, 10, 50, (1, 2)),
        ({"min": 0, "max": 100, "bins": 20}, 95, 100.0, (19, 19)),
    ],
)
def test_ranges_of_values(spec, low, high, codes):
    assert attribute_from_spec("a", spec).code_range(low, high) == codes


@pytest.mark.parametrize(
    ("spec", "low", "high", "message"),
    [
        (
            {"min": 18, "max": 90},
            18,
            91,
            r"found \[18, 91\]; expected two integers .* from 18 to 90",
        ),
        ({"min": 18, "max": 90}, 20, 19, r"found \[20, 19\]; expected two integers first <= last"),
        ({"min": 18, "max": 90}, 20.5, 30, r"found \[20.5, 30\]; expected two integers"),
        (["a", "b"], "b", "a", "in the listed order"),
        (["female", "male"], "femal", "male", "did you mean 'female'"),
        ({"edges": [0, 10, 25]}, 0, 12, "near it: 10 and 25"),
        ({"edges": [0, 10, 25]}, 0, 26, "near it: 25"),
        ({"edges": [0, 10, 25]}, 10, 10, r"found \[10, 10\]; expected two edges a < b"),
        ({"edges": [0, 10, 25]}, 0, math.nan, r"found \[0, nan\]; expected two edges a < b"),
    ],
)
def test_ranges_that_are_not_in_the_domain(spec, low, high, message):
    with pytest.raises(DomainError, match=message):
        attribute_from_spec("a", spec).code_range(low, high)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([], "a: found an empty list; expected at least 1 category"),
        (["x", "y", "x"], r"a\[2\]: found 'x' a second time; expected each category once"),
        ([3, "3"], r"a\[1\]: found '3' a second time"),
        (
            [3, "x", "3.0"],
            r"a\[2\]: found '3.0', the same as '3'; expected each category once, in one spelling",
        ),
        (["1", "01"], r"a\[1\]: found '01', the same as '1'"),
        ([True, "yes"], r"a\[1\]: found 'yes', the same as 'true'"),
        ([2**53, 2**53 + 1], r"a\[1\]: found '9007199254740993', the same as '9007199254740992'"),
        (["nan"], r"a\[0\]: found 'nan'; expected text, or a number of at most 40 digits"),
        (["x", " -Infinity "], r"a\[1\]: found ' -Infinity '; expected text, or a number"),
        ([1e300], r"a\[0\]: found '1000.*; expected text, or a number"),
        (["1e200"], r"a\[0\]: found '1e200'; expected text, or a number"),
        ([5e-324], r"a\[0\]: found '5e-324'; expected text, or a number"),
        ([None], r"a\[0\]: found nothing \(null\); expected text, a finite number, true or false"),
        ([math.nan], r"a\[0\]: found nan; expected text, a finite number"),
        (["a\0"], r"a\[0\]: found a null character"),
        ({"a", "b"}, "not a set"),
        ("female", "a: found 'female'; expected a list of categories, {min, max}"),
        (None, "a: found nothing .*; expected a list of categories"),
        (True, "a: found true; expected a list of categories"),
        (0, "a: found 0; expected an integer of at least 1"),
        (-4, "a: found -4; expected an integer of at least 1"),
        (2.5, "a: found 2.5; expected an integer"),
        (object(), "a: found a value of type object"),
        ({"min": 0}, "a.max: found nothing; expected a value"),
        ({}, "a: found an empty mapping"),
        ({"mim": 0, "max": 3}, "a.mim: found the unknown key 'mim'; .*did you mean 'min'"),
        ({"edges": [0, 1], "min": 0}, "a.min: found the unknown key 'min'; expected one of edges, closed"),
        ({"low": 0, 3: 1}, "a: found a mapping with the keys low, 3"),
        ({"min": 5, "max": 3}, "a.max: found 3; expected a number of at least 5, the min"),
        ({"min": 0.5, "max": 3}, "a.min: found 0.5; expected an integer"),
        ({"min": True, "max": 3}, "a.min: found true; expected an integer"),
        ({"min": 0, "max": 2**53}, "a.max: found .*2\\^53"),
        ({"min": 0, "max": 1, "bins": 0}, "a.bins: found 0; expected an integer of at least 1"),
        ({"min": 1, "max": 1, "bins": 2}, "a.max: found 1; expected a number above 1, the min"),
        ({"min": 0, "max": math.inf, "bins": 2}, "a.max: found inf; expected a finite number"),
        ({"min": 1, "max": 1 + 2**-52, "bins": 9}, "overlap"),
        ({"edges": [0]}, r"a.edges: found \[0\]; expected at least 2 edges"),
        ({"edges": [0, 2, 1]}, r"a.edges\[2\]: found 1; expected a number above 2"),
        ({"edges": [0, 1, 1]}, r"a.edges\[2\]: found 1; expected a number above 1"),
        ({"edges": [0, math.nan]}, r"a.edges\[1\]: found nan; expected a finite number"),
        ({"edges": 7}, "a.edges: found 7; expected a list of numbers"),
        ({"edges": [0, 1], "closed": "yes"}, "a.closed: found 'yes'; expected true or false"),
        (range(0), "non-empty range"),
        (range(0, 10, 2), "step 1"),
    ],
)
def test_wrong_specifications(spec, message):
    with pytest.raises(DomainError, match=message):
        attribute_from_spec("a", spec)


@pytest.mark.parametrize("name", ["", 3, None])
def test_wrong_names(name):
    with pytest.raises(DomainError, match="non-empty string"):
        Coded(name, 3)


def test_categories_are_a_list():
    with pytest.raises(DomainError, match="a list of categories"):
        Categorical("sex", "female")  # type: ignore[arg-type]


def test_an_attribute_passes_through_under_its_own_name():
    age = Integers("age", 0, 9)
    assert attribute_from_spec("age", age) is age
    with pytest.raises(DomainError, match="named 'age'"):
        attribute_from_spec("sex", age)


def test_attributes_check_what_they_are_made_of():
    for make, message in (
        (lambda: Categorical("a", "xy"), "a: found 'xy'; expected a list of categories"),  # type: ignore[arg-type]
        (lambda: Integers("a", 3, 0), "a.max: found 0"),
        (lambda: Bins("a", (0.0,)), "a.edges: found .*at least 2 edges"),
        (lambda: Bins("a", (0.0, 1.0), "yes"), "a.closed: found 'yes'"),  # type: ignore[arg-type]
    ):
        with pytest.raises(DomainError, match=message):
            make()


def test_numpy_values_are_numbers():
    assert Integers("a", np.int64(0), np.int32(4)) == Integers("a", 0, 4)  # type: ignore[arg-type]
    assert attribute_from_spec("a", np.int64(4)) == Coded("a", 4)
    assert attribute_from_spec("a", np.array([0, 1])) == Categorical("a", ("0", "1"))
    assert canonical_text(np.bool_(True)) == "true"


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**4), st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_edges_of_equal_bins_that_are_integers_are_exact(minimum, width, bins):
    attribute = Bins.equal("a", minimum, minimum + width * bins, bins)
    assert attribute.edges == tuple(float(minimum + width * step) for step in range(bins + 1))


def test_edges_of_equal_bins_are_the_decimal_ones():
    assert Bins.equal("a", 0, 1, 10).edges == tuple(step / 10 for step in range(11))
    assert Bins.equal("a", 0.1, 0.7, 6).edges == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=100)
def test_canonical_texts_of_floats_come_back(number):
    assert float(canonical_text(number)) == number
