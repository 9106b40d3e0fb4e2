"""Large problems without structure: one eigendecomposition a step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from matrixdp.queries import Prefix, Sliding
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.chains import DenseSpectra, chain_of
from tests.limits import Override

Array = NDArray[np.float64]
SIZE = 33
RNG = np.random.default_rng(5)
SHARES = RNG.dirichlet(np.full(SIZE, 3.0))
MEAN = np.eye(SIZE) - SHARES[:, None]
WITHOUT_STRUCTURE = Sliding(5).gram(SIZE) + np.diag(1.0 + RNG.random(SIZE))


@pytest.mark.parametrize("gram", [Prefix().gram(SIZE), MEAN.T @ Prefix().gram(SIZE) @ MEAN])
def test_the_spectrum_is_that_of_the_chain(gram: Array) -> None:
    chain = chain_of(gram)
    assert chain is not None
    ours, theirs = DenseSpectra(gram).spectrum(SHARES), chain.spectrum(SHARES)
    np.testing.assert_allclose(np.sort(ours.roots), np.sort(theirs.roots), rtol=1e-9)
    for spectrum in (ours, theirs):
        np.testing.assert_allclose(spectrum.loadings @ spectrum.loadings.T, gram, atol=1e-10 * gram.max())


def test_large_problems_are_solved_by_the_fixed_point(limits: Override) -> None:
    best = solve_gram(WITHOUT_STRUCTURE, gap=1e-7)
    limits(chains_large_cells=SIZE - 1)
    found = solve_gram(WITHOUT_STRUCTURE, gap=1e-7)
    assert best.bound is not None
    assert found.bound is not None
    assert found.bound <= best.loss * (1 + 1e-12)
    assert best.bound <= found.loss <= found.bound * (1 + 1e-3)
    inverse = np.linalg.inv(found.rows)
    assert np.einsum("ia,ia->", inverse, WITHOUT_STRUCTURE @ inverse) == pytest.approx(found.loss, rel=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "rows",
    [
        np.arange(SIZE)[None, :] - SIZE // 2,
        np.vstack([np.arange(SIZE) - SIZE // 2, np.arange(SIZE) > 3]),
        np.vstack([np.eye(SIZE)[1:], Prefix().rows(SIZE)[:, ::-1] * (np.arange(SIZE) > 0)]),
    ],
    ids=["a sum less the middle", "few queries", "all values but one"],
)
def test_values_that_no_query_counts(limits: Override, rows: Array) -> None:
    gram = rows.T @ rows * 1.0
    best = solve_gram(gram, gap=1e-7)
    limits(chains_large_cells=SIZE - 1)
    found = solve_gram(gram, gap=1e-7)
    assert found.bound is not None
    assert best.loss * (1 - 1e-6) <= found.loss <= found.bound * (1 + 1e-3)
    assert np.abs(gram @ np.linalg.pinv(found.rows) @ found.rows - gram).max() <= 1e-6 * gram.max()
