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


def test_an_attribute_passes_through_under_its_own_name():
    age = Integers("age", 0, 9)
    assert attribute_from_spec("age", age) is age
    with pytest.raises(DomainError, match="named 'age'"):
        attribute_from_spec("sex", age)


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
