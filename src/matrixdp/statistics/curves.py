"""CDFs: cumulative counts and shares, each with a band that holds for a whole curve."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.queries import Predicates, Ranges, Sets
from matrixdp.statistics.fieller import ratios
from matrixdp.statistics.inference import Inference
from matrixdp.statistics.scale import ordered
from matrixdp.statistics.strata import By, Strata, Where, label_columns
from matrixdp.statistics.tables import statistic_table

__all__ = ["cdf"]

Array = NDArray[np.float64]

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
