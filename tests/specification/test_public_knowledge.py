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
invariants:
  - {marginals: 0, counts: 50}
  - {product: {married: identity}, counts: [30, 20]}
structural_zeros:
  - {age: {range: [0, 14]}, married: yes}
"""


def test_they_are_read_and_kept_in_the_document():
    found = mdp.load_specification(SPEC)
    assert [one.counts for one in found.invariants] == [(50.0,), (30.0, 20.0)]
    again = mdp.load_specification(json.loads(json.dumps(found.document)))
    assert again.document == found.document
    for one in (found, again):
        known = Constraints.of(one.domain, one.invariants, one.structural_zeros)
        assert known.total == 50
        assert np.argwhere(~known.allowed(("age", "married"))).tolist() == [[age, 1] for age in range(15)]
    assert mdp.load_specification(SPEC.partition("invariants")[0]).invariants == ()
    assert mdp.load_specification(
        SPEC.replace("invariants:\n", "invariants: 50\n").replace(
            "  - {marginals: 0, counts: 50}\n  - {product: {married: identity}, counts: [30, 20]}\n", ""
        )
    ).invariants[0].counts == (50.0,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[30, 20]", "[30]", r"invariants\[1\]\.counts \(line 6\): found 1 counts; expected 2"),
        ("married: yes}", "maried: yes}", r"structural_zeros\[0\]\.maried \(line 8\): found 'maried'"),
        ("[0, 14]", "[0, 140]", r"structural_zeros\[0\]\.age\.range"),
        ("counts: 50", "count: 50", r"invariants\[0\]\.counts \(line 5\): found nothing"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(old, new, message):
    with pytest.raises(SpecificationError, match=message):
        mdp.load_specification(SPEC.replace(old, new))


def test_former_names_of_keys_are_read_alone():
    former = SPEC.replace("invariants:", "totals:").replace("structural_zeros:", "impossible:")
    assert mdp.load_specification(former).document == mdp.load_specification(SPEC).document
    with pytest.raises(SpecificationError) as caught:
        mdp.load_specification(SPEC + "totals: 50\n")
    assert (caught.value.code, caught.value.path) == ("conflict", ("totals",))
    least, minimize = (
        mdp.load_specification(SPEC + f"targets: {{all: 5}}\nprivacy: {{{key}: rho}}\n")
        for key in ("least", "minimize")
    )
    assert least.document == minimize.document
