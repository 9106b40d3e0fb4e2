"""The best scales of the covariances: one for each order of subsets."""

from __future__ import annotations

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

__all__ = ["best_scales"]

Array = NDArray[np.float64]


def best_scales(traces: Array, cubes: Array) -> Array:
    """Return the scales x at which (traces'x)^3 / cubes(x, x, x) is largest, as far as a search finds them.

    Shapes (n,), (n, n, n) and (n,); entries without a trace get 0.

    Examples
    --------
    >>> best_scales(np.array([2.0, 0.0]), np.ones((2, 2, 2))).tolist()
    [1.0, 0.0]
    """
    used = np.flatnonzero(traces)
    scales = np.zeros(len(traces))
    scales[used] = 1.0
    if len(used) < 2:
        return scales
    inner = cubes[np.ix_(used, used, used)]
    inner = (inner + inner.transpose(1, 2, 0) + inner.transpose(2, 0, 1)) / 3.0
    linear = traces[used]

    def objective(logs: Array) -> tuple[float, Array]:
        own = np.exp(logs)
        image = np.einsum("abc,b,c->a", inner, own, own)
        first, second = float(linear @ own), float(image @ own)
        if not second > 0:
            return 1e300, np.zeros_like(logs)
        return np.log(second) - 3.0 * np.log(first), own * (3.0 * image / second - 3.0 * linear / first)

    # the bound may rise for ever as scales part, or not depend on them
    limits = [(-50.0, 50.0)] * len(used)
    start = np.zeros(len(used))
    found = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=limits)
    if found.fun < objective(start)[0]:
        scales[used] = np.exp(found.x)
    return scales
