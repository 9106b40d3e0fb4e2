"""The cases of the audit: a strategy, a budget, a kind of table, and how many copies of it are measured."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import matrixdp as mdp

#: A longer audit: as many times the cases and the samples (``MATRIXDP_AUDIT=20``, `make audit`).
ROUNDS = int(os.environ.get("MATRIXDP_AUDIT", "1"))
#: Where the choice of plans and budgets starts, never the noise: another longer run takes another.
SEED = int(os.environ.get("MATRIXDP_AUDIT_SEED", "0"))
Array = NDArray[np.float64]
IDENTITY = "identity"
#: The attributes that tell copies apart, and how many values they have: test_controls.py computes the power.
COPY = ("copy", "again")
COPIES = (400, 350)
#: The ratio of two probabilities is harder to know than a mean.
RATIO_COPIES = (1000, 500)


@dataclass(frozen=True, eq=False)
class Case:
    """One way through the pipeline.

    Its domain begins with attributes that every query keeps whole. Each combination of their values is a
    small table of its own, measured apart from the others with the noise of the whole: a copy.

    Attributes
    ----------
    table : str
        How the table comes: the ending of a file, or the kind of frame.
    sizes : dict
        The other attributes.
    products : tuple
        What each entry asks of them: every value, or the rows of a matrix.
    above : bool
        Whether the lattice step is above one record (else below).
    """

    name: str
    noise: str
    budget: mdp.Budget
    table: str
    sizes: dict[str, int]
    products: tuple[Mapping[str, Any], ...]
    above: bool
    copies: tuple[int, int] = COPIES

    @property
    def copy_sizes(self) -> tuple[int, int]:
        return self.copies[0] * ROUNDS, self.copies[1]

    @property
    def samples(self) -> int:
        return math.prod(self.copy_sizes)

    def workload(self) -> mdp.Workload:
        entries = []
        for own in self.products:
            sets = {name: rows if isinstance(rows, str) else {"matrix": rows} for name, rows in own.items()}
            entries.append(mdp.product({**dict.fromkeys(COPY, IDENTITY), **sets}))
        return mdp.Workload(mdp.Domain(dict(zip(COPY, self.copy_sizes, strict=True)) | self.sizes), *entries)

    def queries(self) -> Array:
        """Return the queries of one copy, entry by entry, shape (queries, cells)."""
        stacked = []
        for own in self.products:
            rows = np.ones((1, 1))
            for name, size in self.sizes.items():
                asked = own.get(name, np.ones((1, size)))
                rows = np.kron(rows, np.eye(size) if isinstance(asked, str) else asked)
            stacked.append(rows)
        return np.vstack(stacked)


TWO = mdp.Unit(records=2)
#: Both columns have norm sqrt 2, and L1 norm 2.
TREE = np.array([[1, 1], [1, 0], [0, 1]], dtype=float)
#: Columns that point to opposite sides: replacing a record moves twice as far as removing it, in any norm.
OPPOSITE = np.array([[1, -1], [2, -2]], dtype=float)
#: Real entries, which are rounded to multiples of 2^-14 or 2^-18.
REAL = np.array([[1, 1 / math.pi], [1 / math.e, 1]], dtype=float)
REAL_OPPOSITE = np.array([[1, -1], [math.pi, -math.pi]], dtype=float)

CASES = (
    Case("gaussian", "gaussian", mdp.Budget(mu=3), "parquet", {"a": 2}, ({"a": TREE},), False),
    Case(
        "gaussian, coarse", "gaussian", mdp.Budget(rho=4.5), "polars",
        {"a": 2, "b": 2}, ({"a": REAL, "b": REAL},), True,
    ),
    Case(
        "gaussian, replace", "gaussian", mdp.Budget(mu=3, neighbours="replace"), "pandas",
        {"a": 2}, ({"a": OPPOSITE},), False,
    ),
    Case(
        "gaussian, replace, coarse", "gaussian", mdp.Budget(epsilon=18, delta=1e-6, neighbours="replace"),
        "parquet", {"a": 2, "b": 2}, ({"a": REAL_OPPOSITE, "b": REAL},), True,
    ),
    Case(
        "gaussian, two parts", "gaussian", mdp.Budget(mu=3), "arrow",
        {"a": 2, "b": 2}, ({"a": IDENTITY}, {"b": IDENTITY}), False,
    ),
    Case("laplace", "laplace", mdp.Budget(epsilon=2), "parquet", {}, ({},), False, RATIO_COPIES),
    Case("laplace, tree", "laplace", mdp.Budget(epsilon=2), "pandas", {"a": 2}, ({"a": TREE},), False),
    Case(
        "laplace, coarse", "laplace", mdp.Budget(epsilon=2, delta=1e-6), "parquet",
        {"a": 2, "b": 2}, ({"a": REAL, "b": REAL},), True,
    ),
    Case(
        "laplace, replace", "laplace", mdp.Budget(epsilon=2, neighbours="replace"), "arrays",
        {"a": 2}, ({"a": IDENTITY},), False,
    ),
    Case(
        "laplace, replace, coarse", "laplace", mdp.Budget(rho=2, neighbours="replace"), "polars",
        {"a": 2}, ({"a": REAL_OPPOSITE},), True,
    ),
    Case(
        "laplace, two parts", "laplace", mdp.Budget(epsilon=2), "arrow",
        {"a": 2, "b": 2}, ({"a": IDENTITY}, {"b": IDENTITY}), False,
    ),
    Case(
        "gaussian, two records", "gaussian", mdp.Budget(mu=3, unit=TWO), "csv",
        {"a": 2}, ({"a": TREE},), False,
    ),
    Case(
        "gaussian, replace, two records, coarse", "gaussian",
        mdp.Budget(mu=3, neighbours="replace", unit=TWO), "parquet",
        {"a": 2, "b": 2}, ({"a": REAL_OPPOSITE, "b": REAL},), True,
    ),
    Case(
        "gaussian, two records counted", "gaussian",
        mdp.Budget(mu=3, unit=mdp.Unit(records=2, id="person")), "arrays",
        {"a": 2}, ({"a": TREE},), False,
    ),
    Case(
        "laplace, two records, coarse", "laplace", mdp.Budget(epsilon=2, unit=TWO), "parquet",
        {"a": 2}, ({"a": REAL},), True,
    ),
    Case(
        "laplace, replace, two records", "laplace",
        mdp.Budget(epsilon=2, neighbours="replace", unit=TWO), "polars",
        {"a": 2}, ({"a": OPPOSITE},), False,
    ),
)  # fmt: skip
