"""The one descent of selection: L-BFGS, within an effort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact.linear import Array


@dataclass(frozen=True)
class Effort:
    """What a descent may cost, and when it has arrived.

    Attributes
    ----------
    steps : int
        At most.
    tolerance : float
        Relative decrease of the value in a step below which it stops.
    gradient : float
        The largest entry of the gradient, in the scale of the value, below which it stops.
    memory : int
        Steps that its model of the curvature looks back on.
    evaluations : int, optional
        At most; twice the steps if left out.
    """

    steps: int
    tolerance: float
    gradient: float = 1e-9
    memory: int = 20
    evaluations: int | None = None


def descend(
    value: Callable[[Array], tuple[float, Array]],
    start: Array,
    effort: Effort,
    bounds: tuple[float, float] | None = None,
) -> Array:
    """Return where a descent from a point ends.

    Parameters
    ----------
    value : callable
        Returns a value and its gradient, of the shape of the point.
    start : ndarray
    effort : Effort
    bounds : (float, float), optional
        Of every variable.

    Examples
    --------
    >>> square = lambda x: (float(((x - 1.0) ** 2).sum()), 2.0 * (x - 1.0))
    >>> descend(square, np.zeros(2), Effort(20, 1e-9)).round(6).tolist()
    [1.0, 1.0]
    """
    found = scipy.optimize.minimize(
        value,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=None if bounds is None else [bounds] * start.size,
        options={
            "maxiter": effort.steps,
            "maxfun": effort.evaluations or 2 * effort.steps,
            "maxcor": effort.memory,
            "ftol": effort.tolerance,
            "gtol": effort.gradient,
        },
    )
    return np.asarray(found.x, dtype=np.float64).reshape(start.shape)
