"""Attributes whose values are bins of numbers."""

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Self, final

import numpy as np

from matrixdp.domain.attribute import Attribute
from matrixdp.domain.canonical import finite_number, number_of, number_text, whole_number
from matrixdp.domain.codebook import NO_CODEBOOK, Codebook
from matrixdp.domain.ends import Ends
from matrixdp.domain.rules import NUMBERS, Kind, Steps
from matrixdp.errors import DomainError, Path
from matrixdp.forms import describe_value

__all__ = ["EDGE", "Bins", "edge_of"]

_MOST_BINS = 1_000_000
_INFINITE = {"-inf": -math.inf, "-.inf": -math.inf, "inf": math.inf, ".inf": math.inf}

EDGE = "a finite number, or -inf as the first edge or inf as the last one"


def edge_of(value: object) -> float | None:
    """Return a public value that is a number, finite or not, else None.

    Examples
    --------
    >>> edge_of(3), edge_of("-inf"), edge_of(float("nan")), edge_of("3")
    (3.0, -inf, None, None)
    """
    if isinstance(value, str):
        return _INFINITE.get(value)
    number = number_of(value)
    return float(value) if number is None and value in (math.inf, -math.inf) else number


@final
@dataclass(frozen=True)
class Bins(Attribute):
    """Half-open bins ``[a, b)`` between increasing edges; the last one may be closed.

    Parameters
    ----------
    name : str
        The name.
    edges : tuple of float
        The edges, at least two and strictly increasing. The first may be -inf and the last inf; the numbers
        of a table are finite all the same.
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
    _steps: Steps = field(init=False, repr=False, compare=False)
    numeric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_name()
        name = self.name
        edges = tuple(_edge(edge, (name, "edges", place)) for place, edge in enumerate(self.edges))
        if len(edges) < 2:
            raise DomainError.at((name, "edges"), describe_value(list(edges)), "at least 2 edges")
        for place, (before, after) in enumerate(pairwise(edges)):
            if not before < after:
                expected = f"a number above {number_text(before)}, the edge before it; bins must not overlap"
                raise DomainError.at((name, "edges", place + 1), number_text(after), expected)
        if not isinstance(self.closed, bool):
            raise DomainError.at((name, "closed"), describe_value(self.closed), "true or false")
        self._set(edges=edges, _steps=Steps(edges, self.closed, **self._common(len(edges) - 1)))
        self._check_labels()

    @cached_property
    def ends(self) -> Ends:
        """The edges of each bin, of which the upper one does not belong to it."""
        edges = np.array(self.edges, dtype=np.float64)
        return Ends(edges[:-1], edges[1:], half_open=True)

    def _rule(self, kind: Kind) -> Steps | None:
        """Return the edges."""
        return self._steps if kind in NUMBERS else None

    @classmethod
    def equal(
        cls, name: str, minimum: object, maximum: object, bins: object, codebook: Codebook = NO_CODEBOOK
    ) -> Self:
        """Return equal bins from `minimum` to `maximum`, the last one closed.

        Parameters
        ----------
        name : str
            The name.
        minimum, maximum : float
            The first and the last edge.
        bins : int
            The number of bins.
        codebook : Codebook
            What is said besides.

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
        return cls(name, edges, closed=True, codebook=codebook)

    def _value(self, code: int) -> str | float:
        """Return the start of a bin."""
        edge = self.edges[code]
        return edge if math.isfinite(edge) else number_text(edge)

    def _label(self, code: int) -> str:
        """Return a bin as ``[a, b)``, or ``[a, b]`` for a last one that is closed."""
        return self._range_label(code, code)

    def _range_label(self, first: int, last: int) -> str:
        """Return the union of neighbouring bins as ``[a, b)`` or ``[a, b]``; infinite ends are open."""
        low, high = self.edges[first], self.edges[last + 1]
        start = "[" if math.isfinite(low) else "("
        end = "]" if self.closed and last == self._last and math.isfinite(high) else ")"
        return f"{start}{number_text(low)}, {number_text(high)}{end}"

    def _code_of(self, value: object) -> int:
        """Return the code of the bin that starts at an edge."""
        position = self._edge(value)
        if position is None or position > self._last:
            expected = f"the lower edge of a bin of {self.name!r}{self._near(value)}"
            raise DomainError.at((), describe_value(value), expected)
        return position

    def _code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of the bins that make up ``[low, high)``; both must be edges."""
        first, end = self._edge(low), self._edge(high)
        if first is None or end is None or first >= end:
            near = self._near(low if first is None else high)
            expected = f"two edges a < b of the bins of {self.name!r}, for the range [a, b){near}"
            raise DomainError.at((), describe_value([low, high]), expected)
        return first, end - 1

    def _spec(self) -> dict[str, object]:
        """Return the edges, or the ends and the number of equal bins."""
        edges = [_plain(edge) for edge in self.edges]
        if not self.closed:
            return {"edges": edges}
        ends, bins = (self.edges[0], self.edges[-1]), self._last + 1
        if all(map(math.isfinite, ends)) and Bins.equal(self.name, *ends, bins).edges == self.edges:
            return {"min": edges[0], "max": edges[-1], "bins": bins}
        return {"edges": edges, "closed": True}

    @property
    def _last(self) -> int:
        """The code of the last bin."""
        return len(self.edges) - 2

    def _edge(self, value: object) -> int | None:
        """Return the place of an edge, None for what is none."""
        number = edge_of(value)
        position = 0 if number is None else bisect_left(self.edges, number)
        return position if position <= self._last + 1 and self.edges[position] == number else None

    def _near(self, value: object) -> str:
        """Return which edges are near a number that is none."""
        number = number_of(value)
        if number is None or number in self.edges:
            return ""
        position = bisect_left(self.edges, number)
        near = [number_text(edge) for edge in self.edges[max(position - 1, 0) : position + 1]]
        return f"; near it: {' and '.join(near)}"


def _edge(value: object, path: Path) -> float:
    edge = edge_of(value)
    if edge is None:
        raise DomainError.at(path, describe_value(value), EDGE)
    return edge


def _plain(number: float) -> int | float | str:
    if not math.isfinite(number):
        return number_text(number)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
