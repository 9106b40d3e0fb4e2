"""Sums and means of numeric attributes, with the error of binning in their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.errors import EntryError, UnsupportedQueryError
from matrixdp.statistics.fieller import Ratios, ratios
from matrixdp.statistics.inference import Inference
from matrixdp.statistics.scale import ordered
from matrixdp.statistics.strata import By, Strata, Where
from matrixdp.statistics.tables import statistic_table

__all__ = ["mean", "sum_of"]

Array = NDArray[np.float64]

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
