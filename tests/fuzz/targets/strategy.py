"""Files of strategies: any bytes, and valid ones with a header, an array or a member changed."""

import math
from pathlib import Path

import numpy as np

import matrixdp as mdp
from tests.fuzz.archives import altered, members_of
from tests.fuzz.documents import strategies
from tests.fuzz.forms import as_they_are, raw_or_changed
from tests.fuzz.oracle import Case, Finding


def seeds() -> list[bytes]:
    """Return strategies of every kind of plan, and recipes that leave each as it is."""
    files = strategies()
    return as_they_are(len(files), files[-1:])


def opened(folder: Path) -> Case:
    """Return what loads one: it costs what a plan may cost, and its errors are finite."""
    originals = [members_of(file) for file in strategies()]
    path = folder / "strategy.mdp"

    def case(data: bytes) -> None:
        path.write_bytes(raw_or_changed(data, originals, altered))
        strategy = mdp.Strategy.load(path)
        plan = strategy.selection.plan
        if not 0 < plan.cost <= 1 + 1e-6:
            raise Finding(f"a plan that costs {plan.cost}")
        budget = mdp.Budget(rho=0.5) if plan.noise.norm == 2 else mdp.Budget(epsilon=1)
        if not math.isfinite(strategy.rmse(budget)):
            raise Finding("an expected error that is not finite")
        for group in strategy.workload.groups[:2]:
            if group.queries <= 100:
                variances = plan.analysis.variances(group)
                if not (np.isfinite(variances).all() and (variances >= 0).all()):
                    raise Finding("a variance that is not finite, or below 0")

    return case
