"""How many components, how many fits, and whether a model may be used."""

import json
from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import NumericalError
from matrixdp.model.choice import _limits, choose, judged
from matrixdp.model.fit import fit
from matrixdp.model.mixture import Mixture
from matrixdp.model.parts import Parts
from tests.model.builders import measured

RANDOM = np.random.default_rng(11)
DOMAIN = {"a": 12, "b": 12, "c": 2}


@pytest.fixture(scope="module")
def parts():
    """Two attributes that are equal for nearly all: one product cannot say so."""
    a = RANDOM.integers(0, 12, 3_000)
    b = np.where(RANDOM.random(3_000) < 0.9, a, RANDOM.integers(0, 12, 3_000))
    table = {"a": a, "b": b, "c": RANDOM.integers(0, 2, 3_000)}
    return Parts.of(measured(DOMAIN, table, mdp.marginals([0, 1, 2]), seed=2).measurement)


def test_components_are_added_until_noise_explains_the_rest(parts, monkeypatch):
    monkeypatch.setattr("matrixdp.model.choice._LADDER", ((2, 300), (30, 500), (60, 500)))
    assert not judged(parts, fit(parts, 0, 2, 300).losses).accepted
    seen = []
    chosen = choose(parts, fits=2, seen=lambda *done: seen.append(done))
    assert (chosen.components, chosen.steps, chosen.fits) == (30, 500, 2)
    assert chosen.tests.accepted
    chosen.tests.check("Ask for more")
    assert chosen.mixture.components == 60
    assert seen[0] == (1, 600)
    assert seen[300] == (301, 900)  # a second round, which shows that components are missing
    assert seen[-1] == (1_600, 1_600)
    assert json.loads(json.dumps(chosen.as_dict()))["tests"]["accepted"] is True
    both = Mixture.average([fit(parts, seed, 30, 500).mixture for seed in (0, 1)])
    assert np.array_equal(both.weights, chosen.mixture.weights)


def test_a_model_that_does_not_fit_is_refused(parts):
    chosen = choose(parts, seed=3, components=1, steps=200, fits=1)
    assert (chosen.seed, chosen.components, chosen.steps, chosen.fits) == (3, 1, 200, 1)
    assert not chosen.tests.accepted
    assert chosen.tests.failed[0] == "a, b"
    with pytest.raises(NumericalError, match=r"further than noise explains from \d of \d+: a, b"):
        chosen.tests.check("Ask for more")
    assert chosen.as_dict()["accepted"] is False


def test_one_table_that_does_not_fit_is_enough(parts):
    limit, each = _limits(parts)
    losses = np.zeros(len(parts.parts))
    assert judged(parts, losses).accepted
    losses[0] = 0.999 * each[0]
    assert judged(parts, losses).accepted
    losses[0] = 1.001 * each[0]
    found = judged(parts, losses)
    assert found.loss < limit
    assert found.failed == (", ".join(parts.parts[0].attributes),)
    assert not found.accepted
    spread = np.full(len(parts.parts), 1.01 * limit / len(parts.parts))
    assert not replace(judged(parts, spread), failed=()).accepted


@pytest.mark.parametrize("heavy", [False, True])
def test_the_true_table_passes(parts, heavy):
    """In all of 400 draws; a draw fails with probability 0.0014 + 0.001: false alarm below 1e-4 at 6."""
    failed = 0
    own = replace(parts, kurtosis=3.0 if heavy else 0.0)
    for _ in range(400):
        losses = []
        for part in parts.parts:
            rank = part.term.degrees
            noise = RANDOM.laplace(0, 0.5**0.5, rank) if heavy else RANDOM.standard_normal(rank)
            losses.append(0.5 * float(noise @ noise))
        failed += not judged(own, np.array(losses)).accepted
    assert failed <= 6
