"""Repeatable random workloads: which queries are asked, never anything about a table.

Noise comes from `matrixdp.noise` alone.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Generator", "generator"]

Generator = np.random.Generator


def generator(seed: int) -> Generator:
    """Return a generator; equal seeds give equal workloads.

    Examples
    --------
    >>> bool((generator(1).random(3) == generator(1).random(3)).all())
    True
    """
    return np.random.default_rng(seed)
