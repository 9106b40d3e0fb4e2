"""Amounts: numbers whose sums are exact, although the domain has two values and not one for each number."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import rules
from matrixdp.domain.attribute import Attribute
from matrixdp.domain.rules import number_of, number_text, plain_number, required, wrong_value
from matrixdp.errors import DomainError

_MOST = 10**9
"""The largest numerator and denominator of a step: products with them stay in the range of doubles."""


@final
@dataclass(frozen=True)
class Amount(Attribute):
    """Numbers from a lowest to a highest one, such as money, of which sums and means are asked.

    The domain has two values, the ends. A record with the number ``low + p * step``, where the ends are
    ``n`` steps apart, is divided between them: the highest gets the share p / n, the lowest the rest. So the
    shares of the two add up to the number of records, and low and high times their shares to the exact sum.
    docs/privacy.md proves that dividing a record costs no more privacy than counting it whole.

    Numbers below the lowest count as the lowest, numbers above the highest as the highest, and those between
    two steps as the nearer one.

    For variances, where squares are added up too, the domain has the middle of the ends as a third value, and
    a record is divided by the products of its shares with themselves: (1 - t)^2, 2 t (1 - t) and t^2 where it
    had 1 - t and t.

    Parameters
    ----------
    name : str
        The name.
    minimum, maximum : float
        The lowest and the highest number, multiples of the step.
    step : float
        What every number is rounded to a multiple of.
    squares : bool
        Whether variances can be asked, too.

    Raises
    ------
    DomainError
        If an end is no finite number, the maximum is not above the minimum, an end is no multiple of the
        step or more than 2^40 steps from 0, or there are labels, levels or a derivation.

    Examples
    --------
    >>> loan = Amount("loan", 0, 40000, 0.01)
    >>> loan.size, loan.weight, loan.meaning
    (2, 4000000, 'below 0 counts as 0, above 40000 as 40000, else as the nearest multiple of 0.01')
    """

    name: str
    minimum: float
    maximum: float
    step: float = 1
    squares: bool = False
    numeric: ClassVar[bool] = True
    divided: ClassVar[bool] = True
    _rule: rules.Multiples = field(init=False, repr=False, compare=False)

    def _checked(self) -> rules.Multiples:
        book = self.codebook
        if book.labels or book.levels or book.derivation is not None:
            expected = "a column of numbers without labels and levels: an amount has no values to name"
            found = "an amount with labels or levels, or that is derived from others"
            raise DomainError.at((self.name,), found, expected, code="not-supported")
        low = required(number_of, self.minimum, rules.NUMBER, self.name, "amount", 0)
        high = required(number_of, self.maximum, rules.NUMBER, self.name, "amount", 1)
        step = required(number_of, self.step, rules.NUMBER, self.name, "step")
        # The decimal text of a number is what was meant.
        exact = Fraction(repr(step))
        if exact <= 0 or max(exact.numerator, exact.denominator) > _MOST:
            expected = "a number above 0 with few digits, such as 0.01, 1 or 500"
            raise wrong_value(self.step, expected, self.name, "step", code="out-of-range")
        if not low < high:
            expected = f"a number above {number_text(low)}, the lowest amount"
            raise DomainError.at((self.name, "amount", 1), number_text(high), expected, code="out-of-range")
        ends = []
        for place, end in enumerate((low, high)):
            steps = Fraction(repr(end)) / exact
            if steps.denominator != 1 or abs(steps) > rules.LARGEST_STEPS:
                expected = f"a multiple of {number_text(step)}, the step, at most 2^40 steps from 0"
                path = (self.name, "amount", place)
                raise DomainError.at(path, number_text(end), expected, code="out-of-range")
            ends.append(int(steps))
        self._set(minimum=low, maximum=high, step=step)
        if not isinstance(self.squares, bool):
            raise wrong_value(self.squares, "true or false", self.name, "squares")
        common = self._common(3 if self.squares else 2)
        if common["null"] is not None:
            common["null"] = ends[1] - ends[0] + 1
        return rules.Multiples(ends[0], ends[1], exact.numerator, exact.denominator, **common)

    @property
    def steps(self) -> int:
        """The number of steps from the lowest to the highest number."""
        return self._rule.last - self._rule.first

    @property
    def weight(self) -> int:
        """The integer weight of one record: the number of steps, squared where there are squares."""
        return self.steps**2 if self.squares else self.steps

    @property
    def raw_size(self) -> int:
        """How many codes raw values become: one for each multiple of the step, and one for missing values."""
        return self.steps + 1 + (self.null_code is not None)

    def raw_code(self, code: int) -> int:
        """Return the code of a raw value that counts as an end, or as missing."""
        if code == self.null_code:
            return self.steps + 1
        return self.steps if self._code_of(self._value(code)) else 0

    def weights(self, codes: NDArray[Any]) -> list[NDArray[Any]]:
        """Return for each value what records weigh there, by the codes of their raw values.

        Examples
        --------
        >>> [own.tolist() for own in Amount("loan", -1, 3).weights(np.array([0, 1, 4]))]
        [[4, 3, 0], [0, 1, 4]]
        """
        rest = self.steps - codes
        known = [rest * rest, 2 * rest * codes, codes * codes] if self.squares else [rest, codes]
        if self.null_code is None:
            return known
        missing = codes > self.steps
        # in the type of the codes, whose products have room for the weights of other amounts
        return [*(np.where(missing, 0, own) for own in known), missing.astype(codes.dtype) * self.weight]

    @property
    def meaning(self) -> str:
        """How numbers count, in words that are said beside every figure."""
        low, high, step = map(number_text, (self.minimum, self.maximum, self.step))
        return f"below {low} counts as {low}, above {high} as {high}, else as the nearest multiple of {step}"

    @property
    def _counting(self) -> str:
        low, high = map(self.say.plain, (self.minimum, self.maximum))
        step = "" if self.step == 1 else self.say("counts_step", step=self.say.plain(self.step))
        return " ".join(filter(None, (self.say("counts_ends", low=low, high=high), step)))

    @cached_property
    def ends(self) -> rules.Bounds:
        """The lowest and the highest number, and with squares the middle."""
        values = np.array(self._points)
        return rules.Bounds(values, values)

    @property
    def _points(self) -> tuple[float, ...]:
        middle = ((self.minimum + self.maximum) / 2,) if self.squares else ()
        return self.minimum, *middle, self.maximum

    def _value(self, code: int) -> int | float:
        return plain_number(self._points[code])

    def _code_of(self, value: object) -> int:
        number, ends = number_of(value), (self.minimum, self.maximum)
        if number is None or number not in ends:
            expected = f"{' or '.join(map(number_text, ends))}, the ends of {self.name!r}"
            raise wrong_value(value, expected, code="unknown-name")
        return self._points.index(number)

    def _mapping(self) -> dict[str, object]:
        """Return the ends, and the step and the squares where they are not left out."""
        step = {} if self.step == 1 else {"step": plain_number(self.step)}
        squares = {"squares": True} if self.squares else {}
        return {"amount": [plain_number(self.minimum), plain_number(self.maximum)], **step, **squares}
