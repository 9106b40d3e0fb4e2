"""COA: the optimal Gaussian strategy by Newton steps whose systems are solved by conjugate gradients."""

from __future__ import annotations

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.mechanisms import (
    Factor,
    explicit_mechanism,
    factor_of,
    spectrum_of,
)
from matrixdp.noise import Noise

__all__ = ["MAX_CELLS", "newton_factor"]

Array = NDArray[np.float64]

MAX_CELLS = 1_024
_ITERATIONS = 100
_CONJUGATE_STEPS = 50
#: Relative decrease at which it stops.
_TOLERANCE = 1e-7
#: What is added to singular Gram matrices, relative to their mean eigenvalue.
_RIDGE = 1e-3


def newton_factor(gram: Array, noise: Noise) -> Factor:
    """Minimize tr(X^-1 V) over positive definite X with unit diagonal.

    Every Newton step solves for a direction with zero diagonal by conjugate gradients, to a residual that
    falls with the gradient; the step is halved until X stays positive definite and the objective falls
    enough. Singular V are made definite by a small multiple of the identity, as published.

    References
    ----------
    Yuan, Yang, Zhang, Hao: Convex optimization for linear query processing under approximate differential
    privacy, KDD 2016, section 3 (the problem) and section 4 (Algorithm 1).

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> gram = np.tri(16) @ np.tri(16).T
    >>> from matrixdp.selection.gram import solve_gram
    >>> newton_factor(gram, GAUSSIAN).loss < 1.001 * solve_gram(gram).loss
    True
    """
    size = len(gram)
    target = gram / (float(np.trace(gram)) / size)
    if not spectrum_of(gram).full:
        target = target + _RIDGE * np.eye(size)
    x = np.eye(size)
    inverse = np.eye(size)
    value = float(np.trace(target))
    start: float | None = None
    for _ in range(_ITERATIONS):
        image = inverse @ target @ inverse
        gradient = -image
        np.fill_diagonal(gradient, 0.0)
        norm = float(np.linalg.norm(gradient))
        start = norm if start is None else start
        tolerance = min(0.1, np.sqrt(norm / start)) * norm
        direction = _direction(inverse, image, gradient, tolerance)
        slope = float(np.vdot(gradient, direction))
        step = 1.0
        moved = None
        while step > 1e-10:
            moved = _inverse(x + step * direction)
            if moved is not None and float(np.vdot(moved, target)) <= value + 0.1 * step * slope:
                break
            step *= 0.5
            moved = None
        if moved is None:
            break
        x, inverse = x + step * direction, moved
        before, value = value, float(np.vdot(inverse, target))
        if before - value < _TOLERANCE * value:
            break
    return factor_of(scipy.linalg.cholesky(x, check_finite=False), gram, noise)


def _inverse(matrix: Array) -> Array | None:
    """Return the inverse of a positive definite matrix, or None if it is not definite."""
    try:
        factor = scipy.linalg.cho_factor(matrix, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    return np.asarray(scipy.linalg.cho_solve(factor, np.eye(len(matrix)), check_finite=False))


def _direction(inverse: Array, image: Array, gradient: Array, tolerance: float) -> Array:
    """Solve H(D) = -gradient over D with zero diagonal, H(D) = X^-1 D X^-1 V X^-1 plus its transpose."""
    found = np.zeros_like(gradient)
    residual = -gradient
    search = residual.copy()
    energy = float(np.vdot(residual, residual))
    for _ in range(_CONJUGATE_STEPS):
        if energy**0.5 <= tolerance:
            break
        half = inverse @ search @ image
        product = half + half.T
        np.fill_diagonal(product, 0.0)
        step = energy / float(np.vdot(search, product))
        found = found + step * search
        residual = residual - step * product
        fresh = float(np.vdot(residual, residual))
        search = residual + (fresh / energy) * search
        energy = fresh
    return found


explicit_mechanism(
    "coa",
    "Yuan et al. 2016: the optimum by Newton steps",
    (2,),
    newton_factor,
    MAX_CELLS,
    "no bound: the method has none",
)
