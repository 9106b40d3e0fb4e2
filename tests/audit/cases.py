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
    """One way through the pipeline; its name begins with the noise.

    Its domain begins with attributes that every query keeps whole. Each combination of their values is a
    small table of its own, measured apart from the others with the noise of the whole: a copy.

    Attributes
    ----------
    table : str
        How the table comes: the ending of a file, or the kind of frame.
    products : tuple
        What each entry asks of the other attributes, of two values each: all, or the rows of a matrix.
    """

    name: str
    budget: mdp.Budget
    table: str
    products: tuple[Mapping[str, Any], ...]
    copies: tuple[int, int] = COPIES

    @property
    def noise(self) -> str:
        return self.name.split(",")[0]

    @property
    def above(self) -> bool:
        """Whether the lattice step is above one record (else below)."""
        return "coarse" in self.name

    @property
    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(sorted({name for own in self.products for name in own}), 2)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.sizes.values())

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


TWO, OF_PERSONS = mdp.Unit(records=2), mdp.Unit(records=2, id="person")
#: Both columns have norm sqrt 2, and L1 norm 2.
TREE = np.array([[1, 1], [1, 0], [0, 1]], dtype=float)
#: One row, of which a record moves so many units that noise is not on integers.
ONE = np.array([[5, 1]], dtype=float)
#: Columns that point to opposite sides: replacing a record moves twice as far as removing it, in any norm.
OPPOSITE = np.array([[1, -1], [2, -2]], dtype=float)
#: Real entries, which are rounded to multiples of 2^-14 or 2^-18.
REAL = np.array([[1, 1 / math.pi], [1 / math.e, 1]], dtype=float)
REAL_OPPOSITE = np.array([[1, -1], [math.pi, -math.pi]], dtype=float)

BOTH = ({"a": REAL, "b": REAL},)
BOTH_OPPOSITE = ({"a": REAL_OPPOSITE, "b": REAL},)
PARTS = ({"a": IDENTITY}, {"b": IDENTITY})


def replacing(**given: Any) -> mdp.Budget:
    return mdp.Budget(**given, neighbours="replace")


CASES = (
    Case("gaussian", mdp.Budget(mu=3), "parquet", ({"a": TREE},)),
    Case("gaussian, coarse", mdp.Budget(rho=4.5), "polars", BOTH),
    Case("gaussian, replace", replacing(mu=3), "pandas", ({"a": OPPOSITE},)),
    Case("gaussian, replace, coarse", replacing(epsilon=18, delta=1e-6), "parquet", BOTH_OPPOSITE),
    Case("gaussian, two parts", mdp.Budget(mu=3), "arrow", PARTS),
    Case("laplace", mdp.Budget(epsilon=2), "parquet", ({"a": ONE},), RATIO_COPIES),
    Case("laplace, tree", mdp.Budget(epsilon=2), "pandas", ({"a": TREE},)),
    Case("laplace, coarse", mdp.Budget(epsilon=2, delta=1e-6), "parquet", BOTH),
    Case("laplace, replace", replacing(epsilon=2), "arrays", ({"a": IDENTITY},)),
    Case("laplace, replace, coarse", replacing(rho=2), "polars", ({"a": REAL_OPPOSITE},)),
    Case("laplace, two parts", mdp.Budget(epsilon=2), "arrow", PARTS),
    Case("gaussian, two records", mdp.Budget(mu=3, unit=TWO), "csv", ({"a": TREE},)),
    Case("gaussian, replace, two records, coarse", replacing(mu=3, unit=TWO), "parquet", BOTH_OPPOSITE),
    Case("gaussian, two records counted", mdp.Budget(mu=3, unit=OF_PERSONS), "arrays", ({"a": TREE},)),
    Case("laplace, two records, coarse", mdp.Budget(epsilon=2, unit=TWO), "parquet", ({"a": REAL},)),
    Case("laplace, replace, two records", replacing(epsilon=2, unit=TWO), "polars", ({"a": OPPOSITE},)),
)
