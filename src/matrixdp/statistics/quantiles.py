"""Quantiles, with intervals that hold whatever the table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.errors import EntryError
from matrixdp.forms import LISTS, describe_value
from matrixdp.noise import Noise
from matrixdp.queries import Predicates, Ranges, Sets
from matrixdp.statistics.comparisons import figures
from matrixdp.statistics.means import ordered, ratios
from matrixdp.statistics.strata import By, Inference, Strata, Where, label_columns, statistic_table

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


# CDFs: cumulative counts and shares, each with a band that holds for a whole curve.

#: Strata and values of each up to which the correlations of a curve are computed.
_MOST_STRATA, _MOST_VALUES = 32, 500


def cdf(inference: Inference, attribute: object, by: By, where: Where) -> pa.Table:
    """Return a CDF in every stratum; see `matrixdp.Release.cdf`."""
    strata, _ = ordered(inference.domain, "cdf", attribute, by, where)
    codes = [int(code) for code in strata.codes]
    straight = codes == list(range(codes[0], codes[-1] + 1))
    nested = tuple(tuple(codes[: place + 1]) for place in range(0 if straight else len(codes)))
    prefixes = Ranges(tuple((codes[0], code) for code in codes)) if straight else Sets(nested)
    group = strata.product(prefixes)
    with inference.computing([group]):
        used = inference.spread(group)
        counts = strata.arrange(inference.estimates(used), group)
        variances = strata.arrange(inference.variances(used), group)
        with_all = strata.with_records(inference, np.tri(len(codes)))
        known: dict[bytes, float] = {}
        curves = [
            _curve(
                inference, strata, prefixes, place, (counts[place], variances[place], with_all[place]), known
            )
            for place in range(strata.count)
        ]
    figures = {name: pa.concat_arrays([curve[name] for curve in curves]) for name in curves[0]}
    intervals = "bands: each holds the whole curve of its stratum with this confidence, taken alone"
    return statistic_table(_labels(strata, prefixes), figures, strata.said(inference, intervals))


def _labels(strata: Strata, prefixes: Predicates) -> dict[str, pa.ChunkedArray]:
    """Return the columns of the strata and of the attribute, last and fastest."""
    own = label_columns(strata.domain, strata.alone(prefixes))
    count = len(strata.codes)
    places = np.tile(np.arange(count), strata.count)
    return strata.labels(count) | {name: column.take(places) for name, column in own.items()}


def _curve(
    inference: Inference,
    strata: Strata,
    prefixes: Predicates,
    place: int,
    figures: tuple[Array, Array, Array],
    known: dict[bytes, float],
) -> dict[str, pa.Array]:
    """Return the columns of one curve, from counts, variances and covariances with the number of records."""
    counts, variances, with_all = figures
    with_all = np.append(with_all[:-1], variances[-1])  # the last share is 1, without rounding
    joint = inference.joint_multiplier(len(counts))
    multiplier = joint
    if inference.noise.stable and strata.count <= _MOST_STRATA and len(counts) <= _MOST_VALUES:
        group = inference.spread(strata.product(prefixes, place))
        multiplier = inference.correlated_multiplier(inference.analysis.covariances(group, group), known)
    width = multiplier * np.sqrt(variances)
    made = ratios(
        counts,
        np.full(len(counts), counts[-1]),
        (variances, np.full(len(counts), variances[-1])),
        with_all,
        joint,
    ).columns()
    return {
        "estimate": pa.array(counts),
        "stddev": pa.array(np.sqrt(variances)),
        "lower": pa.array(counts - width),
        "upper": pa.array(counts + width),
        "share": made["estimate"],
        **{f"share_{name}": made[name] for name in ("stddev", "lower", "upper")},
        "warning": made["warning"],
    }


# The values of an attribute with the most records, and the confidence that the set of them is right.


def top(inference: Inference, attribute: object, k: object, by: By, where: Where) -> pa.Table:
    """Return the most frequent values; see `matrixdp.Release.top`."""
    strata = Strata.of(inference.domain, "top", attribute, by, where)
    count = len(strata.codes)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= count:
        raise EntryError.at(
            ("top", "k"), describe_value(k), f"an integer from 1 to {count}, the values asked about"
        )
    most = int(k)
    values = Sets(tuple((int(code),) for code in strata.codes))
    group = strata.product(values)
    with inference.computing([group]):
        used = inference.spread(group)
        estimates = strata.arrange(inference.estimates(used), group)
        deviations = strata.arrange(np.sqrt(inference.variances(used)), group)
        order = np.argsort(-estimates, axis=1, kind="stable")
        confidences = []
        for place in range(strata.count):
            own = inference.spread(strata.product(values, place))
            covariance = inference.analysis.covariances(own, own)
            confidences.append(
                set_confidence(inference.noise, estimates[place], covariance, order[place, :most])
            )
    chosen = order[:, :most]
    column = label_columns(strata.domain, strata.alone(values))
    labels = strata.labels(most) | {name: own.take(chosen.ravel()) for name, own in column.items()}
    columns = {
        "rank": pa.array(np.tile(np.arange(1, most + 1), strata.count)),
        **figures(
            np.take_along_axis(estimates, chosen, 1).ravel(),
            np.take_along_axis(deviations, chosen, 1).ravel(),
            inference.joint_multiplier(count),
        ),
        "confidence": pa.array(np.repeat(confidences, most)),
    }
    intervals = (
        "simultaneous over the values of each stratum, so that they hold for those that were chosen; "
        "`confidence` is that with which the set, in any order, is that of the most frequent values"
    )
    return statistic_table(labels, columns, strata.said(inference, intervals))


def set_confidence(noise: Noise, estimates: Array, covariance: Array, chosen: NDArray[np.int64]) -> float:
    """Return the confidence with which the chosen values are the most frequent ones.

    Notes
    -----
    If they are not, some value j of the right set, which has k of n values, was not chosen, and some i
    outside of it was: x_j >= x_i, and yet i was found ahead by z standard errors of the difference or more,
    z being the least such lead of a chosen value over another. Noise alone does that for one given pair with
    a probability of at most half of P(|X| > z), and there are k (n - k) pairs between the right set and the
    rest. One less their sum is a lower bound: 0 says nothing.
    """
    n, k = len(estimates), len(chosen)
    others = np.setdiff1d(np.arange(n), chosen)
    if not len(others):
        return 1.0
    variances = np.diagonal(covariance)
    spread = (
        variances[chosen][:, None] + variances[others][None, :] - 2.0 * covariance[np.ix_(chosen, others)]
    )
    leads = estimates[chosen][:, None] - estimates[others][None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        least = float(np.nan_to_num(leads / np.sqrt(np.maximum(spread, 0.0)), nan=0.0).min())
    return max(0.0, 1.0 - k * (n - k) * noise.largest_tail(least) / 2.0)
