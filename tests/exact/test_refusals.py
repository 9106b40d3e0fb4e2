"""What a measured matrix is refused for, and how sure its rank must be."""

import warnings

import numpy as np
import pytest

from matrixdp.errors import NumericalError
from matrixdp.exact import DeficientMatrix, IntegerMatrix, apply_kronecker


@pytest.mark.parametrize("kind", [IntegerMatrix, DeficientMatrix])
def test_entries_are_small_enough_for_exact_sensitivities(kind):
    with pytest.raises(NumericalError, match="1 rows has an entry of 2147483648, too large"):
        kind(np.array([[-(2**31)]]))
    assert kind(np.array([[1 - 2**31]])).squared_sensitivity == (2**31 - 1) ** 2


def test_a_rank_that_floating_point_cannot_prove_is_refused():
    large = 2**29
    nearly = np.array([[large, large - 1], [large + 1, large]])  # of determinant 1
    with pytest.raises(NumericalError, match=r"could not be proved nonsingular|singular after rounding"):
        IntegerMatrix(nearly)


def test_a_singular_matrix_is_refused_without_settings_that_all_threads_share(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(warnings, "catch_warnings", None)
        with pytest.raises(NumericalError, match="singular after rounding"):
            IntegerMatrix(np.array([[1, 1], [1, 1]]))


@pytest.mark.parametrize("power", range(20, 27))
def test_a_proof_of_rank_leaves_room_for_rounding(power):
    """I - C B below 1/2 in norm, rounding included: of two determinants near 1 the worse is refused."""
    large = 2**power
    matrix = np.array([[large, large - 1], [large + 1, large]])
    rounding = 2 * 2 * np.finfo(float).eps * 4 * large * large
    if rounding < 0.1:
        inverse = IntegerMatrix(matrix).solve(np.eye(2))
        assert np.abs(inverse @ matrix - np.eye(2)).sum(axis=1).max() < 0.5
    elif rounding > 0.5:
        with pytest.raises(NumericalError, match="could not be proved nonsingular"):
            IntegerMatrix(matrix)


def test_a_rank_is_proved_by_what_is_near_a_left_inverse(monkeypatch):
    entries = np.array([[900, 400, 0], [-300, 800, 100], [0, 200, 700]])
    inverse = np.linalg.inv(entries)
    solved = []
    solve = IntegerMatrix.solve
    monkeypatch.setattr(IntegerMatrix, "solve", lambda self, b: solved.append(1) or solve(self, b))
    IntegerMatrix(entries, near=inverse * [[1.1], [0.9], [1.0]])
    assert not solved
    # what is far from one proves nothing, and does no harm
    for far in (3 * inverse, 0 * inverse, inverse[::-1]):
        IntegerMatrix(entries, near=far)
        assert solved.pop()
    with pytest.raises(NumericalError, match="singular after rounding"):
        IntegerMatrix(np.ones((3, 3), dtype=np.int64), near=inverse)


def test_rows_up_to_the_limit_are_multiplied():
    assert apply_kronecker([], np.array(1), 1, multipliers=np.array(2**48 - 1)).values() == [2**48 - 1]


@pytest.mark.parametrize("bits", [20, 40, 47])
def test_counts_of_many_limbs_are_multiplied_exactly(bits):
    value, factor = 2**60 + 123_456_789, 2**bits - 1
    found = apply_kronecker([], np.array(value), 2**61, multipliers=np.array(factor))
    assert len(found.limbs) > 2
    assert found.values() == [value * factor]


def test_a_full_rank_leaves_nothing_outside():
    assert DeficientMatrix(np.array([[1, 1], [0, 1]])).unsupported is None
    assert DeficientMatrix(np.array([[1, 1], [2, 2]])).unsupported.shape == (1, 2)
