"""From a real strategy to the integer strategy that is measured, its support exact.

The factor is scaled to 2^14 (2^18 under Laplace noise, where the errors of a column add up), extended by
lightly weighted rows along what it does not measure, and rounded. The result is proved to have full column
rank, so every query of the workload stays in its row space *exactly*, whatever the rounding did; the
extension's weight balances what it adds to the sensitivity against the rounding errors that it absorbs.
Both cost about 2^-14 of the variance. Strategies that are small integers as they stand are kept as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact import (
    DeficientMatrix,
    ExplicitMatrix,
    IdentityMatrix,
    IntegerMatrix,
    MeasuredMatrix,
    MergedMatrix,
)
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import THREADED_CELLS, blas_threads, check_matrices
from matrixdp.noise import Noise
from matrixdp.plans import Block
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.limits import LIMITS

#: Real rows whose entries are multiples of one number, up to this, are measured as integers exactly.
_SMALL = 1 << 12
#: log2 of the largest column norm of a matrix over groups: its square is multiplied exactly.
_MOST_BITS = 23


#: log2 of the largest column norm of a rounded matrix.
BITS = 14
#: The same for L1 norms, to which the rounding errors of all rows add up.
SUM_BITS = 18
#: How far missing directions may be from orthogonal to the rows, beside the longest of these.
_ORTHOGONAL = 1e-10
#: Up to this share of the rows of a large factor, missing directions are found without its factorization;
#: from this many on every cell is measured weakly instead.
_FEW_MISSING = 0.25
_MANY_MISSING = 256


def measured_matrix(factor: Factor, noise: Noise, *, weighted: bool = False) -> MeasuredMatrix:
    """Return the integer matrix that measures a factor.

    Integer matrices stay as they are. Errors depend on B'B alone, so that other rows may take the place of
    B's; where rows are ``weighted``, each by a number of its own, they stay. Where a real
    strategy does not have full column rank, the ``unsupported`` rows of the integer one span what queries may
    not ask about. Raises TooLargeError past ``LIMITS.max_measured_cells`` cells.

    Examples
    --------
    >>> import numpy as np
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.selection.gram import solve_gram
    >>> measured_matrix(solve_gram(np.eye(4)), GAUSSIAN).squared_sensitivity
    1
    """
    if isinstance(factor.strategy, MeasuredMatrix):
        return factor.strategy
    if weighted:
        check_measurable(factor.rows)
        return _rounded(factor.rows, _rank(factor.rows), 2.0**BITS, noise)
    if factor.dual is None:
        return measured_factor(factor.rows, noise)
    rows = factor.rows
    if _is_orthogonal(rows):
        return IdentityMatrix(factor.cells)
    _check_size(factor.cells)
    alike = _of_values_alike(rows) if noise.norm == 2 else None
    if alike is not None:
        return alike
    # rows that come with a dual point are independent: only their number says what is missing
    if factor.cells < THREADED_CELLS:
        return _rounded(rows, len(rows), 2.0**BITS, noise)
    outside = _outside_of_large(factor)
    with blas_threads(factor.cells):
        return _rounded(rows, len(rows), 2.0**BITS, noise, outside, factor.inverse)


def lower_triangle(rows: Array, rank: int, unsupported: Array | None) -> MeasuredMatrix:
    """Return the integer matrix, lower triangular, with nearly the Gram matrix of real rows.

    The longest column has norm 1. Rows of a smaller rank than they have columns are extended: every cell is
    measured as weakly as what rounding takes from them. The ``unsupported`` rows span what may not be asked.

    Examples
    --------
    >>> import numpy as np
    >>> matrix = lower_triangle(np.array([[0.6, 0.8], [0.8, -0.6]]), 2, None)
    >>> (matrix.written() / 2.0**BITS).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    cells = rows.shape[1]
    if rank < cells:
        weak = math.sqrt(math.sqrt((cells - rank) / 12.0)) * 2.0 ** (-BITS / 2)
        rows = np.vstack([rows, weak * np.eye(cells)])
    upper = scipy.linalg.qr(rows[:, ::-1], mode="r", check_finite=False)[0][:cells]
    lower = upper[::-1, ::-1] * np.sign(np.diagonal(upper))[::-1, None]
    return IntegerMatrix(np.tril(np.rint(2.0**BITS * lower)).astype(np.int64), unsupported)


