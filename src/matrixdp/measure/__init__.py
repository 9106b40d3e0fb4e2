"""The measurement of a plan on a table: calibration, the gate, the one door, and what is promised of it."""

from matrixdp.measure.calibration import NoiseScale, calibrate, plan_cost
from matrixdp.measure.gate import Authorization, authorize
from matrixdp.measure.measurement import DEFAULT_MAX_RECORDS, Measurement, maximal_marginals, measure
from matrixdp.measure.statement import PrivacyStatement, statement

__all__ = [
    "DEFAULT_MAX_RECORDS",
    "Authorization",
    "Measurement",
    "NoiseScale",
    "PrivacyStatement",
    "authorize",
    "calibrate",
    "maximal_marginals",
    "measure",
    "plan_cost",
    "statement",
]
