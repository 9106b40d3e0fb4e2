"""One design for tables of two attributes that share their one-way marginals, by global least squares.

Each class of tables gets one strategy B on its whole cells, measured with a share of the privacy cost; the
estimates are the global least squares of all tables (`matrixdp.plan.Joint`). The total squared error,

    sum over tables of tr(C X^+ C'),

is jointly convex in the strategies' Gram matrices X and the coefficients C of an unbiased linear estimator.
So the two are minimized in turn: for given coefficients each table is an optimal-design problem of its own
with the Gram matrix C'C, and the budget is split in closed form; for given strategies the coefficients are
those of least squares. Coefficients on a table stay in the span of the queries on it and of its one-way
marginals, so everything is of that rank, however many cells there are.

Attributes that can be exchanged have one role. Matrices over the unknowns that exchanges leave alone are kept
as their action on sums over a role and on differences within it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.exact.linear import contrasts, kronecker
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.gram import solve_rows
from matrixdp.selection.gram.factor import Factor

__all__ = ["Design", "DesignTable", "Role", "design_jointly"]

Array = NDArray[np.float64]

#: Of an orthonormal basis of queries: singular values below this share of the largest are rounding errors.
_SPAN = 1e-9
#: Eigenvalues of C'C below this share of the largest are lifted to it: such directions fade, never vanish.
_FLOOR = 1e-11
#: The search ends when a round gains less than this share of the error, or after so many rounds.
_GAIN = 2e-5
MAX_ROUNDS = 80
#: The relative gap of the tables' own problems: what the last round gained, within these limits.
_LEAST_GAP, _LARGEST_GAP = 1e-4, 1e-2


@dataclass(frozen=True, eq=False)
class Role:
    """Attributes that can be exchanged.

    Attributes
    ----------
    size, count : int
        The values of each, and how many attributes there are.
    gram : ndarray, shape (size, size)
        The Gram matrix of what is asked of each alone.
    """

    size: int
    count: int
    gram: Array


@dataclass(frozen=True, eq=False)
class DesignTable:
    """A class of tables with equal queries.

    Attributes
    ----------
    sizes : tuple of int
        Values of its attributes.
    queries : ndarray, shape (queries, cells)
        What is asked of each table, square-rooted weights multiplied in.
    roles : list of (tuple of int, int)
        The roles of the attributes, and how many tables have these.
    """

    sizes: tuple[int, ...]
    queries: Array
    roles: list[tuple[tuple[int, ...], int]]

    @property
    def count(self) -> int:
        """The number of tables."""
        return sum(count for _, count in self.roles)


@dataclass(frozen=True)
class Design:
    """Strategies for the classes of tables, the share of the budget of each table, and the loss."""

    factors: list[Factor]
    shares: list[float]
    loss: float


@dataclass(eq=False)
class _Exchangeable:
    """A symmetric matrix over the unknowns: its action on sums over roles, and on differences in each."""

    roles: Sequence[Role]
    sums: Array = field(init=False)
    differences: list[Array] = field(init=False)

    def __post_init__(self) -> None:
        self.slices, start = [], 1
        for role in self.roles:
            self.slices.append(slice(start, start + role.size - 1))
            start += role.size - 1
        self.sums = np.zeros((start, start))
        self.differences = [np.zeros((role.size - 1, role.size - 1)) for role in self.roles]

    def add(self, own: tuple[int, ...], count: int, block: Array) -> None:
        """Add one matrix over the total and the attributes of a table, for as many tables as there are."""
        places, start = [], 1
        for role in own:
            places.append(slice(start, start + self.roles[role].size - 1))
            start = places[-1].stop
        self.sums[0, 0] += count * block[0, 0]
        for role, place in zip(own, places, strict=True):
            inside = self.slices[role]
            each = self.roles[role].count
            row = count / math.sqrt(each) * block[0, place]
            self.sums[0, inside] += row
            self.sums[inside, 0] += row
            self.sums[inside, inside] += count / each * block[place, place]
            self.differences[role] += count / each * block[place, place]
        if len(own) < 2:
            return
        first, second = (self.slices[role] for role in own)
        across = block[places[0], places[1]]
        if own[0] != own[1]:
            among = count / math.sqrt(math.prod(self.roles[role].count for role in own)) * across
            self.sums[first, second] += among
            self.sums[second, first] += among.T
            return
        each = self.roles[own[0]].count
        self.sums[first, first] += count / each * (across + across.T)
        self.differences[own[0]] -= count / (each * (each - 1)) * (across + across.T)

    def block(self, own: tuple[int, ...]) -> Array:
        """Return the matrix over the total and the attributes of one table."""
        rows = [[self.sums[:1, :1], *(self._row(role) for role in own)]]
        for place, role in enumerate(own):
            row = [self._row(role).T]
            for other_place, other in enumerate(own):
                each = self.roles[role].count
                found = self.sums[self.slices[role], self.slices[other]]
                found = found / math.sqrt(each * self.roles[other].count)
                if role == other and each > 1:
                    share = 1.0 - 1.0 / each if place == other_place else -1.0 / each
                    found = found + share * self.differences[role]
                row.append(found)
            rows.append(row)
        return np.block(rows)

    def _row(self, role: int) -> Array:
        return self.sums[:1, self.slices[role]] / math.sqrt(self.roles[role].count)

    def mapped(self, change: Callable[..., Array], *others: _Exchangeable) -> _Exchangeable:
        """Return what a product or an inverse makes of this matrix and others."""
        out = _Exchangeable(self.roles)
        out.sums = change(self.sums, *(other.sums for other in others))
        parts = zip(self.differences, *(other.differences for other in others), strict=True)
        out.differences = [
            change(*own) if role.count > 1 else own[0] for role, own in zip(self.roles, parts, strict=True)
        ]
        return out

    def inner(self, other: _Exchangeable) -> float:
        """Return the trace of the product of two matrices."""
        total = float((self.sums * other.sums).sum())
        for role, own, their in zip(self.roles, self.differences, other.differences, strict=True):
            total += (role.count - 1) * float((own * their).sum())
        return total


class _Table:
    """A class of tables in an orthonormal basis: one-way marginals first, then the rest of its queries."""

    def __init__(self, table: DesignTable) -> None:
        self.table = table
        maps = one_way_maps(table.sizes)
        self.lengths = np.linalg.norm(maps, axis=1)
        marginals = maps / self.lengths[:, None]
        beyond = table.queries - (table.queries @ marginals.T) @ marginals
        self.basis = np.vstack([marginals, _row_space(beyond, float(np.abs(table.queries).max()))])
        inside = table.queries @ self.basis.T
        self.gram = inside.T @ inside
        self.known = len(maps)
        self.factor: Factor | None = None

    def solve(self, gram: Array, gap: float) -> Factor:
        """Solve the table's own problem for the Gram matrix C'C of coefficients in the basis."""
        values, vectors = scipy.linalg.eigh(gram, driver="evd", check_finite=False)
        roots = np.sqrt(np.maximum(values, _FLOOR * values[-1]))
        start = None if self.factor is None else self.factor.dual
        self.factor = solve_rows((vectors * roots).T @ self.basis, gap, start)
        return self.factor

    def measured(self, share: float) -> None:
        """Take what the table says of its unknowns at a share of the budget from its strategy."""
        assert self.factor is not None
        rows = self.factor.rows @ self.basis.T
        self.covariance = np.linalg.inv(share * (rows.T @ rows))
        own = self.covariance[:, : self.known]
        self.information = np.linalg.inv(own[: self.known]) / np.multiply.outer(self.lengths, self.lengths)
        self.lift = (own * self.lengths) @ self.information

    @property
    def beyond(self) -> float:
        """The loss of what the table says beyond its one-way marginals."""
        known = (self.covariance[:, : self.known] * self.lengths) @ self.lift.T
        return float((self.gram * (self.covariance - known)).sum())

    def coefficients(self, covariance: Array, asked: Array) -> Array:
        """Return C'C of least squares, from K and K H K over the table's unknowns."""
        maps = np.eye(self.known, len(self.basis)) * self.lengths[:, None]
        pulled = self.information @ maps
        left = np.eye(len(self.basis)) - self.lift @ maps
        cross = left.T @ (self.gram @ (self.lift @ covariance @ pulled))
        return np.asarray(left.T @ self.gram @ left + cross + cross.T + pulled.T @ asked @ pulled)


def one_way_maps(sizes: Sequence[int]) -> Array:
    """Return the map from a table's cells to the total and the contrasts of its one-way marginals."""
    rows = [np.ones((1, math.prod(sizes)))]
    for axis, size in enumerate(sizes):
        sums = [np.ones((1, count)) for count in sizes]
        rows.append(kronecker([*sums[:axis], contrasts(size).T, *sums[axis + 1 :]]))
    return np.vstack(rows)