def over_every_value(
    matrix: MeasuredMatrix,
    sizes: Sequence[int],
    groups: Sequence[NDArray[np.int64] | None],
    noise: Noise,
    multipliers: NDArray[np.int64] | None = None,
    place: int = 0,
) -> tuple[MeasuredMatrix, NDArray[np.int64] | None]:
    """Return the matrix over all values of one for pairs of them, and the multipliers of its rows.

    What a group has in common is measured as for its pair; the m - 1 contrasts within it have the variance of
    that of the pair, whose products with all others are left out: the reversal of pairs changes nothing that
    is asked, so that this costs nothing.

    Parameters
    ----------
    matrix : MeasuredMatrix
    sizes : sequence of int
        Of its attributes.
    groups : sequence of ndarray of int64, or None
        For each attribute the group of each value; None where no pairs stand for them.
    noise : Noise
    multipliers : ndarray of int64, optional
        Of the rows of all blocks of a part, of which this is the one at ``place``.
    """
    rows = matrix.written() / math.sqrt(matrix.squared_sensitivity)
    lengths = np.linalg.norm(rows, axis=1)
    if matrix.unsupported is not None:
        # rows that only keep the support leave nothing
        rows = rows - (rows @ matrix.unsupported.T) @ matrix.unsupported
    kept = np.flatnonzero(np.linalg.norm(rows, axis=1) > lengths / 2.0)
    if len(groups) > 1:
        assert multipliers is None
        return _joint_values(rows[kept], sizes, groups, noise), None
    [own] = groups
    assert own is not None
    counts = np.bincount(own)
    first, second = np.split(rows[kept], 2, axis=1)
    shared, contrasts = (first + second[:, ::-1]) / 2.0, (first - second[:, ::-1]) / 2.0
    squares = (contrasts**2).sum(axis=0) * counts / np.maximum(counts - 1, 1)
    told = (counts > 1) & (_told(matrix.unsupported, len(counts)))
    scale = 2.0 ** min(BITS + int(counts[told].max(initial=1)).bit_length(), _MOST_BITS)
    sums = np.linalg.norm(shared, axis=1)
    between = np.flatnonzero(sums > LIMITS.span * sums.max())
    real = shared[between]
    if multipliers is None and len(real) > len(counts):
        real = np.linalg.qr(real).R
    made = _rounded(_lengthened(real, scale), _rank(real), scale, noise)
    weights = told * np.maximum(np.rint(scale * np.sqrt(squares) / counts), 1.0)
    merged = MergedMatrix(made, (own,), weights.astype(np.int64))
    if multipliers is None:
        return merged, None
    known = np.moveaxis(multipliers, place, 0)[kept].astype(np.float64)
    flat = known.reshape(len(known), -1)
    support = np.broadcast_to(flat[between].mean(axis=0), (made.rows - len(between), flat.shape[1]))
    shares = contrasts**2 / np.maximum((contrasts**2).sum(axis=0), np.finfo(float).tiny)
    within = np.sqrt(shares.T @ flat**2)[own[told[own]]]
    found = np.maximum(np.rint(np.vstack([flat[between], support, within])), 1.0).astype(np.int64)
    return merged, np.ascontiguousarray(np.moveaxis(found.reshape(-1, *known.shape[1:]), 0, place))


def _told(outside: Array | None, count: int) -> NDArray[np.bool_]:
    """Return of which pairs the difference is measured."""
    if outside is None:
        return np.ones(count, dtype=np.bool_)
    first, second = np.split(outside, 2, axis=1)
    return np.asarray(((first - second[:, ::-1]) ** 2).sum(axis=0) / 2.0 < 0.5)  # all of it, or nothing


