"""Plans of every kind on one table."""

from dataclasses import replace
from typing import Any

import numpy as np

import matrixdp as mdp
from matrixdp.exact import IdentityMatrix, IntegerMatrix
from matrixdp.noise import LAPLACE, Noise
from matrixdp.plans import Block, Direct, Local, Part, Pooled
from matrixdp.privacy import Budget

DOMAIN = mdp.Domain({"a": 4, "b": 3})
TABLE = {"a": np.arange(500) % 4, "b": (np.arange(500) * 7 // 3) % 3}
TALL = IntegerMatrix(np.vstack([40 * np.eye(4, dtype=np.int64), [[10, 20, 30, 40]]]))
BUDGETS = [Budget(rho=0.1), Budget(mu=0.3, neighbours="replace"), Budget(epsilon=1, delta=1e-6)]
WORKLOAD = mdp.Workload(DOMAIN, mdp.product(a="prefix", b="identity"), mdp.marginals([0, 1]))


def parts(kind: str) -> tuple[Part, ...]:
    """The parts of a plan of each kind, which cost 1 with Laplace noise."""
    first, second = Block(("a",), IdentityMatrix(4)), Block(("b",), IdentityMatrix(3))
    one = Part(("a",), (first,), 8.0)
    if kind == "pooled":
        return Part(("a", "b"), (first, second), 8.0), one
    whole = Part(("a", "b"), (Block(("a",), TALL), second), 2.0 * (80 if kind == "direct" else 160) ** 2)
    return (whole,) if kind == "direct" else (whole, one)


def plan(kind: str, noise: Noise = LAPLACE) -> Any:
    """A plan of each kind, of cost 1."""
    make: Any = {"direct": Direct, "pooled": Pooled, "local": Local}[kind]
    cost = make(DOMAIN, parts(kind), noise).cost
    return make(DOMAIN, tuple(replace(part, variance=part.variance * cost) for part in parts(kind)), noise)
