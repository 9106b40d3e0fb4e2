"""Columns, nulls, labels and white space: what goes with attributes of every kind."""

import json
import math
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.domain import Categorical, Codebook, Domain, attribute_from_spec, encode_value
from matrixdp.specification.load import parse_yaml

COMMON: dict[str, Any] = {"column": "raw column", "trim": True, "null": "unknown"}
OWN: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"categories": ["0", "1"]}, {"0": "female"}),
    ({"categories": ["01", "1"], "type": "text"}, {"01": "first"}),
    ({"categories": ["1", "2"], "type": "integer"}, {"2": "second"}),
    ({"min": -1, "max": 3}, {"-1": "none", "0": "zero"}),
    ({"size": 3}, {"2": "last"}),
    ({"edges": ["-inf", 0, 2.5, "inf"]}, {"-inf": "in debt", "2.5": "rich"}),
    ({"min": 0, "max": 10, "bins": 4}, {"2.5": "some"}),
]


@pytest.mark.parametrize(("own", "labels"), OWN, ids=str)
@pytest.mark.parametrize("left_out", [None, "column", "trim", "null", "labels"])
def test_common_keys_come_back_with_every_form(own, labels, left_out):
    spec = {**own, **COMMON, "labels": labels}
    spec.pop(left_out, None)
    attribute = attribute_from_spec("a", spec)
    assert attribute.to_spec() == json.loads(json.dumps(spec))
    assert attribute == attribute_from_spec("a", attribute.to_spec())
    assert attribute != attribute_from_spec("a", own)
    assert attribute.size == attribute_from_spec("a", own).size + ("null" in spec)
    codes = range(attribute.size)
    assert [attribute.code_of(attribute.value(code)) for code in codes] == list(codes)
    texts = [attribute.label(code) for code in codes]
    assert len(set(texts)) == len(texts)
    for label in {**spec.get("labels", {}), None: spec.get("null", texts[0])}.values():
        assert label in texts
    assert all(texts[attribute.code_of(label)] == label for label in spec.get("labels", {}).values())
    assert Domain.from_spec(Domain([attribute]).to_spec()) == Domain([attribute])


def test_labels_alone_list_the_categories():
    attribute = attribute_from_spec("sex", {"labels": {0: "female", True: "yes"}, None: "unknown"})
    book = Codebook(null="unknown", labels=(("0", "female"), ("true", "yes")))
    assert attribute == Categorical("sex", ("0", "true"), codebook=book)
    found = [encode_value(attribute, raw) for raw in (0, "0.0", "T", None, "", "female")]
    assert found == [0, 0, 1, 2, 2, None]
    assert attribute.range_label(0, 1) == "female..yes"
    assert attribute.range_label(0, 2) == "female..yes | unknown"
    assert attribute.code_range("female", "yes") == (0, 1)


def test_yaml_keys_are_text_as_they_are_written():
    spec: Any = parse_yaml("sex: {labels: {0: female, 1: male}, null: ~x}\ntrue: [null]").value
    assert spec == {"sex": {"labels": {"0": "female", "1": "male"}, "null": "~x"}, "true": [None]}
    assert Domain({"sex": spec["sex"]}).shape == (3,)


MISSING = (None, "", math.nan, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"))


LISTED = {"categories": ["x", "3"]}


@pytest.mark.parametrize(
    "spec",
    [LISTED, LISTED | {"type": "text"}, {"min": 0, "max": 1}, {"size": 2}, {"min": 0, "max": 4, "bins": 2}],
    ids=str,
)
def test_missing_values(spec):
    plain = attribute_from_spec("a", spec)
    attribute = attribute_from_spec("a", spec | {"null": "none"})
    trimmed = attribute_from_spec("a", spec | {"null": "none", "trim": True})
    for value in MISSING:
        assert encode_value(attribute, value) == attribute.null_code == 2, value
        assert encode_value(plain, value) is None
    others: list[object] = [" ", "nan", "NULL", math.inf, "none", b"", [], "\x00"]
    for other in others:
        assert encode_value(attribute, other) is None
    assert encode_value(trimmed, " \t") == 2
    assert attribute.code_of(None) == attribute.code_of("none") == 2
    assert attribute.value(2) == attribute.label(2) == "none"


#: A description, the codes that mean missing, values that they are, and values that they are not.
CODED: list[tuple[dict[str, Any], list[Any], list[Any], list[Any]]] = [
    ({"min": 0, "max": 99}, [99, "NA"], [99, "99", " 99.0", 99.0, "NA"], ["na", 98, " NA"]),
    ({"min": 0, "max": 9, "clip": True, "trim": True}, [99, "NA"], [99, " NA\t"], [98]),
    ({"edges": [0, 9]}, [-1], ["-1", -1.0], [1, True]),
    (LISTED, ["NA", True], ["NA", "yes", True], ["x", 1, "na"]),
    (LISTED | {"case": "ignore"}, ["NA"], ["na", "Na"], ["X", "n/a"]),
    (LISTED | {"type": "text"}, ["09"], ["09"], ["9", " 09"]),
    ({"by": "hour"}, ["1900-01-01", 0], ["1900-01-01T05:00", datetime(1900, 1, 1), "1900-01-01", "0"], ["x"]),
    (
        {"categories": ["2020-01-31"], "type": "date"},
        ["1900-01-01"],
        [date(1900, 1, 1), " 1900-01-01"],
        ["x"],
    ),
]


@pytest.mark.parametrize(("spec", "codes", "missing", "others"), CODED, ids=str)
def test_codes_that_mean_missing(spec, codes, missing, others):
    plain = attribute_from_spec("a", spec)
    dropped = attribute_from_spec("a", spec | {"missing": codes})
    named = attribute_from_spec("a", spec | {"missing": codes, "null": "none"})
    assert attribute_from_spec("a", named.to_spec()) == named
    for value in missing:
        assert encode_value(named, value) == named.null_code, value
        assert encode_value(dropped, value) is None
    for value in others:
        assert encode_value(dropped, value) == encode_value(named, value) == encode_value(plain, value)


@pytest.mark.parametrize(("more", "categories"), [({}, ["x ", "true"]), ({"type": "text"}, ["x", "true"])])
def test_trim(more, categories):
    attribute = attribute_from_spec("a", {"categories": categories, "trim": True} | more)
    assert attribute.to_spec() == {"categories": ["x", "true"], "trim": True} | more
    found = [encode_value(attribute, value) for value in (" x", "x\t", "x", " true\n", "\u00a0x")]
    assert found == [0, 0, 0, 1, None]
    assert attribute.code_of(" x") == 0
    assert encode_value(attribute_from_spec("a", {"min": 0, "max": 1, "trim": True}), " true") == 1


def test_null_has_no_place_in_comparisons():
    domain = mdp.Domain({"a": {"size": 3, "null": "none"}, "b": 3, "c": 4})
    assert [group.attributes for group in mdp.Workload(domain, mdp.pairwise("affine")).groups] == [("b", "c")]
