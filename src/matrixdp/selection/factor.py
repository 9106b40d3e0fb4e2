"""A real strategy for one Gram matrix, under either noise: what sub-solvers return."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError

__all__ = ["NOISES", "Factor", "column_norms", "variance_factor"]

Array = NDArray[np.float64]

#: What ``noise`` may be.
NOISES = ("gaussian", "laplace")


@dataclass(frozen=True, eq=False)
class Factor:
    """A strategy B for one Gram matrix V, before it is rounded to integers.

    Attributes
    ----------
    rows : ndarray, shape (m, n)
        B. Its largest column norm is 1: L2 for Gaussian noise, L1 for Laplace noise. Its row space holds
        that of the workload.
    loss : float
        tr(V (B'B)^+): the total squared error with noise of variance 1 on every row.
    bound : float or None
        A lower bound on the loss of every strategy for the same noise, or None.
    """

    rows: Array
    loss: float
    bound: float | None


def column_norms(rows: Array, noise: str) -> Array:
    """Return the norms of the columns in which sensitivity is measured, shape (n,).

    Examples
    --------
    >>> column_norms(np.array([[3.0, 1.0], [4.0, 0.0]]), "gaussian").tolist()
    [5.0, 1.0]
    >>> column_norms(np.array([[3.0, 1.0], [4.0, 0.0]]), "laplace").tolist()
    [7.0, 1.0]
    """
    if noise == "gaussian":
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", rows, rows)))
    return np.asarray(np.abs(rows).sum(axis=0))


def variance_factor(noise: str) -> float:
    """Return the variance of the noise with which a row of sensitivity 1 costs 1: 1, or 2 for Laplace.

    Examples
    --------
    >>> variance_factor("gaussian"), variance_factor("laplace")
    (1.0, 2.0)
    """
    if noise not in NOISES:
        raise PrivacyError(f"noise: found {noise!r}; expected gaussian or laplace")
    return 2.0 if noise == "laplace" else 1.0
