"""Published counts and impossible combinations in a specification."""

import json

import numpy as np

import matrixdp as mdp
from matrixdp.model.constraints import Constraints
from tests.specification.refusals import PUBLIC


def test_they_are_read_and_kept_in_the_document():
    found = mdp.load_specification(PUBLIC)
    assert [one.counts for one in found.invariants] == [(50.0,), (30.0, 20.0)]
    again = mdp.load_specification(json.loads(json.dumps(found.document)))
    assert again.document == found.document
    for one in (found, again):
        known = Constraints.of(one.domain, one.invariants, one.structural_zeros)
        assert known.total == 50
        assert np.argwhere(~known.allowed(("age", "married"))).tolist() == [[age, 1] for age in range(15)]
    without = PUBLIC.partition("invariants")[0]
    assert mdp.load_specification(without).invariants == ()
    assert mdp.load_specification(without + "invariants: 50\n").invariants[0].counts == (50.0,)


def test_former_names_of_keys_are_read():
    former = PUBLIC.replace("invariants:", "totals:").replace("structural_zeros:", "impossible:")
    assert mdp.load_specification(former).document == mdp.load_specification(PUBLIC).document
    targets = PUBLIC + "targets: {all: 5}\n"
    least, minimize = (
        mdp.load_specification(targets + f"privacy: {{{key}: rho}}\n") for key in ("least", "minimize")
    )
    assert least.document == minimize.document
