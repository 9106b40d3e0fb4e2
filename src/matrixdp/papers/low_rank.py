"""The low-rank mechanism: the workload as a product of two matrices, found by an augmented Lagrangian."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact.linear import Array
from matrixdp.mechanisms import (
    Factor,
    Options,
    Spectrum,
    explicit_mechanism,
    factor_of,
    generator,
    option,
    spectrum_of,
)
from matrixdp.noise import Noise

MAX_CELLS = 1_024
#: Entries of the rows beside the singular vectors where the search starts.
_BESIDE = 1e-8
#: Updates at most, the alternations in each, and the accelerated steps in each of these.
_UPDATES, _ALTERNATIONS, _STEPS = {2: 50, 1: 100}, 5, 5
#: The penalty of W = B L is multiplied by this every few updates, up to the largest.
_GROWTH, _EVERY, _LARGEST = {2: 2.0, 1: 5.0}, 8, 1e5
#: The Frobenius norm of W - B L at which the search stops.
_VIOLATION = 1e-2
#: Under the L1 norm entries below this are moved at random by about as much, lest L lose rank.
_SMALL = 1e-5
#: The first guess at the Lipschitz constant of the gradient is this share of its bound.
_GUESS = 0.01


@dataclass(frozen=True)
class Decomposition(Options):
    """Of the search for W = B L."""

    rank_factor: float = option(1.2, "rows of the strategy over the rank of the workload")
    updates: int = option(0, "of the multipliers at most; 0 is 50, under Laplace noise 100")


def project_columns(rows: Array, noise: Noise) -> Array:
    """Return the nearest matrix whose columns have a norm of at most 1: L1 for Laplace noise, else L2.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN, LAPLACE
    >>> project_columns(np.array([[2.0, 0.1], [1.0, 0.2]]), LAPLACE).tolist()
    [[1.0, 0.1], [0.0, 0.2]]
    >>> project_columns(np.array([[3.0], [4.0]]), GAUSSIAN).ravel().tolist()
    [0.6, 0.8]
    """
    if noise.norm == 2:
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=0), 1.0))
    magnitudes = np.abs(rows)
    ordered = -np.sort(-magnitudes, axis=0)
    sums = ordered.cumsum(axis=0) - 1.0
    counts = np.arange(1, len(rows) + 1)[:, None]
    last = (ordered * counts > sums).sum(axis=0) - 1
    thresholds = np.maximum(sums[last, np.arange(rows.shape[1])] / (last + 1), 0.0)
    thresholds[magnitudes.sum(axis=0) <= 1.0] = 0.0
    return np.asarray(np.sign(rows) * np.maximum(magnitudes - thresholds, 0.0))


@explicit_mechanism(
    "low-rank",
    "Yuan et al. 2012: the low-rank mechanism",
    (1, 2),
    MAX_CELLS,
    "no bound: the decomposition is not convex",
    Decomposition,
)
def low_rank_factor(gram: Array, noise: Noise, options: Decomposition | None = None) -> Factor:
    """Minimize tr(B'B) over W = B L with columns of L of norm at most 1; L is the strategy.

    An augmented Lagrangian: B has a closed form, L is found by accelerated projected gradients, in turns;
    then the multipliers of W = B L are updated. The search starts from the singular value decomposition, L
    divided by the root of its number of rows. W enters through queries with the same Gram matrix, as many as
    its rank, which changes no step. The last L is taken; what lies outside of the workload's row space is
    removed from it, so that queries are supported exactly, and answers are least squares. Where the search
    ends before W = B L holds, the published mechanism answers B L in place of W; here the directions
    that L lost are measured beside it, see `_supporting`.

    References
    ----------
    Yuan, Zhang, Winslett, Xiao, Yang, Hao: Low-rank mechanism: optimizing batch queries under differential
    privacy, PVLDB 2012, section 4 (the decomposition) and section 5 (the augmented Lagrangian), with the
    constants of its authors' program. With the L2 norm: Yuan et al., Optimizing batch linear queries under
    exact and approximate differential privacy, TODS 2015; as described by COA (KDD 2016), section 2.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> gram = np.tri(16) @ np.tri(16).T
    >>> bool(low_rank_factor(gram, GAUSSIAN).loss < np.trace(gram))
    True
    """
    spectrum = spectrum_of(gram)
    right, reached = _decomposed(spectrum, noise, Decomposition() if options is None else options)
    if not reached:
        right = _supporting(right, spectrum, gram, noise)
    elif not spectrum.full:
        right = right @ spectrum.vectors.T @ spectrum.vectors
    return factor_of(right, gram, noise)


def _supporting(rows: Array, spectrum: Spectrum, gram: Array, noise: Noise) -> Array:
    """Return rows within the workload's row space, with what they measure too faintly measured beside them.

    The singular directions of the rows are kept from the strongest on. The others form orthonormal rows that
    are added with one scale, for which the loss of both together is least in closed form; how many are kept
    is what makes that loss least.
    """
    scaled = rows / float(noise.column_norms(rows).max())
    rank = len(spectrum.values)
    _, found, turned = scipy.linalg.svd(scaled @ spectrum.vectors.T, check_finite=False)
    scales = np.zeros(rank)
    scales[: len(found)] = found
    directions = turned @ spectrum.vectors
    errors = np.einsum("ij,jk,ik->i", directions, gram, directions, optimize=True)
    within = np.divide(errors, scales**2, out=np.full(rank, np.inf), where=scales > 0).cumsum()
    # place k - 1 is for k directions that are kept; the last one leaves nothing to be added
    beside = errors[::-1].cumsum()[::-1][1:]
    costs = (np.abs(directions) ** noise.norm)[::-1].cumsum(axis=0)[::-1][1:].max(axis=1)
    sizes = (beside / (costs * within[:-1])) ** (1.0 / (2 + noise.norm))
    losses = np.full(rank, within[-1])
    reached = np.isfinite(within[:-1])
    losses[:-1] = np.inf
    size, cost = sizes[reached], costs[reached]
    sensitivity = (1.0 + size**noise.norm * cost) ** (2.0 / noise.norm)
    losses[:-1][reached] = sensitivity * (within[:-1][reached] + beside[reached] / size**2)
    kept = int(losses.argmin()) + 1
    strong = scaled @ directions[:kept].T @ directions[:kept]
    return np.vstack([strong, sizes[kept - 1] * directions[kept:]]) if kept < rank else strong


def _decomposed(spectrum: Spectrum, noise: Noise, given: Decomposition) -> tuple[Array, bool]:
    """Return L at the end of the search, and whether W = B L holds there."""
    rank, size = spectrum.vectors.shape
    rows = math.ceil(given.rank_factor * rank)
    queries = spectrum.root()
    # eigenvalues ascend
    strongest = slice(max(rank - rows, 0), None)
    count = min(rank, rows)
    right = np.full((rows, size), _BESIDE)
    right[:count] = spectrum.vectors[strongest]
    right /= math.sqrt(rows)
    left = np.full((rank, rows), _BESIDE)
    left[strongest, :count] = np.diag(np.sqrt(spectrum.values[strongest]))
    left *= math.sqrt(rows)
    multipliers = np.zeros_like(queries)
    penalty = 1.0
    random = generator(0)
    for update in range(1, (given.updates or _UPDATES[noise.norm]) + 1):
        target = penalty * queries + multipliers
        for _ in range(_ALTERNATIONS):
            right = _stepped(left, right, target, penalty, noise)
            if noise.norm == 1:
                small = np.abs(right) < _SMALL
                right = right + small * (_SMALL * random.standard_normal(right.shape))
            inner = penalty * right @ right.T + np.eye(rows)
            left = scipy.linalg.solve(inner, right @ target.T, assume_a="pos", check_finite=False).T
        residual = queries - left @ right
        if float(np.linalg.norm(residual)) < _VIOLATION:
            return right, True
        if update % _EVERY == 0:
            penalty = min(_GROWTH[noise.norm] * penalty, _LARGEST)
        multipliers = multipliers + penalty * residual
    return right, False


def _stepped(left: Array, right: Array, target: Array, penalty: float, noise: Noise) -> Array:
    """Minimize penalty / 2 ||B L||^2 - <B'target, L> over L with bounded columns, by accelerated steps.

    The Lipschitz constant of the gradient is doubled until the quadratic model lies above the objective.
    """
    square = penalty * left.T @ left
    linear = left.T @ target
    most = float(np.abs(square).sum(axis=0).max())
    curvature = max(1.0, _GUESS * most)
    before = current = right
    momentum = 1.0
    for _ in range(_STEPS):
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = current + (momentum - 1.0) / following * (current - before)
        before, momentum = current, following
        gradient = square @ ahead - linear
        while True:
            current = project_columns(ahead - gradient / curvature, noise)
            moved = current - ahead
            # the objective is quadratic: it exceeds its tangent by half of this
            if curvature >= most or float(np.vdot(moved, square @ moved)) <= curvature * float(
                np.vdot(moved, moved)
            ):
                break
            curvature *= 2.0
    return current
