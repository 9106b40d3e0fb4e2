"""Tails of noise, from its quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["tail_of"]

#: The logarithm of the least tail that is told from 0.
_LEAST = -35.0


def tail_of(quantile: Callable[[float], float], multiplier: float) -> float:
    """Return one less the largest confidence whose quantile is at most the multiplier; 0 beyond 1e-15.

    Examples
    --------
    >>> round(tail_of(lambda confidence: confidence, 0.95), 6)  # of a uniform variable
    0.05
    """
    low, high = _LEAST, 0.0  # of the logarithm
    if quantile(-math.expm1(low)) <= multiplier:
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        if quantile(-math.expm1(middle)) <= multiplier:
            high = middle
        else:
            low = middle
    return math.exp(high)
