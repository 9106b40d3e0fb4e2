"""Files of measurements: any bytes, and valid ones with a header, an array or a member changed."""

from fractions import Fraction
from pathlib import Path

import numpy as np

from matrixdp.measure.measurement import Measurement
from matrixdp.releases import Release
from matrixdp.storage.formats import load_measurement
from tests.fuzz.archives import altered, members_of
from tests.fuzz.documents import releases
from tests.fuzz.forms import as_they_are, raw_or_changed
from tests.fuzz.oracle import Case, Finding


def seeds() -> list[bytes]:
    """Return measurements of every noise, and recipes that leave each as it is."""
    files = [release["measurement.mdp"] for release in releases()]
    return as_they_are(len(files), files[-1:])


def opened(folder: Path) -> Case:
    """Return what loads one: it costs what it says, within its budget, and its answers are finite."""
    originals = [members_of(release["measurement.mdp"]) for release in releases()]
    path = folder / "measurement.mdp"

    def case(data: bytes) -> None:
        path.write_bytes(raw_or_changed(data, originals, altered))
        measurement, workload = load_measurement(path)
        check_cost(measurement)
        release = Release(measurement, workload)
        if not release.statement.text:
            raise Finding("a statement that says nothing")
        for group in workload.groups[:2]:
            if group.queries <= 100:
                answers = measurement.estimates.answers(group)
                variances = measurement.analysis.variances(group)
                if not (np.isfinite(answers).all() and np.isfinite(variances).all()):
                    raise Finding("answers that are not finite")

    return case


def check_cost(measurement: Measurement) -> None:
    """Recompute the cost from the entries of the matrices alone, and compare it with what is stated."""
    authorization, plan = measurement.authorization, measurement.plan
    power = plan.noise.norm
    least = Fraction(0)
    for part, scale in zip(plan.parts, measurement.scales, strict=True):
        if part.multipliers is None:
            largest = 1
            for block in part.blocks:
                entries = block.matrix.magnitudes().astype(object) ** power
                largest *= int(entries.sum(axis=0).max())
        else:
            matrix = np.ones((1, 1), dtype=object)
            for block in part.blocks:
                matrix = np.kron(matrix, block.matrix.magnitudes().astype(object))
            weighted = (matrix * part.multipliers.ravel().astype(object)[:, None]) ** power
            largest = int(weighted.sum(axis=0).max())
        least += Fraction(largest) / (scale.steps * Fraction(2) ** scale.power) ** power
    stated = authorization.cost.value
    if not least <= stated <= least * (1 + Fraction(1, 2**100)):
        raise Finding(f"it costs {float(least)}, and says {float(stated)}")
    if not stated <= plan.noise.cost(authorization.budget).value:
        raise Finding("it costs more than its budget")
