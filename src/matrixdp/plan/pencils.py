"""Two Gram matrices on one attribute, made diagonal together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact import MeasuredMatrix

__all__ = ["Pencil"]

Array = NDArray[np.float64]

#: Eigenvalues of a sum of Gram matrices below this share of the largest are rounding errors.
_DROPPED = 1e-12
#: Decimals of shares that tell columns apart.
_DECIMALS = 12


@dataclass(frozen=True, eq=False)
class Pencil:
    """V with V' G_t V = scale_t diag(shares_t) for two Gram matrices, the shares adding up to 1.

    Attributes
    ----------
    basis : ndarray
        V, shape (values, r): its columns span what either matrix sees.
    dual : ndarray
        Its inverse on that span, shape (r, values).
    shares : pair of ndarray
        Shape (r,) each; exactly 0 where a matrix sees nothing.
    scales : pair of float
        The largest squared column norm of each matrix.
    total : float
        1'v of the first column. Where one part sums over the attribute, all other columns sum to 0.
    kinds : ndarray of int
        Equal for columns with equal shares, shape (r,).
    """

    basis: Array
    dual: Array
    shares: tuple[Array, Array]
    scales: tuple[float, float]
    total: float
    kinds: NDArray[np.intp]

    @cached_property
    def alike(self) -> tuple[NDArray[np.intp], Array]:
        """For each kind of columns the place of one, and which columns are of it, shape (r, kinds)."""
        _, first = np.unique(self.kinds, return_index=True)
        return first, (self.kinds[:, None] == np.arange(len(first))).astype(np.float64)

    @classmethod
    def of(cls, first: MeasuredMatrix | None, second: MeasuredMatrix | None) -> Pencil:
        """Return the pencil of what two parts measure on an attribute; None is the sum over it.

        Raises NumericalError if the matrices are over different numbers of values.

        Examples
        --------
        >>> from matrixdp.exact import IdentityMatrix
        >>> pencil = Pencil.of(IdentityMatrix(2), None)
        >>> [share.round(6).tolist() for share in pencil.shares]
        [[0.333333, 1.0], [0.666667, 0.0]]
        >>> abs(pencil.basis.sum(axis=0)).round(6).tolist()
        [0.816497, 0.0]
        """
        size = (first or second).columns  # type: ignore[union-attr]
        grams, scales, ranks = [], [], []
        for matrix in (first, second):
            if matrix is not None and matrix.columns != size:
                raise NumericalError("two matrices on one attribute have different numbers of columns")
            gram = np.ones((size, size)) if matrix is None else matrix.gram()
            scales.append(float(gram.diagonal().max()))
            grams.append(gram / scales[-1])
            ranks.append(1 if matrix is None else matrix.rank)
        inside = _whitened(grams[0] + grams[1], max(ranks))
        if first is None or second is None:
            basis, shares = _against_total(inside, 0 if first is None else 1, max(ranks))
        else:
            values, vectors = np.linalg.eigh(inside.T @ grams[0] @ inside)
            values = np.clip(values, 0.0, 1.0)
            values[: len(values) - ranks[0]] = 0.0
            values[ranks[1] :] = 1.0
            basis, shares = inside @ vectors, (values, 1.0 - values)
        _, columns = np.unique(shares[0].round(_DECIMALS), return_inverse=True)
        dual = basis.T @ (grams[0] + grams[1])
        return cls(basis, dual, shares, (scales[0], scales[1]), float(basis[:, 0].sum()), columns)


def _whitened(gram: Array, known: int) -> Array:
    """Return R with R' G R = I, its columns spanning what G sees, of which ``known`` dimensions are sure."""
    values, vectors = scipy.linalg.eigh(gram, check_finite=False)
    kept = values > _DROPPED * values[-1]
    if kept.sum() < known:
        raise NumericalError("measured matrices too close to singular for least squares with others")
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _against_total(inside: Array, total: int, rank: int) -> tuple[Array, tuple[Array, Array]]:
    """Rotate so that one column carries the sum over the attribute, and the others sum to 0."""
    sums = inside.sum(axis=0)
    basis = inside @ scipy.linalg.qr(sums[:, None])[0]
    seen = np.zeros(len(sums))
    # of more dimensions than the other matrix sees, the sum is one
    seen[0] = 1.0 if len(sums) > rank else min(float(sums @ sums), 1.0)
    return basis, (seen, 1.0 - seen) if total == 0 else (1.0 - seen, seen)
