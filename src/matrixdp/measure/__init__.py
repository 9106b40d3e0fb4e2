"""The measurement of a plan on a table: calibration, the one door, and what comes out of it."""

from matrixdp.measure.calibration import NoiseScale, calibrate, plan_cost
from matrixdp.measure.measurement import DEFAULT_MAX_RECORDS, Measurement, maximal_marginals, measure

__all__ = [
    "DEFAULT_MAX_RECORDS",
    "Measurement",
    "NoiseScale",
    "calibrate",
    "maximal_marginals",
    "measure",
    "plan_cost",
]
