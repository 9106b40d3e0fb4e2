"""Published counts and impossible combinations in a specification."""

import json

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import SpecificationError
from matrixdp.model.constraints import Constraints

SPEC = """
domain: {age: {min: 0, max: 99}, married: [no, yes]}
workload: [{marginals: [0, 1, 2]}]
totals:
  - {marginals: 0, counts: 50}
  - {product: {married: identity}, counts: [30, 20]}
impossible:
  - {age: {range: [0, 14]}, married: yes}
"""


def test_they_are_read_and_kept_in_the_document():
    found = mdp.load_specification(SPEC)
    assert [one.counts for one in found.totals] == [(50.0,), (30.0, 20.0)]
    again = mdp.load_specification(json.loads(json.dumps(found.document)))
    assert again.document == found.document
    for one in (found, again):
        known = Constraints.of(one.domain, one.totals, one.impossible)
        assert known.total == 50
        assert np.argwhere(~known.allowed(("age", "married"))).tolist() == [[age, 1] for age in range(15)]
    assert mdp.load_specification(SPEC.partition("totals")[0]).totals == ()
    assert mdp.load_specification(
        SPEC.replace("totals:\n", "totals: 50\n").replace(
            "  - {marginals: 0, counts: 50}\n  - {product: {married: identity}, counts: [30, 20]}\n", ""
        )
    ).totals[0].counts == (50.0,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[30, 20]", "[30]", r"totals\[1\]\.counts \(line 6\): found 1 counts; expected 2"),
        ("married: yes}", "maried: yes}", r"impossible\[0\]\.maried \(line 8\): found 'maried'"),
        ("[0, 14]", "[0, 140]", r"impossible\[0\]\.age\.range"),
        ("counts: 50", "count: 50", r"totals\[0\]\.counts \(line 5\): found nothing"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(old, new, message):
    with pytest.raises(SpecificationError, match=message):
        mdp.load_specification(SPEC.replace(old, new))
