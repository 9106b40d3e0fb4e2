"""What a declared type means in every kind of column, from a specification to the saved measurement."""

import jsonschema
import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.specification import json_schema


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
