"""Every mechanism keeps its contract."""

import pytest

from matrixdp.noise import NOISES
from matrixdp.papers import matrix_mechanism, matrix_programs
from matrixdp.selection.registry import MECHANISMS
from matrixdp.testing import check_mechanism


@pytest.fixture(autouse=True)
def _short_searches(monkeypatch):
    """What a strategy costs and how it errs is the same after a few steps of a search as after many."""
    monkeypatch.setattr(matrix_programs, "_PROGRAMS", 2)
    monkeypatch.setattr(matrix_mechanism, "_ROTATIONS", 200)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_keep_their_contract(name, noise):
    check_mechanism(name, noise)
