"""Attributes: a name and a finite, public, ordered list of values.

Five kinds, all frozen and valid from construction: `Categorical`, `Integers`, `Bins`, `Coded` and `Dates`.
Values are addressed by *codes*, 0 to ``size - 1``, in the listed order.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from matrixdp.domain.attribute import Attribute
from matrixdp.domain.bins import Bins
from matrixdp.domain.canonical import integer_of, whole_number
from matrixdp.domain.categorical import Categorical
from matrixdp.domain.dates import Dates
from matrixdp.domain.ends import Ends
from matrixdp.domain.rules import NUMBERS, Kind, Whole
from matrixdp.errors import DomainError
from matrixdp.forms import describe_value

__all__ = ["Attribute", "Bins", "Categorical", "Coded", "Dates", "Integers"]


@dataclass(frozen=True)
class _Whole(Attribute):
    """Attributes whose values are consecutive integers."""

    numeric: ClassVar[bool] = True

    _whole: Whole = field(init=False, repr=False, compare=False)

    @cached_property
    def ends(self) -> Ends:
        """The integers themselves."""
        return Ends.of_integers(np.arange(self._whole.first, self._whole.last + 1, dtype=np.int64))

    def _rule(self, kind: Kind) -> Whole | None:
        """Return the first and the last integer."""
        return self._whole if kind in NUMBERS else None

    def _value(self, code: int) -> int:
        """Return the integer of a code."""
        return self._whole.first + code

    def _code_of(self, value: object) -> int:
        """Return the code of an integer."""
        code = self._code(value)
        if code is None:
            expected = f"a value of {self.name!r}, an integer from {self._whole.first} to {self._whole.last}"
            raise DomainError.at((), describe_value(value), expected)
        return code

    def _code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of two integers; both belong to the range."""
        first, last = self._code(low), self._code(high)
        if first is None or last is None or first > last:
            ends = f"from {self._whole.first} to {self._whole.last}, the values of {self.name!r}"
            raise DomainError.at((), describe_value([low, high]), f"two integers first <= last {ends}")
        return first, last

    def _code(self, value: object) -> int | None:
        code = None if (number := integer_of(value)) is None else number - self._whole.first
        return code if code is not None and 0 <= code <= self._whole.last - self._whole.first else None


@final
@dataclass(frozen=True)
class Integers(_Whole):
    """Consecutive integers, both ends included.

    Parameters
    ----------
    name : str
        The name.
    minimum, maximum : int
        The first and the last integer.
    round : {'floor', 'nearest'}, optional
        What makes other numbers integers: the next one below, or the nearest one, where x.5 goes up. Without
        it they are out of domain.

    Raises
    ------
    DomainError
        If an end is not an integer within +-(2^53 - 1), or the maximum is below the minimum.

    Examples
    --------
    >>> age = Integers("age", 18, 90)
    >>> age.size, age.code_range(18, 64), age.range_label(0, 46)
    (73, (0, 46), '18-64')
    """

    name: str
    minimum: int
    maximum: int
    round: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._check_name()
        minimum = whole_number(self.minimum, (self.name, "min"))
        maximum = whole_number(self.maximum, (self.name, "max"))
        if maximum < minimum:
            expected = f"a number of at least {minimum}, the min"
            raise DomainError.at((self.name, "max"), str(maximum), expected)
        if self.round not in (None, "floor", "nearest"):
            raise DomainError.at((self.name, "round"), describe_value(self.round), "floor or nearest")
        common = self._common(maximum - minimum + 1)
        whole = Whole(minimum, maximum, self.round, **common)
        self._set(minimum=minimum, maximum=maximum, _whole=whole)
        self._check_labels()

    def _spec(self) -> dict[str, object]:
        """Return the two ends, and how numbers are rounded."""
        rounded = {} if self.round is None else {"round": self.round}
        return {"min": self.minimum, "max": self.maximum, **rounded}


@final
@dataclass(frozen=True)
class Coded(_Whole):
    """Values that are already coded 0 to ``size - 1``.

    Parameters
    ----------
    name : str
        The name.
    codes : int
        The number of codes, at least 1.

    Raises
    ------
    DomainError
        If the size is not a positive integer.

    Examples
    --------
    >>> Coded("code", 40).code_of(39)
    39
    """

    name: str
    codes: int

    def __post_init__(self) -> None:
        self._check_name()
        codes = whole_number(self.codes, (self.name,))
        if codes < 1:
            raise DomainError.at((self.name,), str(codes), "an integer of at least 1")
        self._set(codes=codes, _whole=Whole(0, codes - 1, **self._common(codes)))
        self._check_labels()

    def _spec(self) -> int:
        """Return the number of codes."""
        return self.codes

    def _mapping(self) -> dict[str, object]:
        return {"size": self.codes}
