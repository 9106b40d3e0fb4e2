"""Persons with records in several values of an attribute: the best strategies, and proofs of what they cost.

A person has at most one record in each of at most K of n values, and is added or removed as a whole. So her
records have one sign, and a strategy B of Gram matrix X = B'B moves by sqrt(z'X z), z in {0, 1}^n with at
most K ones. The least error tr(V X^+) with z'X z <= 1 for all z is a convex problem. For a distribution y
over vectors z, with Y = sum of y_z z z', F = tr((R Y R')^(1/2)) and R'R = V, no strategy has less error than
F^2, and X = R' (R Y R')^(-1/2) R has F times its largest z'X z (docs/mathematics.md).

Few vectors are all listed. Of many, Y is sought as W W' with rows w_t = (e_0 + v_t) / 2 for unit vectors v_t:
then Y_tt is the first entry p_t of row t, and augmented Lagrangians for 1'p <= K, Y 1 <= K p and 0 <= Y_ts <=
p_t give multipliers. These bound z'X z for every z, whatever they are; docs/privacy.md has the theorem. They
are rounded to integers, and checked in integers where a cost is computed.

In a series every row of a staircase is charged by itself, by its K largest entries; a descent finds it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.plans.persons import PROOF_BITS, SLACK
from matrixdp.selection.descent import Effort, descend
from matrixdp.selection.starting_points import generator

#: Vectors that are listed at most, and what a descent over them may cost.
_LISTED, _OVER_SETS = 5_000, Effort(2_000, 1e-15, 1e-10)
#: Rounds of multipliers for a strategy and for a proof, and what each may cost; one for all values together.
_ROUNDS, _PROOF_ROUNDS, _EFFORT, _ALONE = 15, 20, Effort(80, 1e-15, 1e-10), Effort(1_600, 1e-15, 1e-10)
#: Rounds after which constraints weigh twice as much, of either, and the gap that ends those of a strategy.
_HARDER, _PROOF_HARDER, _CLOSE = (4, 8), (6, 12), 1e-3
#: Vectors of a proof have at most so many entries.
_RANK = 48
#: Sets of values that a lower bound is over, for each value, and steps of their weights.
_DRAWN, _RISES = 40, 60
#: Eigenvalues of V below this share of the largest are 0, and roots are taken of no less than this share.
_LEAST, _FAINT = 1e-11, 1e-16
#: What a descent over the rows of a staircase may cost, and its least entry, relative to the largest.
_OVER_ROWS, _FAINTEST = Effort(600, 1e-12, 1e-9), 1e-6
#: Errors above this are those of staircases that hardly measure some direction.
_SINGULAR = 1e100
#: What is added to the diagonal, relative to its largest entry, so that rounding leaves it positive definite.
_MARGINS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)


# The relaxation.

Multipliers = tuple[float, Array, Array, Array, Array]
"""nu, kappa, those of Y >= 0 and of Y_ts <= p_t, and those of z_t^2 = z_t."""


class _Relaxation:
    """Multipliers of the constraints on Y = W W'; none are needed where all values may be taken."""

    def __init__(self, size: int, most: int, rho: float) -> None:
        self.size, self.most, self.rho, self.free = size, most, rho, most >= size
        self.nu, self.kappa = 0.0, np.zeros(size)
        self.below, self.above = np.zeros((size, size)), np.zeros((size, size))

    def begin(self, rank: int) -> Array:
        """Return unit vectors to start from, shape (size, rank)."""
        vectors = generator(0).standard_normal((self.size, rank))
        first = 2.0 * min(0.5, 0.9 * self.most / self.size) - 1.0
        vectors[:, 0] = 0.0
        vectors *= math.sqrt(1.0 - first**2) / np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[:, 0] = first
        return vectors

    def descend(
        self, objective: Callable[[Array], tuple[float, Array]], vectors: Array, effort: Effort
    ) -> Array:
        """Return unit vectors of less of an objective of their rows, with penalties."""
        shape = vectors.shape

        def lagrangian(flat: Array) -> tuple[float, Array]:
            lengths = np.linalg.norm(flat.reshape(shape), axis=1, keepdims=True)
            unit = flat.reshape(shape) / lengths
            rows = _rows(unit)
            value, slope = objective(rows)
            more, steeper = self.penalties(rows)
            gradient = (slope + steeper) / 2.0
            gradient = (gradient - (gradient * unit).sum(axis=1, keepdims=True) * unit) / lengths
            return value + more, gradient.ravel()

        found = descend(lagrangian, vectors, effort).reshape(shape)
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))

    def penalties(self, rows: Array) -> tuple[float, Array]:
        slope = np.zeros_like(rows)
        if self.free:
            return 0.0, slope
        most, rho, share = self.most, self.rho, rows[:, 0]
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
        """Move the multipliers by what constraints are broken by."""
        if self.free:
            return
        share, pairs = rows[:, 0], rows @ rows.T
        self.nu = max(0.0, self.nu + self.rho * (share.sum() - self.most))
        self.kappa = np.maximum(0.0, self.kappa + self.rho * (rows @ rows.sum(axis=0) - self.most * share))
        self.below = np.maximum(0.0, self.below - self.rho * pairs)
        self.above = np.maximum(0.0, self.above + self.rho * (pairs - share[:, None]))
        for own in (self.below, self.above):
            np.fill_diagonal(own, 0.0)

    def proved(self, table: Array, vectors: Array) -> tuple[float, Multipliers]:
        """Return a bound of z'hz for all z of 0 and 1 with at most so many ones, and what proves it."""
        rows = _rows(vectors)
        form = (self.kappa[:, None] + self.kappa + self.above + self.above.T) / 2.0
        form -= (self.below + self.below.T) / 2.0 + table
        linear = self.most * self.kappa - self.nu + self.above.sum(axis=1)
        slope = -2.0 * form @ rows
        slope[:, 0] += linear
        own = (slope * vectors).sum(axis=1)  # stationary, and then such that the form is positive definite
        own = own + max(0.0, -float(np.linalg.eigvalsh(form + np.diag(own))[0]))
        best = math.inf, own
        for margin in _MARGINS:
            more = own + margin * max(float(np.abs(own).max()), 1e-300)
            rest = more + linear
            bound = self.nu * self.most + float(rest @ np.linalg.solve(form + np.diag(more), rest)) / 4.0
            if bound < best[0]:
                best = bound, more
        return best[0], (self.nu, self.kappa, self.below, self.above, best[1])


