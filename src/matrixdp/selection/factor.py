"""A real strategy for one Gram matrix, under either noise: what sub-solvers return."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Factor"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Factor:
    """A strategy B for one Gram matrix V, before it is rounded to integers.

    Attributes
    ----------
    rows : ndarray, shape (m, n)
        B. Its largest column norm, in the norm of the noise, is 1. Its row space holds
        that of the workload.
    loss : float
        tr(V (B'B)^+): the total squared error with noise of variance 1 on every row.
    bound : float or None
        A lower bound on the loss of every strategy for the same noise, or None.
    """

    rows: Array
    loss: float
    bound: float | None
