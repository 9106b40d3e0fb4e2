"""Repeatable starting points of searches: the one use of pseudo-random numbers outside the noise.

They decide where a search over strategies starts, never what is measured of a table; noise comes from
`matrixdp.noise` alone.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Generator", "generator"]

Generator = np.random.Generator


def generator(seed: int) -> Generator:
    """Return a generator; equal seeds give equal searches.

    Examples
    --------
    >>> bool((generator(1).random(3) == generator(1).random(3)).all())
    True
    """
    return np.random.default_rng(seed)
