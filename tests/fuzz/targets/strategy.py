"""Files of strategies: any bytes, and valid ones with a header, an array or a member changed."""

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import matrixdp as mdp
from tests.fuzz.archives import altered, members_of
from tests.fuzz.documents import strategies
from tests.fuzz.oracle import Case, Finding
from tests.fuzz.recipe import Recipe


def seeds(folder: Path) -> Iterable[bytes]:
    """Return strategies of every kind of plan, and recipes that leave each as it is."""
    files = strategies()
    return [b"\0" + files[-1], *(bytes([1, place]) for place in range(len(files)))]


def opened(folder: Path) -> Case:
    """Return what loads one: it costs what a plan may cost, and its errors are finite."""
    originals = [members_of(file) for file in strategies()]
    path = folder / "strategy.mdp"

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        raw = recipe.below(256) == 0
        path.write_bytes(recipe.rest() if raw else altered(recipe.choice(originals), recipe))
        strategy = mdp.Strategy.load(path)
        plan = strategy.selection.plan
        if not 0 < plan.cost <= 1 + 1e-6:
            raise Finding(f"a plan that costs {plan.cost}")
        if not math.isfinite(
            strategy.rmse(mdp.Budget(rho=0.5) if plan.noise.norm == 2 else mdp.Budget(epsilon=1))
        ):
            raise Finding("an expected error that is not finite")
        for group in strategy.workload.groups[:2]:
            if group.queries <= 100:
                variances = plan.analysis.variances(group)
                if not (np.isfinite(variances).all() and (variances >= 0).all()):
                    raise Finding("a variance that is not finite, or below 0")

    return case
