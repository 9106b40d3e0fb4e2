"""Gram matrices of chains: tridiagonal eigenproblems in the place of dense ones, with the same optimum."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl
from numpy.typing import NDArray

from matrixdp.exact.resources import ALWAYS_THREADED_CELLS, THREADED_CELLS, blas_threads, processors
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import AllRanges, Prefix, Suffix
from matrixdp.selection.compose import rounding
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.chains import Bridge, Chain, Spectrum, chain_of, solve_chain
from tests.limits import Override

Array = NDArray[np.float64]
SIZE = 37
RNG = np.random.default_rng(3)
SHARES = np.maximum(RNG.dirichlet(np.ones(SIZE)), 1e-4)
WEIGHTS = RNG.dirichlet(np.ones(SIZE))
WEIGHTED = Prefix().rows(SIZE) * RNG.random(SIZE)[:, None]
MEAN = np.eye(SIZE) - np.outer(WEIGHTS, np.ones(SIZE))
OTHER_MEAN = np.eye(SIZE) - np.outer(SHARES / SHARES.sum(), np.ones(SIZE))

FULL = {
    "prefixes": Prefix().gram(SIZE),
    "suffixes and the total": Suffix().gram(SIZE) + 2.0,
    "ranges": AllRanges().gram(SIZE),
    "ranges, prefixes and suffixes": (2 * AllRanges().gram(SIZE) + Prefix().gram(SIZE)),
    "weighted prefixes": WEIGHTED.T @ WEIGHTED,
}
WITHOUT_MEANS = {
    "prefixes": MEAN.T @ Prefix().gram(SIZE) @ MEAN,
    "prefixes and suffixes": MEAN.T @ (Prefix().gram(SIZE) + 3 * Suffix().gram(SIZE)) @ MEAN,
    "weighted prefixes": MEAN.T @ WEIGHTED.T @ WEIGHTED @ MEAN,
    "under the distribution itself": OTHER_MEAN.T @ Prefix().gram(SIZE) @ OTHER_MEAN,
}


def _check_spectrum(gram: Array, chain: Chain | Bridge) -> None:
    shares = SHARES / SHARES.sum()
    spectrum = chain.spectrum(shares)
    root = np.sqrt(shares)
    values = np.linalg.eigvalsh(root[:, None] * gram * root)[-len(spectrum.roots) :]
    np.testing.assert_allclose(np.sort(spectrum.roots), np.sqrt(values), rtol=1e-9)
    # U U' = V, and U' D U is the diagonal of the eigenvalues: U = R'Q for a factor R of V
    np.testing.assert_allclose(spectrum.loadings @ spectrum.loadings.T, gram, atol=1e-9 * np.abs(gram).max())
    crossed = (spectrum.loadings.T * shares) @ spectrum.loadings
    np.testing.assert_allclose(crossed, np.diag(spectrum.roots**2), atol=1e-9 * values.max())


@pytest.mark.parametrize("gram", FULL.values(), ids=FULL)
def test_the_spectrum_of_a_chain_is_that_of_its_gram_matrix(gram: Array) -> None:
    chain = chain_of(gram)
    assert isinstance(chain, Chain)
    assert len(chain.spectrum(SHARES).roots) == SIZE
    _check_spectrum(gram, chain)


@pytest.mark.parametrize("gram", WITHOUT_MEANS.values(), ids=WITHOUT_MEANS)
def test_the_spectrum_of_a_chain_less_its_mean_is_that_of_its_gram_matrix(gram: Array) -> None:
    chain = chain_of(gram)
    assert isinstance(chain, Bridge)
    assert len(chain.spectrum(SHARES).roots) == SIZE - 1
    _check_spectrum(gram, chain)


def test_a_scale_at_which_eigenvectors_fail_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = chain_of(FULL["prefixes"])
    assert isinstance(chain, Chain)
    expected = chain.spectrum(SHARES).roots
    eigh = scipy.linalg.eigh_tridiagonal
    peaks: list[float] = []

    def failing(diagonal: Array, beside: Array, **options: Any) -> tuple[Array, Array]:
        peaks.append(float(diagonal.max()))
        if len(peaks) < 3:
            raise np.linalg.LinAlgError("did not converge")
        values, vectors = eigh(diagonal, beside, **options)
        return values, vectors

    monkeypatch.setattr(scipy.linalg, "eigh_tridiagonal", failing)
    np.testing.assert_allclose(chain.spectrum(SHARES).roots, expected, rtol=1e-12)
    assert len({round(np.log2(peak)) for peak in peaks}) == 3


def test_other_gram_matrices_are_no_chains() -> None:
    prefixes = Prefix().gram(SIZE)
    repeated = np.repeat(np.repeat(Prefix().gram(4), 2, axis=0), 2, axis=1)
    for gram in (np.eye(SIZE), prefixes + np.eye(SIZE), prefixes + Suffix().gram(SIZE), repeated, -prefixes):
        assert chain_of(gram) is None
    nearly = prefixes.copy()
    nearly[3, 9] = nearly[9, 3] = nearly[3, 9] * (1 + 1e-6)
    assert chain_of(nearly) is None


def test_large_chains_are_solved_to_a_gap_of_a_thousandth(limits: Override) -> None:
    prefixes = FULL["prefixes"]
    chain = chain_of(prefixes)
    assert chain is not None
    limits(chains_large_cells=SIZE - 1)
    found = solve_chain(prefixes, chain, 1e-9)
    assert found is not None
    assert found.bound is not None
    assert 1e-9 < found.loss / found.bound - 1 <= 1e-3


@pytest.mark.parametrize("predicates", [Prefix(), Suffix(), AllRanges()], ids=str)
def test_large_chains_start_from_a_coarser_grid(
    predicates: Prefix | Suffix | AllRanges, monkeypatch: pytest.MonkeyPatch, limits: Override
) -> None:
    gram = predicates.gram(400)
    chain = chain_of(gram)
    assert isinstance(chain, Chain)
    taken: list[int] = []
    spectrum = Chain.spectrum

    def counted(self: Chain, p: Array) -> Spectrum:
        taken.append(len(p))
        return spectrum(self, p)

    monkeypatch.setattr(Chain, "spectrum", counted)
    direct = solve_chain(gram, chain, 1e-3)
    steps = len(taken)
    limits(_MIN_REFINED_CELLS=400)
    found = solve_chain(gram, chain, 1e-3)
    assert found is not None
    assert direct is not None
    assert found.loss == pytest.approx(direct.loss, rel=1e-3)
    assert set(taken) == {100, 400}
    assert taken[steps:].count(400) <= max(4, steps - 3)


def test_a_chain_that_is_not_that_of_the_gram_matrix_has_no_solution() -> None:
    prefixes = Prefix().gram(SIZE)
    chain = chain_of(prefixes)
    assert isinstance(chain, Chain)
    assert solve_chain(prefixes, chain, 1e-6) is not None
    assert solve_chain(prefixes * (1 + 1e-6), chain, 1e-6) is None
    for broken in (np.nan, -1.0):
        assert solve_chain(prefixes, Chain(chain.diagonal * broken, chain.beside), 1e-6) is None


@pytest.mark.parametrize(("size", "factored"), [(10, 0), (5, 1)])
def test_some_missing_directions_of_large_factors_are_found_by_vectors(
    monkeypatch: pytest.MonkeyPatch, size: int, factored: int
) -> None:
    """Where they are many beside the rows, by a factorization."""
    monkeypatch.setattr(rounding, "THREADED_CELLS", 16)
    taken: list[int] = []
    by_factorization = rounding._outside

    def counted(rows: NDArray[np.float64], rank: int) -> NDArray[np.float64]:
        taken.append(rank)
        return by_factorization(rows, rank)

    monkeypatch.setattr(rounding, "_outside", counted)
    centred = np.tri(size) - np.tri(size).mean(axis=1, keepdims=True)
    gram = centred.T @ centred
    factor = solve_gram(np.kron(gram, gram) + 0.1 * np.kron(gram, np.eye(size) - 1.0 / size))
    matrix = rounding.measured_matrix(factor, GAUSSIAN)
    assert len(taken) == factored
    outside = matrix.unsupported
    assert outside is not None
    assert len(outside) == size**2 - (size - 1) ** 2
    np.testing.assert_allclose(outside @ outside.T, np.eye(len(outside)), atol=1e-12)
    np.testing.assert_allclose(outside @ factor.rows.T, 0.0, atol=1e-9)
    entries = matrix.written()
    np.testing.assert_allclose(matrix.covariance() @ (entries.T @ entries), np.eye(size**2), atol=1e-6)


EVERY = processors()


def threads() -> int:
    pools = threadpoolctl.threadpool_info()
    return max(pool["num_threads"] for pool in pools if pool["user_api"] == "blas")


@pytest.mark.parametrize(("limit", "most"), [("", EVERY), ("none", EVERY), ("0", EVERY), ("1", 1)])
def test_large_matrices_take_every_processor_that_they_may(
    monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, limit)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))

    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        with blas_threads(THREADED_CELLS - 1):
            assert threads() == 1
        with blas_threads(THREADED_CELLS):
            assert threads() == most
        assert threads() == 1


@pytest.mark.parametrize(("load", "most"), [(0.0, EVERY), (10.0 * (os.cpu_count() or 1), 1), (None, EVERY)])
def test_a_busy_machine_gets_no_threads_that_would_wait(
    monkeypatch: pytest.MonkeyPatch, load: float | None, most: int
) -> None:
    """Systems that tell no load have every processor; so have the largest matrices."""

    def told() -> tuple[float, float, float]:
        if load is None:
            raise OSError
        return load, load, load

    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getloadavg", told)

    with threadpoolctl.threadpool_limits(limits=1, user_api="blas"):
        with blas_threads(THREADED_CELLS):
            assert threads() == most
        with blas_threads(ALWAYS_THREADED_CELLS):
            assert threads() == EVERY
