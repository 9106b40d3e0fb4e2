"""The measurement of a plan on a table: calibration, the gate, the one door, and what is promised of it."""

from matrixdp.measure.calibration import SCALE_BITS, NoiseScale, calibrate, plan_cost
from matrixdp.measure.gate import Authorization, authorize, debit
from matrixdp.measure.measurement import (
    DEFAULT_MAX_RECORDS,
    Measurement,
    maximal_marginals,
    measure,
    noisy,
    random_source,
)
from matrixdp.measure.out_of_domain import OutOfDomainCounts, measured_cost
from matrixdp.measure.statement import PrivacyStatement, statement

__all__ = [
    "DEFAULT_MAX_RECORDS",
    "SCALE_BITS",
    "Authorization",
    "Measurement",
    "NoiseScale",
    "OutOfDomainCounts",
    "PrivacyStatement",
    "authorize",
    "calibrate",
    "debit",
    "maximal_marginals",
    "measure",
    "measured_cost",
    "noisy",
    "plan_cost",
    "random_source",
    "statement",
]
