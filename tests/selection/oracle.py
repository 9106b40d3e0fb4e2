"""Strategies held against their matrices, and limits lowered to where small tables reach them."""

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pytest

from matrixdp.noise import GAUSSIAN
from matrixdp.selection.limits import LIMITS, override
from matrixdp.selection.registry import MECHANISMS
from matrixdp.selection.selection import Selection
from matrixdp.testing import dense_error, dense_gram, dense_measurement, dense_queries

#: Their answers are the least squares of everything that they measure.
LEAST_SQUARES = ("direct", "pooled", "union", "joint")


@contextmanager
def lowered(limits: Mapping[str, object]) -> Iterator[None]:
    """Set limits wherever they are looked at, and forget what was solved without them."""
    assert [*MECHANISMS.values()]  # their modules are read when they are asked for
    of_selection = {name: value for name, value in limits.items() if hasattr(LIMITS, name)}
    others = {name: value for name, value in limits.items() if name not in of_selection}
    with pytest.MonkeyPatch.context() as patch, override(**of_selection):
        for name, value in ({"_last_found": {}} | others).items():
            found = [m for key, m in sys.modules.items() if key.startswith("matrixdp.") and name in vars(m)]
            assert found, f"no module has {name}"
            for module in found:
                if not isinstance(vars(module)[name], type(sys)):
                    patch.setattr(module, name, value)
        yield


def scaled_rows(selection: Selection, moved: bool = False) -> np.ndarray:
    """Return all that is measured, in rows of noise of variance 1; or such that their norms are costs."""
    found = []
    plan = selection.plan
    variances = plan.row_variances([part.variance for part in plan.parts])
    for place, part in enumerate(plan.parts):
        if part.width is not None and moved:  # one record moves all parts under one radius by 1
            if place == plan.under_radius[0]:
                found.append(np.full((1, plan.domain.cells()), 1.0 / math.sqrt(part.variance)))
            continue
        variance = part.variance if part.width is None else variances[place]
        rows = dense_measurement(part, plan.domain) / math.sqrt(variance)
        if part.walk is not None and moved:
            own = rows.reshape(part.walk.before, len(part.walk.widths), part.walk.after, -1)
            count, changed = own.shape[1], own.copy()
            for row, parent in enumerate(part.walk.parents or range(1, count + 1)):
                if parent < count:
                    changed[:, parent] -= own[:, row]
            rows = changed.reshape(rows.shape)
        elif part.walk is not None:
            rows = np.linalg.solve(np.linalg.cholesky(part.walk.covariance()), rows)
        found.append(rows)
    return np.vstack(found)


def error_of(selection: Selection) -> float:
    return math.fsum(selection.plan.analysis.group(group).weighted for group in selection.workload)


def check(selection: Selection) -> float:
    """Hold a strategy against its matrix; return its error."""
    workload, plan, certificate = selection.workload, selection.plan, selection.certificate
    rows, error = scaled_rows(selection), error_of(selection)
    least = dense_error(dense_gram(workload), rows)
    assert plan.cost == pytest.approx(1.0, rel=1e-9)
    assert (
        plan.noise.column_norms(scaled_rows(selection, moved=True)).max() ** 2 * plan.noise.variance_factor
        <= 1 + 1e-9
    )
    assert certificate.loss == pytest.approx(error, rel=2e-3)
    assert least * (1 - 1e-6) <= error
    if plan.kind in LEAST_SQUARES or plan.noise == GAUSSIAN:
        assert error == pytest.approx(least, rel=2e-6 if plan.kind in LEAST_SQUARES else 1e-4)
    domain = plan.domain
    counts = np.arange(float(domain.cells())) ** 2 % 17
    estimates = plan.analysis.estimates([dense_measurement(part, domain) @ counts for part in plan.parts])
    for group in workload:
        np.testing.assert_allclose(estimates.answers(group), dense_queries(group, domain) @ counts, atol=1e-6)
    return error
