"""Rotation of a strategy towards a smaller L1 sensitivity; its error profile stays what it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.starting_points import generator

__all__ = ["rotated"]

Array = NDArray[np.float64]

_ANGLES = 24


def rotated(rows: Array, *, seed: int = 0, rotations: int = 60_000) -> Array:
    """Return a rotation Q B of a strategy with a smaller largest column sum of absolute entries.

    Pairs of rows are rotated, the angle by a grid that is refined once, as long as a power mean of the
    column sums falls; B'B stays what it is.

    Parameters
    ----------
    rows : ndarray, shape (m, n)
    seed : int
        Of the order of the pairs.
    rotations : int
        Pairs that are tried at most.

    Examples
    --------
    >>> turned = rotated(np.array([[1.0, 1.0], [1.0, -1.0]]))  # the identity turned by 45 degrees, scaled
    >>> np.abs(turned).sum(axis=0).round(3).tolist()
    [1.414, 1.414]
    """
    current = rows.copy()
    sums = np.abs(current).sum(axis=0)
    rng = generator(seed)
    first, second = np.triu_indices(len(rows), 1)
    if not len(first):
        return current
    sweeps = max(2, rotations // len(first))
    width = np.pi / (2 * _ANGLES)
    grid = np.arange(-_ANGLES // 2, _ANGLES // 2) * width
    fine = np.linspace(-width, width, 17)
    for sweep in range(min(sweeps, 40)):
        power = min(4.0 * 2.0 ** (sweep // 2), 64.0)
        gained = 0.0
        for pair in rng.permutation(len(first))[:rotations].tolist():
            i, j = int(first[pair]), int(second[pair])
            a, b = current[i], current[j]
            rest = sums - np.abs(a) - np.abs(b)
            scale = float(sums.max())
            now = float(((sums / scale) ** power).mean())
            angle = 0.0
            for angles in (grid, fine):
                tried = angle + angles
                cosine, sine = np.cos(tried)[:, None], np.sin(tried)[:, None]
                reached = rest + np.abs(cosine * a + sine * b) + np.abs(cosine * b - sine * a)
                scores = ((reached / scale) ** power).mean(axis=1)
                best = int(np.argmax(scores <= scores.min() * (1 + 1e-12)))  # of equals the first
                angle = float(tried[best])
            if scores[best] < now * (1 - 1e-9):
                gained += 1.0 - float(scores[best]) / now
                cosine_, sine_ = np.cos(angle), np.sin(angle)
                current[i], current[j] = cosine_ * a + sine_ * b, cosine_ * b - sine_ * a
                sums = rest + np.abs(current[i]) + np.abs(current[j])
        if gained < 1e-4 and power >= 64.0:
            break
    return current
