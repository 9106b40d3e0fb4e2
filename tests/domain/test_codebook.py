"""Columns, nulls, labels and white space: what goes with attributes of every kind."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matrixdp as mdp
from matrixdp.domain import (
    Bins,
    Categorical,
    Codebook,
    Coded,
    Domain,
    Integers,
    attribute_from_spec,
    encode_value,
)
from matrixdp.errors import DomainError
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
    if "labels" in spec:
        assert all(texts[attribute.code_of(label)] == label for label in labels.values())
    assert Domain.from_spec(Domain([attribute]).to_spec()) == Domain([attribute])


def test_labels_alone_list_the_categories():
    attribute = attribute_from_spec("sex", {"labels": {0: "female", True: "yes"}, None: "unknown"})
    book = Codebook(null="unknown", labels=(("0", "female"), ("true", "yes")))
    assert attribute == Categorical("sex", ("0", "true"), codebook=book)
    assert [encode_value(attribute, raw) for raw in (0, "0.0", "T", None, "", "female")] == [
        0, 0, 1, 2, 2, None,
    ]  # fmt: skip
    assert attribute.range_label(0, 1) == "female..yes"
    assert attribute.range_label(0, 2) == "female..yes | unknown"
    assert attribute.code_range("female", "yes") == (0, 1)


def test_yaml_keys_are_text_as_they_are_written():
    spec: Any = parse_yaml("sex: {labels: {0: female, 1: male}, null: ~x}\ntrue: [null]").value
    assert spec == {"sex": {"labels": {"0": "female", "1": "male"}, "null": "~x"}, "true": [None]}
    assert Domain({"sex": spec["sex"]}).shape == (3,)


@pytest.mark.parametrize(
    "attribute",
    [
        Categorical("a", ("x", "3"), codebook=Codebook(null="none")),
        Categorical("a", ("x", "3"), "text", codebook=Codebook(null="none")),
        Integers("a", 0, 1, codebook=Codebook(null="none")),
        Coded("a", 2, codebook=Codebook(null="none")),
        Bins.equal("a", 0, 4, 2, codebook=Codebook(null="none")),
    ],
    ids=lambda attribute: type(attribute).__name__,
)
def test_missing_values(attribute):
    missing: tuple[object, ...] = (
        None, "", math.nan, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"),
    )  # fmt: skip
    for value in missing:
        assert encode_value(attribute, value) == attribute.null_code == 2, value
        assert encode_value(attribute.__class__(**_without_null(attribute)), value) is None
    others: tuple[object, ...] = (" ", "nan", "NULL", math.inf, "none", b"", [], "\x00")
    for value in others:
        assert encode_value(attribute, value) is None
    trimmed = attribute_from_spec("a", {**attribute.to_spec(), "trim": True})
    assert encode_value(trimmed, " \t") == 2
    assert attribute.code_of(None) == attribute.code_of("none") == 2
    assert attribute.value(2) == attribute.label(2) == "none"
    with pytest.raises(DomainError, match="neither of them null"):
        attribute_from_spec("a", {"labels": {0: "zero"}, "null": "none"}).code_range("zero", "none")


def _without_null(attribute):
    kept = {"name": "a", "codebook": Codebook()}
    names = ("categories", "type", "minimum", "maximum", "codes", "edges", "closed")
    return kept | {name: getattr(attribute, name) for name in names if hasattr(attribute, name)}


def test_trim():
    for kind, categories in ((None, ["x ", "true"]), ("text", ["x", "true"])):
        spec = {"categories": categories, "trim": True} | ({} if kind is None else {"type": kind})
        attribute = attribute_from_spec("a", spec)
        assert attribute.to_spec() == spec | {"categories": ["x", "true"]}
        assert [encode_value(attribute, v) for v in (" x", "x\t", "x", " true\n", "\u00a0x")] == [
            0, 0, 0, 1, None,
        ]  # fmt: skip
        assert attribute.code_of(" x") == 0
    assert encode_value(attribute_from_spec("a", {"min": 0, "max": 1, "trim": True}), " true") == 1


def test_a_pair_of_texts_is_two_categories():
    assert attribute_from_spec("sex", ("f", "m")) == Categorical("sex", ("f", "m"))
    assert attribute_from_spec("age", [0, 4]).size == 2
    assert attribute_from_spec("age", (0, 4, 8)).size == 3


def test_infinite_edges():
    bins = attribute_from_spec("a", {"edges": [-math.inf, 0, 10, "inf"]})
    assert bins == Bins("a", (-math.inf, 0, 10, math.inf))
    assert [bins.label(code) for code in range(3)] == ["(-inf, 0)", "[0, 10)", "[10, inf)"]
    assert [encode_value(bins, v) for v in (-1e300, "-1e199", 0, 9.5, 1e300, -math.inf, "inf", None)] == [
        0, 0, 1, 1, 2, None, None, None,
    ]  # fmt: skip
    assert bins.to_spec() == {"edges": ["-inf", 0, 10, "inf"]}
    assert bins.code_range("-inf", 10) == (0, 1)
    assert bins.value(0) == "-inf"
    closed = Bins("a", (0, math.inf), closed=True)
    assert closed.label(0) == "[0, inf)"
    assert attribute_from_spec("a", closed.to_spec()) == closed
    for edges, message in (([0, "-inf"], "expected a number above 0"), (["inf", 0], "above inf")):
        with pytest.raises(DomainError, match=message):
            attribute_from_spec("a", {"edges": edges})
    with pytest.raises(DomainError, match=r"a.edges\[0\]: found 'x'; expected a finite number, or -inf"):
        Bins("a", ("x", 3))  # type: ignore[arg-type]


def test_a_release_with_nulls_and_labels(tmp_path):
    domain = mdp.Domain(
        {"sex": {"labels": {0: "female", 1: "male"}, "null": "unknown", "column": "SEX"}, "age": 3}
    )
    table = pd.DataFrame({"SEX": [0, 1, 1, None], "age": [0, 1, 2, 2]})
    workload = mdp.Workload(domain, mdp.marginals(1))
    measured = mdp.select(workload, "gaussian").measure(table, mdp.Budget(rho=1e4))
    release = measured.reconstruct()
    answers = release.answers.to_pylist()
    told = [(row["sex"] or row["age"], round(row["estimate"])) for row in answers]
    assert told[:3] == [("female", 1), ("male", 2), ("unknown", 1)]
    mdp.save_release(release, tmp_path / "out")
    assert mdp.load_release(tmp_path / "out").domain == domain
    assert mdp.verify_release(tmp_path / "out").holds
