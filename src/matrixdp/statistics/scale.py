"""The numbers or days that the values of an attribute stand for, as far as they have an order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.domain import Attribute, Bins, Dates, Domain
from matrixdp.errors import within
from matrixdp.language.distributions import check_order
from matrixdp.statistics.strata import By, Strata, Where

__all__ = ["Scale", "ordered"]

Array = NDArray[np.float64]

#: Arrow counts days from here.
_EPOCH = date(1970, 1, 1).toordinal()


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
    >>> scale = Scale.of(Bins("income", (0, 10, 50)))
    >>> scale.lows.tolist(), scale.highs.tolist(), scale.half_width
    ([0.0, 10.0], [10.0, 50.0], 20.0)
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
        count = attribute.size - (attribute.null_code is not None)
        check_order(attribute)
        if isinstance(attribute, Bins):
            edges = np.array(attribute.edges)
            return cls(edges[:-1], edges[1:])
        if isinstance(attribute, Dates) and attribute.by != "hour":
            days = [attribute.days(code) for code in range(count)]
            lows, highs = np.array([[day.toordinal() - _EPOCH for day in own] for own in days], float).T
            return cls(lows, highs, dates=True)
        numbers = np.array([attribute.value(code) for code in range(count)], dtype=float)
        return cls(numbers, numbers)

    @property
    def half_width(self) -> float:
        """Half of the widest value: the most by which a number is off the middle of its value."""
        return float((self.highs - self.lows).max()) / 2.0

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
