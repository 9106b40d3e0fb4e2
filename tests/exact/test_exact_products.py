"""Exact Kronecker products against Python's integers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.errors import NumericalError
from matrixdp.exact import (
    CenteredMatrix,
    DeficientMatrix,
    IdentityMatrix,
    IntegerMatrix,
    MeasuredMatrix,
    apply_kronecker,
)


def _entries(matrix):
    dense = matrix.multiply(np.eye(matrix.columns))
    return np.array([[round(v) for v in row] for row in dense.tolist()], dtype=object).reshape(dense.shape)


@st.composite
def _products(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    matrices: list[MeasuredMatrix] = []
    for _ in range(draw(st.integers(0, 3))):
        n = draw(st.integers(1, 5))
        kind = draw(st.sampled_from(["identity", "centered", "integer", "tall", "deficient"]))
        if kind == "identity":
            matrices.append(IdentityMatrix(n))
        elif kind == "centered":
            matrices.append(CenteredMatrix(n))
        elif kind == "deficient":
            matrices.append(DeficientMatrix(rng.integers(1, 2**12, (draw(st.integers(1, 3)), n))))
        elif kind == "tall":
            rows = rng.integers(-(2**12), 2**12, (draw(st.integers(1, 3)), n))
            matrices.append(IntegerMatrix(np.vstack([2**12 * np.eye(n, dtype=np.int64), rows])))
        else:
            noise = rng.integers(-(2**12) // n, 2**12 // n + 1, (n, n))
            matrices.append(IntegerMatrix(np.eye(n, dtype=np.int64) * 2**14 + noise))
    bits = draw(st.sampled_from([3, 20, 30, 45]))
    counts = rng.integers(0, 2**bits, tuple(m.columns for m in matrices))
    records = max(2**33, 2 ** int(counts.sum()).bit_length())
    multipliers = None
    if matrices and draw(st.booleans()):
        multipliers = rng.integers(1, 2**12, tuple(m.rows for m in matrices))
    return matrices, counts, records, multipliers


@settings(max_examples=150, deadline=None)
@given(_products(), st.sampled_from([0, 1, 17, 35, 50, 77]))
def test_products_and_splits_are_exact(product, power):
    matrices, counts, records, multipliers = product
    tensor = apply_kronecker(matrices, counts, records, multipliers)
    dense = np.ones((1, 1), dtype=object)
    for matrix in matrices:
        dense = np.kron(dense, _entries(matrix))
    expected = list(dense.dot(np.array([int(v) for v in counts.ravel()], dtype=object)))
    if multipliers is not None:
        expected = [int(m) * v for m, v in zip(multipliers.ravel(), expected, strict=True)]
    assert tensor.values() == expected
    if max(abs(v) for v in expected) >> power >= 2**61:
        return
    quotient, fraction, exact = tensor.split(power)
    for i, value in enumerate(expected):
        assert int(quotient[i]) == value >> power
        assert exact(i) == Fraction(value % (1 << power), 1 << power)
        assert abs(Fraction(float(fraction[i])) - exact(i)) <= Fraction(1, 2**53)


def test_a_finer_lattice_only_shifts():
    quotient, fraction, exact = apply_kronecker([IdentityMatrix(3)], np.array([5, 0, 7]), 2**33).split(-10)
    assert quotient.tolist() == [5120, 0, 7168]
    assert fraction.tolist() == [0, 0, 0]
    assert exact(1) == 0


def test_the_public_bound_decides_nothing_but_the_width():
    matrices = [IntegerMatrix(np.array([[2**14, 3], [-5, 2**14]]))] * 3
    counts = np.arange(8).reshape(2, 2, 2)
    narrow = apply_kronecker(matrices, counts, 2**6).values()
    assert narrow == apply_kronecker(matrices, counts, 2**60).values()


@pytest.mark.parametrize("entries", [[[1, 2], [2, 4]], [[0]], [[1, 0, 0], [0, 1, 0], [1, 1, 0]]])
def test_singular_matrices_are_refused(entries):
    with pytest.raises(NumericalError, match=r"singular|nonsingular"):
        IntegerMatrix(np.array(entries, dtype=np.int64))


#: The third row is a combination of the others, yet rounding errors leave no pivot zero.
NEARLY = [
    [[39, -68, -64], [-25, 14, -5], [-36, -26, -79]],
    [[-46, -22, -38], [33, -44, -22], [53, -154, -104]],
    [[188, -84, 195], [-99, -103, 27], [-109, -393, 276]],
]


@pytest.mark.parametrize("entries", NEARLY)
@pytest.mark.parametrize("extra", [0, 1])
def test_singular_matrices_whose_pivots_are_not_zero_are_refused(entries, extra):
    matrix = np.array([*entries, *entries[:extra]], dtype=np.int64)
    with pytest.raises(NumericalError, match="could not be proved nonsingular"):
        IntegerMatrix(matrix)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_centered_products_are_exact_up_to_the_last_bit(size):
    # size * array is formed: just where it leaves 53 bits, a second limb must be used
    for value in (2**53 // size + 1 | 1, (2**53 - 1) // (size - 1)):
        counts = np.array([value, *[0] * (size - 1)])
        found = apply_kronecker([CenteredMatrix(size)], counts, value).values()
        assert found == [(size - 1) * value, *[-value] * (size - 1)]


def test_other_shapes_are_refused():
    with pytest.raises(NumericalError, match="no more columns than rows"):
        IntegerMatrix(np.ones((2, 3), dtype=np.int64))


@pytest.mark.parametrize(
    "matrix",
    [
        IdentityMatrix(4),
        CenteredMatrix(4),
        IntegerMatrix(np.array([[7, 1, 0], [-2, 9, 4], [0, 0, 5]])),
        IntegerMatrix(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [2, -3, 0]])),
        DeficientMatrix(np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])),
        DeficientMatrix(np.array([[1, 2, 3]])),
    ],
)
def test_sensitivities_and_covariances(matrix):
    dense = matrix.multiply(np.eye(matrix.columns))
    assert matrix.squared_sensitivity == int((dense**2).sum(axis=0).max())
    assert matrix.max_entry >= np.abs(dense).max()
    assert matrix.max_row_sum >= np.abs(dense).sum(axis=1).max()
    inverse = np.linalg.pinv(dense)
    np.testing.assert_allclose(matrix.covariance(), inverse @ inverse.T, atol=1e-14)
    np.testing.assert_allclose(matrix.solve(np.eye(matrix.rows)), inverse, atol=1e-14)
    np.testing.assert_array_equal(matrix.magnitudes(), np.abs(np.rint(dense)))
    assert matrix.sensitivity == int(np.abs(np.rint(dense)).sum(axis=0).max())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(10, 29), st.integers(8, 12))
def test_large_entries_and_multipliers_are_exact(seed, entry_bits, multiplier_bits):
    # values near 2^53 are split into limbs narrower than the entries: every limb must be
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, 2**entry_bits, (2, 2)) for _ in range(2)]
    pair = [IntegerMatrix(matrix + np.diag([2**entry_bits, 2**entry_bits])) for matrix in drawn]
    counts = rng.integers(1, 2**multiplier_bits, (2, 2)) ** 2
    multipliers = rng.integers(1, 2**multiplier_bits, (2, 2))
    found = apply_kronecker(pair, counts, int(counts.sum()), multipliers).values()
    product = np.kron(pair[0].entries.astype(object), pair[1].entries.astype(object))
    exact = (product @ counts.ravel().astype(object)) * multipliers.ravel().astype(object)
    assert found == exact.tolist()
