"""Where the values of an attribute begin and end, as numbers or days that can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ends"]


@final
@dataclass(frozen=True, eq=False)
class Ends:
    """Where each value begins and ends, in the order of the codes; missing values have neither.

    Attributes
    ----------
    low, high : ndarray of int64, float64 or datetime64[D]
        The first and the last number or day of each value; of bins, their edges.
    half_open : bool
        Whether ``high`` is the first number that a value does not have, as in bins ``[a, b)``, but for a
        last bin that is closed. Else it belongs to the value.

    Examples
    --------
    >>> from matrixdp.domain import Bins
    >>> ends = Bins("income", (0, 10, 25)).ends
    >>> ends.low.tolist(), ends.high.tolist(), ends.half_open
    ([0.0, 10.0], [10.0, 25.0], True)
    """

    low: NDArray[Any]
    high: NDArray[Any]
    half_open: bool = False

    @classmethod
    def of_integers(cls, values: NDArray[np.int64]) -> Ends:
        """Return those of integers, which begin and end with themselves."""
        return cls(values, values)
