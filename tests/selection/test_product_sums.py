"""Sums of Kronecker products, and how errors change along them, against the plain matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray

from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.view import product_sums
from matrixdp.selection.view.product_sums import sum_of_products

Array = NDArray[np.float64]
RANDOM = np.random.default_rng(3)


def _product(factors: Sequence[Array]) -> Array:
    def two(left: Array, right: Array) -> Array:
        return np.asarray(np.kron(left, right), dtype=np.float64)

    return reduce(two, factors, np.ones((1, 1)))


def _gram(size: int) -> Array:
    rows = RANDOM.normal(size=(size, size))
    return np.asarray(rows.T @ rows)


@pytest.mark.parametrize("sizes", [(), (4,), (3, 2), (2, 3, 2)])
@pytest.mark.parametrize("count", [1, 30])
def test_sums_are_those_of_the_products(
    sizes: tuple[int, ...], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(product_sums, "_ENTRIES", 100)  # in several steps
    terms = [(float(RANDOM.uniform(1, 2)), [_gram(size) for size in sizes]) for _ in range(count)]
    plain = np.sum([weight * _product(factors) for weight, factors in terms], axis=0)
    np.testing.assert_allclose(sum_of_products(terms), plain, rtol=1e-12)


@pytest.mark.parametrize("sizes", [(5,), (3, 2), (2, 3, 2)])
def test_slopes_along_products(sizes: tuple[int, ...]) -> None:
    """The change along a product is a trace, and linear in the Gram matrix of each axis."""
    cells = int(np.prod(sizes))
    factor = ConvexSolver(1e-9).gram(_gram(cells), sizes)
    grams = [_gram(size) for size in sizes]
    change = float(np.trace(factor.slope @ _product(grams)))
    assert factor.change(grams) == pytest.approx(change, rel=1e-9)
    for axis, gram in enumerate(grams):
        slope = factor.axis_slope(axis, grams)
        assert float((slope * gram).sum()) == pytest.approx(change, rel=1e-9)
        other = _gram(len(gram))
        moved = [*grams[:axis], other, *grams[axis + 1 :]]
        assert float((slope * other).sum()) == pytest.approx(factor.change(moved), rel=1e-9)
