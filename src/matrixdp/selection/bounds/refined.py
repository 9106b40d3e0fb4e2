"""F(p) from below by chance: larger sectors exactly, and polynomials of higher degree in the largest."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.bounds.exact import sector_dimensions, sector_norm
from matrixdp.selection.bounds.probed_sector import ProbedSector
from matrixdp.selection.bounds.probes import probed_root
from matrixdp.selection.bounds.rings import Tied
from matrixdp.selection.bounds.scales import best_scales
from matrixdp.selection.bounds.triples import Operator
from matrixdp.selection.starting_points import generator

__all__ = ["FAILURE", "refined_norm"]

Array = NDArray[np.float64]
Progress = Callable[[str, float | None], None]

#: With what probability over the coins of the check a refined bound may be too large.
FAILURE = 1e-9
#: The cubes of the dimensions of sectors whose eigenvalues are computed, in all.
_MOST_WORK = 4e9
#: Dimensions of a sector that probes may have.
_MOST_DIMENSIONS = 4_000_000


def refined_norm(operator: Operator, p: list[Array], seed: int, progress: Progress) -> tuple[float, bool]:
    """Return what F(p) is at least, and whether that depends on coins: it then fails with `FAILURE`.

    Parameters
    ----------
    operator : Operator
    p : list of ndarray
        Distributions by type.
    seed : int
        Of the coins, which are public.
    progress : callable
        Called with what is being done and the share done.

    References
    ----------
    docs/mathematics.md, section 9, theorem 12.
    """
    pairs = zip(operator.roots(p), operator.traces(p), strict=True)
    sectors = [
        (sector_dimensions(operator, spread), spread, count, root, *traces)
        for (spread, count, root), traces in pairs
    ]
    total, work, large = 0.0, 0.0, []
    for sector in sorted(sectors, key=lambda one: one[0]):
        dimensions, spread, count, root = sector[:4]
        work += float(dimensions) ** 3
        if work <= _MOST_WORK:
            total += max(root, count * sector_norm(operator, spread, p))
        elif dimensions > _MOST_DIMENSIONS or _is_tied(operator, spread):
            total += root
        else:
            large.append(sector)
    rng = generator(seed)

    def told(before: int, done: float) -> None:
        progress("refining the lower bound", (before + done) / len(large))

    for number, (_, spread, count, root, traces, cubes) in enumerate(large):
        scales = best_scales(traces, cubes)
        probed = ProbedSector(operator, spread, p, scales)
        times = count * probed.multiplicity
        second = float(np.einsum("abc,a,b,c->", cubes, scales, scales, scales))
        found = probed_root(
            probed,
            float(scales @ traces) / times,
            second / times,
            rng,
            math.log(FAILURE / len(large)),
            partial(told, number),
        )
        total += max(root, times * found)
    return total, bool(large)


def _is_tied(operator: Operator, spread: tuple[int, ...]) -> bool:
    """Return whether joint strategies or explicit queries tie attributes of a sector together."""
    places = operator.lattice.sectors[spread]
    grams, measured = operator.axes.grams, operator.axes.measured
    asked = {int(i) for i in np.unique(operator.slots[places]) if i >= 0}
    found = {int(i) for i in np.unique(operator.found[places]) if i >= 0}
    return any(isinstance(grams[i], Tied) for i in asked) or any(isinstance(measured[i], Tied) for i in found)
