"""What DAWA refuses, though nothing should bring it there."""

from fractions import Fraction
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.domain import OutOfDomain
from matrixdp.errors import NumericalError, PrivacyError
from matrixdp.measure.measurement import NoiseScale
from matrixdp.noise import LAPLACE, SeededSource
from matrixdp.papers.dawa import door
from matrixdp.papers.dawa.partition import Partition

#: The module, whose name is that of its function too.
dawa = import_module("matrixdp.papers.dawa.dawa")
WORKLOAD = mdp.Workload(mdp.Domain({"age": 8}), mdp.product(age="range"))


def test_noise_too_small_for_its_share_is_not_drawn(monkeypatch):
    mechanism = dawa.prepared(WORKLOAD, mdp.Budget(epsilon=1))
    monkeypatch.setattr(dawa, "lattice_scale", lambda *given: NoiseScale(Fraction(1), -4, LAPLACE))
    with pytest.raises(PrivacyError, match="too small for its share"):
        mechanism.sums(Partition(np.array([0, 4, 8])), np.arange(8), SeededSource(1))


def test_a_source_that_returns_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(door, "open_source", lambda *given, **named: SimpleNamespace(marginals=lambda *g: []))
    with pytest.raises(NumericalError, match="did not return the marginal"):
        door.read_counts({}, WORKLOAD, "age", OutOfDomain.drop())
