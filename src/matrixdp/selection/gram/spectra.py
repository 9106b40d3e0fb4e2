"""Eigendecompositions of large Gram matrices that have no structure.

Beyond some thousand cells Newton's steps cost more than they save: the accelerated fixed point takes one
eigendecomposition a step and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.selection.gram.chains import Spectrum

__all__ = ["DenseSpectra"]

Array = NDArray[np.float64]

#: Eigenvalues below this share of the largest are noise of the eigendecomposition.
_RANK = 1e-12


@dataclass(frozen=True)
class DenseSpectra:
    """A Gram matrix without structure.

    Attributes
    ----------
    gram : ndarray, shape (n, n)
    """

    gram: Array

    def spectrum(self, p: Array) -> Spectrum:
        """Return the spectrum at a distribution over cells."""
        root = np.sqrt(p)
        inner = self.gram * root
        inner *= root[:, None]
        values, vectors = scipy.linalg.eigh(inner, driver="evd", overwrite_a=True, check_finite=False)
        kept = values > _RANK * values[-1]
        s = np.sqrt(values[kept])
        loadings = vectors[:, kept] * s
        loadings /= root[:, None]
        return Spectrum(s, loadings)