def _rows(vectors: Array) -> Array:
    rows = vectors / 2.0
    rows[:, 0] += 0.5
    return rows


# What a person costs, for more values than can be looked at set by set.


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
    scaled, relaxed = table / scale, _Relaxation(size, most, 1.0)
    vectors = relaxed.begin(min(size + 1, _RANK))
    best: tuple[float, Multipliers] | None = None
    for step in range(_PROOF_ROUNDS):
        vectors = relaxed.descend(
            lambda rows: (-float((scaled @ rows * rows).sum()), -2.0 * scaled @ rows), vectors, _EFFORT
        )
        relaxed.update(_rows(vectors))
        found = relaxed.proved(scaled, vectors)
        best = found if best is None or found[0] < best[0] else best
        if relaxed.free:  # unit vectors alone: nothing is left to be balanced
            break
        if step in _PROOF_HARDER:
            relaxed.rho *= 2.0
    assert best is not None
    unit = scale / largest * 2.0**PROOF_BITS
    nu, kappa, below, above, own = best[1]
    rows = [np.r_[nu, np.zeros(size - 1)], kappa, own, *below, *above]
    made = np.rint(np.array(rows) * unit).astype(np.int64)
    return _completed(np.ceil(table / largest * 2.0**PROOF_BITS), most, made)


