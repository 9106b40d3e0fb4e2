"""Weighted Fourier Factorizations: strategies that are diagonal in the characters of cyclic groups.

For such a strategy the least error is (sum over characters of sqrt(d))^2 / N with d the workload's energy
on each character: QuerySmasher (2026), Theorem 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array
from matrixdp.mechanisms import (
    Construction,
    ConvexOptions,
    ExplicitGram,
    Factor,
    KronSum,
    Mechanism,
    register,
    select_by_decomposition,
)

#: Sub-workloads that do not factor are measured up to this many cells: by a matrix of as many rows.
MAX_FOURIER_CELLS = 9_000
_SCOPE = "strategies in the Fourier basis"


def fourier_energies(terms: KronSum) -> Array:
    """Return the workload's energy on each character, in the shape of the problem.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.mechanisms import KronSum
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


class Characters(Construction):
    """The best strategy in the Fourier basis for every sub-workload, in closed form.

    References
    ----------
    QuerySmasher (2026), Theorem 7 (Weighted Fourier Factorizations).

    Examples
    --------
    >>> found = Characters().axis(0, np.full(4, 0.25), lambda: np.eye(4), structured=False)
    >>> round(found.loss, 9)
    4.0
    """

    name = "fourier"

    def axis(self, type_: int, weights: Array, gram: Callable[[], Array], structured: bool) -> Factor | None:
        """Return the best circulant strategy where the optimum is not in closed form."""
        if structured:
            return None
        problem = KronSum((), (len(weights),), [{0: ExplicitGram(gram())}], [(1.0, {0: 0})])
        return fourier_strategy(fourier_energies(problem), problem.sizes)

    def joint(self, types: Sequence[int], weights: Sequence[Array], problem: KronSum) -> Factor:
        """Return the best strategy in the products of characters."""
        return fourier_strategy(fourier_energies(problem), problem.sizes)


register(
    Mechanism(
        "fourier",
        "Weighted Fourier Factorizations: the decomposition in the Fourier basis",
        (2,),
        ConvexOptions,
        lambda task: select_by_decomposition(
            task.workload,
            task.noise,
            "fourier",
            task.options.gap,
            task.progress,
            construction=Characters(),
        ),
    )
)
