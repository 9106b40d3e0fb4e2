"""Between mu-GDP, rho-zCDP, (epsilon, delta) and pure epsilon, every figure rounded to the safe side.

A Gaussian mechanism of privacy cost beta is sqrt(beta)-GDP and (beta / 2)-zCDP, and its exact curve is

    delta(epsilon; mu) = Q(epsilon / mu - mu / 2) - exp(epsilon) Q(epsilon / mu + mu / 2),

Q being the upper tail probability of the normal distribution (Dong, Roth and Su, corollary 2.13; Balle
and Wang, theorem 8). The curve is evaluated in ball arithmetic, so that each result is a proved bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational, Real
from typing import TypeVar

from flint import arb, ctx, fmpq

from matrixdp.errors import NumericalError, PrivacyError
from matrixdp.forms import describe_value

# Exact numbers for privacy parameters: reading them strictly, and rounding them to a stated side.

Number = int | float | Fraction | Decimal
N = TypeVar("N", float, Fraction)

_ROOT_BITS = 80


def exact_positive(
    name: str, value: object, *, below: int | None = None, zero: bool = False, larger: bool = False
) -> Fraction:
    """Read a privacy parameter as an exact rational number.

    A binary floating-point number such as 0.1 stands for its shortest decimal text (1/10), as in a file; all
    that is spent, promised and added up is this exact number. Where the parameter tells how much was spent,
    `larger` takes the binary value (a little more than 1/10) if that is the larger of the two.

    ``name`` is what the message calls it, ``below`` an upper limit, itself excluded, and ``zero`` says
    whether 0 is allowed. Truth values, text and what is not finite are refused.

    Examples
    --------
    >>> exact_positive("budget.rho", 0.1)
    Fraction(1, 10)
    >>> exact_positive("budget.rho", -1)
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: budget.rho: found -1; expected a finite number above 0
    """
    exact = Fraction(-1)  # what is no number is refused as one out of range is
    if isinstance(value, Rational) and not isinstance(value, bool):
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif isinstance(value, Decimal) and value.is_finite():
        exact = Fraction(value)
    elif isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        exact = Fraction(repr(float(value)))
        exact = max(exact, Fraction(float(value))) if larger else exact
    if exact < 0 or (exact == 0 and not zero) or (below is not None and exact >= below):
        least = "of at least 0" if zero else "above 0"
        expected = f"a finite number {least}" if below is None else f"a number {least} and below {below}"
        raise PrivacyError.at(tuple(name.split(".")), describe_value(value), expected, code="out-of-range")
    return exact


def float_above(value: Fraction) -> float:
    """Return the least float64 that is at least `value` (infinity if there is none).

    Examples
    --------
    >>> float_above(Fraction(1, 3)) > float_below(Fraction(1, 3))
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_below(value: Fraction) -> float:
    """Return the greatest float64 that is at most `value`."""
    return -float_above(-value)