def _row_space(rows: Array, scale: float) -> Array:
    """Return an orthonormal basis of a row space; what is small beside ``scale`` is rounding error."""
    if not len(rows):
        return rows
    if len(rows) > rows.shape[1]:
        values, vectors = scipy.linalg.eigh(rows.T @ rows, driver="evd", check_finite=False)
        keep = values > max(_SPAN * values[-1], (_SPAN * scale) ** 2)
        return np.ascontiguousarray(vectors[:, keep].T)
    _, values, right = scipy.linalg.svd(rows, full_matrices=False, check_finite=False)
    return np.asarray(right[values > _SPAN * max(values[0], scale)])


def design_jointly(
    roles: Sequence[Role],
    tables: Sequence[DesignTable],
    total: float = 0.0,
    report: Callable[[int, float], None] | None = None,
) -> Design:
    """Choose the strategies of tables and their shares of the privacy cost.

    Parameters
    ----------
    roles : sequence of Role
        Exchanging attributes of one role must leave the problem as it is.
    tables : sequence of DesignTable
        Every role is that of an attribute of some table.
    total : float
        The weight with which the total itself is asked.
    report : callable, optional
        Called with the number of rounds and the loss.

    Examples
    --------
    >>> role = Role(2, 2, np.eye(2))
    >>> cells = DesignTable((2, 2), np.eye(4), [((0, 0), 1)])
    >>> round(design_jointly([role], [cells]).loss, 3)
    11.223
    """
    solved = [_Table(table) for table in tables]
    counts = [table.count for table in tables]
    asked = _asked(roles, total)
    held = np.zeros(len(roles))
    for table in tables:
        for own, count in table.roles:
            for role in own:
                held[role] += count / roles[role].count
    grams = []
    for one in solved:
        own = one.table.roles[0][0]
        share = np.concatenate(
            [[1.0 / sum(counts)], *(np.full(roles[r].size - 1, 1.0 / held[r]) for r in own)]
        )
        share *= one.lengths
        gram = one.gram.copy()
        gram[: one.known, : one.known] += share[:, None] * asked.block(own) * share
        grams.append(gram)
    best: Design | None = None
    gap = _LARGEST_GAP
    for rounds in range(1, MAX_ROUNDS + 1):
        found = [one.solve(gram, gap) for one, gram in zip(solved, grams, strict=True)]
        shares = GAUSSIAN.best_shares([factor.loss for factor in found], counts)
        loss, grams = _least_squares(roles, solved, shares, asked)
        if report is not None:
            report(rounds, loss)
        gain = math.inf if best is None else 1.0 - loss / best.loss
        if gain > 0.0:
            best = Design(found, list(shares), loss)
        if gain < _GAIN and gap <= _LEAST_GAP:
            break
        gap = min(max(gain, _LEAST_GAP), _LARGEST_GAP)
    assert best is not None
    return best


