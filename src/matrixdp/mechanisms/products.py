"""Building blocks of baselines: products of strategies, each for an attribute or a Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix
from matrixdp.exact.linear import Array
from matrixdp.noise import Noise
from matrixdp.plans import Direct
from matrixdp.queries import Workload
from matrixdp.selection.compose.rounding import measured_factor, product_blocks
from matrixdp.selection.compose.whole_table import product_choice, solve_table
from matrixdp.selection.gram.factor import Factor, right_inverse
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.kron_sum import Inverse, KronSum, check_table
from matrixdp.selection.registry import Mechanism, Options, Task, register
from matrixdp.selection.rules import Facts
from matrixdp.selection.selection import Certificate, Choice

Solve = TypeVar("Solve", bound=Callable[..., Factor])

#: What a certificate says of a strategy that is not optimized.
NO_BOUND = "no bound: the strategy is fixed by its paper"
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


def axis_gram(terms: KronSum, axis: int) -> Array:
    """Return the Gram matrix of what is asked about one attribute, all others taken as tr(V) / n.

    Shape (n, n); group weights are included.
    """
    return terms.surrogate(axis, terms.unknown).matrix()


def product_of(
    workload: Workload,
    noise: Noise,
    terms: KronSum,
    rows: list[Array | None],
    scope: str = NO_BOUND,
) -> Choice:
    """Return the plan that measures the Kronecker product of given strategies.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": 4}), mdp.product(a="prefix"))
    >>> terms = KronSum.of(workload.domain, workload.groups)
    >>> product_of(workload, LAPLACE, terms, [None])[1].loss  # 2 (1 + 2 + 3 + 4)
    20.0
    """
    matrices: list[tuple[tuple[str, ...], MeasuredMatrix]] = []
    inverses: list[Inverse] = []
    for name, size, own in zip(terms.attributes, terms.sizes, rows, strict=True):
        if own is None:
            inverses.append(1.0)
            matrices.append(((name,), IdentityMatrix(size)))
        else:
            scaled = own / float(noise.column_norms(own).max())
            inverses.append(right_inverse(scaled))
            matrices.append(((name,), measured_factor(scaled, noise)))
    plan = Direct.of(workload.domain, product_blocks(workload.domain, matrices), noise)
    return plan, Certificate(noise.variance_factor * terms.loss(inverses), None, scope)


Rows = Callable[[KronSum, int], Array]


def numeric_product(task: Task[Options], name: str, rows: Rows) -> Choice:
    """Return the product of strategies on numeric attributes and identities on all others.

    ``rows`` makes a strategy from the terms of the workload and the place of an attribute.
    """
    domain = task.workload.domain
    terms = KronSum.of(domain, task.workload.groups)
    check_table(task.workload, terms.attributes, name)
    chosen: list[Array | None] = []
    for axis, (attribute, size) in enumerate(zip(terms.attributes, terms.sizes, strict=True)):
        if domain[attribute].numeric and size > LIMITS.axis_cells:
            raise TooLargeError(
                f"{name}: attribute {attribute!r} has {size} values; the limit is {LIMITS.axis_cells}. "
                "Use coarser bins, or identity"
            )
        chosen.append(rows(terms, axis) if domain[attribute].numeric else None)
    return product_of(task.workload, task.noise, terms, chosen)


def numeric_mechanism(name: str, source: str, rows: Rows) -> None:
    """Register the product of strategies on numeric attributes and identities on all others."""
    register(Mechanism(name, source, (1, 2), Options, lambda task: numeric_product(task, name, rows)))


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
    max_cells: int,
    scope: str,
    options: type[Options] = Options,
) -> Callable[[Solve], Solve]:
    """Register the product of strategies, one for each attribute that factors out and one for the rest.

    It decorates the function from a Gram matrix and the noise, and from the options where there are any, to a
    strategy.

    Parameters
    ----------
    name, source : str
    norms : tuple of int
        Of the noises that it selects for.
    max_cells : int
        Cells that a Gram matrix may have.
    scope : str
        What its certificate says where strategies have no bounds.
    options : type
        What it can be told.
    """
    limits = {"table": LIMITS.max_table_cells, "joint": max_cells, "factor": max_cells}

    def add(solve: Solve) -> Solve:
        def select(task: Task[Any]) -> Choice:
            Facts(task.workload, task.noise).check(name, limits)
            terms = KronSum.of(task.workload.domain, task.workload.groups)
            told = task.noise, *(() if options is Options else (task.options,))
            names, found = solve_table(terms, lambda gram, _: solve(gram.matrix(), *told))
            return product_choice(task.workload, task.noise, names, found, scope)

        register(Mechanism(name, source, norms, options, select, limits))
        return solve

    return add
