"""What the schema of specifications says of declared types."""

import jsonschema
import pytest

from matrixdp.specification import json_schema


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