def _joint_values(
    rows: Array, sizes: Sequence[int], groups: Sequence[NDArray[np.int64] | None], noise: Noise
) -> MeasuredMatrix:
    """Return the integer matrix over all values of rows over several attributes, with pairs for some."""
    for axis, own in enumerate(groups):
        if own is None:
            continue
        tensor = np.moveaxis(rows.reshape(len(rows), *sizes), axis + 1, -1)
        others, counts = tensor.shape[1:-1], np.bincount(own)
        first, second = np.split(tensor, 2, axis=-1)
        shared, contrasts = (first + second[..., ::-1]) / 2.0, (first - second[..., ::-1]) / 2.0
        # rows over all values whose Gram matrix is that of what a group has in common
        roots = np.sqrt(counts)
        parts = [_compact((shared * roots).reshape(len(rows), -1)).reshape(-1, *others, len(counts)) / roots]
        parts[0] = parts[0][..., own]
        for place in np.flatnonzero(counts > 1):
            size = int(counts[place])
            single = _compact(contrasts[..., place].reshape(len(rows), -1)) * math.sqrt(size / (size - 1))
            spread = np.zeros((len(single), size - 1, math.prod(others), len(own)))
            helmert = scipy.linalg.helmert(size)
            spread[..., own == place] = np.einsum("ro,hv->rhov", single, helmert)
            parts.append(spread.reshape(-1, *others, len(own)))
        tensor = np.moveaxis(np.concatenate(parts), -1, axis + 1)
        sizes = tensor.shape[1:]
        rows = tensor.reshape(len(tensor), -1)
    check_measurable(rows)
    return _rounded(_lengthened(rows, 2.0**BITS), len(rows), 2.0**BITS, noise)


def _lengthened(rows: Array, scale: float) -> Array:
    """Return rows of which none vanishes in rounding: what is measured weakly is measured a little better."""
    least = 2.0 * math.sqrt(rows.shape[1]) / scale
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.maximum(1.0, least / lengths))


def _compact(rows: Array) -> Array:
    """Return independent rows with the same Gram matrix."""
    _, values, right = scipy.linalg.svd(rows, full_matrices=False, check_finite=False)
    kept = values > LIMITS.span * values.max(initial=0.0)
    return np.asarray(values[kept, None] * right[kept])


def measured_factor(rows: Array, noise: Noise) -> MeasuredMatrix:
    """Return the integer matrix that measures a real strategy of any rank, its largest column norm 1.

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> measured_factor(np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]]), LAPLACE).sensitivity
    2
    >>> measured_factor(np.ones((1, 3)), LAPLACE).unsupported.shape
    (2, 3)
    """
    if check_measurable(rows):
        return IdentityMatrix(rows.shape[1])
    small = small_integers(rows)
    if small is not None:
        return explicit_matrix(small)
    if 2 * len(rows) <= rows.shape[1]:
        distinct, inverse = np.unique(rows, axis=1, return_inverse=True)
        if _rank(distinct) == distinct.shape[1]:
            # over cells that are measured apart it has full rank; written out it keeps it exactly
            matrix = measured_factor(distinct, noise)
            return DeficientMatrix(matrix.written().astype(np.int64)[:, inverse.ravel()])
    return _rounded(rows, _rank(rows), 2.0 ** (BITS if noise.norm == 2 else SUM_BITS), noise)


def _rank(rows: Array) -> int:
    if _holds_every_cell(rows):
        return int(rows.shape[1])
    values = scipy.linalg.svdvals(rows, check_finite=False)
    return int((values > LIMITS.span * values[0]).sum())


