"""Quantiles, with intervals that hold whatever the table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.errors import EntryError
from matrixdp.forms import LISTS, describe_value
from matrixdp.statistics.inference import Inference
from matrixdp.statistics.scale import ordered
from matrixdp.statistics.strata import By, Where
from matrixdp.statistics.tables import statistic_table

__all__ = ["invert", "quantile"]

Array = NDArray[np.float64]

_NO_RECORDS = "the number of records cannot be told from 0: there is no estimate"
_NOTHING = "noise hides it: the interval is all values"
_OPEN = "in a bin without an end: the end that it has is given"


def quantile(inference: Inference, attribute: object, q: object, by: By, where: Where) -> pa.Table:
    """Return quantiles; see `matrixdp.Release.quantile`."""
    orders = _orders(q)
    strata, scale = ordered(inference.domain, "quantile", attribute, by, where)
    lows, highs = scale.lows[strata.codes], scale.highs[strata.codes]
    found = []
    for order in orders:
        group = strata.group(np.tri(len(strata.codes)) - order)
        with inference.computing([group]):
            used = inference.spread(group)
            estimates = strata.arrange(inference.estimates(used), group)
            deviations = strata.arrange(np.sqrt(inference.variances(used)), group)
        pairs = zip(estimates, deviations, strict=True)
        found.append([invert(*own, order, inference.multiplier) for own in pairs])
    rows = [own[stratum] for stratum in range(strata.count) for own in found]
    values, lower, upper, warnings = zip(*(_value(lows, highs, *row) for row in rows), strict=True)
    estimated = np.floor(values) if scale.dates else np.array(values)
    figures = {
        "quantile": pa.array(orders * strata.count, pa.float64()),
        "estimate": scale.column(estimated),
        "stddev": pa.nulls(len(rows), pa.float64()),
        "lower": scale.column(np.array(lower)),
        "upper": scale.column(np.array(upper)),
        "warning": pa.array(warnings, pa.utf8()),
    }
    intervals = (
        "pointwise: each holds the true quantile with this confidence, taken alone, whatever the table; "
        "of bins and dates the ends are those of the values"
    )
    return statistic_table(strata.labels(len(orders)), figures, strata.said(inference, intervals))


def _orders(q: object) -> list[float]:
    """Return the orders of quantiles, each above 0 and below 1."""
    listed = q if isinstance(q, LISTS) else [q]
    found = []
    for place, order in enumerate(listed):
        if isinstance(order, bool) or not isinstance(order, int | float | np.floating) or not 0 < order < 1:
            path = ("quantile", "q", place) if isinstance(q, LISTS) else ("quantile", "q")
            raise EntryError.at(path, describe_value(order), "a number above 0 and below 1")
        found.append(float(order))
    if not found:
        raise EntryError.at(("quantile", "q"), "an empty list", "at least one number above 0 and below 1")
    return found


def invert(
    estimates: Array, deviations: Array, order: float, multiplier: float
) -> tuple[int | None, float, int, int]:
    """Return a quantile's place, how far into its value it lies, and the first and last place it may have.

    Parameters
    ----------
    estimates, deviations : ndarray, shape (values,)
        Of D_v, the number of records up to v less ``order`` times that of all, with its standard error.
    order : float
        Of the quantile, above 0 and below 1.
    multiplier : float
        Of standard errors, for intervals of D.

    Notes
    -----
    The quantile is the first v with D_v >= 0. So at the true one D_v >= 0 and D_(v-1) <= 0: it is left out
    only if D_v is found below -multiplier standard errors, or D_(v-1) above them, each with at most half of
    the probability that an interval of D may miss. No other v matters: no correction is due for how many
    there are. The place is where the isotonic regression of D, weighted by inverse variances, changes sign.

    Examples
    --------
    >>> invert(np.array([-30.0, 10.0, 40.0]), np.ones(3), 0.5, 1.96)
    (1, 0.75, 1, 1)
    """
    from scipy.optimize import isotonic_regression

    ends = multiplier * deviations
    possible = estimates >= -ends
    possible[1:] &= estimates[:-1] <= ends[:-1]
    places = np.flatnonzero(possible)
    # none where the number of all records is found far below 0
    first, last = (int(places[0]), int(places[-1])) if len(places) else (0, len(estimates) - 1)
    least = max(float(deviations.max()), 1e-300) * 1e-6
    fitted = isotonic_regression(estimates, weights=1.0 / np.maximum(deviations, least) ** 2).x
    reached = np.flatnonzero(fitted >= 0)
    if not len(reached) or fitted[-1] <= 0:
        return None, 0.0, first, last
    place = int(reached[0])
    before = float(fitted[place - 1]) if place else -order / (1.0 - order) * float(fitted[-1])
    share = -before / (float(fitted[place]) - before)
    return place, share, first, last


def _value(
    lows: Array, highs: Array, place: int | None, share: float, first: int, last: int
) -> tuple[float, float, float, str | None]:
    """Return a quantile with the ends of its interval, and what there is to warn of."""
    lower, upper = float(lows[first]), float(highs[last])
    if place is None:
        return np.nan, lower, upper, _NO_RECORDS
    low, high = float(lows[place]), float(highs[place])
    value = low + share * (high - low) if np.isfinite(high - low) else (high if np.isinf(low) else low)
    warning = _NOTHING if first == 0 and last == len(lows) - 1 > 0 else None
    if not np.isfinite(high - low):
        warning = _OPEN
    return (value if np.isfinite(value) else np.nan), lower, upper, warning