def _completed(whole: Array, most: int, proof: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a proof with beta, to which `proved_form` holds its multipliers, and room for its rounding."""
    size, best = len(whole), (math.inf, proof)
    nu, kappa, below, above = proof[0, 0], proof[1], proof[3 : 3 + size], proof[3 + size :]
    for margin in _MARGINS:
        own = proof[2] + math.ceil(margin * float(np.abs(proof[2]).max()))
        form = (kappa[:, None] + kappa + above + above.T - below - below.T - 2.0 * whole).astype(np.float64)
        form[np.diag_indices(size)] += 2.0 * own
        form -= 2.0 * SLACK * np.diag(np.diagonal(form))
        linear = (own + most * kappa - nu + above.sum(axis=1)).astype(np.float64)
        with suppress(np.linalg.LinAlgError):
            half = np.linalg.solve(np.linalg.cholesky(form), linear)
            beta = math.ceil(max(float(half @ half) / 2.0, 1.0) * (1.0 + 4.0 * SLACK)) + 1
            if beta < best[0]:
                made = proof.copy()
                made[2], made[0, 1:2] = own, beta
                best = beta, made
    return best[1]


# The best strategy.


@final
@dataclass(frozen=True)
class PersonsFactor:
    """A strategy by its Gram matrix.

    Attributes
    ----------
    gram : ndarray, shape (n, n)
        X, whose z'X z is at most 1, but for what `charge` leaves open.
    loss : float
        tr(V X^+).
    bound : float
        No strategy has less, for persons of such records.
    """

    gram: Array
    loss: float
    bound: float


def best_for_persons(gram: Array, values: int) -> PersonsFactor:
    """Return the strategy of least error for persons with a record in each of at most so many values.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
        V, what is asked of the values.
    values : int
        K, from 1 to n.

    Examples
    --------
    Twelve months by themselves: the error is (1 + sqrt(n)) / 2, where noise on each month has sqrt(n).

    >>> found = best_for_persons(np.eye(12), 12)
    >>> round((found.loss / 12) ** 0.5, 3), found.loss < 1.001 * found.bound
    (2.23, True)
    """
    size = len(gram)
    scale = float(np.trace(gram)) / size
    root = _root(gram / scale)
    count = sum(math.comb(size, k) for k in range(1, values + 1))
    found = _by_sets(root, values) if count <= _LISTED else _by_unit_vectors(root, values)
    return PersonsFactor(found.gram, found.loss * scale, found.bound * scale)


def best_by_steps(gram: Array, start: Array, values: int) -> Array:
    """Return a staircase of little error where the charge is a sum over its rows: none has entries below 0.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
        V, what is asked of the values.
    start : ndarray, shape (n, n)
        A lower triangular matrix, from which it descends.
    values : int
        K. A row is charged the square of the sum of its K largest entries.

    Examples
    --------
    Year to date of twelve months, of persons with one record, at any of the months each time:

    >>> asked = np.tri(12)
    >>> rows = best_by_steps(asked.T @ asked, asked, 1)
    >>> error = np.linalg.norm(asked @ np.linalg.inv(rows)) * np.linalg.norm(rows.max(axis=1))
    >>> print(round(error / 12**0.5, 1))
    3.5
    """
    size = len(gram)
    lower = np.tril_indices(size)

    def objective(entries: Array) -> tuple[float, Array]:
        rows = np.zeros((size, size))
        rows[lower] = entries
        with np.errstate(all="ignore"):
            inverse = scipy.linalg.solve_triangular(rows, np.eye(size), lower=True, check_finite=False)
            asked = gram @ inverse
            loss = float((inverse * asked).sum())
        if not 0.0 < loss < _SINGULAR:
            return math.log(_SINGULAR), np.zeros(len(entries))
        chosen = np.zeros((size, size))
        np.put_along_axis(chosen, np.argpartition(-rows, values - 1, axis=1)[:, :values], 1.0, axis=1)
        sums = (rows * chosen).sum(axis=1)
        charge = float(sums @ sums)
        slope = chosen * sums[:, None] / charge - inverse.T @ asked @ inverse.T / loss
        return math.log(loss * charge), 2.0 * slope[lower]

    begun = np.maximum(start[lower] / start.max(), _FAINTEST)
    rows = np.zeros((size, size))
    rows[lower] = descend(objective, begun, _OVER_ROWS, bounds=(_FAINTEST, math.inf))
    return rows


def _root(gram: Array) -> Array:
    """Return R with R'R = V, of full row rank."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > _LEAST * values.max()
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])).T)


