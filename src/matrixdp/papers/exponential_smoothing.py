"""Exponential smoothing: the largest diagonal entry smoothed, and projected gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact.linear import Array
from matrixdp.mechanisms import Factor, Options, explicit_mechanism, factor_of, option
from matrixdp.noise import Noise

MAX_CELLS = 1_024
#: Eigenvalues of M are kept above this.
_LEAST = 1e-6
#: The step is accepted against the largest of the last few objectives.
_MEMORY = 10


@dataclass(frozen=True)
class Smoothing(Options):
    """Of the smoothed maximum and its descent."""

    mu: float = option(0.01, "of the smoothed maximum mu log sum exp(v / mu); diagonals start at 1")
    iterations: int = option(400, "projected gradient steps at most", least=1)


@explicit_mechanism(
    "exponential-smoothing",
    "Yuan et al. 2015: exponential smoothing",
    (2,),
    MAX_CELLS,
    "no bound: the method has none",
    Smoothing,
)
def smoothed_factor(gram: Array, noise: Noise, options: Smoothing | None = None) -> Factor:
    """Minimize max diag(M) tr(V M^-1) over positive definite M, the maximum smoothed: mu log sum exp(v / mu).

    Non-monotone spectral projected gradients from the identity: steps of Barzilai and Borwein, projected onto
    matrices whose eigenvalues stay above a small number, accepted against the worst of the last objectives.

    References
    ----------
    Yuan, Zhang, Winslett, Xiao, Yang, Hao: Optimizing batch linear queries under exact and approximate
    differential privacy, TODS 2015, as COA (KDD 2016) describes it in section 2: program 6, the smoothed
    maximum, the kind of descent. That text has no constants: mu, the start, the least eigenvalue, what a step
    is accepted against (10 objectives, 1e-4 of the slope, halved steps) and the number of steps are ours.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> gram = np.tri(8) @ np.tri(8).T
    >>> bool(smoothed_factor(gram, GAUSSIAN).loss < np.trace(gram))
    True
    """
    given = Smoothing() if options is None else options
    size = len(gram)
    target = gram / (float(np.trace(gram)) / size)
    found = _descended(target, given.mu, given.iterations)
    return factor_of(scipy.linalg.cholesky(found, check_finite=False), gram, noise)


def _objective(matrix: Array, target: Array, mu: float) -> tuple[float, Array]:
    """Return the smoothed objective and its gradient."""
    factor = scipy.linalg.cho_factor(matrix, check_finite=False)
    inverse = scipy.linalg.cho_solve(factor, np.eye(len(matrix)), check_finite=False)
    error = float(np.vdot(inverse, target))
    diagonal = np.diagonal(matrix)
    peak = float(diagonal.max())
    shares = np.exp((diagonal - peak) / mu)
    largest = peak + mu * float(np.log(shares.sum()))
    gradient = -largest * (inverse @ target @ inverse)
    gradient[np.diag_indices(len(matrix))] += error * shares / shares.sum()
    return largest * error, gradient


def _projected(matrix: Array) -> Array:
    """Return the nearest symmetric matrix with eigenvalues of at least the least that is allowed."""
    symmetric = (matrix + matrix.T) / 2.0
    try:
        scipy.linalg.cholesky(symmetric - _LEAST * np.eye(len(matrix)), check_finite=False)
    except scipy.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(symmetric, check_finite=False)
        return np.asarray((vectors * np.maximum(values, _LEAST)) @ vectors.T)
    return symmetric


def _descended(target: Array, mu: float, iterations: int) -> Array:
    """Return the best point of the descent from the identity."""
    current = np.eye(len(target))
    value, gradient = _objective(current, target, mu)
    recent = [value]
    best, best_value = current, value
    length = 1.0 / float(np.abs(gradient).max())
    for _ in range(iterations):
        direction = _projected(current - length * gradient) - current
        slope = float(np.vdot(gradient, direction))
        if slope > -1e-9 * value:
            break
        step = 1.0
        while True:
            moved = current + step * direction
            found, moved_gradient = _objective(moved, target, mu)
            if found <= max(recent) + 1e-4 * step * slope or step < 1e-8:
                break
            step *= 0.5
        difference, change = moved - current, moved_gradient - gradient
        curvature = float(np.vdot(difference, change))
        square = float(np.vdot(difference, difference))
        length = min(max(square / curvature, 1e-10), 1e10) if curvature > 0 else 10.0 * length
        current, value, gradient = moved, found, moved_gradient
        recent = [*recent[-_MEMORY + 1 :], value]
        if value < best_value:
            best, best_value = current, value
    return best
