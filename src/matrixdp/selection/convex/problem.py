"""Explicit optimal-strategy problems: factoring Gram matrices, symmetry, and the strategy that comes out."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from matrixdp.errors import NumericalError
from matrixdp.selection.convex.solver import DEFAULT_GAP, solve_dual

__all__ = ["Design", "solve_gram", "solve_rows"]

Array = NDArray[np.float64]

#: Eigenvalues of a Gram matrix below this share of the largest are noise of the eigendecomposition.
RANK_TOLERANCE = 1e-12
#: Explicit problems of at least this many cells gain from several BLAS threads; smaller ones lose.
THREADED_CELLS = 1_000


@dataclass(frozen=True)
class Design:
    """The optimal Gaussian strategy of one explicit Gram matrix.

    Attributes
    ----------
    factor : ndarray, shape (r, N)
        The strategy B; B'B has diagonal at most 1.
    loss, bound : float
        Its total squared error at privacy cost 1, and a lower bound on that of every strategy.
    p : ndarray, shape (N,)
        The dual distribution.
    iterations : int
        Factorizations that were needed.
    """

    factor: Array
    loss: float
    bound: float
    p: Array
    iterations: int

    @property
    def gradient_factor(self) -> Array:
        """Z with N = Z'Z = D^(1/2) (D^(1/2) V D^(1/2))^(-1/2) D^(1/2), shape (r, N).

        N / 2 is the derivative of the square root of ``bound`` with respect to V, for every rank;
        tr(N V) is that square root.
        """
        # The rows of B are orthogonal in the D-weighted inner product, with squared norms proportional to
        # s, the square roots of the eigenvalues of M; their sum is tr M^(1/2), the square root of the bound.
        weighted = self.factor * self.p
        norms = np.einsum("aj,aj->a", weighted, self.factor)
        scale = math.sqrt(self.bound) / float(norms.sum())
        return np.asarray(weighted * (scale**0.5 / (norms * scale))[:, None])

    @property
    def gradient(self) -> Array:
        """N itself, shape (N, N); see ``gradient_factor``."""
        factor = self.gradient_factor
        return np.asarray(factor.T @ factor)


def _involutions(sizes: Sequence[int]) -> list[NDArray[np.intp]]:
    """Return candidate symmetries of a product domain: reversals, and the exchange of two equal axes."""
    cells = np.arange(math.prod(sizes)).reshape(sizes)
    singles = [np.flip(cells, axis).ravel() for axis in range(len(sizes)) if sizes[axis] > 1]
    candidates = [*singles]
    if len(sizes) > 1:
        candidates.append(np.flip(cells).ravel())
        for i in range(len(sizes)):
            equal = [j for j in range(i + 1, len(sizes)) if sizes[i] == sizes[j] > 1]
            candidates += [np.swapaxes(cells, i, j).ravel() for j in equal]
    return candidates


def _symmetries(gram: Array, sizes: Sequence[int]) -> list[NDArray[np.intp]]:
    """Return commuting involutions that leave the Gram matrix unchanged."""
    tolerance = 1e-11 * float(np.abs(gram).max())
    found: list[NDArray[np.intp]] = []
    generated = {tuple(range(len(gram)))}
    for permutation in _involutions(sizes):
        if any((permutation[g] != g[permutation]).any() for g in found):
            continue
        if tuple(permutation) in generated:
            continue
        if float(np.abs(gram[np.ix_(permutation, permutation)] - gram).max()) <= tolerance:
            found.append(permutation)
            generated |= {tuple(np.asarray(g)[permutation]) for g in list(generated)}
    return found


def _characters(size: int, symmetries: list[NDArray[np.intp]]) -> list[Array]:
    """Return orthonormal bases (size x n_b) of the joint eigenspaces of commuting involutions."""
    bases: list[tuple[Array, tuple[int, ...]]] = []
    signs: list[tuple[int, ...]] = [()]
    for _ in symmetries:
        signs = [(*s, e) for s in signs for e in (1, -1)]
    elements: list[tuple[NDArray[np.intp], tuple[int, ...]]] = [(np.arange(size), ())]
    for permutation in symmetries:
        elements = [(g, (*e, 0)) for g, e in elements] + [(g[permutation], (*e, 1)) for g, e in elements]
    orbit = np.min([g for g, _ in elements], axis=0)
    representatives = np.unique(orbit)
    for sign in signs:
        basis = np.zeros((size, len(representatives)))
        columns = np.arange(len(representatives))
        for g, exponents in elements:
            character = math.prod(s for s, e in zip(sign, exponents, strict=True) if e)
            np.add.at(basis, (g[representatives], columns), character)
        norms = np.linalg.norm(basis, axis=0)
        keep = norms > 0.5
        if keep.any():
            bases.append((basis[:, keep] / norms[keep], sign))
    return [basis for basis, _ in bases]


def solve_gram(
    gram: Array, sizes: Sequence[int] | None = None, gap: float = DEFAULT_GAP, start: Array | None = None
) -> Design:
    """Solve for an explicit Gram matrix, using the symmetries that it has.

    Parameters
    ----------
    gram : ndarray, shape (N, N)
        V = W'DW, of any rank.
    sizes : sequence of int, optional
        The attributes' sizes, where N is a product domain: symmetries are looked for along them.
    gap : float
        Relative gap to reach.
    start : ndarray, optional
        A dual distribution to start from, shape (N,).

    Returns
    -------
    Design

    Raises
    ------
    NumericalError
        If the Gram matrix is zero or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> design = solve_gram(np.eye(3))
    >>> round(design.loss, 6)
    3.0
    """
    if len(gram) < THREADED_CELLS:
        return _solve_gram(gram, sizes, gap, start)
    with threadpool_limits(limits=os.cpu_count(), user_api="blas"):
        return _solve_gram(gram, sizes, gap, start)


def _solve_gram(gram: Array, sizes: Sequence[int] | None, gap: float, start: Array | None) -> Design:
    size = len(gram)
    peak = float(np.abs(gram).max())
    if not (math.isfinite(peak) and peak > 0):
        raise NumericalError("a Gram matrix that is zero or not finite has no strategy")
    symmetries = _symmetries(gram, sizes or (size,)) if size > 8 else []
    bases = _characters(size, symmetries) if symmetries else [np.eye(size)]
    spectra = []
    for basis in bases:
        inner = basis.T @ gram @ basis if symmetries else gram
        values, vectors = scipy.linalg.eigh(inner, driver="evd", check_finite=False)
        spectra.append((values, vectors))
    top = max(float(values[-1]) for values, _ in spectra)
    blocks = []
    for (values, vectors), basis in zip(spectra, bases, strict=True):
        keep = values > RANK_TOLERANCE * top
        if keep.any():
            rows = (vectors[:, keep] * np.sqrt(values[keep])).T
            blocks.append(rows @ basis.T if symmetries else rows)
    if not symmetries:
        point = solve_dual(blocks, gap, start)
        factor = np.vstack(point.factors)
        return Design(factor, point.primal, point.dual, point.p, point.iterations)
    # one design point for each orbit; p is the orbit's total, its cells share it equally
    orbit = np.arange(size)
    for permutation in symmetries:
        orbit = np.minimum(orbit, orbit[permutation])
    for permutation in symmetries:
        orbit = np.minimum(orbit, orbit[permutation])
    representatives, inverse, counts = np.unique(orbit, return_inverse=True, return_counts=True)
    # R_b D R_b' summed over an orbit: every cell contributes r r' with the same products up to the same
    # sign squared, so a representative stands for its orbit.
    reduced = [block[:, representatives] for block in blocks]
    reduced_start = None
    if start is not None:
        reduced_start = np.asarray(np.bincount(inverse, weights=start), dtype=float)
    point = solve_dual(reduced, gap, reduced_start)
    factor_rows = []
    for block, short, solved in zip(blocks, reduced, point.factors, strict=True):
        # solved = C short for the invertible C = solved short^+; apply the same C to all cells
        gram_short = short * point.p @ short.T
        transform = np.linalg.solve(gram_short, (short * point.p) @ solved.T).T
        factor_rows.append(transform @ block)
    p = (point.p / counts)[inverse]
    return Design(np.vstack(factor_rows), point.primal, point.dual, p, point.iterations)


def solve_rows(
    rows: Array, sizes: Sequence[int] | None = None, gap: float = DEFAULT_GAP, start: Array | None = None
) -> Design:
    """Solve for explicit queries, fewer than cells: W of shape (m, N) with m < N, V = W'W.

    The factorizations are of size m, so N may be large. ``sizes`` has no use here.

    Examples
    --------
    >>> import numpy as np
    >>> round(solve_rows(np.ones((1, 5))).loss, 9)
    1.0
    """
    del sizes
    values, vectors = scipy.linalg.eigh(rows @ rows.T, driver="evd", check_finite=False)
    if not (np.isfinite(values).all() and values[-1] > 0):
        raise NumericalError("queries that are all zero or not finite have no strategy")
    keep = values > RANK_TOLERANCE * values[-1]
    block = vectors[:, keep].T @ rows
    point = solve_dual([block], gap, start)
    return Design(point.factors[0], point.primal, point.dual, point.p, point.iterations)
