"""Attributes: a name and a finite, public, ordered list of values.

Four kinds, all frozen and valid from construction: `Categorical`, `Integers`, `Bins` and `Coded`. Values are
addressed by *codes*, 0 to ``size - 1``, in the listed order.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, Self, final

from matrixdp.domain.attribute import Attribute
from matrixdp.domain.canonical import finite_number, integer_of, number_of, number_text, whole_number
from matrixdp.domain.categorical import Categorical
from matrixdp.domain.rules import NUMBERS, Kind, Steps, Whole
from matrixdp.errors import DomainError
from matrixdp.forms import describe_value

__all__ = ["Attribute", "Bins", "Categorical", "Coded", "Integers"]

_MOST_BINS = 1_000_000


class _Whole(Attribute):
    """Attributes whose values are consecutive integers."""

    numeric: ClassVar[bool] = True

    _whole: Whole

    def rule(self, kind: Kind) -> Whole | None:
        """Return the first and the last integer."""
        return self._whole if kind in NUMBERS else None

    def value(self, code: int) -> int:
        """Return the integer of a code."""
        self._check_codes(code, code)
        return self._whole.first + int(code)

    def code_of(self, value: object) -> int:
        """Return the code of an integer."""
        code = self._code(value)
        if code is None:
            expected = f"a value of {self.name!r}, an integer from {self._whole.first} to {self._whole.last}"
            raise DomainError.at((), describe_value(value), expected)
        return code

    def code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of two integers; both belong to the range."""
        first, last = self._code(low), self._code(high)
        if first is None or last is None or first > last:
            ends = f"from {self._whole.first} to {self._whole.last}, the values of {self.name!r}"
            raise DomainError.at((), describe_value([low, high]), f"two integers first <= last {ends}")
        return first, last

    def _code(self, value: object) -> int | None:
        code = None if (number := integer_of(value)) is None else number - self._whole.first
        return code if code is not None and 0 <= code < self.size else None


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
    size: int = field(init=False, repr=False, compare=False)
    _whole: Whole = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_name()
        minimum = whole_number(self.minimum, (self.name, "min"))
        maximum = whole_number(self.maximum, (self.name, "max"))
        if maximum < minimum:
            expected = f"a number of at least {minimum}, the min"
            raise DomainError.at((self.name, "max"), str(maximum), expected)
        self._set(minimum=minimum, maximum=maximum, size=maximum - minimum + 1)
        self._set(_whole=Whole(minimum, maximum))

    def to_spec(self) -> dict[str, int]:
        """Return the two ends."""
        return {"min": self.minimum, "max": self.maximum}


