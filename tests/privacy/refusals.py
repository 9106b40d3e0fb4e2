"""What budgets, units and clauses reject."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from matrixdp.noise import GAUSSIAN
from matrixdp.privacy import Budget, Clause, LeastBudget, Unit, delta_of, epsilon_of, mu_of_rho, rho_of_mu
from matrixdp.privacy.conversions import exact_positive, root_below
from tests.refusals import Refusal, calling

NO_NUMBERS = [0, -1, -0.5, math.nan, math.inf, -math.inf, True, "0.5", Decimal("NaN"), 1j, [1]]
#: Numbers that Python does not write.
LONG = {"an integer": -(10**5000), "a fraction": Fraction(-1, 10**5000)}
SEVERAL: list[dict[str, object]] = [
    {},
    dict.fromkeys(("rho", "mu", "epsilon", "delta")),
    {"rho": 1, "mu": 1},
    {"rho": 1, "epsilon": 1},
    {"mu": 1, "epsilon": 1, "delta": 0.1},
]


def least(needed: float, reached: float = 0.0) -> Callable[[], object]:
    return lambda: LeastBudget("rho").least(lambda tried: reached or float(tried.rho or 0), needed)


OTHERS = [0.0, -0.0, -1e-300, False, None, b"1", Decimal("sNaN"), Decimal("Infinity"), np.bool_(True)]
#: Every parameter of a conversion, by its name: 1 stands for the others.
CONVERSIONS: dict[str, list[Callable[[object], Callable[[], object]]]] = {
    "mu": [
        lambda bad: calling(rho_of_mu, bad),
        lambda bad: calling(delta_of, bad, 1),
        lambda bad: calling(epsilon_of, bad, 0.5),
    ],
    "rho": [lambda bad: calling(mu_of_rho, bad)],
    "epsilon": [lambda bad: calling(delta_of, 1, bad or -1)],
    "delta": [lambda bad: calling(epsilon_of, 1, bad)],
}
REJECTED: dict[tuple[str, str], dict[str, Callable[[], object]]] = {
    **{
        ("out-of-range", f"budget.{name}"): {
            f"a {name} of {bad!r}": calling(Budget, **{name: bad}) for bad in NO_NUMBERS
        }
        for name in ("rho", "mu", "epsilon")
    },
    ("out-of-range", "budget.delta"): {
        f"a delta of {bad!r}": calling(Budget, epsilon=1, delta=bad)
        for bad in (*NO_NUMBERS, 1, 2, 1.0, Fraction(1), -0.1)
    },
    ("conflict", "budget"): {f"a budget of {given}": calling(Budget, **given) for given in SEVERAL},
    ("conflict", "budget.delta"): {
        "a delta alone": calling(Budget, delta=0.1),
        "a delta beside rho": calling(Budget, rho=1, delta=0.1),
        "a delta beside mu": calling(Budget, mu=1, delta=0.1),
        "a delta beside the least mu": lambda: LeastBudget("mu", delta=1e-6),
    },
    ("unknown-name", "budget.neighbours"): {
        f"neighbours {bad!r}": calling(Budget, rho=1, neighbours=bad)
        for bad in ("both", "", None, 1, ["replace"], "Replace", "replce")
    },
    ("unknown-name", "budget.least"): {"the least sigma": lambda: LeastBudget("sigma")},
    ("out-of-range", ""): {
        **{f"an error scale of {needed}": least(needed) for needed in (0, -1.0, math.inf, math.nan)},
        "an error scale that no budget reaches": least(1.0, reached=0.5),
        "the root of a negative number": calling(root_below, Fraction(-1)),
    },
    ("out-of-range", "budget.unit.records"): {
        f"{bad!r} records a person": calling(Unit, bad) for bad in (0, -1, 1.0, True, "3", np.int64(3), 2**53)
    },
    ("out-of-range", "budget.unit.max_values"): {
        f"{bad!r} values": calling(Unit, per="month", max_values=bad) for bad in (0, True, "3", 2**53)
    },
    ("out-of-range", "budget.unit.max_records_each"): {
        "no record in each value": calling(Unit, 3, per="month", max_records_each=0)
    },
    ("missing-key", "budget.unit.max_values"): {
        "values of nothing": calling(Unit, 3, max_values=2),
        "records in any number of values": calling(Unit, per="month"),
    },
    ("missing-key", "budget.unit.max_records_each"): {
        "records each of nothing": calling(Unit, 3, max_records_each=2),
        "more records than values": calling(Unit, 12, per="month", max_values=3),
    },
    ("missing-key", "budget.unit.constant"): {
        "constant without id": calling(Unit, 3, per="month", constant="sex"),
        "constant without per": calling(Unit, 3, "person", constant="sex"),
    },
    ("conflict", "budget.unit.constant"): {
        "an attribute that is constant and not": calling(Unit, 3, "person", ["a", "b"], constant="b")
    },
    ("wrong-type", "budget.unit.per"): {
        f"per {bad!r}": calling(Unit, 3, per=bad) for bad in (3, [3], [""], {"month": 1}, "\ud800")
    },
    ("duplicate", "budget.unit.per"): {"per an attribute twice": calling(Unit, 3, per=["a", "a"])},
    **{
        ("out-of-range", name): {
            f"{name} as {bad!r} in conversion {place}": convert(bad)
            for place, convert in enumerate(conversions)
            for bad in (0, -1, math.nan, math.inf, None, True, "1", *([1, 2, 1.5] if name == "delta" else []))
        }
        for name, conversions in CONVERSIONS.items()
    },
    ("out-of-range", "the name"): {
        **{f"a number {bad!r}": calling(exact_positive, "the name", bad) for bad in (*NO_NUMBERS, *OTHERS)},
        **{
            f"{kind} below 0 of many digits": calling(exact_positive, "the name", LONG[kind]) for kind in LONG
        },
    },
    ("not-supported", "budget.delta"): {
        "the mu of a pure budget": lambda: Budget(epsilon=1).mu,
        "the Gaussian cost of a pure budget": lambda: GAUSSIAN.cost(Budget(epsilon=1)),
    },
    ("not-converged", ""): {"an epsilon beyond all bounds": calling(epsilon_of, 10**30, Fraction(1, 10**6))},
    ("wrong-type", "budget.unit.id"): {
        f"an id {bad!r}": calling(Unit, 1, bad) for bad in ("", 3, ["person"], b"person", "person \udcff")
    },
    ("wrong-type", "budget.unit"): {
        f"a unit {bad!r}": calling(Unit.of, bad)
        for bad in (3, "person", {}, {"id": "person"}, {"records": 1, "max": 2}, [3])
    },
    ("wrong-type", ""): {
        f"a clause called {bad!r}": calling(Clause, bad, "A sentence.")
        for bad in ("", "Randomness", "two words", "a--b", "-a", "a-", "a\n", 3, None)
    },
}
REFUSALS = [Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()]
