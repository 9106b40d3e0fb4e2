"""The numbers or days that the values of an attribute stand for, as far as they have an order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import within
from matrixdp.language.distributions import check_order
from matrixdp.statistics.strata import By, Strata, Where

__all__ = ["Scale", "ordered"]

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Scale:
    """What the values of an attribute stand for, missing values aside.

    Attributes
    ----------
    lows, highs : ndarray, shape (values,)
        The least and the largest number of each value, which may be infinite; equal for integers. For dates
        the numbers of days since 1970-01-01.
    dates : bool
        Whether they are days.

    Examples
    --------
    >>> from matrixdp.domain import Bins
    >>> scale = Scale.of(Bins("income", (0, 10, 50)))
    >>> scale.lows.tolist(), scale.highs.tolist()
    ([0.0, 10.0], [10.0, 50.0])
    """

    lows: Array
    highs: Array
    dates: bool = False

    @classmethod
    def of(cls, attribute: Attribute) -> Scale:
        """Return the scale of an attribute.

        Raises
        ------
        EntryError
            If the values have no order: categories, and days of the week.
        """
        check_order(attribute)
        ends = attribute.ends
        assert ends is not None, "what has an order has ends"
        dates = ends.low.dtype.kind == "M"
        # days are counted from 1970-01-01, as by NumPy so by Arrow
        return cls(ends.low.astype(float), ends.high.astype(float), dates)

    def column(self, numbers: Array) -> pa.Array:
        """Return numbers as a column, days as dates; what is not finite is null."""
        null = ~np.isfinite(numbers)
        if not self.dates:
            return pa.array(numbers, pa.float64(), mask=null)
        days = np.where(null, 0, numbers).astype(np.int32)
        return pa.array(days, pa.int32(), mask=null).cast(pa.date32())


def ordered(domain: Domain, statistic: str, attribute: object, by: By, where: Where) -> tuple[Strata, Scale]:
    """Return strata of an attribute whose values have an order, missing values left out, and its scale."""
    strata = Strata.of(domain, statistic, attribute, by, where)
    with within(statistic):
        return strata.without_null(), Scale.of(strata.attribute)
