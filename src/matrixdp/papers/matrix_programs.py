"""The programs of the matrix mechanism: least error, in either norm, and least sensitivity of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from matrixdp.errors import NumericalError, WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.mechanisms import (
    Factor,
    Options,
    explicit_mechanism,
    factor_of,
    generator,
    option,
    roots_of,
    solve_gram,
    spectrum_of,
)
from matrixdp.noise import LAPLACE, Noise
from matrixdp.papers.matrix_mechanism import l2_factor, singular_value_factor
from matrixdp.papers.semidefinite import NONE, Program, Variables, rank_direction

MAX_ERROR_CELLS = 10
MAX_SENSITIVITY_CELLS = 16
_NO_BOUND = "no bound: the program is not convex"
_GAP = 1e-6
#: The weight of the rank: where it starts, what it is multiplied by while the rank is missed and, to take
#: longer steps, while it is kept; and how much of the matrix may be left when the rank counts as kept.
_WEIGHT, _GROWTH, _EASE, _LEFT = 0.05, 1.6, 0.5, 1e-6
#: For rotations, which keep their rank from the start.
_ROTATION_WEIGHT = 2.0
#: The most programs solved from one start; how many may gain less than a share once the rank is kept; that
#: share.
_PROGRAMS, _PATIENCE, _GAINED = 40, 6, 1e-3


@dataclass(frozen=True)
class MinError(Options):
    """Of the program of least error."""

    rows: int = option(0, "queries of the strategy; 0 for as many as cells")
    restarts: int = option(1, "random strategies to start from, beside cells and the L2 approximation")
    seed: int = option(0, "of the random strategies")


@dataclass(frozen=True)
class MinSensitivity(Options):
    """Of the program of least sensitivity."""

    profile: str = option(
        "l2-approximation", "whose error profile is kept", choices=("l2-approximation", "singular-value")
    )
    restarts: int = option(4, "random rotations to start from, beside the roots of the profile")
    seed: int = option(0, "of the random rotations")


def _bounded(program: Program, terms: Variables, weights: Array, limit: int | None) -> None:
    """Bound the column sums of absolute entries of a matrix by 1, or by a variable.

    Its entry (i, j) is the sum over k of the variables (i, j, k), each times the weight (j, k).
    """
    rows, columns, _ = terms.shape
    sizes = program.variables(rows, columns)
    entries = np.concatenate([terms, sizes[:, :, None]], axis=2).reshape(rows * columns, -1)
    for sign in (1.0, -1.0):
        own = np.tile(np.hstack([sign * weights, np.full((columns, 1), -1.0)]), (rows, 1))
        program.at_most(entries, own, np.zeros(1))
    if limit is None:
        program.at_most(sizes.T, np.ones(1), np.ones(1))
    else:
        sums = np.hstack([sizes.T, np.full((columns, 1), limit)])
        program.at_most(sums, np.append(np.ones(rows), -1.0), np.zeros(1))


def least_l2_error(gram: Array) -> Array:
    """Return B'B for the strategy B of least error among those of L2 sensitivity 1, shape (n, n).

    Parameters
    ----------
    gram : ndarray, shape (n, n)

    References
    ----------
    Li, Hay, Rastogi, Miklau, McGregor: Optimizing linear counting queries under differential privacy, PODS
    2010, program 5.2. There the variable is X with B'B = W'X W, though the text has X = B'B; here it is B'B
    itself, and the n constraints with one u_i each are one with all of them, which has the same solutions.

    Examples
    --------
    >>> from matrixdp.selection.gram import solve_gram
    >>> gram = np.tri(4).T @ np.tri(4)
    >>> squares = least_l2_error(gram)
    >>> round(float(np.trace(gram @ np.linalg.inv(squares))), 3), round(solve_gram(gram).loss, 3)
    (6.874, 6.874)
    """
    queries = spectrum_of(gram).root()
    count, size = queries.shape
    program = Program()
    squares, errors = program.symmetric(size), program.symmetric(count)
    constant = np.zeros((size + count, size + count))
    constant[:size, size:], constant[size:, :size] = queries.T, queries
    nothing = np.full((size, count), NONE)
    program.positive(constant, np.block([[squares, nothing], [nothing.T, errors]]))
    program.at_most(np.diagonal(squares)[:, None], np.ones(1), np.ones(1))
    costs = np.zeros(program.size)
    costs[np.diagonal(errors)] = 1.0 / np.trace(gram)
    return np.asarray(program.minimize(costs)[squares])


def least_error(gram: Array, start: Array) -> Array:
    """Return a strategy of small error with as many queries as the start and L1 sensitivity 1, shape (m, n).

    The program is semidefinite but for the rank of a matrix, which convex iteration gives it: the matrix is
    charged for its projection onto the eigenvectors that it should not have, which are found anew each time.
    What is found depends on the start, and is no more than a local optimum. Where the iteration starts at
    no strategy (the trace heuristic), it stays there: with B also -B is a solution, and so is 0.

    Parameters
    ----------
    gram : ndarray, shape (n, n)
    start : ndarray, shape (m, n)
        A strategy that supports the workload.

    References
    ----------
    Li et al. 2010, theorem 5.17 and program 5.1, with the iteration that section 5.1 names (Dattorro). The
    workload enters as W itself, not its inverse, so that it need not have full rank, and one constraint
    stands for n. The diagonal of B'B is bounded by 1 besides, which the others imply once the rank is kept.

    Examples
    --------
    >>> gram = np.diag([1.0, 1.0, 0.0]) + 1.0
    >>> found = least_error(gram, np.eye(3))
    >>> round(float(np.abs(found).sum(axis=0).max()), 6)
    1.0
    """
    rows, size = start.shape
    program, strategy, squares, errors = _error_program(gram, rows)
    costs = np.zeros(program.size)
    costs[errors] = 1.0 / float(np.trace(gram))
    best = factor_of(start, gram, LAPLACE)
    current, square = best.rows, best.rows.T @ best.rows
    weight, reached, idle = _WEIGHT, False, 0
    for _ in range(_PROGRAMS):
        whole = np.block([[np.eye(rows), current], [current.T, square]])
        charge = weight * rank_direction(whole, rows)
        charged = costs.copy()
        charged[strategy] = 2.0 * charge[:rows, rows:]
        np.add.at(charged, squares, charge[rows:, rows:])
        try:
            values = program.minimize(charged)
        except NumericalError:
            break
        current, square = values[strategy], values[squares]
        kept = float(np.trace(square - current.T @ current)) <= _LEFT * size
        weight *= _EASE if kept else _GROWTH
        reached |= kept
        before = best.loss
        with suppress(NumericalError):  # on the way, a strategy may support less than the workload
            best = min(best, factor_of(current, gram, LAPLACE), key=lambda factor: factor.loss)
        idle = idle + 1 if reached and best.loss > before * (1.0 - _GAINED) else 0
        if idle == _PATIENCE:
            break
    return best.rows


def _error_program(gram: Array, rows: int) -> tuple[Program, Variables, Variables, Variables]:
    """Return program 5.1 without the rank: its strategy, what stands for B'B, and the queries' errors.

    Matrices have B where the paper has -B, which is the same: the signs of rows and columns can be changed.
    """
    queries = spectrum_of(gram).root()
    count, size = queries.shape
    program = Program()
    strategy, squares = program.variables(rows, size), program.symmetric(size)
    errors = program.symmetric(count)
    _bounded(program, strategy[:, :, None], np.ones((size, 1)), None)
    constant = scipy.linalg.block_diag(2.0 * np.eye(rows), np.zeros((size + count, size + count)))
    constant[rows : rows + size, rows + size :] = queries.T
    upper = np.full(constant.shape, NONE)
    upper[:rows, rows : rows + size] = strategy
    upper[rows : rows + size, rows : rows + size] = squares
    upper[rows + size :, rows + size :] = errors
    program.positive(constant, upper)
    own = rows + size
    program.positive(scipy.linalg.block_diag(np.eye(rows), np.zeros((size, size))), upper[:own, :own])
    program.at_most(np.diagonal(squares)[:, None], np.ones(1), np.ones(1))
    return program, strategy, squares, np.diagonal(errors)


def least_sensitivity(rows: Array, restarts: int = 8, seed: int = 0) -> Array:
    """Return a strategy B with the B'B of another one and a small L1 sensitivity, shape (r, n).

    A rotation of r given queries is searched, r being the rank, by convex iteration as in `least_error`, from
    the three roots of B'B that have a closed form and from random rotations. It is a local optimum.

    Parameters
    ----------
    rows : ndarray, shape (m, n)
        A strategy.
    restarts : int
        Random rotations to start from.
    seed : int
        Of the random rotations.

    References
    ----------
    Li et al. 2010, theorem 5.28 and program 5.3. The strategy enters as a rotation Q of D P', with
    [[I, Q], [Q', I]] of rank r in place of [[I, B], [B', B'B]]: the same, and for profiles of any rank.

    Examples
    --------
    The wavelet of four cells has sensitivity 3, and 2 after a rotation (figure 4 prints 2.210).

    >>> haar = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]], dtype=float)
    >>> round(float(np.abs(least_sensitivity(haar)).sum(axis=0).max()), 4)
    2.0
    """
    spectrum = spectrum_of(rows.T @ rows)
    root = spectrum.root()
    rank = len(root)
    scale = float(np.linalg.norm(root, axis=0).max())
    program = Program()
    rotation, limit = program.variables(rank, rank), int(program.variables(1)[0])
    terms = np.broadcast_to(rotation[:, None, :], (rank, root.shape[1], rank))
    _bounded(program, terms, root.T / scale, limit)
    upper = np.full((2 * rank, 2 * rank), NONE)
    upper[:rank, rank:] = rotation
    program.positive(np.eye(2 * rank), upper)
    own = [start for start in roots_of(spectrum.values, spectrum.vectors) if len(start) == rank]
    starts = [start @ (spectrum.vectors.T / np.sqrt(spectrum.values)) for start in own]
    random = generator(seed)
    starts += [np.linalg.qr(random.standard_normal((rank, rank)))[0] for _ in range(restarts)]
    found = [_rotated(program, rotation, limit, start, root / scale) for start in starts]
    return min(found, key=_sensitivity) * scale


def _sensitivity(rows: Array) -> float:
    return float(np.abs(rows).sum(axis=0).max())


def _rotated(program: Program, rotation: Variables, limit: int, start: Array, root: Array) -> Array:
    """Return the strategy of least sensitivity that is met from one rotation."""
    rank = len(root)
    current, best = start, start @ root
    weight, idle = _ROTATION_WEIGHT, 0
    for _ in range(_PROGRAMS):
        charge = rank_direction(np.block([[np.eye(rank), current], [current.T, np.eye(rank)]]), rank)
        costs = np.zeros(program.size)
        costs[limit], costs[rotation] = 1.0, 2.0 * weight * charge[:rank, rank:]
        try:
            current = program.minimize(costs)[rotation]
        except NumericalError:
            break
        weight *= _EASE if rank - float(np.vdot(current, current)) <= _LEFT * rank else _GROWTH
        left, _, right = np.linalg.svd(current)
        before = _sensitivity(best)
        best = min(best, left @ right @ root, key=_sensitivity)
        idle = idle + 1 if _sensitivity(best) > before * (1.0 - _GAINED) else 0
        if idle == _PATIENCE:
            break
    return best


@explicit_mechanism(
    "min-error",
    "Li et al. 2010, programs 5.1 and 5.2: least error",
    (1, 2),
    MAX_ERROR_CELLS,
    _NO_BOUND,
    MinError,
)
def error_factor(gram: Array, noise: Noise, options: MinError | None = None) -> Factor:
    """Return the strategy of least error that the programs find; the L2 bound holds for both norms.

    Under Gaussian noise it is the optimum of program 5.2. Under Laplace noise program 5.1 starts from the
    cells, from the L2 approximation, and from random strategies; the best that is met is returned.

    References
    ----------
    Li et al. 2010, problems 5.15 and 5.19.

    Examples
    --------
    >>> gram = np.full((4, 4), 16.0) + np.eye(4)
    >>> found = error_factor(gram, LAPLACE)
    >>> bool(found.bound <= found.loss < np.trace(gram))  # better than noise on cells
    True
    """
    given = MinError() if options is None else options
    bound = solve_gram(gram, gap=_GAP).bound
    if noise.norm == 2:
        spectrum = spectrum_of(least_l2_error(gram))
        return factor_of(spectrum.root(), gram, noise, bound)
    found = [least_error(gram, start) for start in _starts(gram, noise, given)]
    return min((factor_of(rows, gram, noise, bound) for rows in found), key=lambda factor: factor.loss)


def _starts(gram: Array, noise: Noise, given: MinError) -> Iterator[Array]:
    """Yield strategies to start from; queries beyond those of a root are random and small."""
    random = generator(given.seed)
    size = len(gram)
    rows = given.rows or size
    for start in (np.eye(size), l2_factor(gram, noise).rows):
        if len(start) <= rows:
            more = 0.1 / rows * random.standard_normal((rows - len(start), size))
            yield np.vstack([start, more])
    for _ in range(given.restarts):
        yield random.standard_normal((rows, size))


@explicit_mechanism(
    "min-sensitivity",
    "Li et al. 2010, program 5.3: least sensitivity of the profile of an approximation",
    (1,),
    MAX_SENSITIVITY_CELLS,
    _NO_BOUND,
    MinSensitivity,
)
def sensitivity_factor(gram: Array, noise: Noise, options: MinSensitivity | None = None) -> Factor:
    """Return an approximation's error profile with the least L1 sensitivity that the program finds.

    Raises
    ------
    WorkloadError
        If the queries do not determine every cell: an error profile is the inverse of B'B.

    References
    ----------
    Li et al. 2010, problem 5.16 (which section 5.2 suggests for both approximations).

    Examples
    --------
    >>> gram = np.tri(4).T @ np.tri(4)
    >>> sensitivity_factor(gram, LAPLACE).loss < l2_factor(gram, LAPLACE).loss
    True
    """
    given = MinSensitivity() if options is None else options
    solve = l2_factor if given.profile == "l2-approximation" else singular_value_factor
    rank = len(spectrum_of(gram).values)
    if rank < len(gram):
        raise WorkloadError(
            f"min-sensitivity: found queries of rank {rank} over {len(gram)} cells, which have no error "
            "profile; expected queries that determine every cell. Use l2-approximation or min-error"
        )
    chosen = solve(gram, noise)
    return factor_of(least_sensitivity(chosen.rows, given.restarts, given.seed), gram, noise, chosen.bound)
