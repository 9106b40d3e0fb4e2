"""Sums and means of numeric attributes, with the error of binning in their intervals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.errors import EntryError
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


def _numbers(
    inference: Inference, statistic: str, attribute: object, by: By, where: Where
) -> tuple[Strata, Array, Array]:
    """Return strata with the ends of the attribute's values, which are finite numbers."""
    strata, scale = ordered(inference.domain, statistic, attribute, by, where)
    name = strata.attribute.name
    if scale.dates:
        expected = "an attribute of numbers; `quantile` takes dates"
        raise EntryError.at((statistic,), f"{name!r}, whose values are dates", expected)
    lows, highs = scale.lows[strata.codes], scale.highs[strata.codes]
    if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
        expected = "bins with two ends; leave the open one out with `where`, or ask for a `quantile`"
        raise EntryError.at((statistic,), f"{name!r}, which has a bin without an end", expected)
    return strata, lows, highs


def sum_of(inference: Inference, attribute: object, by: By, where: Where) -> pa.Table:
    """Return sums of an attribute; see `matrixdp.Release.sum`."""
    strata, lows, highs = _numbers(inference, "sum", attribute, by, where)
    ends = [strata.group(rows[None, :]) for rows in (lows, (lows + highs) / 2.0, highs)]
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
    strata, lows, highs = _numbers(inference, "mean", attribute, by, where)
    # from a number in the middle, so that numerators are small and nothing cancels
    center = float((lows[0] + highs[-1]) / 2.0)
    ones = np.ones(len(lows))
    rows = np.array([lows - center, (lows + highs) / 2.0 - center, highs - center, ones])
    group, whole = strata.group(rows), strata.group(np.array([ones] * 4))
    with inference.computing([group]):
        used, total = inference.spread(group), inference.spread(whole)
        estimates = strata.arrange(inference.estimates(used), group).T
        variances = strata.arrange(inference.variances(used), group).T
        found = inference.analysis.covariances(used, total, paired=True)
        covariances = strata.arrange(found, group).T
    below, middle, above = (
        ratios(own, estimates[3], (variance, variances[3]), covariance, inference.multiplier)
        for own, variance, covariance in zip(estimates[:3], variances[:3], covariances[:3], strict=True)
    )
    made = Ratios(
        middle.estimates + center,
        middle.deviations,
        below.lower + center,
        above.upper + center,
        middle.warnings,
    )
    figures = made.columns()
    warning = figures.pop("warning")
    half = float((highs - lows).max()) / 2.0
    figures |= {"binning": pa.array(np.full(strata.count, half)), "warning": warning}
    intervals = f"Fieller's, pointwise{_BINNING}the estimate may be off without noise"
    return statistic_table(strata.labels(), figures, strata.said(inference, intervals))
