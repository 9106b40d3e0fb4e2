"""Proofs of what a person costs, for more values than can be looked at set by set.

The largest z'Xz over sets of at most K values is bounded by a relaxation: Y = WW' stands for zz', with rows
w_t = (e_0 + v_t) / 2 for unit vectors v_t, so that Y_tt = w_t0. Augmented Lagrangians for 1'p <= K, Y1 <= Kp,
0 <= Y_ts <= p_t give multipliers, and these a bound that holds whatever they are; docs/privacy.md has the
theorem. They are rounded to integers, and checked in integers where a cost is computed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.plan.persons import PROOF_BITS
from matrixdp.selection.descent import Effort, descend

#: Rounds of multipliers, and what each may cost.
_ROUNDS, _EFFORT = 20, Effort(80, 1e-15, 1e-10)
#: Vectors have at most so many entries.
_RANK = 48
#: Rounds after which the penalty doubles.
_HARDER = (6, 12)
#: What is added to the diagonal, relative to its largest entry, so that rounding leaves it positive definite.
_MARGINS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4)


def prove_charge(table: Array, most: int) -> NDArray[np.int64]:
    """Return multipliers that prove how large z'hz is for z of 0 and 1 with a number of ones.

    Parameters
    ----------
    table : ndarray, shape (n, n)
        h, symmetric.
    most : int
        The largest number of ones.

    Returns
    -------
    ndarray of int64, shape (2 n + 3, n)
        See `Plan.proof`.

    References
    ----------
    S. Burer and R. Monteiro, A nonlinear programming algorithm for solving semidefinite programs via low-rank
    factorization, 2003.

    Examples
    --------
    >>> prove_charge(np.eye(4), 2).shape
    (11, 4)
    """
    size, largest = len(table), float(np.diagonal(table).max())
    scale = float(np.abs(table).max()) * most / 2.0
    relaxed = _Relaxed(table / scale, most)
    relaxed.solve()
    unit = scale / largest * 2.0**PROOF_BITS
    nu, kappa, below, above, own = relaxed.best
    rows = [np.r_[nu, np.zeros(size - 1)], kappa, own, *below, *above]
    return np.rint(np.array(rows) * unit).astype(np.int64)


class _Relaxed:
    """The relaxation, its multipliers, and the best of them so far."""

    def __init__(self, table: Array, most: int) -> None:
        self.table, self.most, size = table, most, len(table)
        self.nu, self.kappa, self.rho = 0.0, np.zeros(size), 1.0
        self.below, self.above = np.zeros((size, size)), np.zeros((size, size))
        self.bound = math.inf
        self.best: tuple[Any, ...] = (0.0, self.kappa, self.below, self.above, np.zeros(size))

    def solve(self) -> None:
        size, share = len(self.table), min(0.5, 0.9 * self.most / len(self.table))
        vectors = np.random.default_rng(0).standard_normal((size, min(size + 1, _RANK)))
        vectors[:, 0] = 0.0
        first = 2.0 * share - 1.0
        vectors *= math.sqrt(1.0 - first**2) / np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[:, 0] = first
        shape = vectors.shape
        for step in range(_ROUNDS):
            vectors = descend(lambda flat: self.lagrangian(flat.reshape(shape)), vectors, _EFFORT)
            vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            self.update(_rows(vectors))
            self.keep(vectors)
            if step in _HARDER:
                self.rho *= 2.0

    def lagrangian(self, vectors: Array) -> tuple[float, Array]:
        """Return minus the objective with penalties, and its gradient, for vectors of any length."""
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = vectors / lengths
        rows = _rows(unit)
        product = self.table @ rows
        value, slope = self.penalties(rows)
        gradient = (slope - 2.0 * product) / 2.0
        gradient = (gradient - (gradient * unit).sum(axis=1, keepdims=True) * unit) / lengths
        return value - float((product * rows).sum()), gradient.ravel()

    def penalties(self, rows: Array) -> tuple[float, Array]:
        most, rho, share = self.most, self.rho, rows[:, 0]
        slope = np.zeros_like(rows)
        many = max(0.0, self.nu + rho * (share.sum() - most))
        slope[:, 0] += many
        total = rows.sum(axis=0)
        each = np.maximum(0.0, self.kappa + rho * (rows @ total - most * share))
        slope += each[:, None] * total + (each @ rows)[None]
        slope[:, 0] -= most * each
        pairs = rows @ rows.T
        low = np.maximum(0.0, self.below - rho * pairs)
        high = np.maximum(0.0, self.above + rho * (pairs - share[:, None]))
        np.fill_diagonal(low, 0.0)
        np.fill_diagonal(high, 0.0)
        slope += (high + high.T - 2.0 * low) @ rows
        slope[:, 0] -= high.sum(axis=1)
        squares = many**2 - self.nu**2
        for new, old in ((each, self.kappa), (low, self.below), (high, self.above)):
            squares += float((new**2).sum() - (old**2).sum())
        return squares / (2.0 * rho), slope

    def update(self, rows: Array) -> None:
        share, pairs = rows[:, 0], rows @ rows.T
        self.nu = max(0.0, self.nu + self.rho * (share.sum() - self.most))
        self.kappa = np.maximum(0.0, self.kappa + self.rho * (rows @ rows.sum(axis=0) - self.most * share))
        self.below = np.maximum(0.0, self.below - self.rho * pairs)
        self.above = np.maximum(0.0, self.above + self.rho * (pairs - share[:, None]))
        for own in (self.below, self.above):
            np.fill_diagonal(own, 0.0)

    def keep(self, vectors: Array) -> None:
        """Keep the multipliers if they prove less than those before."""
        rows = _rows(vectors)
        form = (self.kappa[:, None] + self.kappa + self.above + self.above.T) / 2.0
        form -= (self.below + self.below.T) / 2.0 + self.table
        linear = self.most * self.kappa - self.nu + self.above.sum(axis=1)
        slope = -2.0 * form @ rows
        slope[:, 0] += linear
        own = (slope * vectors).sum(axis=1)  # stationary, and then such that the form is positive definite
        own = own + max(0.0, -float(np.linalg.eigvalsh(form + np.diag(own))[0]))
        for margin in _MARGINS:
            more = own + margin * max(float(np.abs(own).max()), 1e-300)
            rest = more + linear
            bound = self.nu * self.most + float(rest @ np.linalg.solve(form + np.diag(more), rest)) / 4.0
            if bound < self.bound and np.linalg.eigvalsh(form + np.diag(more))[0] > 1e-9:
                self.bound = bound
                self.best = (self.nu, self.kappa, self.below, self.above, more)


def _rows(vectors: Array) -> Array:
    rows = vectors / 2.0
    rows[:, 0] += 0.5
    return rows