@final
@dataclass(frozen=True)
class Coded(_Whole):
    """Values that are already coded 0 to ``size - 1``.

    Parameters
    ----------
    name : str
        The name.
    size : int
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
    size: int
    _whole: Whole = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_name()
        size = whole_number(self.size, (self.name,))
        if size < 1:
            raise DomainError.at((self.name,), str(size), "an integer of at least 1")
        self._set(size=size, _whole=Whole(0, size - 1))

    def to_spec(self) -> int:
        """Return the size."""
        return self.size


@final
@dataclass(frozen=True)
class Bins(Attribute):
    """Half-open bins ``[a, b)`` between increasing edges; the last one may be closed.

    Parameters
    ----------
    name : str
        The name.
    edges : tuple of float
        The edges, at least two, finite and strictly increasing.
    closed : bool
        Whether the last edge belongs to the last bin.

    Raises
    ------
    DomainError
        If there are fewer than two edges, or one is not finite or not above the one before.

    Examples
    --------
    >>> income = Bins("income", (0, 10000, 25000))
    >>> income.label(0), income.range_label(0, 1), income.code_range(10000, 25000)
    ('[0, 10000)', '[0, 25000)', (1, 1))
    >>> Bins.equal("hours", 0, 100, 20).label(19)
    '[95, 100]'
    """

    name: str
    edges: tuple[float, ...]
    closed: bool = False
    size: int = field(init=False, repr=False, compare=False)
    _steps: Steps = field(init=False, repr=False, compare=False)
    numeric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_name()
        name = self.name
        edges = tuple(finite_number(edge, (name, "edges", place)) for place, edge in enumerate(self.edges))
        if len(edges) < 2:
            raise DomainError.at((name, "edges"), describe_value(list(edges)), "at least 2 edges")
        for place, (before, after) in enumerate(pairwise(edges)):
            if not before < after:
                expected = f"a number above {number_text(before)}, the edge before it; bins must not overlap"
                raise DomainError.at((name, "edges", place + 1), number_text(after), expected)
        if not isinstance(self.closed, bool):
            raise DomainError.at((name, "closed"), describe_value(self.closed), "true or false")
        self._set(edges=edges, size=len(edges) - 1, _steps=Steps(edges, self.closed))

    def rule(self, kind: Kind) -> Steps | None:
        """Return the edges."""
        return self._steps if kind in NUMBERS else None

    @classmethod
    def equal(cls, name: str, minimum: object, maximum: object, bins: object) -> Self:
        """Return equal bins from `minimum` to `maximum`, the last one closed.

        Parameters
        ----------
        name : str
            The name.
        minimum, maximum : float
            The first and the last edge.
        bins : int
            The number of bins.

        Raises
        ------
        DomainError
            If the maximum is not above the minimum, or there is no bin, or more than 1,000,000, or the bins
            are too narrow to tell their edges apart.
        """
        low, high = finite_number(minimum, (name, "min")), finite_number(maximum, (name, "max"))
        count = whole_number(bins, (name, "bins"))
        if count < 1:
            raise DomainError.at((name, "bins"), str(count), "an integer of at least 1")
        if count > _MOST_BINS:
            raise DomainError.at((name, "bins"), str(count), f"at most {_MOST_BINS:,} bins")
        if not low < high:
            expected = f"a number above {number_text(low)}, the min"
            raise DomainError.at((name, "max"), number_text(high), expected)
        # Exact steps: an edge that is an integer comes out as that integer. The decimal text of an
        # end is what was meant, so that steps of 0.1 from 0 land on 0.3 and not beside it.
        start, stop = Fraction(repr(low)), Fraction(repr(high))
        edges = tuple(float(start + (stop - start) * step / count) for step in range(count + 1))
        return cls(name, edges, closed=True)

    def value(self, code: int) -> float:
        """Return the start of a bin."""
        self._check_codes(code, code)
        return self.edges[code]

    def label(self, code: int) -> str:
        """Return a bin as ``[a, b)``, or ``[a, b]`` for a last one that is closed."""
        return self.range_label(code, code)

    def range_label(self, first: int, last: int) -> str:
        """Return the union of neighbouring bins as ``[a, b)`` or ``[a, b]``."""
        self._check_codes(first, last)
        end = "]" if self.closed and last == self.size - 1 else ")"
        return f"[{number_text(self.edges[first])}, {number_text(self.edges[last + 1])}{end}"

    def code_of(self, value: object) -> int:
        """Return the code of the bin that starts at an edge."""
        position = self._edge(value)
        if position is None or position == self.size:
            expected = f"the lower edge of a bin of {self.name!r}{self._near(value)}"
            raise DomainError.at((), describe_value(value), expected)
        return position

    def code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of the bins that make up ``[low, high)``; both must be edges."""
        first, end = self._edge(low), self._edge(high)
        if first is None or end is None or first >= end:
            near = self._near(low if first is None else high)
            expected = f"two edges a < b of the bins of {self.name!r}, for the range [a, b){near}"
            raise DomainError.at((), describe_value([low, high]), expected)
        return first, end - 1

    def to_spec(self) -> dict[str, object]:
        """Return the edges, or the ends and the number of equal bins."""
        if not self.closed:
            return {"edges": [_plain(edge) for edge in self.edges]}
        ends = self.edges[0], self.edges[-1]
        if Bins.equal(self.name, *ends, self.size) == self:
            return {"min": _plain(ends[0]), "max": _plain(ends[1]), "bins": self.size}
        return {"edges": [_plain(edge) for edge in self.edges], "closed": True}

    def _edge(self, value: object) -> int | None:
        """Return the place of an edge, None for what is none."""
        number = number_of(value)
        position = 0 if number is None else bisect_left(self.edges, number)
        return position if position <= self.size and self.edges[position] == number else None

    def _near(self, value: object) -> str:
        """Return which edges are near a number that is none."""
        number = number_of(value)
        if number is None or number in self.edges:
            return ""
        position = bisect_left(self.edges, number)
        near = [number_text(edge) for edge in self.edges[max(position - 1, 0) : position + 1]]
        return f"; near it: {' and '.join(near)}"


def _plain(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