def root_below(value: Fraction) -> Fraction:
    """Return a dyadic rational at most sqrt(value), relative error below 2**-78.

    Examples
    --------
    >>> root_below(Fraction(9, 4)), root_below(Fraction(2)) ** 2 < 2 < root_above(Fraction(2)) ** 2
    (Fraction(3, 2), True)
    """
    if value < 0:
        told = "square root: found a negative number; expected a number of at least 0"
        raise PrivacyError(told, "out-of-range")
    shift = _root_shift(value)
    return Fraction(math.isqrt((value.numerator << 2 * shift) // value.denominator), 1 << shift)


def _root_shift(value: Fraction) -> int:
    return max(0, _ROOT_BITS + (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 1)


def root_above(value: Fraction) -> Fraction:
    """Return a dyadic rational at least sqrt(value), relative error below 2**-78."""
    root = root_below(value)
    return root if root * root == value else root + Fraction(1, 1 << _root_shift(value))


_PRECISIONS = tuple(1 << power for power in range(7, 16))
_SMALLEST = Fraction(1, 1 << 10_000)  # an upper bound below it is given as it
_RELATIVE_BITS = 60
_LARGEST_EPSILON = Fraction(1 << 30)
_LARGEST_ANSWER = Fraction(1 << 64)
_LARGEST_PURE_MU = Fraction(1 << 15)
_UP, _DOWN = Fraction(2), Fraction(1, 2)


def ball(value: Fraction) -> arb:
    """Enclose a rational number at the current precision."""
    return arb(fmpq(value.numerator, value.denominator))


def _curve(mu: Fraction, epsilon: Fraction) -> arb:
    """Enclose delta(epsilon; mu) at the current precision."""
    root = arb(2).sqrt()
    near = (ball(epsilon / mu - mu / 2) / root).erfc()
    far = (ball(epsilon / mu + mu / 2) / root).erfc()
    return (near - ball(epsilon).exp() * far) / 2


def _proved(balls: Callable[[], tuple[arb, arb]]) -> bool:
    """Return True only if the first ball is proved to be at most the second (False also where undecided)."""
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            found, limit = balls()
            if found <= limit:
                return True
            if found > limit:
                return False
    return False


@lru_cache(maxsize=4096)
def _at_most(mu: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Return True only if delta(epsilon; mu) <= delta is proved."""
    return _proved(lambda: (_curve(mu, epsilon), ball(delta)))


def _pure_is_gdp(epsilon: Fraction, mu: Fraction) -> bool:
    """Return True only if (1 + e^epsilon) Phi(-mu / 2) <= 1 is proved."""
    return _proved(
        lambda: ((1 + ball(epsilon).exp()) * (ball(mu / 2) / arb(2).sqrt()).erfc(), ball(Fraction(2)))
    )


def bisect(holds: Callable[[N], bool], good: N, bad: N, relative: N) -> tuple[N, N]:
    """Return two points, one where `holds` and one where it does not, within a relative distance."""
    while abs(bad - good) > relative * max(good, bad):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good, bad


def _farthest(holds: Callable[[Fraction], bool], factor: Fraction, refusal: str) -> Fraction:
    """Return the largest (factor 2) or least (factor 1/2) point where `holds`, within a relative 2**-60."""
    good = Fraction(1)
    while not holds(good):
        good /= factor
        if not _SMALLEST <= good <= _LARGEST_ANSWER:
            raise NumericalError(refusal)
    while holds(good * factor):
        good *= factor
        if good > 1 / _SMALLEST:
            raise NumericalError(refusal)
        if good < _SMALLEST:
            return good
    return bisect(holds, good, good * factor, Fraction(1, 1 << _RELATIVE_BITS))[0]


@lru_cache(maxsize=256)
def largest_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest mu whose Gaussian curve is proved to keep to (epsilon, delta), rounded down.

    Above 2**30 epsilon is taken as 2**30, which asks for more. Balle and Wang 2018, theorem 8.

    Examples
    --------
    >>> mu = largest_mu(Fraction(1), Fraction(1, 10**6))
    >>> round(float(1 / mu), 4)  # noise of standard deviation 4.2247 per unit of sensitivity
    4.2247
    """
    asked = min(epsilon, _LARGEST_EPSILON)
    refusal = "no noise level could be certified for this epsilon and delta"
    return _farthest(lambda mu: _at_most(mu, asked, delta), _UP, refusal)


def best_guess(mu: float | Fraction) -> float:
    """Return how often the best guess between two equally likely neighbours is right, at most.

    Under mu-GDP it is Phi(mu / 2), as the errors of the first and the second kind of every test add up to
    at least 2 Phi(-mu / 2) (Dong, Roth and Su 2022, definition 2.6 with alpha = Phi(-mu / 2)).

    Examples
    --------
    >>> best_guess(0), round(best_guess(2.0), 4)
    (0.5, 0.8413)
    """
    return math.erfc(-float(min(mu, 100)) / math.sqrt(8.0)) / 2.0


def odds(mu: float | Fraction, delta: float | Fraction = 0) -> float:
    """Return a bound on how often the best guess between two equally likely neighbours is right.

    It is rounded up to a tenth of a percent. Where mu is promised but for a probability of delta, half of
    delta is added.

    Examples
    --------
    >>> odds(0.0), odds(0.2368), odds(2.0), odds(0.2368, 0.01)
    (0.501, 0.548, 0.842, 0.553)
    """
    return min(1.0, math.floor(1000 * (best_guess(mu) + float(delta) / 2) + 1) / 1000)


def rho_of_mu(mu: Number) -> Fraction:
    """Return the zCDP parameter rho = mu**2 / 2 of a mu-GDP Gaussian mechanism, exact.

    Parameters
    ----------
    mu : int, float, Fraction or Decimal
        Above 0.

    Returns
    -------
    Fraction
        The rho of the Gaussian mechanism (of nothing else that is mu-GDP).

    Raises
    ------
    PrivacyError
        If mu is not a finite number above 0.

    References
    ----------
    M. Bun and T. Steinke, Concentrated differential privacy, TCC 2016, proposition 1.6.

    Examples
    --------
    >>> rho_of_mu(1)
    Fraction(1, 2)
    """
    return exact_positive("mu", mu, larger=True) ** 2 / 2


def mu_of_rho(rho: Number) -> Fraction:
    """Return the GDP parameter mu = sqrt(2 rho) of a rho-zCDP Gaussian mechanism, rounded up.

    Parameters
    ----------
    rho : int, float, Fraction or Decimal
        Above 0.

    Returns
    -------
    Fraction
        At least sqrt(2 rho), within a relative 2**-78; for the Gaussian mechanism only.

    Raises
    ------
    PrivacyError
        If rho is not a finite number above 0.

    Examples
    --------
    >>> mu_of_rho(0.5), rho_of_mu(mu_of_rho(1)) >= 1
    (Fraction(1, 1), True)
    """
    return root_above(2 * exact_positive("rho", rho, larger=True))


def delta_of(mu: Number, epsilon: Number) -> Fraction:
    """Return the delta of a mu-GDP mechanism at epsilon, rounded up.

    Parameters
    ----------
    mu : int, float, Fraction or Decimal
        Above 0.
    epsilon : int, float, Fraction or Decimal
        At least 0; above 2**30 it is taken as 2**30, where delta is larger.

    Returns
    -------
    Fraction
        At least delta(epsilon; mu), within a relative 2**-60 of it (2**-10000 if it is smaller still).

    Raises
    ------
    PrivacyError
        If a parameter is out of range.
    NumericalError
        If the curve cannot be enclosed.

    References
    ----------
    J. Dong, A. Roth and W. Su, Gaussian differential privacy, JRSS B 84, 2022, corollary 2.13.

    Examples
    --------
    >>> round(float(delta_of(1, 1)), 9)
    0.126936738
    """
    exact_mu = exact_positive("mu", mu, larger=True)
    exact_epsilon = min(exact_positive("epsilon", epsilon, zero=True), _LARGEST_EPSILON)
    if _at_most(exact_mu, exact_epsilon, _SMALLEST):
        return _SMALLEST
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            curve = _curve(exact_mu, exact_epsilon)
            if curve.rel_accuracy_bits() < _RELATIVE_BITS + 4:
                continue
            mantissa, exponent = (int(part) for part in curve.upper().man_exp())
        # Keep 64 bits, rounded up.
        surplus = max(0, mantissa.bit_length() - 64)
        value = -(-mantissa >> surplus) * Fraction(2) ** (exponent + surplus)
        return min(value, Fraction(1))
    raise NumericalError("delta could not be enclosed for this mu and epsilon")


def epsilon_of(mu: Number, delta: Number) -> Fraction:
    """Return the epsilon of a mu-GDP mechanism at delta, rounded up.

    Parameters
    ----------
    mu : int, float, Fraction or Decimal
        Above 0.
    delta : int, float, Fraction or Decimal
        Above 0 and below 1.

    Returns
    -------
    Fraction
        An epsilon with delta(epsilon; mu) <= delta proved by ball arithmetic, within a relative 2**-60
        of the least; 0 if the mechanism keeps to (0, delta).

    Raises
    ------
    PrivacyError
        If a parameter is out of range.
    NumericalError
        If no epsilon can be certified.

    Examples
    --------
    >>> round(float(epsilon_of(1, 1e-6)), 6)
    4.886554
    """
    exact_mu = exact_positive("mu", mu, larger=True)
    exact_delta = exact_positive("delta", delta, below=1)
    if _at_most(exact_mu, Fraction(0), exact_delta):
        return Fraction(0)
    refusal = "no epsilon could be certified for this mu and delta"
    return _farthest(lambda epsilon: _at_most(exact_mu, epsilon, exact_delta), _DOWN, refusal)


@lru_cache(maxsize=256)
def epsilon_of_gdp(mu: Fraction) -> Fraction:
    """Return the largest epsilon for which every epsilon-DP mechanism is proved to be mu-GDP, rounded down.

    The trade-off curve of epsilon-DP is max(0, 1 - e^epsilon a, e^-epsilon (1 - a)); it lies above that of
    mu-GDP, which is convex and symmetric, if and only if it does at its kink a = 1 / (1 + e^epsilon), that
    is where the fixed point Phi(-mu / 2) of the curve of mu-GDP is at most a (proof in docs/privacy.md).
    Above 2**15 mu is taken as 2**15, which asks for more.

    Examples
    --------
    >>> round(float(epsilon_of_gdp(Fraction(1))), 6)
    0.806965
    """
    asked = min(mu, _LARGEST_PURE_MU)
    refusal = "no epsilon of pure differential privacy could be certified for this mu"
    return _farthest(lambda epsilon: _pure_is_gdp(epsilon, asked), _UP, refusal)


@lru_cache(maxsize=4096)
def gdp_of_epsilon(epsilon: Fraction) -> Fraction:
    """Return the least mu for which every epsilon-DP mechanism is proved to be mu-GDP, rounded up.

    For an epsilon above 2**20 it is sqrt(8 epsilon), which is enough because Phi(-x) <= exp(-x**2 / 2) / 2.

    Examples
    --------
    >>> mu = gdp_of_epsilon(Fraction(1))
    >>> round(float(mu), 6), epsilon_of_gdp(mu) >= 1
    (1.232035, True)
    """
    if epsilon > 1 << 20:
        return root_above(8 * epsilon)
    return _farthest(lambda mu: _pure_is_gdp(epsilon, mu), _DOWN, "no mu could be certified for this epsilon")
