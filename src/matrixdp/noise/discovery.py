"""Which values of a column may be told: mechanisms whose result is a set of values, with exact chances.

A table is seen as the list of values that each person has. Persons with one value each: a value that n
persons have is told with a chance p_n, of all chances the largest that are (epsilon, delta)-private. Persons
with many: each shares one unit of weight, in squares, among her values; a value is told where its weight,
with Gaussian noise, passes a threshold that the values of one person alone hardly ever pass. Rounds do this
again for the values that are left, each with more of the budget. docs/privacy.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, final

import numpy as np
from flint import ctx
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, PrivacyError
from matrixdp.noise.gaussian import GAUSSIAN, upper_tail
from matrixdp.noise.laplace import LAPLACE
from matrixdp.noise.noise import Cost
from matrixdp.noise.source import RandomSource
from matrixdp.privacy.conversions import ball, root_below

Places = NDArray[np.int64]
Rounds = tuple["Round", ...]

#: Chances are multiples of 2 to the minus this, each decided by as many random bits.
CHANCE_BITS = 64
#: The least delta: its multiples of 2^-64 are within a millionth of it.
LEAST_DELTA = Fraction(1, 2**44)
#: The most persons up to whom chances are computed.
_MOST_CHANCES = 2**18
#: A larger epsilon is used as if it were this: chances differ by less than they are rounded by.
_LARGEST_EXPONENT = 64
#: How many rounds there are, and by what the squared mu and the delta of each exceed those of the one before.
ROUNDS, GROWTH = 3, 4
#: Noise has at most this scale, and weights at most so many bits: sums of 2^38 of them fit 63 bits.
_LARGEST_SCALE, _WEIGHT_BITS = 2**20, 24
_LEAST_BITS = 6


class Mechanism(Protocol):
    """What finds values, and what that costs."""

    def cost(self, moved: int) -> Cost:
        """Return its cost where a person moves so many records; `Cost.delta` is that of the person."""

    @property
    def persons(self) -> list[int]:
        """The number of persons whose value is told: surely, or half of the time.

        The second number, if there is one, is that of persons with the most values each.
        """

    def found(self, persons: Places, values: Places, number: int, source: RandomSource) -> Places:
        """Return which of `number` values are told, in order.

        The persons come one after the other, and the values of each in the order in which they count.
        """


def exponential_below(exponent: Fraction) -> Fraction:
    """Return a number of at most exp(exponent), near it, for an exponent above 0.

    Examples
    --------
    >>> float(exponential_below(Fraction(1)))
    2.718281828459045
    """
    term = total = 1 << 128
    step = 0
    while term:
        step += 1
        term = term * exponent.numerator // (exponent.denominator * step)
        total += term
    return Fraction(total, 1 << 128)


def chances(epsilon: Fraction, delta: Fraction) -> list[int]:
    """Return the chances p_0, p_1, ... that a value of n persons is told, in units of 2^-64, up to 1.

    p_0 = 0, and p_(n+1) is the least of a p_n + delta, of 1 - (1 - p_n - delta) / a and of 1, rounded down,
    where a is at most exp(epsilon). So a person more or less changes the chance that a value is told, and
    that it is not, by at most the factor exp(epsilon) and delta.

    References
    ----------
    D. Desfontaines, J. Voss, B. Gipson and C. Mandayam, Differentially private partition selection, PoPETs
    2022, theorem 2: without rounding no chances are larger.

    Raises
    ------
    PrivacyError
        If so many persons are needed that a table of chances is too long, or delta is too small.

    Examples
    --------
    >>> table = chances(Fraction(1), Fraction(1, 10**6))
    >>> len(table) - 1, [round(p / 2**64, 6) for p in table[1:4]], table[-1] == 2**64
    (28, [1e-06, 4e-06, 1.1e-05], True)
    """
    one = 1 << CHANCE_BITS
    step = math.floor(delta * one)
    factor = exponential_below(min(epsilon, Fraction(_LARGEST_EXPONENT)))
    _check(delta >= LEAST_DELTA, "delta", f"{float(delta):.3g}", f"at least {float(LEAST_DELTA):.1e}")
    found = [0]
    while found[-1] < one:
        last = found[-1]
        grown = last * factor.numerator // factor.denominator + step
        left = -(-max(one - last - step, 0) * factor.denominator // factor.numerator)
        found.append(min(grown, one - left, one))
        if len(found) > _MOST_CHANCES:
            expected = f"a larger one: no value of fewer than {_MOST_CHANCES:,} persons would surely be told"
            _check(False, "epsilon", f"{float(epsilon):.3g}", expected)
    return found


def _check(holds: bool, name: str, found: str, expected: str) -> None:
    if not holds:
        raise PrivacyError.at(("budget", name), f"{found} for a discovery", expected, code="out-of-range")


@final
@dataclass(frozen=True)
class Chances:
    """Tells values of persons who have one each, with the largest chances.

    Attributes
    ----------
    epsilon, delta : Fraction
        Of one person.
    table : list of int
        See `chances`.
    """

    epsilon: Fraction
    delta: Fraction
    table: list[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", chances(self.epsilon, self.delta))

    def cost(self, moved: int) -> Cost:
        """Return its cost: epsilon, and delta."""
        return Cost(self.epsilon / moved, LAPLACE, self.delta)

    @property
    def persons(self) -> list[int]:
        """The number of persons whose value is told surely."""
        return [len(self.table) - 1]

    def found(self, persons: Places, values: Places, number: int, source: RandomSource) -> Places:
        """Return which values are told; of each person the first counts."""
        first = np.ones(len(persons), dtype=np.bool_)
        first[1:] = persons[1:] != persons[:-1]
        table = np.array(self.table[:-1], dtype=np.uint64)
        numbers = np.bincount(values[first], minlength=number)
        sure = numbers >= len(table)
        drawn = source.bits64(number)
        told = sure | (drawn < table[np.where(sure, 0, numbers)])
        return np.flatnonzero(told).astype(np.int64)


def weight(bits: int, values: int) -> int:
    """Return the weight of each value of a person with so many: the sum of their squares is at most 4^bits.

    Examples
    --------
    >>> weight(10, 1), weight(10, 4), weight(10, 5), 5 * weight(10, 5) ** 2 <= 4**10
    (1024, 512, 457, True)
    """
    return math.isqrt(4**bits // values)


def is_threshold(threshold: int, bits: int, scale: Fraction, delta: Fraction, most: int) -> bool:
    """Return whether the values of one person alone pass a threshold with a probability of at most delta.

    For k values, up to the most, each passes with a probability of at most delta / k: proved.
    """
    with ctx.workprec(160):
        return all(
            bool(upper_tail((threshold - weight(bits, k)) / scale) <= ball(delta / k))
            for k in range(1, most + 1)
        )


def least_threshold(bits: int, scale: Fraction, delta: Fraction, most: int) -> int:
    """Return about the least integer that `is_threshold` proves.

    Examples
    --------
    >>> least_threshold(12, Fraction(4096), Fraction(1, 10**6), 1)
    23567
    >>> is_threshold(23565, 12, Fraction(4096), Fraction(1, 10**6), 1)
    False
    """
    quantile: Callable[[float], float] = GAUSSIAN.distribution.guess
    guesses = (weight(bits, k) + float(scale) * quantile(math.log(delta / k)) for k in range(1, most + 1))
    found, step = math.ceil(max(guesses)), 1
    while not is_threshold(found, bits, scale, delta, most):
        found, step = found + step, 2 * step
        if step > 2**40:
            raise NumericalError("a threshold of discovered values could not be certified")
    return found


@final
@dataclass(frozen=True)
class Round:
    """One round of `WeightedRounds`.

    Attributes
    ----------
    scale : Fraction
        The standard deviation of the noise, in units of which a person has 2^bits in all.
    delta : Fraction
        With what probability values of one person alone may pass.
    threshold : int
        What the noisy weight of a value that is told exceeds.
    """

    scale: Fraction
    delta: Fraction
    threshold: int


@final
@dataclass(frozen=True)
class WeightedRounds:
    """Tells values of persons who have many, by weights that each person spreads over hers.

    Values that a round told leave the lists of all persons before the next.

    Attributes
    ----------
    most : int
        So many of a person's values count in each round, the first ones.
    bits : int
        The squares of a person's weights add up to at most 4^bits.
    rounds : tuple of Round

    References
    ----------
    M. Swanberg, D. Desfontaines and S. Haney, DP-SIPS: a simpler, more scalable mechanism for differentially
    private partition selection, PoPETs 2023.

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> rule = WeightedRounds.within(Fraction(1), Fraction(1, 10**6), 2)
    >>> persons = np.repeat(np.arange(50), 2)
    >>> values = np.array([0, 1] * 49 + [2, 3])
    >>> rule.found(persons, values, 4, SeededSource(1)).tolist()
    [0, 1]
    """

    most: int
    bits: int
    rounds: Rounds

    @classmethod
    def within(cls, squared_mu: Fraction, delta: Fraction, most: int, number: int = ROUNDS) -> WeightedRounds:
        """Return the rounds that cost at most a squared mu and a delta, of which each later one gets more."""
        _check(delta >= LEAST_DELTA, "delta", f"{float(delta):.3g}", f"at least {float(LEAST_DELTA):.1e}")
        number = 1 if most == 1 else number
        shares = [Fraction(GROWTH**place, sum(GROWTH**i for i in range(number))) for place in range(number)]
        least = root_below(squared_mu * shares[0])
        bits = min(math.floor(least * _LARGEST_SCALE).bit_length() - 1, _WEIGHT_BITS)
        expected = f"more than {2.0 ** (_LEAST_BITS - 20) / math.sqrt(shares[0]):.2g}"
        _check(bits >= _LEAST_BITS, "mu", f"{float(root_below(squared_mu)):.3g}", expected)
        rounds = []
        for share in shares:
            scale = Fraction(math.ceil(2 ** (bits + 20) / root_below(squared_mu * share)), 2**20)
            own = Fraction(math.floor(delta * share * 2**CHANCE_BITS), 2**CHANCE_BITS)
            rounds.append(Round(scale, own, least_threshold(bits, scale, own, most)))
        return cls(most, bits, tuple(rounds))

    def cost(self, moved: int) -> Cost:
        """Return its cost: the sums of squared mu, and of delta, over the rounds."""
        squared = sum((4**self.bits / own.scale**2 for own in self.rounds), Fraction(0))
        above = Fraction(math.ceil(squared / moved**2 * 2**160), 2**160)
        return Cost(above, GAUSSIAN, sum((own.delta for own in self.rounds), Fraction(0)))

    @property
    def persons(self) -> list[int]:
        """With how many persons the last round tells a value half of the time: of one each, and the most."""
        ends = dict.fromkeys((1, self.most))
        return [self.rounds[-1].threshold // weight(self.bits, own) + 1 for own in ends]

    def found(self, persons: Places, values: Places, number: int, source: RandomSource) -> Places:
        """Return which values are told in any of the rounds."""
        told = np.zeros(number, dtype=np.bool_)
        for own in self.rounds:
            weights = person_weights(persons, values, told, self.bits, self.most)
            sums = np.zeros(number, dtype=np.int64)
            np.add.at(sums, values, weights)
            # of a value without weight no noise is drawn, as nobody has it any more
            left = np.flatnonzero(sums)
            noise = GAUSSIAN.draw_rounded(own.scale, len(left), source=source)
            told[left[sums[left] + noise > own.threshold]] = True
        return np.flatnonzero(told).astype(np.int64)


def person_weights(
    persons: Places, values: Places, told: NDArray[np.bool_], bits: int, most: int
) -> NDArray[np.int64]:
    """Return the weight of each person's values: those that are told, and those after the most, have none.

    Examples
    --------
    >>> told = np.array([False, True, False])
    >>> person_weights(np.array([0, 0, 0, 1]), np.array([1, 0, 2, 2]), told, 10, 5).tolist()
    [0, 724, 724, 1024]
    """
    left = np.flatnonzero(~told[values])
    starts = np.flatnonzero(np.diff(persons[left], prepend=-1))
    sizes = np.diff(starts, append=len(left))
    places = np.arange(len(left)) - np.repeat(starts, sizes)
    table = np.array([0, *(weight(bits, k) for k in range(1, most + 1))], dtype=np.int64)
    found = np.zeros(len(values), dtype=np.int64)
    found[left] = np.where(places < most, np.repeat(table[np.minimum(sizes, most)], sizes), 0)
    return found
