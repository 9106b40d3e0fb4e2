"""The Fourier sub-solver: strategies that are diagonal in the characters of the product of cyclic groups.

For such a strategy the least error is (sum over characters of sqrt(d))^2 / N with d the workload's energy
on each character: Weighted Fourier Factorizations, and QuerySmasher (2026), Theorem 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.selection.convex import Design
from matrixdp.selection.residual.structured import StructuredProblem

__all__ = [
    "MAX_FOURIER_CELLS",
    "fourier_energies",
    "fourier_gram",
    "fourier_loss",
    "fourier_rows",
    "fourier_strategy",
]

Array = NDArray[np.float64]

#: Sub-workloads that do not factor are measured up to this many cells.
MAX_FOURIER_CELLS = 6_000


def fourier_energies(problem: StructuredProblem) -> Array:
    """Return the workload's energy on each character, in the shape of the problem.

    Examples
    --------
    >>> import numpy as np
    >>> problem = StructuredProblem((2, 2), [(1.0, [np.eye(2), np.ones((2, 2))])], [])
    >>> fourier_energies(problem).tolist()
    [[2.0, 0.0], [2.0, 0.0]]
    """
    total = np.zeros(problem.sizes)
    for coefficient, grams in problem.terms:
        product = np.full((), coefficient)
        for gram in grams:
            spectrum = np.fft.ifft(np.fft.fft(gram, axis=0), axis=1)
            product = np.multiply.outer(product, np.maximum(np.diagonal(spectrum).real, 0.0))
        total += product
    for weight, rows in problem.rows:
        spectrum = np.fft.fftn(rows, axes=tuple(range(1, rows.ndim)))
        total += weight * (np.abs(spectrum) ** 2).sum(axis=0) / total.size
    return np.asarray(total)


def fourier_loss(energies: Array) -> float:
    """Return the least total squared error at privacy cost 1 of a strategy in the Fourier basis.

    Examples
    --------
    >>> fourier_loss(np.ones((2, 2)))
    4.0
    """
    return float(np.sqrt(energies).sum()) ** 2 / energies.size


def fourier_strategy(energies: Array, sizes: Sequence[int]) -> Design:
    """Return the best strategy for energies of shape ``sizes``, one for each character.

    Raises
    ------
    TooLargeError
        Past ``MAX_FOURIER_CELLS`` cells.
    """
    cells = math.prod(sizes)
    roots = np.sqrt(np.where(energies > 1e-12 * energies.max(), energies, 0.0))
    loss = float(roots.sum()) ** 2 / cells
    if cells > MAX_FOURIER_CELLS:
        raise TooLargeError(
            f"fourier: a sub-workload of {cells} cells that does not factor; the limit is "
            f"{MAX_FOURIER_CELLS} cells. Use querysmasher or residual."
        )
    # rows: the real and imaginary parts of each conjugate pair of characters, once
    frequencies = np.stack(np.unravel_index(np.arange(cells), sizes))
    conjugate = np.ravel_multi_index(
        [(-k) % size for k, size in zip(frequencies, sizes, strict=True)], tuple(sizes)
    )
    energy = (roots / roots.sum()).ravel()
    chosen = np.flatnonzero((energy > 0) & (np.arange(cells) <= conjugate))
    turns = (frequencies[:, chosen].T / np.array(sizes)) @ frequencies
    phases = 2.0 * np.pi * (turns - np.rint(turns))
    paired = conjugate[chosen] != chosen
    scale = np.sqrt(energy[chosen] * np.where(paired, 2.0, 1.0))[:, None]
    factor = np.vstack([scale * np.cos(phases), (scale * np.sin(phases))[paired]])
    factor /= math.sqrt(float((factor**2).sum(axis=0).max()))
    return Design(factor, loss, loss, np.full(cells, 1.0 / cells), 1)


def fourier_gram(
    gram: Array, sizes: Sequence[int] | None = None, gap: float = 0.0, start: Array | None = None
) -> Design:
    """Return the best strategy in the Fourier basis for a Gram matrix; ``gap`` and ``start`` have no use.

    Examples
    --------
    >>> import numpy as np
    >>> round(fourier_gram(np.eye(4)).loss, 9)
    4.0
    """
    del gap, start
    shape = tuple(sizes or (len(gram),))
    tensor = gram.reshape(*shape, *shape)
    axes = tuple(range(len(shape)))
    spectrum = np.fft.fftn(tensor, axes=axes)
    spectrum = np.fft.ifftn(spectrum, axes=tuple(a + len(shape) for a in axes))
    flat = spectrum.reshape(len(gram), len(gram))
    energies = np.maximum(np.diagonal(flat).real, 0.0).reshape(shape)
    return fourier_strategy(energies, shape)


def fourier_rows(
    rows: Array, sizes: Sequence[int] | None = None, gap: float = 0.0, start: Array | None = None
) -> Design:
    """Return the best strategy in the Fourier basis for explicit queries."""
    del gap, start
    shape = tuple(sizes or (rows.shape[1],))
    spectrum = np.fft.fftn(rows.reshape(len(rows), *shape), axes=tuple(range(1, len(shape) + 1)))
    energies = (np.abs(spectrum) ** 2).sum(axis=0) / math.prod(shape)
    return fourier_strategy(energies, shape)
