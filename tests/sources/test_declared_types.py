"""What a declared type means in every kind of column, from a specification to the saved measurement."""

import jsonschema
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.specification import json_schema
from tests.relations import relation

DOMAIN = Domain(
    {
        "text": {"categories": ["1", "01"], "type": "text"},
        "number": {"categories": [1, 0], "type": "number"},
        "boolean": {"categories": [True, False], "type": "boolean"},
        "date": {"categories": ["2020-01-31"], "type": "date"},
    }
)


def counts(table, name):
    domain = Domain([DOMAIN[name]])
    ((_, found),) = open_source(table).marginals(domain, [(name,)], OutOfDomain())
    return found.tolist()


WAYS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "relation": lambda columns: relation(pa.table(columns)),
    "lists": lambda columns: columns,
}


@pytest.mark.parametrize("way", WAYS)
def test_one_and_true_are_one_number_and_one_boolean_in_every_kind_of_column(way):
    for name in ("number", "boolean"):
        for values in (
            [1, 0, 1],
            [1.0, 0.0, 1.0],
            [True, False, True],
            ["01", "no", "True"],
            ["1.0", "0", "t"],
        ):
            assert counts(WAYS[way]({name: values}), name) == [2, 1], (name, values)


@pytest.mark.parametrize("way", WAYS)
def test_texts_are_compared_as_they_stand(way):
    assert counts(WAYS[way]({"text": ["1", "01", " 1", "1.0", "01"]}), "text") == [1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_no_date_is_out_of_domain_whatever_holds_it(way):
    for values in (["x", " 2020-01-31", "2020-01-31"], [1, 2, 3], [0.5, 1.0, 2.0], [True, False, True]):
        found = [2] if isinstance(values[0], str) else [0]
        assert counts(WAYS[way]({"date": values}), "date") == found


@pytest.mark.parametrize("way", [way for way in WAYS if way != "lists"])
@pytest.mark.parametrize(
    ("values", "holds"), [([1, 2], "integers"), ([1.0, 0.5], "numbers"), ([True, False], "booleans")]
)
def test_texts_are_not_read_from_other_columns(way, values, holds):
    with pytest.raises(SourceError) as caught:
        counts(WAYS[way]({"text": values}), "text")
    assert str(caught.value) == (
        f"column 'text' holds {holds}; categories of type text are compared with texts as they stand, so "
        "convert it first"
    )


def test_a_type_goes_from_the_specification_to_the_answers(tmp_path):
    (tmp_path / "t.csv").write_text("code\n" + "01\n" * 3 + "1\n" * 5 + "001\n")
    path = tmp_path / "s.yaml"
    path.write_text(
        "data: t.csv\n"
        'domain: {code: {categories: ["1", "01", "1.0"], type: text}}\n'
        'workload: [{product: {code: {sets: [["01"]]}}}, {product: {code: {permuted: range, seed: 1}}}]\n'
        "privacy: {mu: 1.0e+4}\n"
        'out_of_domain: {code: {other: "1.0"}}\n'
    )
    spec = mdp.load_specification(path)
    strategy = mdp.select(spec.workload)
    strategy.save(tmp_path / "strategy.mdp")
    measured = mdp.Strategy.load(tmp_path / "strategy.mdp").measure(
        spec.data, spec.budget, out_of_domain=spec.out_of_domain
    )
    mdp.save_release(measured.reconstruct(), tmp_path / "release")
    release = mdp.load_release(tmp_path / "release")
    assert release.domain == spec.domain
    answers = release.answer(mdp.marginals(1))
    np.testing.assert_allclose(np.asarray(answers["estimate"]), [5, 3, 1], atol=0.1)
    assert answers["code"].to_pylist() == ["1", "01", "1.0"]


@pytest.mark.parametrize(
    ("attribute", "valid"),
    [
        ({"categories": ["01", 1, True], "type": "text"}, True),
        ({"categories": ["01"]}, True),
        ({"categories": ["01"], "type": None}, False),
        ({"labels": {"0": "f"}, "null": "none", "column": "x", "trim": True}, True),
        ({"labels": {}}, False),
        ({"size": 3, "null": ""}, False),
        ({"edges": ["-inf", 3, "inf"]}, True),
        ({"categories": [], "type": "text"}, False),
        ({"categories": ["x"], "type": "string"}, False),
        ({"min": 0, "max": 3, "type": "integer"}, True),
        ({"min": 0, "max": 3, "type": "number"}, False),
        ({"min": 0, "max": 3, "bins": 3, "type": "number"}, True),
        ({"edges": [0, 3], "type": "number"}, True),
        ({"edges": [0, 3], "type": "text"}, False),
    ],
)
def test_the_schema_knows_types(attribute, valid):
    spec = {"domain": {"a": attribute}, "workload": [{"marginals": 1}]}
    found = list(jsonschema.Draft202012Validator(json_schema()).iter_errors(spec))
    assert (not found) == valid
