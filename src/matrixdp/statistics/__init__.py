"""Statistics that are derived from a release, with right errors: quantiles, means, shares, differences."""

from matrixdp.statistics.comparisons import Terms
from matrixdp.statistics.methods import (
    STATISTIC,
    AskedStatistic,
    AskedStatistics,
    DerivedStatistics,
    statistics_table,
)
from matrixdp.statistics.strata import METADATA, By, Inference, Where, check_confidence, said_of

__all__ = [
    "METADATA",
    "STATISTIC",
    "AskedStatistic",
    "AskedStatistics",
    "By",
    "DerivedStatistics",
    "Inference",
    "Terms",
    "Where",
    "check_confidence",
    "said_of",
    "statistics_table",
]
