"""The optimum by one spectrum a step: a fixed point of the dual distribution, accelerated.

For chains a step takes quadratic time (`matrixdp.selection.gram.chains`); large problems without structure
take one eigendecomposition a step (`matrixdp.selection.gram.spectra`).

At the optimum g_j = F wherever p_j > 0 (`matrixdp.selection.gram.dual`), so log p is a fixed point of
log p + 3 log(g / F), with Anderson's acceleration over the last steps, from the uniform distribution or from
that of a similar problem; every step has its own strategy and bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.gram.chains import Bridge, Chain, Spectrum, chain_of
from matrixdp.selection.gram.coarse import grid, refined
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.spectra import DenseSpectra

__all__ = ["LARGE_CELLS", "LARGE_GAP", "MIN_CHAIN_CELLS", "solve_chain", "solve_large"]

Array = NDArray[np.float64]

#: Smaller chains are solved like all other problems.
MIN_CHAIN_CELLS = 512
#: Larger chains start from the optimum on a grid of every so many values, found in the same way.
MIN_REFINED_CELLS, COARSER = 1_024, 4
#: Problems of more cells are solved to this gap, whatever smaller one is asked for.
LARGE_CELLS, LARGE_GAP = 4_096, 1e-3
#: The power of g in a step; steps that the acceleration looks back on; steps at most.
_POWER, _MEMORY, _MOST_STEPS = 3.0, 6, 40
#: Cells keep at least this share of the uniform distribution.
_FLOOR = 1e-9
#: The gap on a coarser grid.
_COARSE_GAP = 1e-4
#: How far the Gram matrix of what was solved may be from the one that was asked for.
_SAME = 1e-8


class _Acceleration:
    """Anderson's: the next point from the last ones and what the fixed-point map moved them by."""

    def __init__(self) -> None:
        self.points: list[Array] = []
        self.moves: list[Array] = []

    def next(self, point: Array, move: Array) -> Array:
        self.points = [*self.points, point][-_MEMORY:]
        self.moves = [*self.moves, move][-_MEMORY:]
        if len(self.points) == 1:
            return point + move
        changes = np.diff(np.array(self.moves), axis=0)
        shares = np.linalg.lstsq(changes.T, move, rcond=1e-10)[0]
        return np.asarray(point + move - shares @ (np.diff(np.array(self.points), axis=0) + changes))


def _fixed_point(
    chain: Chain | Bridge | DenseSpectra, start: Array, gap: float
) -> tuple[Array, Spectrum, float, float] | None:
    """Return the best distribution met, its spectrum and largest g, and the largest trace met.

    The error of the strategy is the trace times the largest g; the squared trace is a bound.
    """
    size = len(start)
    acceleration = _Acceleration()
    point = np.log(np.maximum(start / start.sum(), _FLOOR / size))
    best: tuple[Array, Spectrum, float] | None = None
    least, largest = np.inf, 0.0
    for _ in range(_MOST_STEPS):
        p = np.exp(point - point.max())
        p = np.maximum(p / p.sum(), _FLOOR / size)
        p /= p.sum()
        try:
            spectrum = chain.spectrum(p)
        except np.linalg.LinAlgError:
            break
        trace = float(spectrum.roots.sum())
        g = np.einsum("ja,ja,a->j", spectrum.loadings, spectrum.loadings, 1.0 / spectrum.roots)
        error = trace * float(g.max())
        if not (np.isfinite(error) and error > 0):
            break
        largest = max(largest, trace)
        if error < least:
            least, best = error, (p, spectrum, float(g.max()))
        if least <= largest * largest * (1.0 + gap):
            break
        point = acceleration.next(np.log(p), _POWER * np.log(g / trace))
    return None if best is None else (*best, largest)


def _stands_for(spectrum: Spectrum, gram: Array) -> bool:
    """Return whether U U' is the Gram matrix, as far as a vector tells."""
    probe = 1.0 + np.cos(np.arange(len(gram)))
    seen = gram @ probe
    away = spectrum.loadings @ (spectrum.loadings.T @ probe) - seen
    return float(np.abs(away).max()) <= _SAME * float(np.abs(seen).max())


def _start(gram: Array, chain: Chain | Bridge | DenseSpectra) -> Array:
    """Return a distribution to start from: for large chains the optimum on a coarser grid."""
    size = len(gram)
    if size >= MIN_REFINED_CELLS and isinstance(chain, Chain):
        places = np.rint(grid(size, size // COARSER)).astype(np.intp)
        inner = gram[np.ix_(places, places)]
        coarser = chain_of(inner)
        if coarser is not None:
            found = _fixed_point(coarser, _start(inner, coarser), _COARSE_GAP)
            if found is not None:
                return refined(found[0], size)
    return np.full(size, 1.0 / size)


def solve_chain(
    gram: Array, chain: Chain | Bridge | DenseSpectra, gap: float, start: Array | None = None
) -> Factor | None:
    """Return the optimum for the Gram matrix of a chain, certified, or None where the digits do not suffice.

    ``start`` is the dual distribution of a similar problem.

    Examples
    --------
    >>> prefixes = np.tri(40).T @ np.tri(40)
    >>> found = solve_chain(prefixes, chain_of(prefixes), 1e-6)
    >>> found.loss / found.bound - 1 < 1e-6
    True
    """
    size = len(gram)
    if size > LARGE_CELLS:
        gap = max(gap, LARGE_GAP)
    found = _fixed_point(chain, _start(gram, chain) if start is None else start, gap)
    if found is None or not _stands_for(found[1], gram):
        return None
    p, spectrum, peak, trace = found
    loss = float(spectrum.roots.sum()) * peak
    rows = spectrum.loadings
    rows *= (peak * spectrum.roots) ** -0.5
    return Factor(rows.T, loss, min(trace * trace, loss), p)


def solve_large(gram: Array, gap: float, start: Array | None = None) -> Factor | None:
    """Return the certified optimum for a large Gram matrix without structure, or None for Newton's steps.

    They serve up to ``LARGE_CELLS`` cells.
    """
    return solve_chain(gram, DenseSpectra(gram), gap, start) if len(gram) > LARGE_CELLS else None
