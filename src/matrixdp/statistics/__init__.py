"""Statistics that are derived from a release, with right errors: quantiles, means, shares, differences."""

from matrixdp.statistics.asked import STATISTIC, AskedStatistic, AskedStatistics, statistics_table
from matrixdp.statistics.combinations import Terms
from matrixdp.statistics.derived import DerivedStatistics
from matrixdp.statistics.inference import Inference, check_confidence
from matrixdp.statistics.strata import By, Where
from matrixdp.statistics.tables import METADATA, said_of

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
