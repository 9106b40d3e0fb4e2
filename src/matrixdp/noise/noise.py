"""What a noise is: a value that owns its norm, its costs, its quantiles and its sampler.

A part of a plan is measured with one scale b. Its privacy cost is c / b^p, where c is the largest sum over a
column of its matrix of |entry|^p, p = 1 or 2, and costs of parts add up. All that follows is here, once for
every noise: how parts share a cost best, what a share takes in variance, and by what a budget divides errors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError
from matrixdp.exact.linear import Array
from matrixdp.noise.drawing import Distribution, draw, exact_number
from matrixdp.noise.source import RandomSource
from matrixdp.privacy import Budget

#: What accounts across releases add up.
Measure = Literal["rho", "squared_mu", "epsilon"]

#: Each part's exact cost is rounded up to a multiple of 2 to the minus this.
_COST_BITS = 160


class Measured(Protocol):
    """What a noise asks of an integer matrix that is measured."""

    def column_power_sum(self, power: int) -> int:
        """Return the largest sum over a column of |entry|^power, exact."""


@dataclass(frozen=True)
class Guarantee:
    """What a cost promises; every figure is proved, and rounded up.

    Attributes
    ----------
    pure_epsilon : Fraction or None
        Of pure differential privacy; None where there is none.
    mu, rho : Fraction
        Of Gaussian and zero-concentrated differential privacy.
    epsilon : Fraction
        At the reference delta.
    delta : Fraction or None
        What is needed at the epsilon of the budget; None for a budget without one.
    """

    pure_epsilon: Fraction | None
    mu: Fraction
    rho: Fraction
    epsilon: Fraction
    delta: Fraction | None


class Noise(ABC):
    """A symmetric noise of one scale, added to every row of a part.

    A subclass says what the attributes are and answers the abstract methods; `register_noise` makes it
    known by its name. Values are equal if their classes are, and have no state.

    Attributes
    ----------
    name : str
    norm : {1, 2}
        p: sensitivity is the largest Lp norm of a column, and a part of sensitivity s at scale b costs
        (s / b)^p. The sum over parts is what `allowed` bounds; `guarantee` says what it promises.
    variance_factor : float
        The variance at scale 1, that is of the noise with which a row of sensitivity 1 costs 1.
    distribution : Distribution
        At scale 1.
    known_for : str
        The end of "the noise of ...", where a budget leaves no choice.
    on_integers : bool
        Whether `matrixdp.noise.integers` has noise on the integers of the same cost.

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> LAPLACE, LAPLACE.norm, LAPLACE.variance_factor
    (laplace, 1, 2.0)
    """

    __slots__ = ()

    name: str
    norm: Literal[1, 2]
    variance_factor: float
    distribution: Distribution
    known_for: str
    on_integers: bool = False

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def title(self) -> str:
        """The name, at the beginning of a sentence."""
        return self.name.capitalize()

    @abstractmethod
    def allowed(self, budget: Budget) -> Fraction:
        """Return the largest cost that a budget allows between its own neighbours, rounded down.

        Raises
        ------
        PrivacyError
            If the noise cannot honour such a budget.
        """

    @abstractmethod
    def guarantee(self, between: Fraction, budget: Budget, delta: Fraction) -> Guarantee:
        """Return the guarantee of a cost between a budget's own neighbours; ``delta`` is the reference."""

    def accounted(self, measure: Measure, between: Fraction) -> Fraction | None:
        """Return a cost between neighbours in an account's terms, rounded up; None where nothing bounds it.

        Accounts add up the rho of zCDP, the square of mu, or pure epsilon (docs/privacy.md).
        """
        promised = self.guarantee(between, Budget(rho=1), Fraction(1, 10**6))
        return {"rho": promised.rho, "squared_mu": promised.mu**2, "epsilon": promised.pure_epsilon}[measure]

    @abstractmethod
    def largest_quantile(self, confidence: float) -> float:
        """Return q with P(|X| <= q) >= confidence for every linear combination X of variance 1."""

    def largest_tail(self, multiplier: float) -> float:
        """Return a bound on P(|X| > multiplier) for every linear combination X of variance 1.

        The inverse of `largest_quantile`, to within a relative 1e-9 of what is left of 1; 0 beyond 1e-15.

        Examples
        --------
        >>> from matrixdp.noise import GAUSSIAN, LAPLACE
        >>> round(GAUSSIAN.largest_tail(1.959963984540054), 9), LAPLACE.largest_tail(2.0) > 0.05
        (0.05, True)
        """
        low, high = -35.0, 0.0  # of the logarithm
        if self.largest_quantile(-math.expm1(low)) <= multiplier:
            return 0.0
        while high - low > 1e-9:
            middle = (low + high) / 2.0
            covers = self.largest_quantile(-math.expm1(middle)) <= multiplier
            low, high = (low, middle) if covers else (middle, high)
        return math.exp(high)

    def combination_quantiles(self, shares: Array, confidence: float) -> Array | None:
        """Return the quantile of |X| for each combination, or None where only the largest one is known.

        ``shares``, shape (m, k), are those of k independent terms in the variance: each row has sum 1.
        """
        return None

    @property
    def stable(self) -> bool:
        """Whether every combination has the noise's own distribution, and so its quantile."""
        return False

    def honours(self, budget: Budget) -> bool:
        """Return whether budgets of this kind can be honoured at all."""
        return True

    def cost(self, budget: Budget) -> Cost:
        """Return the largest cost that a budget allows, as it adds up: for one record that moves.

        Answers move at most in proportion to the records that can move: those of one person, and under
        ``replace`` twice as many, those that go and those that come. What each of these two costs
        is half of how far both together move the answers, to the power of the norm.

        Raises
        ------
        PrivacyError
            If the noise cannot honour the budget.

        Examples
        --------
        >>> from matrixdp.noise import GAUSSIAN, LAPLACE
        >>> GAUSSIAN.cost(Budget(rho=0.5)).value, GAUSSIAN.cost(Budget(rho=0.5, neighbours="replace")).value
        (Fraction(1, 1), Fraction(1, 4))
        >>> LAPLACE.cost(Budget(epsilon=1)).value, LAPLACE.cost(Budget(epsilon=1, neighbours="replace")).value
        (Fraction(1, 1), Fraction(1, 2))
        >>> GAUSSIAN.cost(Budget(mu=1, unit={"records": 3})).value
        Fraction(1, 9)
        """
        return Cost(self.allowed(budget) / budget.moved**self.norm, self)

    def promise(self, cost: Cost, budget: Budget, delta: Fraction) -> Guarantee:
        """Return the guarantee of a cost between a budget's neighbours; ``delta`` is the reference."""
        return self.guarantee(cost.value * budget.moved**self.norm, budget, delta)

    def error_scale(self, budget: Budget) -> float:
        """Return by what variances at privacy cost 1 are divided under a budget.

        That is the cost of one record added or removed, or under ``replace`` of one replaced by another.

        Examples
        --------
        >>> from matrixdp.noise import GAUSSIAN, LAPLACE
        >>> GAUSSIAN.error_scale(Budget(mu=2)), LAPLACE.error_scale(Budget(epsilon=2))
        (4.0, 4.0)
        """
        return self.cost(budget).error_scale * (budget.moved // budget.unit.records) ** 2

    def column_norms(self, rows: Array) -> Array:
        """Return the norms of the columns in which sensitivity is measured, shape (n,).

        Examples
        --------
        >>> from matrixdp.noise import GAUSSIAN, LAPLACE
        >>> rows = np.array([[3.0, 1.0], [4.0, 0.0]])
        >>> GAUSSIAN.column_norms(rows).tolist(), LAPLACE.column_norms(rows).tolist()
        ([5.0, 1.0], [7.0, 1.0])
        """
        if self.norm == 1:
            return np.asarray(np.abs(rows).sum(axis=0))
        return np.asarray(np.sqrt(np.einsum("ij,ij->j", rows, rows)))

    def power_sum(self, matrix: Measured) -> int:
        """Return the exact sensitivity of a measured matrix, to the power of the norm."""
        return matrix.column_power_sum(self.norm)

    def variance(self, matrix: Measured, share: float = 1.0) -> float:
        """Return the variance on every row with which measuring a matrix has a share of the cost 1."""
        return float(self.variance_factor * (self.power_sum(matrix) / share) ** (2.0 / self.norm))

    def share(self, matrix: Measured, variance: float) -> float:
        """Return the cost of measuring a matrix with a variance on every row; the inverse of `variance`."""
        return float(self.power_sum(matrix) / (variance / self.variance_factor) ** (self.norm / 2.0))

    @property
    def share_power(self) -> float:
        """The power of a part's loss that its best share of the cost is proportional to: p / (p + 2)."""
        return self.norm / (self.norm + 2.0)

    def best_shares(self, losses: Sequence[float], counts: Sequence[int] | None = None) -> list[float]:
        """Return the shares of the cost with which parts have the least total error.

        ``losses`` are their squared errors if each had the whole cost; with ``counts`` there are several of
        each, and the share is that of one.

        Examples
        --------
        >>> from matrixdp.noise import LAPLACE
        >>> [round(share, 9) for share in LAPLACE.best_shares([8.0, 1.0])]
        [0.666666667, 0.333333333]
        """
        total = math.fsum(self._roots(losses, counts))
        return [loss**self.share_power / total for loss in losses]

    def _roots(self, losses: Sequence[float], counts: Sequence[int] | None) -> list[float]:
        pairs = zip(losses, counts or [1] * len(losses), strict=True)
        return [count * loss**self.share_power for loss, count in pairs]

    def total_loss(self, losses: Sequence[float], counts: Sequence[int] | None = None) -> float:
        """Return the least total error of parts that share the cost best; see `best_shares`.

        Examples
        --------
        >>> from matrixdp.noise import GAUSSIAN, LAPLACE
        >>> GAUSSIAN.total_loss([4.0, 9.0]), round(LAPLACE.total_loss([8.0, 27.0]), 9)
        (25.0, 125.0)
        """
        return float(math.fsum(self._roots(losses, counts)) ** (1.0 / self.share_power))

    def scale(self, variance: float, cost: float) -> float:
        """Return the scale of a part whose variance is given at cost 1, under another cost."""
        return float(math.sqrt(variance / self.variance_factor) / cost ** (1.0 / self.norm))

    def exact_cost(self, moved: Iterable[tuple[int, Fraction]]) -> Cost:
        """Return the cost of moving answers with noise of exact scales, or a bound just above it.

        Of each part the sum of |move|^p over its rows, as `power_sum` is for the record that moves it most.
        """
        total = 0
        for power_sum, scale in moved:
            if power_sum < 1 or scale <= 0:
                raise PrivacyError("a part would be measured without noise")
            over = power_sum * scale.denominator**self.norm << _COST_BITS
            total -= -over // scale.numerator**self.norm
        return Cost(Fraction(total, 1 << _COST_BITS), self)

    def check_same(self, other: Noise) -> None:
        """Refuse another noise than this one."""
        if other != self:
            raise PrivacyError(f"{other} noise in a plan for {self} noise", code="conflict")

    def draw_rounded(
        self,
        scale: Fraction,
        size: int,
        *,
        offsets: NDArray[np.float64] | None = None,
        exact_offset: Callable[[int], Fraction] | None = None,
        source: RandomSource,
    ) -> NDArray[np.int64]:
        """Draw independent K_i = round(f_i + scale * Z_i), Z_i exactly of the distribution; ndarray of int64.

        Parameters
        ----------
        scale : Fraction
            Exact, between 1 and 2**20.
        size : int
        offsets : ndarray of float64, shape (size,), optional
            The offsets f_i in [0, 1), each within 2**-53; without them every f_i is 0.
        exact_offset : callable, optional
            The exact f_i of a place: needed with ``offsets``, called where the filter does not decide.
        source : RandomSource

        Raises
        ------
        PrivacyError
            If the scale is not an exact number in range, the offsets do not fit, or the source misbehaves.

        References
        ----------
        I. Mironov, On significance of the least significant bits for differential privacy, CCS 2012: why
        noise must not be floating-point arithmetic's. docs/noise.md proves that the distribution is exact.

        Examples
        --------
        >>> from matrixdp.noise import GAUSSIAN, SeededSource
        >>> GAUSSIAN.draw_rounded(Fraction(5000), 3, source=SeededSource(1)).dtype
        dtype('int64')
        >>> GAUSSIAN.draw_rounded(Fraction(0), 3, source=SeededSource(1))
        Traceback (most recent call last):
            ...
        matrixdp.errors.PrivacyError: noise scale: found 0; expected an exact number between 1 and 1048576
        """
        return draw(self.distribution, scale, size, offsets, exact_offset, source)


@dataclass(frozen=True)
class Cost:
    """An exact privacy cost of one record that moves, compared with and added to its own noise's alone.

    Parameters
    ----------
    value : Fraction
        Above 0.
    noise : Noise
    delta : Fraction
        With what probability the promise may fail besides, for all records that move together; a discovery
        of values has one, noise alone has none.

    Raises
    ------
    PrivacyError
        If the value is not an exact number above 0, or costs of different noises meet.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN, LAPLACE
    >>> Cost(Fraction(1, 2), LAPLACE) + Cost(Fraction(1, 2), LAPLACE) <= Cost(Fraction(1), LAPLACE)
    True
    >>> Cost(Fraction(1), LAPLACE) <= Cost(Fraction(1), GAUSSIAN)
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: gaussian noise in a plan for laplace noise
    """

    value: Fraction
    noise: Noise
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", exact_number("privacy cost", self.value, 0))

    def _value_of(self, other: Cost) -> Fraction:
        self.noise.check_same(other.noise)
        return other.value

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.value + self._value_of(other), self.noise, self.delta + other.delta)

    def __le__(self, other: Cost) -> bool:
        return self.value <= self._value_of(other) and self.delta <= other.delta

    @property
    def error_scale(self) -> float:
        """By what variances at cost 1 are divided; an error where floating point cannot hold it."""
        with suppress(OverflowError):
            scale = float(float(self.value) ** (2.0 / self.noise.norm))
            if 0 < scale < math.inf:
                return scale
        raise PrivacyError("budget: its privacy cost is too large or too small for floating point")
