"""Exact Kronecker products against Python's integers."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.exact import CenteredMatrix, DeficientMatrix, IdentityMatrix, IntegerMatrix, apply_kronecker


@st.composite
def _products(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    matrices: list[Any] = []
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
        dense = np.kron(dense, matrix.written().astype(np.int64).astype(object))
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


@pytest.mark.parametrize("size", [2, 3, 7])
def test_centered_products_are_exact_up_to_the_last_bit(size):
    # size * array is formed: just where it leaves 53 bits, a second limb must be used
    for value in (2**53 // size + 1 | 1, (2**53 - 1) // (size - 1)):
        counts = np.array([value, *[0] * (size - 1)])
        found = apply_kronecker([CenteredMatrix(size)], counts, value).values()
        assert found == [(size - 1) * value, *[-value] * (size - 1)]


def test_rows_up_to_the_limit_are_multiplied():
    assert apply_kronecker([], np.array(1), 1, multipliers=np.array(2**48 - 1)).values() == [2**48 - 1]


@pytest.mark.parametrize("bits", [20, 40, 47])
def test_counts_of_many_limbs_are_multiplied_exactly(bits):
    value, factor = 2**60 + 123_456_789, 2**bits - 1
    found = apply_kronecker([], np.array(value), 2**61, multipliers=np.array(factor))
    assert len(found.limbs) > 2
    assert found.values() == [value * factor]


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
