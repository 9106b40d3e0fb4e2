"""Sums and means of numeric attributes, with the error of binning in their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, UnsupportedQueryError, within
from matrixdp.language.statistics import check_order
from matrixdp.statistics.strata import By, Inference, Strata, Where, statistic_table

# The numbers or days that the values of an attribute stand for, as far as they have an order.

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


# Ratios of two estimates: the interval of Fieller, from their exact covariance.

#: Standard errors of a denominator, relative to it, above which there is a warning.
_SMALL = 0.1
UNBOUNDED = "the denominator cannot be told from 0: the interval is unbounded"


@final
@dataclass(frozen=True, eq=False)
class Ratios:
    """Ratios with their intervals.

    Attributes
    ----------
    estimates : ndarray
        Quotients of the estimates; nan where the denominator is 0.
    deviations : ndarray
        Standard errors by the delta method; nan where the interval is unbounded, as no approximation holds
        there.
    lower, upper : ndarray
        The ends of the intervals; nan where they are unbounded.
    warnings : list of str or None
        Where the denominator is small.
    """

    estimates: Array
    deviations: Array
    lower: Array
    upper: Array
    warnings: list[str | None]

    def columns(self) -> dict[str, pa.Array]:
        """Return the columns of figures; what is nan is null."""
        figures = {
            "estimate": self.estimates,
            "stddev": self.deviations,
            "lower": self.lower,
            "upper": self.upper,
        }
        made = {name: pa.array(own, pa.float64(), from_pandas=True) for name, own in figures.items()}
        return made | {"warning": pa.array(self.warnings, pa.utf8())}


def ratios(
    numerators: Array,
    denominators: Array,
    variances: tuple[Array, Array],
    covariances: Array,
    multiplier: float,
) -> Ratios:
    """Return ratios of estimates.

    Parameters
    ----------
    numerators, denominators : ndarray, shape (ratios,)
        The estimates.
    variances : tuple of ndarray
        Theirs.
    covariances : ndarray, shape (ratios,)
        Of each numerator with its denominator.
    multiplier : float
        How many standard errors of N - t D are exceeded with no more than the probability that the interval
        may miss the ratio t.

    Notes
    -----
    N - t D has the mean 0 at the true ratio t, and a known variance: the interval is the set of those t at
    which |N - t D| is within the multiplier times its standard error. It covers with the full confidence
    whatever the denominator is. It is bounded where the denominator differs from 0 by more than the
    multiplier times its own standard error; else it is unbounded, or the outside of an interval.

    References
    ----------
    E. C. Fieller, Some problems in interval estimation, JRSS B 16, 1954.

    Examples
    --------
    >>> one, four = np.array([1.0]), np.array([4.0])
    >>> found = ratios(np.array([50.0]), np.array([100.0]), (one, four), np.zeros(1), 1.96)
    >>> round(float(found.lower[0]), 3), round(float(found.upper[0]), 3)
    (0.473, 0.529)
    """
    squared = multiplier**2
    own, other = variances
    quadratic = denominators**2 - squared * other
    linear = numerators * denominators - squared * covariances
    constant = numerators**2 - squared * own
    bounded = quadratic > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = np.where(denominators != 0, numerators / denominators, np.nan)
        root = np.sqrt(np.maximum(linear**2 - quadratic * constant, 0.0))
        lower = np.where(bounded, (linear - root) / quadratic, np.nan)
        upper = np.where(bounded, (linear + root) / quadratic, np.nan)
        spread = np.maximum(own - 2.0 * estimates * covariances + estimates**2 * other, 0.0)
        deviations = np.where(bounded, np.sqrt(spread) / np.abs(denominators), np.nan)
        relative = np.sqrt(other) / np.abs(denominators)
    return Ratios(
        estimates, deviations, lower, upper, [_warning(*pair) for pair in zip(bounded, relative, strict=True)]
    )


def _warning(bounded: bool, relative: float) -> str | None:
    if not bounded:
        return UNBOUNDED
    if relative > _SMALL:
        return f"small denominator: its standard error is {relative:.0%} of it; go by the interval"
    return None


_BINNING = (
    "; it holds wherever in its bin a number lies, by the ends of the bins; `binning` is the most by which "
)


@final
@dataclass(frozen=True, eq=False)
class _Numbers:
    """The numbers that the values of an attribute stand for: middles, and between which ends they lie."""

    strata: Strata
    lows: Array
    middles: Array
    highs: Array

    @classmethod
    def of(cls, inference: Inference, statistic: str, attribute: object, by: By, where: Where) -> _Numbers:
        """Return the numbers; bins of different widths are all as wide as the widest where no more is known.

        The sum of the middles and the number of records may have been measured, and nothing else.
        """
        strata, scale = ordered(inference.domain, statistic, attribute, by, where)
        name = strata.attribute.name
        if scale.dates:
            expected = "an attribute of numbers; `quantile` takes dates"
            raise EntryError.at((statistic,), f"{name!r}, whose values are dates", expected)
        lows, highs = scale.lows[strata.codes], scale.highs[strata.codes]
        if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
            expected = "bins with two ends; leave the open one out with `where`, or ask for a `quantile`"
            raise EntryError.at((statistic,), f"{name!r}, which has a bin without an end", expected)
        exact = cls(strata, lows, (lows + highs) / 2.0, highs)
        group = inference.spread(strata.group(lows[None, :]))
        try:
            inference.analysis.check_support(group)
        except UnsupportedQueryError:
            return cls(strata, exact.middles - exact.half, exact.middles, exact.middles + exact.half)
        return exact

    @property
    def half(self) -> float:
        """Half of the widest value."""
        return float((self.highs - self.lows).max()) / 2.0


def sum_of(inference: Inference, attribute: object, by: By, where: Where) -> pa.Table:
    """Return sums of an attribute; see `matrixdp.Release.sum`."""
    numbers = _Numbers.of(inference, "sum", attribute, by, where)
    strata = numbers.strata
    ends = [strata.group(rows[None, :]) for rows in (numbers.lows, numbers.middles, numbers.highs)]
    with inference.computing(ends):
        used = [inference.spread(group) for group in ends]
        below, middle, above = (inference.estimates(group) for group in used)
        deviations = [np.sqrt(inference.variances(group)) for group in used]
        widths = [inference.multipliers(group) * own for group, own in zip(used, deviations, strict=True)]
    figures = {
        "estimate": pa.array(middle),
        "stddev": pa.array(deviations[1]),
        "lower": pa.array(below - widths[0]),
        "upper": pa.array(above + widths[2]),
        "binning": pa.array(np.maximum(above - below, 0.0) / 2.0),
    }
    intervals = f"pointwise{_BINNING}the estimate would be off, as estimated"
    return statistic_table(strata.labels(), figures, strata.said(inference, intervals))


def mean(inference: Inference, attribute: object, by: By, where: Where) -> pa.Table:
    """Return means of an attribute; see `matrixdp.Release.mean`."""
    numbers = _Numbers.of(inference, "mean", attribute, by, where)
    strata, count = numbers.strata, len(numbers.lows)
    # from a number in the middle, so that numerators are small and nothing cancels
    center = float(numbers.middles[0] + numbers.middles[-1]) / 2.0
    rows = np.vstack([numbers.lows, numbers.middles, numbers.highs]) - center
    rows = np.vstack([rows, np.ones(count)])
    group = strata.group(rows)
    with inference.computing([group]):
        used = inference.spread(group)
        estimates = strata.arrange(inference.estimates(used), group).T
        variances = strata.arrange(inference.variances(used), group).T
        covariances = strata.with_records(inference, rows[:3]).T
    below, middle, above = (
        ratios(own, estimates[3], (variance, variances[3]), covariance, inference.multiplier)
        for own, variance, covariance in zip(estimates[:3], variances[:3], covariances, strict=True)
    )
    # a number of records below 0 is as good as none
    some = estimates[3] > 0
    lower, upper = (np.where(some, own + center, np.nan) for own in (below.lower, above.upper))
    values = middle.estimates + center
    figures = Ratios(values, middle.deviations, lower, upper, middle.warnings).columns()
    warning = figures.pop("warning")
    figures |= {"binning": pa.array(np.full(strata.count, numbers.half)), "warning": warning}
    intervals = f"Fieller's, pointwise{_BINNING}the estimate may be off"
    return statistic_table(strata.labels(), figures, strata.said(inference, intervals))
