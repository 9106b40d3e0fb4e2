"""Privelet: noise on Haar wavelet coefficients."""

from __future__ import annotations

import numpy as np

from matrixdp.exact.linear import Array
from matrixdp.mechanisms import numeric_mechanism


def haar_rows(size: int) -> Array:
    """Return the Haar wavelet queries with the weights of Privelet, shape (m, n).

    A coefficient is half the difference of the means of two halves, and its weight is the length of both
    together: weighted, every query is a difference of two sums. Sizes that are not powers of two are filled
    up with values that never occur. Several attributes are transformed one after the other, which is the
    Kronecker product.

    References
    ----------
    Xiao, Wang, Gehrke: Differential privacy via wavelet transforms, ICDE 2010, section IV (Haar), section
    VI.A (several attributes) and section VI.C (Privelet+, which leaves some of them as they are).

    Examples
    --------
    >>> haar_rows(4).astype(int).tolist()
    [[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]]
    >>> haar_rows(3).astype(int).tolist()
    [[1, 1, 1], [1, 1, -1], [1, -1, 0], [0, 0, 1]]
    """
    length = 1 << (size - 1).bit_length()
    rows = [np.ones(length)]
    support = length
    while support > 1:
        for first in range(0, length, support):
            row = np.zeros(length)
            row[first : first + support // 2] = 1.0
            row[first + support // 2 : first + support] = -1.0
            rows.append(row)
        support //= 2
    kept = np.array(rows)[:, :size]
    return np.asarray(kept[np.abs(kept).any(axis=1)])


numeric_mechanism(
    "wavelet",
    "Xiao et al. 2010: the Haar wavelet (Privelet)",
    lambda terms, axis: haar_rows(terms.sizes[axis]),
)
