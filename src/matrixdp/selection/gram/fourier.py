"""The Fourier sub-solver: strategies that are diagonal in the characters of the product of cyclic groups.

For such a strategy the least error is (sum over characters of sqrt(d))^2 / N with d the workload's energy
on each character: Weighted Fourier Factorizations, and QuerySmasher (2026), Theorem 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.problem.kron_sum import Asked, KronSum

__all__ = ["MAX_FOURIER_CELLS", "FourierSolver", "fourier_energies", "fourier_loss", "fourier_strategy"]

Array = NDArray[np.float64]

#: Sub-workloads that do not factor are measured up to this many cells: by a matrix of as many rows.
MAX_FOURIER_CELLS = 9_000
_SCOPE = "strategies in the Fourier basis"


def fourier_energies(terms: KronSum[Any]) -> Array:
    """Return the workload's energy on each character, in the shape of the problem.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.selection.problem.kron_sum import KronSum
    >>> domain = mdp.Domain({"a": 2, "b": 2})
    >>> workload = mdp.Workload(domain, mdp.product(a="identity"), mdp.product(b="identity"))
    >>> fourier_energies(KronSum.of(domain, workload.groups)).tolist()
    [[4.0, 2.0], [2.0, 0.0]]
    """
    total = np.zeros(terms.sizes)
    for coefficient, keys in terms.products:
        product = np.full((), coefficient, dtype=complex)
        for axis, key in enumerate(keys):
            spectrum = np.fft.ifft(np.fft.fft(terms.gram(axis, key), axis=0), axis=1)
            product = np.multiply.outer(product, np.diagonal(spectrum))
        # those of terms that are not symmetric cancel with their transposes
        total += product.real
    for weight, _, rows in terms.explicit:
        spectrum = np.fft.fftn(rows, axes=tuple(range(1, rows.ndim)))
        total += weight * (np.abs(spectrum) ** 2).sum(axis=0) / total.size
    return np.maximum(total, 0.0)


def fourier_loss(energies: Array) -> float:
    """Return the least total squared error at privacy cost 1 of a strategy in the Fourier basis.

    Examples
    --------
    >>> fourier_loss(np.ones((2, 2)))
    4.0
    """
    return float(np.sqrt(energies).sum()) ** 2 / energies.size


@dataclass(frozen=True, eq=False)
class _Characters(Factor):
    """The best strategy in the Fourier basis: its error is known by FFT, its rows only where they are asked.

    ``roots`` are the square roots of the energies, in the shape of the problem.
    """

    roots: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def cells(self) -> int:
        return self.roots.size

    @cached_property
    def identity(self) -> bool:
        return False

    @cached_property
    def rows(self) -> Array:
        """The real and imaginary parts of each conjugate pair of characters, once."""
        cells, sizes, roots = self.roots.size, self.roots.shape, self.roots
        if cells > MAX_FOURIER_CELLS:
            raise TooLargeError(
                f"fourier: a sub-workload of {cells} cells that does not factor; the limit is "
                f"{MAX_FOURIER_CELLS} cells. Use querysmasher or residual."
            )
        frequencies = np.stack(np.unravel_index(np.arange(cells), sizes))
        conjugate = np.ravel_multi_index(
            [(-k) % size for k, size in zip(frequencies, sizes, strict=True)], sizes
        )
        energy = (roots / roots.sum()).ravel()
        chosen = np.flatnonzero((energy > 0) & (np.arange(cells) <= conjugate))
        turns = (frequencies[:, chosen].T / np.array(sizes)) @ frequencies
        phases = 2.0 * np.pi * (turns - np.rint(turns))
        paired = conjugate[chosen] != chosen
        scale = np.sqrt(energy[chosen] * np.where(paired, 2.0, 1.0))[:, None]
        rows = np.vstack([scale * np.cos(phases), (scale * np.sin(phases))[paired]])
        rows /= math.sqrt(float((rows**2).sum(axis=0).max()))
        return rows


def fourier_strategy(energies: Array, sizes: Sequence[int]) -> Factor:
    """Return the best strategy for energies of shape ``sizes``, one for each character.

    Its error is known at any size; its rows are refused past ``MAX_FOURIER_CELLS`` cells.
    """
    energies = energies.reshape(sizes)
    roots = np.sqrt(np.where(energies > 1e-12 * energies.max(), energies, 0.0))
    loss = float(roots.sum()) ** 2 / roots.size
    dual = np.full(roots.size, 1.0 / roots.size)
    return _Characters(np.zeros((0, roots.size)), loss, loss, dual, _SCOPE, roots)


class FourierSolver(ConvexSolver):
    """The best strategy in the Fourier basis, in closed form.

    Examples
    --------
    >>> import numpy as np
    >>> round(FourierSolver().gram(np.eye(4), (4,)).loss, 9)
    4.0
    """

    def gram(self, gram: Array, sizes: Sequence[int], _: Factor | None = None, /) -> Factor:
        """Solve for a Gram matrix."""
        tensor = gram.reshape(*sizes, *sizes)
        axes = tuple(range(len(sizes)))
        spectrum = np.fft.fftn(tensor, axes=axes)
        spectrum = np.fft.ifftn(spectrum, axes=tuple(a + len(sizes) for a in axes))
        diagonal = np.diagonal(spectrum.reshape(gram.shape)).real
        return fourier_strategy(np.maximum(diagonal, 0.0).reshape(sizes), sizes)

    def queries(self, rows: Array, sizes: Sequence[int], _: Factor | None = None, /) -> Factor:
        """Solve for explicit queries."""
        axes = tuple(range(len(sizes)))
        asked = KronSum[Asked]((), tuple(sizes), [], [], [(1.0, axes, rows.reshape(len(rows), *sizes))])
        return fourier_strategy(fourier_energies(asked), sizes)

    def centered(self, size: int) -> Factor:
        """Return the centered identity."""
        return replace(super().centered(size), scope=_SCOPE)