def product_blocks(
    domain: Domain, matrices: Iterable[tuple[tuple[str, ...], MeasuredMatrix]]
) -> tuple[Block, ...]:
    """Return the blocks of a product of matrices over some attributes; an identity is one of each alone."""
    blocks: list[Block] = []
    for names, matrix in matrices:
        if isinstance(matrix, IdentityMatrix):
            blocks += [Block((name,), IdentityMatrix(domain[name].size)) for name in names]
        else:
            blocks.append(Block(names, matrix))
    return tuple(blocks)


def check_measurable(rows: Array) -> bool:
    """Refuse rows with too many columns to be measured; return whether they are the identity."""
    identity = len(rows) == rows.shape[1] and _is_identity(rows)
    if not identity:
        _check_size(rows.shape[1])
    return identity


def _check_size(cells: int) -> None:
    if cells > LIMITS.max_measured_cells:
        raise TooLargeError(
            f"a part of {cells} cells would be measured by a matrix of {cells} x {cells}; the limit is "
            f"{LIMITS.max_measured_cells} cells"
        )
    check_matrices((), cells)


def _holds_every_cell(rows: Array) -> bool:
    """Return whether the rows begin with a multiple of every cell's count that rounding does not end."""
    size = rows.shape[1]
    if len(rows) < size or np.count_nonzero(rows[:size]) != size:
        return False
    return float(np.diagonal(rows).min()) > 1e-4


def _is_orthogonal(rows: Array) -> bool:
    """Return whether the Gram matrix of rows is the identity: where it is not, one vector mostly tells."""
    probe = np.cos(np.arange(rows.shape[1]))
    if float(np.abs(rows.T @ (rows @ probe) - probe).max()) > 1e-9 * rows.size**0.5 + 1e-6:
        return False
    return _is_identity(rows.T @ rows)


def _of_values_alike(rows: Array) -> IntegerMatrix | None:
    """Return the integer matrix of a strategy that tells all values alike, by rows that do so too, else None.

    L2 norms and errors depend on B'B alone; where that is a I + b 11' of full rank its root stands for B.
    """
    size = rows.shape[1]

    def alike(products: Array, own: NDArray[np.bool_]) -> bool:
        return max(float(np.ptp(products[own])), float(np.ptp(products[~own]))) < 1e-9

    # the products of one column with all others rule out most strategies
    if size < 3 or len(rows) != size or not alike(rows[:, 0] @ rows, np.arange(size) == 0):
        return None
    gram = rows.T @ rows
    if not alike(gram, np.eye(size, dtype=bool)):
        return None
    shared = float(gram[0, 1])
    contrast = math.sqrt(max(float(gram[0, 0]) - shared, 0.0))
    total = math.sqrt(max(float(gram[0, 0]) + (size - 1) * shared, 0.0))
    off = round(2.0**BITS * (total - contrast) / size)
    own = round(2.0**BITS * contrast)
    if min(own, own + size * off) < 1:
        return None
    entries = np.full((size, size), off, dtype=np.int64)
    entries[np.diag_indices(size)] += own
    return IntegerMatrix(entries, near=(np.eye(size) - off / (own + size * off)) / own)


def _outside_of_large(factor: Factor) -> Array | None:
    """Return orthonormal rows that span what a large factor does not measure, where that is little.

    I - R B with a right inverse R of B maps every vector there: as many vectors do as there are directions.
    """
    rows = factor.rows
    missing = factor.cells - len(rows)
    if not 0 < missing <= _FEW_MISSING * len(rows):
        return None
    # frequencies that rise along the cells are as good as random numbers
    found = np.cos(np.multiply.outer(np.sqrt(np.arange(missing) + 2.0), np.arange(factor.cells) ** 2))
    for _ in range(2):
        found = np.linalg.qr((found - (found @ rows.T) @ factor.inverse.T).T)[0].T
    away = float(np.abs(found @ rows.T).max())
    return (
        np.ascontiguousarray(found)
        if away <= _ORTHOGONAL * float(np.linalg.norm(rows, axis=1).max())
        else None
    )


