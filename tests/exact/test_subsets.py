"""Transforms over subsets against their definitions."""

import math
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.exact.subsets import precision_sums, precision_sums_adjoint, subset_products

SIZES = st.lists(st.integers(1, 7), min_size=0, max_size=4)


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(0, 2**32))
def test_precision_sums_are_their_definition(sizes, seed):
    u = np.random.default_rng(seed).random((2,) * len(sizes))
    places = list(product((0, 1), repeat=len(sizes)))
    found = precision_sums(u, sizes)
    adjoint = precision_sums_adjoint(u, sizes)
    for one in places:
        above = below = 0.0
        for other in places:
            if all(a <= b for a, b in zip(one, other, strict=True)):
                above += u[other] * math.prod(n for n, b in zip(sizes, other, strict=True) if not b)
            if all(b <= a for a, b in zip(one, other, strict=True)):
                below += u[other]
        outside = math.prod(n for n, a in zip(sizes, one, strict=True) if not a)
        assert math.isclose(found[one], above, rel_tol=1e-12)
        assert math.isclose(adjoint[one], below * outside, rel_tol=1e-12)


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(0, 2**32))
def test_the_adjoint_is_one(sizes, seed):
    rng = np.random.default_rng(seed)
    u, g = rng.random((2, *(2,) * len(sizes)))
    assert np.isclose((precision_sums(u, sizes) * g).sum(), (u * precision_sums_adjoint(g, sizes)).sum())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), max_size=5))
def test_subset_products_are_their_definition(pairs):
    found = subset_products([out for out, _ in pairs], [into for _, into in pairs])
    assert found.shape == (2,) * len(pairs)
    for place in product((0, 1), repeat=len(pairs)):
        expected = math.prod(pair[member] for pair, member in zip(pairs, place, strict=True))
        assert math.isclose(found[place], expected, rel_tol=1e-12)
