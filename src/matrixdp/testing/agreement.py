"""How a check says what is wrong, and the numbers it tries."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["probes", "require", "require_close"]


def probes(*shape: int) -> NDArray[np.float64]:
    """Return numbers from -1 to 1 without a pattern, always the same."""
    return np.asarray(np.sin(np.arange(1.0, 1 + np.prod(shape)) ** 2)).reshape(shape)


def require(holds: bool, what: str) -> None:
    """Raise AssertionError with a text unless something holds, with ``python -O`` too."""
    if not holds:
        raise AssertionError(what)


def require_close(found: ArrayLike, expected: ArrayLike, what: str, relative: float = 1e-9) -> None:
    """Raise AssertionError unless two arrays have one shape and agree to rounding errors."""
    one, other = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    require(one.shape == other.shape, f"{what}: shape {one.shape}; expected {other.shape}")
    scale = max(1.0, float(np.abs(other).max(initial=0.0)))
    gaps = np.abs(one - other)
    # a NaN is no agreement
    wrong = np.argwhere(~(gaps <= relative * scale))
    if len(wrong):
        place = tuple(wrong[0])
        raise AssertionError(f"{what}: {other[place]:.6g} is off by {gaps[place]:.3g}")
