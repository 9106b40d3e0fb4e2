"""Costs, budgets, scales and plans that are never measured."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.measure import calibration, measurement
from matrixdp.measure.calibration import NoiseScale, count_scale
from matrixdp.measure.measurement import authorize, measure
from matrixdp.measure.statement import statement
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.papers.dawa import dawa
from matrixdp.plans import Direct, Part
from matrixdp.privacy import Budget
from matrixdp.sources import Source
from tests.measure.plans import BUDGETS, DOMAIN, parts
from tests.refusals import Refusal, calling

Attempt = Callable[[], object]
ONE, MU = Cost(Fraction(1), GAUSSIAN), Budget(mu=1)
COUNTED = mdp.OutOfDomain(counts=[None])
LINE = mdp.Workload(mdp.Domain({"a": 8}), mdp.product(a="prefix"))
SPREAD = Budget(mu=1, unit=mdp.Unit(id="person", per="a", max_values=2))
SCALE = NoiseScale(Fraction(5000), 0, GAUSSIAN)


def spread_with_counts() -> object:
    plan = mdp.select(LINE, budget=SPREAD).selection.plan
    return calibration.plan_cost(plan, (SCALE,) * len(plan.parts), outside=ONE)


class Untouchable(Source):
    def count(self, request: object) -> Any:
        raise AssertionError("the data was touched")


class Forgetful(Source):
    """Returns marginals without what is out of domain, or nothing."""

    counts_out_of_domain = True

    def __init__(self, *marginals: Any) -> None:
        self.found = marginals

    def count(self, request: object) -> Any:
        return iter(self.found)


def plan(noise: Any = GAUSSIAN, variance: float = 8.0) -> Direct:
    one: Part = replace(parts("local")[1], variance=variance)
    return Direct(DOMAIN, (one,), noise)


def costing(value: Any, budget: Budget = MU) -> Attempt:
    return lambda: authorize(Cost(value, GAUSSIAN), budget)


def built(cost: Any) -> Attempt:
    return lambda: measurement.Authorization(cost, MU, "2024-01-01T00:00:00+00:00")


def told(cost: Any, budget: Budget = MU, private: Any = True) -> Attempt:
    return lambda: statement(Cost(cost, GAUSSIAN), budget, private=private)


def calibrated(allowed: Fraction, noise: Any = GAUSSIAN, variance: float = 8.0, records: int = 9) -> Attempt:
    return lambda: calibration.calibrate(plan(noise, variance), Cost(allowed, noise), records)


def with_scale(**changes: Any) -> Attempt:
    return lambda: calibration.plan_cost(plan(), (replace(SCALE, **changes),))


def unfit(attempt: Attempt, *names: str) -> Attempt:
    """Calibrate where no noise ever fits."""

    def attempted() -> object:
        with pytest.MonkeyPatch.context() as patch:
            for name in names:
                patch.setattr(calibration, name, lambda *_: Cost(Fraction(2), GAUSSIAN))
            return attempt()

    return attempted


def forgotten(*marginals: Any, **rule: Any) -> Attempt:
    return lambda: measure(plan(), Forgetful(*marginals), MU, **rule)


def measured(budget: Budget = MU, **given: Any) -> Attempt:
    return lambda: measure(plan(), Untouchable(), budget, **given)


REJECTED: dict[tuple[str, str], dict[str, Attempt]] = {
    ("out-of-range", ""): {
        **{f"a cost of {value}": costing(value) for value in (0, -1, Fraction(0), Fraction(-1, 2))},
        **{f"a cost of {value} told": told(value) for value in (0, -1)},
        "a cost beyond floating point": calibrated(Fraction(10) ** 400),
        "a cost below floating point": calibrated(Fraction(1, 10**400)),
        "a scale that is no number": calibrated(Fraction(1, 10**300), LAPLACE, 1e308),
        "counts beyond 62 bits": lambda: count_scale(1, Cost(Fraction(10**14), GAUSSIAN)),
        "answers beyond 62 bits": calibrated(Fraction(10) ** 12, records=2**50),
        "a budget beyond 62 bits": measured(Budget(mu=10**7)),
    },
    ("wrong-type", ""): {
        **{
            f"a cost of {type(value).__name__} {value}": costing(value)
            for value in (0.5, math.nan, math.inf, -math.inf, None, True, "1")
        },
        **{f"an authorization of {value!r}": built(value) for value in (None, True, 0.5, Fraction(1))},
        **{f"a budget {budget!r}": calling(authorize, ONE, budget) for budget in (None, 1, {"rho": 1})},
        "a cost without its noise": calling(authorize, Fraction(1), MU),
        "a statement of a cost that is a float": told(0.5),
    },
    ("budget-exceeded", ""): {
        **{
            f"a hair above {budget}": costing(GAUSSIAN.cost(budget).value + Fraction(1, 10**100), budget)
            for budget in BUDGETS
        },
        "a cost above what floats hold": costing(Fraction(10) ** 400),
        "a cost and a budget above what floats hold": costing(Fraction(10) ** 900, Budget(mu=10**400)),
        "an authorization above its budget": built(Cost(Fraction(2), GAUSSIAN)),
        "a statement above its budget": told(2),
    },
    ("not-supported", "budget.delta"): {
        "a pure budget for Gaussian noise": costing(Fraction(1, 10**100), Budget(epsilon=100)),
        "a statement of pure privacy by Gaussian noise": told(1, Budget(epsilon=1)),
        "a pure budget for a Gaussian plan": measured(Budget(epsilon=1)),
    },
    ("wrong-type", "private"): {f"private {one!r}": told(1, private=one) for one in (None, 1, "yes")},
    ("out-of-range", "max_records"): {
        f"at most {bound} records": measured(max_records=bound) for bound in (0, -1, 2.0**33, True, None)
    },
    ("conflict", ""): {
        "Laplace counts beside a Gaussian plan": lambda: calibration.measured_cost(
            plan(),
            (SCALE,),
            calibration.OutOfDomainCounts((None,), replace(SCALE, noise=LAPLACE), np.zeros(1)),
        ),
        "costs of two noises in one sum": lambda: ONE + Cost(Fraction(1), LAPLACE),
        "costs of two noises compared": lambda: Cost(Fraction(1), LAPLACE) >= ONE,
        "Laplace noise in a Gaussian plan": with_scale(noise=LAPLACE),
        "Gaussian noise in a Laplace plan": lambda: calibration.plan_cost(plan(LAPLACE), (SCALE,)),
    },
    ("privacy", "out_of_domain.count"): {
        "counts of a mechanism that measures none": lambda: dawa(
            LINE, {"a": [1]}, Budget(epsilon=1), out_of_domain=COUNTED
        )
    },
    ("source", ""): {
        "a marginal that is not counted": forgotten(),
        "counts out of domain that are not counted": forgotten(
            (("a",), np.zeros(4, np.int64)), out_of_domain=COUNTED
        ),
    },
    ("privacy", ""): {
        **{f"a part at {steps} steps": with_scale(steps=Fraction(steps)) for steps in (0, -1)},
        "noise that never fits its sensitivities": unfit(calibrated(Fraction(1)), "plan_cost"),
        "noise that never fits its counts": unfit(lambda: count_scale(1, ONE), "counts_cost"),
    },
    ("not-supported", "out_of_domain.count"): {
        "counts of an engine that has none": measured(out_of_domain=COUNTED)
    },
    ("conflict", "budget.unit"): {
        "a unit with per for a strategy of records": lambda: mdp.select(LINE).rmse(SPREAD),
        "a strategy for another unit with per": lambda: mdp.select(LINE, budget=SPREAD).rmse(MU),
    },
    ("not-supported", "rounds"): {
        "rounds for a unit with per": lambda: mdp.select(LINE, budget=SPREAD, rounds=2)
    },
    ("not-supported", ""): {"counts out of domain beside per": lambda: spread_with_counts()},
}
REFUSALS = [Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()]
