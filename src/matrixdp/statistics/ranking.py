"""The values of an attribute with the most records, and the confidence that the set of them is right."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.errors import EntryError
from matrixdp.forms import describe_value
from matrixdp.noise import Noise
from matrixdp.queries import Sets
from matrixdp.statistics.comparisons import figures
from matrixdp.statistics.inference import Inference
from matrixdp.statistics.strata import By, Strata, Where, label_columns
from matrixdp.statistics.tables import statistic_table

__all__ = ["set_confidence", "top"]

Array = NDArray[np.float64]


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