def _is_identity(square: Array) -> bool:
    return float(np.abs(square - np.eye(len(square))).max()) < 1e-9


def small_integers(rows: Array) -> NDArray[np.int64] | None:
    """Return the rows as small integers where they are proportional to such, without a common factor."""
    magnitudes = np.abs(rows)
    positive = magnitudes[magnitudes > 1e-12 * magnitudes.max()]
    smallest = float(positive.min())
    if float(positive.max()) > _SMALL * smallest:
        return None
    for multiple in range(1, 9):
        scaled = rows * (multiple / smallest)
        entries = np.rint(scaled)
        if float(np.abs(scaled - entries).max()) < 1e-9 * multiple:
            return np.asarray(entries, dtype=np.int64) // int(np.gcd.reduce(entries.astype(np.int64).ravel()))
    return None


def explicit_matrix(entries: NDArray[np.int64]) -> ExplicitMatrix:
    """Return a matrix of integers as it is measured; rows of zeros are left out."""
    entries = entries[np.abs(entries).any(axis=1)]
    if entries.shape[0] >= entries.shape[1]:
        try:
            return IntegerMatrix(entries)
        except NumericalError:
            pass
    return DeficientMatrix(entries)


def _rounded(
    factor: Array,
    rank: int,
    scale: float,
    noise: Noise,
    outside: Array | None = None,
    inverse: Array | None = None,
) -> IntegerMatrix:
    """Return the rounded factor, with rows along what it does not measure: ``outside``, where known.

    ``inverse`` is a right inverse of the factor, where one is known.
    """
    rows = np.rint(scale * factor)
    missing = factor.shape[1] - rank
    if missing == 0:
        if noise.norm == 1:
            rows = _filled(rows)
        return IntegerMatrix(rows.astype(np.int64), near=None if inverse is None else inverse / scale)
    if outside is None:
        lengths = np.linalg.norm(factor, axis=1, keepdims=True)
        # what rounding left of a row that is zero has no direction
        lengths[lengths <= LIMITS.span * lengths.max()] = np.inf
        outside = _outside(factor / lengths, rank)
    if noise.norm == 1:
        spread = float(np.abs(outside).sum(axis=0).max())
        weight = (missing * scale / (12.0 * spread)) ** (1.0 / 3.0)
    else:
        spread = float((outside * outside).sum(axis=0).max())
        weight = math.sqrt(scale * math.sqrt(missing / (12.0 * spread)))
    few = noise.norm == 2 and missing >= rank and missing >= _MANY_MISSING
    # every cell, measured weakly, proves the rank and is solved for without a factorization of that size
    extension = np.rint(weight) * np.eye(factor.shape[1]) if few else np.rint(weight * outside)
    entries = np.vstack([rows, extension]).astype(np.int64)
    near = None
    if inverse is not None and not few:
        near = np.hstack([(inverse - outside.T @ (outside @ inverse)) / scale, outside.T / np.rint(weight)])
    return IntegerMatrix(entries, np.ascontiguousarray(outside), near)


def _outside(normed: Array, rank: int) -> Array:
    """Return orthonormal rows that span what rows of length 1, of a known rank, do not."""
    if rank == len(normed):
        return np.asarray(scipy.linalg.qr(normed.T, check_finite=False)[0][:, rank:].T)
    return np.asarray(scipy.linalg.svd(normed.T, check_finite=False)[0][:, rank:].T)


def _filled(rows: Array) -> Array:
    """Return the rows with the largest entry of each column raised by what rounding took from its L1 norm.

    Columns of equal norms differ by a few units after rounding; one whose norm is below the largest can be
    measured more precisely at no cost. Larger differences are the strategy's own and stay.
    """
    norms = np.abs(rows).sum(axis=0)
    short = norms.max() - norms
    short[short > len(rows)] = 0.0
    places = np.abs(rows).argmax(axis=0), np.arange(rows.shape[1])
    filled = rows.copy()
    filled[places] += np.sign(filled[places]) * short
    return filled
