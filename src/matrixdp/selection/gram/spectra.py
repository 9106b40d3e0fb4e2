"""Eigendecompositions of large Gram matrices that have no structure, on the processor or on a GPU.

Beyond some thousand cells Newton's steps cost more than they save: the accelerated fixed point takes one
eigendecomposition a step and nothing else. Where PyTorch is installed (``pip install "matrixdp[gpu]"``) and
sees a GPU, that is where they are computed, in double precision as everywhere. What comes back is not taken
on trust: that the vectors are orthogonal and make up the matrix with the eigenvalues that are claimed is
checked on the processor, by products with vectors, and loss and bound are computed there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.selection.gram.chains import Spectrum

__all__ = ["MIN_DEVICE_CELLS", "DenseSpectra", "device_found", "eigh_on"]

Array = NDArray[np.float64]

#: Smaller problems are not worth the way to a GPU and back.
MIN_DEVICE_CELLS = 1_500
#: Eigenvalues below this share of the largest are noise of the eigendecomposition.
_RANK = 1e-12
#: How far a device's eigenpairs may be from what they claim, relative to the largest eigenvalue.
_TRUSTED = 1e-9


@cache
def device_found() -> str | None:
    """Return the name of a GPU that PyTorch sees, if it is installed and sees one."""
    if find_spec("torch") is None:
        return None
    import torch

    return "cuda" if torch.cuda.is_available() else None


def eigh_on(device: str, matrix: Array) -> tuple[Array, Array] | None:
    """Return eigenvalues, ascending, and eigenvectors from a device of PyTorch, in double precision.

    None where the device has not the memory, or what it returns is not what it claims to be.
    """
    import torch

    try:
        there = torch.from_numpy(matrix).to(device)
        values, vectors = torch.linalg.eigh(there)
        found = values.cpu().numpy(), vectors.cpu().numpy()
    except RuntimeError:  # out of memory, or it did not converge
        return None
    return found if _holds(matrix, *found) else None


def _holds(matrix: Array, values: Array, vectors: Array) -> bool:
    """Return whether eigenpairs are orthogonal and make up the matrix, as far as two vectors tell."""
    places = np.arange(len(matrix))
    scale = float(np.abs(values).max())
    for probe in (1.0 + np.cos(places), np.sin(3.0 * places)):
        length = float(np.abs(probe).max())
        seen = vectors.T @ probe
        if not float(np.abs(vectors @ seen - probe).max()) <= _TRUSTED * length * len(matrix) ** 0.5:
            return False
        if not float(np.abs(vectors @ (values * seen) - matrix @ probe).max()) <= (
            _TRUSTED * scale * length * len(matrix) ** 0.5
        ):
            return False
    return True


@dataclass(frozen=True)
class DenseSpectra:
    """A Gram matrix without structure.

    Attributes
    ----------
    gram : ndarray, shape (n, n)
    device : str, optional
        A device of PyTorch on which eigenproblems are solved; they are solved here where it cannot.
    """

    gram: Array
    device: str | None = None

    def spectrum(self, p: Array) -> Spectrum:
        """Return the spectrum at a distribution over cells."""
        root = np.sqrt(p)
        inner = self.gram * root
        inner *= root[:, None]
        found = None if self.device is None else eigh_on(self.device, inner)
        if found is None:
            found = scipy.linalg.eigh(inner, driver="evd", overwrite_a=True, check_finite=False)
        values, vectors = found
        kept = values > _RANK * values[-1]
        s = np.sqrt(values[kept])
        loadings = vectors[:, kept] * s
        loadings /= root[:, None]
        return Spectrum(s, loadings)
