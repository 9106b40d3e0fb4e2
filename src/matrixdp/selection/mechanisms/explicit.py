"""Mechanisms that solve explicit Gram matrices: one for each attribute that factors out, one for the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.noise import Noise
from matrixdp.selection.compose.whole_table import solve_table
from matrixdp.selection.gram.factor import Factor, right_inverse
from matrixdp.selection.mechanisms.options import O, Options
from matrixdp.selection.mechanisms.products import Choice
from matrixdp.selection.mechanisms.table import Mechanism, Task, register

__all__ = [
    "Spectrum",
    "best_factor",
    "configured_mechanism",
    "explicit_mechanism",
    "factor_of",
    "roots_of",
    "spectrum_of",
]

Array = NDArray[np.float64]

#: Eigenvalues below this share of the largest are noise of the decomposition.
_RANK = 1e-12
#: Eigenvalues that differ by less than this share of the largest have one eigenspace.
_EQUAL = 1e-10
#: Shorter parts of a cell's unit vector, of what others left of it, name no direction of an eigenspace.
_DIRECTION = 1e-4
#: What queries may lose, relative to their own norm, by lying outside of a strategy's row space.
_OUTSIDE = 1e-8
#: Columns whose norm falls short by less than this are taken as full.
_SHORT = 1e-3


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The nonzero part of a Gram matrix's eigendecomposition.

    Attributes
    ----------
    values : ndarray, shape (r,)
        Positive.
    vectors : ndarray, shape (r, n)
        Orthonormal rows.
    """

    values: Array
    vectors: Array

    @property
    def full(self) -> bool:
        """Whether the Gram matrix has full rank."""
        return bool(self.vectors.shape[0] == self.vectors.shape[1])

    def root(self) -> Array:
        """Return queries with the same Gram matrix, shape (r, n)."""
        return np.asarray(np.sqrt(self.values)[:, None] * self.vectors)


def spectrum_of(gram: Array) -> Spectrum:
    """Return the eigenvalues and eigenvectors of a Gram matrix, zeros left out.

    Examples
    --------
    >>> spectrum_of(np.full((4, 4), 0.5)).values.round(9).tolist()
    [2.0]
    """
    peak = float(np.abs(gram).max())
    if not (math.isfinite(peak) and peak > 0):
        raise NumericalError("a Gram matrix that is zero or not finite has no strategy")
    values, vectors = scipy.linalg.eigh(gram / peak, check_finite=False)
    kept = values > _RANK * len(gram) * values[-1]
    return Spectrum(values[kept] * peak, _canonical(values[kept], vectors[:, kept].T))


def _canonical(values: Array, vectors: Array) -> Array:
    """Return eigenvectors that depend on the matrix alone: LAPACK's choice of a basis and of signs does not.

    Each eigenspace gets the basis that Gram and Schmidt make of the cells' unit vectors, projected onto it,
    in the order of cells. An L1 sensitivity depends on it.
    """
    spaces = np.split(vectors, np.flatnonzero(np.diff(values) > _EQUAL * values[-1]) + 1)
    return np.vstack([_projected_cells(space) @ space for space in spaces])


def _projected_cells(space: Array) -> Array:
    """Return the first independent columns of an orthonormal basis (rows), orthonormal, as rows."""
    found = np.zeros((0, len(space)))
    for least in (_DIRECTION, 0.0):  # what rounding leaves of the last direction may be short of the first
        for cell in space.T:
            if len(found) == len(space):
                return found
            rest = cell - (cell @ found.T) @ found
            if float(np.linalg.norm(rest)) > least:
                rest = rest - (rest @ found.T) @ found
                found = np.vstack([found, rest / np.linalg.norm(rest)])
    return found


def factor_of(rows: Array, gram: Array, noise: Noise, bound: float | None = None) -> Factor:
    """Return a strategy scaled to sensitivity 1, with its loss.

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> factor_of(2 * np.eye(3), np.diag([1.0, 2.0, 3.0]), LAPLACE).loss
    6.0
    """
    scaled = rows / float(noise.column_norms(rows).max())
    inverse = right_inverse(scaled)
    outside = gram - gram @ inverse @ scaled
    if float(np.abs(outside).max()) > _OUTSIDE * float(np.abs(gram).max()):
        raise NumericalError("a strategy does not support every query")
    return Factor(scaled, float(np.vdot(inverse, gram @ inverse)), bound)


def _completed(rows: Array, noise: Noise) -> Array:
    """Return a strategy with one more row for every cell whose column norm is below the largest."""
    norms = noise.column_norms(rows)
    peak = float(norms.max())
    short = np.sqrt(np.maximum(peak**2 - norms**2, 0.0)) if noise.norm == 2 else peak - norms
    return np.vstack([rows, np.diag(short)[short > _SHORT * peak]])


def best_factor(
    candidates: list[Array], gram: Array, noise: Noise, bound: float | None = None, *, complete: bool = True
) -> Factor:
    """Return the strategy with the least loss, completed where that pays.

    Completion measures every cell whose column norm is below the largest, which costs nothing. Strategies
    that do not have full column rank stay as they are: their rank must be kept.

    References
    ----------
    Li, Hay, Rastogi, Miklau, McGregor: Optimizing linear counting queries under differential privacy, PODS
    2010, section 5.3 (augmentation).
    """
    found = [factor_of(rows, gram, noise, bound) for rows in candidates]
    if complete and spectrum_of(gram).full:
        found += [factor_of(_completed(rows, noise), gram, noise, bound) for rows in candidates]
    return min(found, key=lambda factor: factor.loss)


def roots_of(values: Array, vectors: Array) -> list[Array]:
    """Return strategies B with the same B'B, whose column sums of absolute entries differ."""
    scaled = np.sqrt(values)[:, None] * vectors
    return [
        vectors.T @ scaled,
        np.asarray(scipy.linalg.qr(scaled, mode="r")[0][: len(values)], dtype=np.float64),
        scaled,
    ]


def explicit_mechanism(
    name: str,
    source: str,
    norms: tuple[int, ...],
    solve: Callable[[Array, Noise], Factor],
    max_cells: int,
    scope: str,
) -> None:
    """Register a mechanism without options that solves explicit Gram matrices: see `configured_mechanism`."""
    configured_mechanism(
        name, source, norms, Options, lambda gram, noise, _: solve(gram, noise), max_cells, scope
    )


def configured_mechanism(
    name: str,
    source: str,
    norms: tuple[int, ...],
    options: type[O],
    solve: Callable[[Array, Noise, O], Factor],
    max_cells: int,
    scope: str,
) -> None:
    """Register the product of strategies, one for each attribute that factors out and one for the rest.

    Parameters
    ----------
    name, source : str
    norms : tuple of int
        Of the noises that it selects for.
    options : type
        What it can be told.
    solve : callable
        From a Gram matrix, the noise and the options to a strategy.
    max_cells : int
        Cells that a Gram matrix may have.
    scope : str
        What its certificate says where strategies have no bounds.
    """

    def select(task: Task[O]) -> Choice:
        return solve_table(
            task.workload,
            task.noise,
            name,
            lambda gram, _: solve(gram, task.noise, task.options),
            max_cells,
            instead="hdmm or residual",
            certified=f"every strategy with {task.noise} noise",
            scope=scope,
        )

    register(Mechanism(name, source, norms, options, select))