def _dual(root: Array, weights: Array) -> tuple[float, Array]:
    """Return F and X of a matrix Y."""
    values, vectors = np.linalg.eigh(root @ weights @ root.T)
    roots = np.sqrt(np.maximum(values, _FAINT * values.max()))
    half = (vectors / np.sqrt(roots)).T @ root
    return float(roots.sum()), np.asarray(half.T @ half)


def _by_sets(root: Array, values: int) -> PersonsFactor:
    """Return the optimum over all sets of values, listed."""
    size = root.shape[1]
    sets = np.zeros((0, size))
    for count in range(1, values + 1):
        places = np.array(list(itertools.combinations(range(size), count)))
        own = np.zeros((len(places), size))
        np.put_along_axis(own, places, 1.0, axis=1)
        sets = np.vstack([sets, own])

    def objective(y: Array) -> tuple[float, Array]:
        total = float(y.sum())
        norm, gram = _dual(root, (sets.T * y) @ sets + 1e-13 * total * np.eye(size))
        moved = np.einsum("si,si->s", sets @ gram, sets)
        return -2.0 * math.log(norm) + math.log(total), -moved / norm + 1.0 / total

    found = descend(objective, np.full(len(sets), 1.0 / len(sets)), _OVER_SETS, bounds=(0.0, math.inf))
    y = found / found.sum()
    norm, gram = _dual(root, (sets.T * y) @ sets)
    charge = float(np.einsum("si,si->s", sets @ gram, sets).max())
    return PersonsFactor(gram / charge, norm * charge, norm * norm)


def _by_unit_vectors(root: Array, values: int) -> PersonsFactor:
    """Return a strategy by the relaxation, with the charge that its multipliers prove."""
    size = root.shape[1]
    relaxed = _Relaxation(size, values, 1.0 / values)
    vectors = relaxed.begin(size + 1)
    best: tuple[float, Array] | None = None
    bound = 0.0

    def objective(rows: Array) -> tuple[float, Array]:
        left, singular, right = np.linalg.svd(root @ rows, full_matrices=False)
        norm = float(singular.sum())
        return -math.log(norm), -root.T @ (left @ right) / norm

    for step in range(1 if relaxed.free else _ROUNDS):
        vectors = relaxed.descend(objective, vectors, _ALONE if relaxed.free else _EFFORT)
        rows = _rows(vectors)
        relaxed.update(rows)
        norm, gram = _dual(root, rows @ rows.T)
        charge = relaxed.proved(gram / (2.0 * norm), vectors)[0] * 2.0 * norm
        bound = max(bound, _feasible(root, rows, values))
        if best is None or norm * charge < best[0]:
            best = norm * charge, gram / charge
        if step in _HARDER:
            relaxed.rho *= 2.0
        if abs(charge / norm - 1.0) < _CLOSE and step > 2:
            break
    assert best is not None
    return PersonsFactor(best[1], best[0], bound)


def _feasible(root: Array, rows: Array, values: int) -> float:
    """Return F^2 of a distribution over sets near to Y: of many directions, each cut to K values."""
    count = min(_DRAWN * len(rows), _LISTED)
    drawn = rows @ generator(1).standard_normal((rows.shape[1], count))
    ranked = np.argsort(-drawn, axis=0)
    sets = np.zeros_like(drawn)
    np.put_along_axis(sets, ranked[:values], 1.0, axis=0)
    sets *= drawn > np.quantile(drawn, 1.0 - rows[:, 0].mean())
    sets = np.unique(np.hstack([sets, np.eye(len(rows))]).T, axis=0)
    sets = sets[sets.any(axis=1)]
    y = np.full(len(sets), 1.0 / len(sets))
    # multiplicative steps rise to the optimum over these sets
    for _ in range(_RISES if len(rows) < 100 else _RISES // 4):
        norm, gram = _dual(root, (sets.T * y) @ sets)
        y *= np.einsum("si,si->s", sets @ gram, sets) / norm
        y /= y.sum()
    return _dual(root, (sets.T * y) @ sets)[0] ** 2
