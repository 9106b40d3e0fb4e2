"""The singular values of a workload, from its Gram matrix: what they bound, and its rank."""

from __future__ import annotations

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact.linear import Array

#: Singular values of a workload below this count for no dimension: roots of ``rank`` with a margin, for they
#: are computed as roots of eigenvalues.
_RANK = 1e-5


def singular_values(gram: Array) -> Array:
    """Return the singular values of W for V = W'W, ascending, without those that may be rounding errors.

    Examples
    --------
    >>> singular_values(np.diag([4.0, 0.0, 9.0])).tolist()
    [2.0, 3.0]
    """
    values = scipy.linalg.eigvalsh(gram, check_finite=False)
    # an eigenvalue of 0 comes out as a rounding error, whose root would raise a bound noticeably
    rounding = len(gram) * np.finfo(np.float64).eps * max(float(values[-1]), 0.0)
    return np.asarray(np.sqrt(values[values > rounding]), dtype=np.float64)


def rank_of(values: Array) -> int:
    """Return how many singular values, ascending, are no rounding errors beside the largest.

    Examples
    --------
    >>> rank_of(np.array([1e-7, 1.0, 2.0]))
    2
    """
    return int((values > _RANK * values[-1]).sum())


def svd_bound_gram(gram: Array) -> float:
    """Return (sum of the singular values of W)^2 / n for an explicit Gram matrix V = W'W.

    With noise of variance 1 on every row, no strategy of sensitivity 1 (in L2, and so in L1) has less total
    squared error.

    References
    ----------
    Li and Miklau 2013, Theorem 3.3; McKenna et al., journal version, Theorem 5.

    Examples
    --------
    >>> svd_bound_gram(np.eye(3))
    3.0
    """
    return float(singular_values(gram).sum()) ** 2 / len(gram)
