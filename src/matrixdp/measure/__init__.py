"""The measurement of a plan on a table: calibration, the gate, the one door, and what is promised of it.

What measures is loaded when it is first used, so that what is promised is told without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrixdp.faces import loaded_when_used
from matrixdp.measure.statement import PrivacyStatement, statement

if TYPE_CHECKING:
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


if not TYPE_CHECKING:  # so that a misspelt name is an error to a checker, too
    __getattr__ = loaded_when_used(
        __name__,
        {
            "calibration": ("SCALE_BITS", "NoiseScale", "calibrate", "plan_cost"),
            "gate": ("Authorization", "authorize", "debit"),
            "measurement": (
                "DEFAULT_MAX_RECORDS",
                "Measurement",
                "maximal_marginals",
                "measure",
                "noisy",
                "random_source",
            ),
            "out_of_domain": ("OutOfDomainCounts", "measured_cost"),
        },
    )
