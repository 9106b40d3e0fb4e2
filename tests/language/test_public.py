"""Published tables and impossible combinations, as they are written."""

import json
from typing import Any

import jsonschema
import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import MatrixDPError
from matrixdp.forms import as_written
from matrixdp.language.invariants import IMPOSSIBLE, PUBLISHED, Published

WRITTEN = [{"product": {"sex": "identity"}, "counts": [[4], [5]]}, {"marginals": 0, "counts": 9}]


def test_what_is_read_is_written_and_read_again():
    found = PUBLISHED.read(WRITTEN, as_written)
    assert [one.counts for one in found] == [(4.0, 5.0), (9.0,)]
    written: Any = PUBLISHED.write(found)
    assert json.loads(json.dumps(written))[1]["counts"] == 9
    ways = [written, found, [(mdp.product(sex="identity"), (4, 5)), (mdp.marginals(0), np.int64(9))]]
    assert [PUBLISHED.write(PUBLISHED.read(way, as_written)) for way in ways] == [written] * 3
    for total in (9, WRITTEN[1], Published(mdp.marginals(0), (9.0,))):
        assert PUBLISHED.write(PUBLISHED.read(total, as_written)) == written[1:]


@pytest.mark.parametrize("counts", [None, "nine", True, [], [float("nan")], [[1], [2, 3]], -1, 10**400])
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(MatrixDPError, match="expected a count, or a list of counts"):
        PUBLISHED.read([{"marginals": 0, "counts": counts}], as_written)


def test_their_schemas_take_what_is_read_and_no_other():
    definitions: dict[str, object] = {}
    totals = {**PUBLISHED.schema(definitions), "$defs": definitions}
    boxes = {**IMPOSSIBLE.schema(definitions), "$defs": definitions}
    for good in (9, WRITTEN):
        jsonschema.validate(good, totals)
    jsonschema.validate([{"age": {"range": [0, 4]}, "sex": "f"}], boxes)
    for schema, wrong in ((totals, [{"marginals": 0}]), (totals, []), (boxes, [{}]), (boxes, {"age": 3})):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
