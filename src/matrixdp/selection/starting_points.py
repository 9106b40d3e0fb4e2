"""Repeatable starting points of searches, fits and random workloads: pseudo-random numbers outside the noise.

They decide where a search starts, what is asked and what is made of a release, never what is measured of a
table; noise comes from `matrixdp.noise` alone.
"""

from __future__ import annotations

import numpy as np

Generator = np.random.Generator


def generator(seed: int) -> Generator:
    """Return a generator; equal seeds give equal searches.

    Examples
    --------
    >>> bool((generator(1).random(3) == generator(1).random(3)).all())
    True
    """
    return np.random.default_rng(seed)
