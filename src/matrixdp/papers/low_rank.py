"""The low-rank mechanism: the workload as a product of two matrices, found by an augmented Lagrangian."""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.mechanisms import (
    Factor,
    Spectrum,
    explicit_mechanism,
    factor_of,
    generator,
    spectrum_of,
)
from matrixdp.noise import Noise

__all__ = ["MAX_CELLS", "low_rank_factor", "project_columns"]

Array = NDArray[np.float64]

MAX_CELLS = 256
#: Rows of the strategy over the rank of the workload.
_WIDTH = 1.2
_OUTER, _INNER, _GRADIENT_STEPS = 60, 8, 8
#: The penalty of W = B L where a search starts, and where it stays.
_PENALTY, _MAX_PENALTY = {2: 1.0, 1: 100.0}, 1e6
#: Relative decrease of the loss over a few updates at which a search stops, once W = B L holds to this.
_TOLERANCE, _PATIENCE, _VIOLATION = 1e-4, 5, 1e-2


def project_columns(rows: Array, noise: Noise) -> Array:
    """Return the nearest matrix whose columns have a norm of at most 1: L1 for Laplace noise, else L2.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN, LAPLACE
    >>> project_columns(np.array([[2.0, 0.1], [1.0, 0.2]]), LAPLACE).tolist()
    [[1.0, 0.1], [0.0, 0.2]]
    >>> project_columns(np.array([[3.0], [4.0]]), GAUSSIAN).ravel().tolist()
    [0.6, 0.8]
    """
    if noise.norm == 2:
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=0), 1.0))
    magnitudes = np.abs(rows)
    ordered = -np.sort(-magnitudes, axis=0)
    sums = ordered.cumsum(axis=0) - 1.0
    counts = np.arange(1, len(rows) + 1)[:, None]
    last = (ordered * counts > sums).sum(axis=0) - 1
    thresholds = np.maximum(sums[last, np.arange(rows.shape[1])] / (last + 1), 0.0)
    thresholds[magnitudes.sum(axis=0) <= 1.0] = 0.0
    return np.asarray(np.sign(rows) * np.maximum(magnitudes - thresholds, 0.0))


def low_rank_factor(gram: Array, noise: Noise) -> Factor:
    """Minimize tr(B'B) over W = B L with columns of L of norm at most 1; L is the strategy.

    W enters through queries with the same Gram matrix, which have as many rows as its rank. B has a closed
    form; L is found by accelerated projected gradients; the multipliers of W = B L are updated while the
    violation falls, else the penalty grows. Starts are the scaled singular vectors and, for workloads of
    full rank, the identity with random rows beside it. The best L met is returned.

    References
    ----------
    Yuan, Zhang, Winslett, Xiao, Yang, Hao: Low-rank mechanism: optimizing batch queries under differential
    privacy, PVLDB 2012, section 4 (the decomposition) and section 5 (the augmented Lagrangian). With the L2
    norm: Yuan et al., Optimizing batch linear queries under exact and approximate differential privacy, TODS
    2015.

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> gram = np.tri(16) @ np.tri(16).T
    >>> bool(low_rank_factor(gram, LAPLACE).loss < np.trace(gram))
    True
    """
    spectrum = spectrum_of(gram)
    rank, size = spectrum.vectors.shape
    rows = math.ceil(_WIDTH * rank)
    singular = np.zeros((rows, size))
    singular[:rank] = spectrum.vectors
    starts = [singular]
    if spectrum.full and noise.norm == 1:
        beside = 0.3 * generator(0).random((rows - size, size))
        starts.append(np.vstack([np.eye(size), beside]))
    found = [_decomposed(spectrum, start, gram, noise) for start in starts]
    factors = [factor for factor in found if factor is not None]
    if not factors:
        raise NumericalError("low-rank: no decomposition that was met supports every query. Use hdmm")
    return min(factors, key=lambda factor: factor.loss)


def _decomposed(spectrum: Spectrum, start: Array, gram: Array, noise: Noise) -> Factor | None:
    """Return the best strategy that one search meets."""
    scale = math.sqrt(float(spectrum.values.sum()) / len(spectrum.values))
    queries = spectrum.root() / scale
    right = start / float(noise.column_norms(start).max())
    multipliers = np.zeros_like(queries)
    penalty, violation = _PENALTY[noise.norm], math.inf
    best: Factor | None = None
    history: list[float] = []
    for _ in range(_OUTER):
        target = penalty * queries + multipliers
        for _ in range(_INNER):
            inner = penalty * right @ right.T + np.eye(len(right))
            left = scipy.linalg.solve(inner, right @ target.T, assume_a="pos", check_finite=False).T
            right = _stepped(left, right, target, penalty, noise)
        residual = queries - left @ right
        norm = float(np.linalg.norm(residual))
        if norm < 0.9 * violation:
            multipliers, violation = multipliers + penalty * residual, norm
        else:
            penalty = min(1.5 * penalty, _MAX_PENALTY)
        best = _tried(right, spectrum, gram, noise, best)
        history.append(math.inf if best is None else best.loss)
        if norm > _VIOLATION * float(np.linalg.norm(queries)) or len(history) <= _PATIENCE:
            continue
        if history[-1] > history[-1 - _PATIENCE] * (1.0 - _TOLERANCE):
            break
    return best


def _stepped(left: Array, right: Array, target: Array, penalty: float, noise: Noise) -> Array:
    """Minimize penalty / 2 ||B L||^2 - <B'target, L> over L with bounded columns, by accelerated steps."""
    square = penalty * left.T @ left
    linear = left.T @ target
    curvature = float(scipy.linalg.eigvalsh(square, subset_by_index=[len(square) - 1] * 2)[0])
    if curvature <= 0.0:
        return right
    before = current = right
    momentum = 1.0
    for _ in range(_GRADIENT_STEPS):
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = current + (momentum - 1.0) / following * (current - before)
        before, momentum = current, following
        current = project_columns(ahead - (square @ ahead - linear) / curvature, noise)
    return current


def _tried(right: Array, spectrum: Spectrum, gram: Array, noise: Noise, best: Factor | None) -> Factor | None:
    """Return the better of a strategy and the best one so far; one that misses queries is no strategy.

    What lies outside of the workload's row space is removed: the queries are supported exactly then.
    """
    kept = right if spectrum.full else right @ spectrum.vectors.T @ spectrum.vectors
    kept = kept[np.abs(kept).sum(axis=1) > 0]
    try:
        factor = factor_of(kept, gram, noise)
    except NumericalError:
        return best
    return factor if best is None or factor.loss < best.loss else best


explicit_mechanism(
    "low-rank",
    "Yuan et al. 2012: the low-rank mechanism",
    (1, 2),
    low_rank_factor,
    MAX_CELLS,
    "no bound: the decomposition is not convex",
)
