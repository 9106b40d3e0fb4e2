"""COA: the optimal Gaussian strategy by Newton steps whose systems are solved by conjugate gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact.linear import Array
from matrixdp.mechanisms import Factor, Options, explicit_mechanism, factor_of, option
from matrixdp.noise import Noise

MAX_CELLS = 8_192
#: A step is multiplied by this until it decreases the objective by this share of what its slope promises.
_SHRINK, _SUFFICIENT = 0.1, 0.25
#: Steps shorter than this are none.
_SHORTEST = 1e-12
#: The homotopy lowers theta this often, each time to a tenth.
_HOMOTOPY = 10


@dataclass(frozen=True)
class Newton(Options):
    """Of the Newton steps."""

    theta: float = option(1e-3, "what is added to the diagonal of W'W")
    conjugate_steps: int = option(5, "conjugate gradient steps for each Newton step", least=1)
    tolerance: float = option(1e-5, "relative decrease of the objective at which the steps end")
    iterations: int = option(300, "Newton steps at most", least=1)
    homotopy: str = option(
        "no", "whether theta falls from 1 to 1e-10 in tenths, in place of theta", ("no", "yes")
    )


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point of the descent.

    Attributes
    ----------
    matrix, inverse : ndarray, shape (n, n)
        X with unit diagonal, and its inverse.
    objective : float
        tr(X^-1 (V + theta I)).
    optimality : float
        The Frobenius norm of the gradient outside of the diagonal, which is held.
    """

    matrix: Array
    inverse: Array
    objective: float
    optimality: float


def newton_iterates(
    gram: Array, theta: float, start: Array | None = None, conjugate_steps: int = 5
) -> Iterator[Iterate]:
    """Minimize tr(X^-1 (V + theta I)) over positive definite X with unit diagonal, point by point.

    Every Newton direction has a zero diagonal and comes from a few steps of conjugate gradients that begin at
    zero. Its length is the first of 1, 0.1, 0.01, ... at which X stays positive definite and the objective
    falls by a quarter of what the slope promises. The points end where no length does.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
        V = W'W.
    theta : float
        Above 0 where V is singular; in units of V.
    start : ndarray, shape (n, n), optional
        Positive definite with unit diagonal; the identity where it is left out. It is the first point.
    conjugate_steps : int
        At least 1.

    References
    ----------
    Yuan, Yang, Zhang, Hao: Convex optimization for linear query processing under approximate differential
    privacy, KDD 2016: program 10, Algorithm 1 and Algorithm 2, sections 4.1 and 4.2 for T, beta and sigma.
    Line 7 of Algorithm 2 has D where the curvature along P is meant (section 4.1).

    Examples
    --------
    >>> from itertools import islice
    >>> gram = np.tri(8).T @ np.tri(8)
    >>> [round(point.objective, 2) for point in islice(newton_iterates(gram, 1e-3), 5)]
    [36.01, 25.8, 20.31, 18.16, 17.88]
    """
    size = len(gram)
    target = gram + theta * np.eye(size)
    x = np.eye(size) if start is None else start
    inverse = _inverse(x)
    while inverse is not None:
        value = float(np.vdot(inverse, target))
        image = inverse @ target @ inverse
        descent = image.copy()
        np.fill_diagonal(descent, 0.0)
        yield Iterate(x, inverse, value, float(np.linalg.norm(descent)))
        direction = _direction(inverse, image, descent, conjugate_steps)
        slope = -float(np.vdot(image, direction))  # the direction's diagonal is zero
        if slope >= 0.0:
            return
        del image, descent
        step = 1.0
        while True:
            moved = x + step * direction
            inverse = _inverse(moved)
            if inverse is not None:
                fall = float(np.vdot(inverse, target)) - value
                if fall <= _SUFFICIENT * step * slope:
                    break
            step *= _SHRINK
            if step < _SHORTEST:
                return
        x = moved


@explicit_mechanism(
    "coa",
    "Yuan et al. 2016: the optimum by Newton steps",
    (2,),
    MAX_CELLS,
    "no bound: the method has none",
    Newton,
)
def newton_factor(gram: Array, noise: Noise, options: Newton | None = None) -> Factor:
    """Return the last point of `newton_iterates`, or of a sequence of them with falling theta.

    The loss is that of V itself, without theta.

    References
    ----------
    Yuan et al. 2016: Algorithm 1 with theta = 0.001, which their experiments report (section 5); with
    ``homotopy`` Algorithm 3. When a descent ends is not printed: here, as in their program, where the
    objective falls by less than 1e-5 of itself.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> gram = np.tri(16) @ np.tri(16).T
    >>> from matrixdp.selection.gram import solve_gram
    >>> newton_factor(gram, GAUSSIAN).loss < 1.001 * solve_gram(gram).loss
    True
    """
    given = Newton() if options is None else options
    thetas = [0.1**power for power in range(_HOMOTOPY + 1)] if given.homotopy == "yes" else [given.theta]
    x = np.eye(len(gram))
    for theta in thetas:
        x = _descended(gram, theta, x, given)
    return factor_of(scipy.linalg.cholesky(x, check_finite=False), gram, noise)


def _descended(gram: Array, theta: float, start: Array, given: Newton) -> Array:
    """Return the point at which a descent ends."""
    points = newton_iterates(gram, theta, start, given.conjugate_steps)
    last = next(points)
    for number, point in enumerate(points, start=1):
        before, last = last, point
        if (
            number == given.iterations
            or before.objective - last.objective < given.tolerance * before.objective
        ):
            break
    return last.matrix


def _inverse(matrix: Array) -> Array | None:
    """Return the inverse of a symmetric matrix that is positive definite, or None if it is not definite."""
    # the transpose of a symmetric matrix in rows is itself in columns: LAPACK takes it without a copy of it
    factor, failed = scipy.linalg.lapack.dpotrf(matrix.T, lower=1)
    if failed:
        return None
    lower, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse = np.tril(lower)
    inverse += np.tril(lower, -1).T
    return np.asarray(inverse)


def _direction(inverse: Array, image: Array, residual: Array, steps: int) -> Array:
    """Solve H(D) = residual over D with zero diagonal, H(D) = X^-1 D X^-1 V X^-1 plus its transpose.

    The residual, which has a zero diagonal, is overwritten.
    """
    found = np.zeros_like(residual)
    search = residual.copy()
    half, product = np.empty_like(residual), np.empty_like(residual)
    energy = float(np.vdot(residual, residual))
    for _ in range(steps):
        np.matmul(inverse, search, out=product)
        np.matmul(product, image, out=half)
        np.add(half, half.T, out=product)
        np.fill_diagonal(product, 0.0)
        curvature = float(np.vdot(search, product))
        if curvature <= 0.0:  # the residual is zero, or lost in rounding
            break
        step = energy / curvature
        found += np.multiply(search, step, out=half)
        residual -= np.multiply(product, step, out=half)
        fresh = float(np.vdot(residual, residual))
        search *= fresh / energy
        search += residual
        energy = fresh
    return found