def _asked(roles: Sequence[Role], total: float) -> _Exchangeable:
    """Return the Gram matrix of what is asked of attributes alone and of the total, over the unknowns."""
    asked = _Exchangeable(roles)
    asked.sums[0, 0] = total
    for place, role in enumerate(roles):
        back = one_way_maps((role.size,)).T / np.concatenate([[role.size], np.ones(role.size - 1)])
        asked.add((place,), role.count, back.T @ role.gram @ back)
    return asked


def _least_squares(
    roles: Sequence[Role], solved: Sequence[_Table], shares: Sequence[float], asked: _Exchangeable
) -> tuple[float, list[Array]]:
    """Return the loss of global least squares, and C'C of its coefficients on each class of tables."""
    information, queries = _Exchangeable(roles), asked.mapped(np.copy)
    loss = 0.0
    for one, share in zip(solved, shares, strict=True):
        one.measured(share)
        loss += one.table.count * one.beyond
        lifted = one.lift.T @ one.gram @ one.lift
        for own, count in one.table.roles:
            information.add(own, count, one.information)
            queries.add(own, count, lifted)
    covariance = information.mapped(np.linalg.inv)
    loss += covariance.inner(queries)
    spread = covariance.mapped(lambda k, h: k @ h @ k, queries)
    grams = []
    for one in solved:
        own_blocks = [(covariance.block(own), spread.block(own), count) for own, count in one.table.roles]
        middle = [sum(block[i] * (block[2] / one.table.count) for block in own_blocks) for i in (0, 1)]
        grams.append(one.coefficients(np.asarray(middle[0]), np.asarray(middle[1])))
    return loss, grams
