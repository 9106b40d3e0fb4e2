"""From an optimal real strategy to the integer strategy that is measured, its support exact.

The factor is scaled to 2^14, extended by lightly weighted rows along what it does not measure, and
rounded. The result is square and proved nonsingular, so every query of the workload stays in its row
space *exactly*, whatever the rounding did; the extension's weight balances what it adds to the sensitivity
against the rounding errors that it absorbs. Both cost about 2^-14 of the variance.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.linops import CenteredMatrix, IdentityMatrix, IntegerMatrix, MeasuredMatrix
from matrixdp.selection.convex import Design

__all__ = ["MAX_MEASURED_CELLS", "measured_matrix"]

Array = NDArray[np.float64]

#: log2 of the largest column norm of a rounded matrix.
BITS = 14
#: A measured matrix is square: past this many cells it would take gigabytes.
MAX_MEASURED_CELLS = 8_192


def measured_matrix(design: Design | None, cells: int, bits: int = BITS) -> MeasuredMatrix:
    """Return the integer matrix that measures a design.

    Parameters
    ----------
    design : Design or None
        The real strategy; None stands for the centered identity, which is an integer matrix as it is.
    cells : int
        Its number of columns.
    bits : int
        log2 of the largest column norm after scaling.

    Returns
    -------
    MeasuredMatrix

    Raises
    ------
    TooLargeError
        Past ``MAX_MEASURED_CELLS`` cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matrixdp.selection.convex import solve_gram
    >>> measured_matrix(solve_gram(np.eye(4)), 4).squared_sensitivity
    1
    """
    if design is None:
        return CenteredMatrix(cells)
    factor = design.factor
    if len(factor) == cells and float(np.abs(factor.T @ factor - np.eye(cells)).max()) < 1e-9:
        return IdentityMatrix(cells)
    if cells > MAX_MEASURED_CELLS:
        raise TooLargeError(
            f"a part of {cells} cells would be measured by a matrix of {cells} x {cells}; the limit is "
            f"{MAX_MEASURED_CELLS} cells"
        )
    scale = 2.0**bits
    rows = np.rint(scale * factor)
    missing = cells - len(factor)
    if missing == 0:
        return IntegerMatrix(rows.astype(np.int64))
    normed = factor / np.linalg.norm(factor, axis=1, keepdims=True)
    outside = scipy.linalg.qr(normed.T, check_finite=False)[0][:, len(factor) :].T
    spread = float((outside * outside).sum(axis=0).max())
    weight = math.sqrt(scale * math.sqrt(missing / (12.0 * spread)))
    extension = np.rint(weight * outside)
    entries = np.vstack([rows, extension]).astype(np.int64)
    return IntegerMatrix(entries, np.ascontiguousarray(outside))
