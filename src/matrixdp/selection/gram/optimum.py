"""Explicit optimal-strategy problems: factoring Gram matrices, symmetry, and the strategy that comes out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact import CenteredMatrix
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import blas_threads
from matrixdp.selection.gram.chains import DenseSpectra, chain_of, solve_chain
from matrixdp.selection.gram.dual import solve_dual
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem.entries import chain_order
from matrixdp.selection.problem.grams import Gram, as_gram

#: Gram matrices with larger entries, or smaller ones than its inverse, are scaled: their cubes overflow.
_EXTREME = 1e75


def _involutions(sizes: Sequence[int]) -> list[NDArray[np.intp]]:
    """Return candidate symmetries of a product domain: reversals, and the exchange of two equal axes."""
    cells = np.arange(math.prod(sizes)).reshape(sizes)
    singles = [np.flip(cells, axis).ravel() for axis in range(len(sizes)) if sizes[axis] > 1]
    candidates = [*singles]
    if len(sizes) > 1:
        candidates.append(np.flip(cells).ravel())
        for i in range(len(sizes)):
            equal = [j for j in range(i + 1, len(sizes)) if sizes[i] == sizes[j] > 1]
            candidates += [np.swapaxes(cells, i, j).ravel() for j in equal]
    return candidates


def symmetries_of(gram: Array, sizes: Sequence[int]) -> list[NDArray[np.intp]]:
    """Return commuting involutions of the cells of a product domain that leave a Gram matrix unchanged.

    Examples
    --------
    >>> symmetries_of(np.tri(3).T @ np.tri(3), (3,)), [one.tolist() for one in symmetries_of(np.eye(3), (3,))]
    ([], [[2, 1, 0]])
    """
    tolerance, diagonal = LIMITS.same * float(np.abs(gram).max()), np.diagonal(gram)
    found: list[NDArray[np.intp]] = []
    generated = {tuple(range(len(gram)))}
    for permutation in _involutions(sizes):
        if any((permutation[g] != g[permutation]).any() for g in found):
            continue
        if tuple(permutation) in generated:
            continue
        if float(np.abs(diagonal[permutation] - diagonal).max()) > tolerance:
            continue
        if float(np.abs(gram[np.ix_(permutation, permutation)] - gram).max()) <= tolerance:
            found.append(permutation)
            generated |= {tuple(np.asarray(g)[permutation]) for g in list(generated)}
    return found


def _characters(size: int, symmetries: list[NDArray[np.intp]]) -> list[scipy.sparse.csr_array]:
    """Return orthonormal bases (size x n_b) of the joint eigenspaces of commuting involutions."""
    elements: list[tuple[NDArray[np.intp], tuple[int, ...]]] = [(np.arange(size), ())]
    for permutation in symmetries:
        elements = [(g, (*e, 0)) for g, e in elements] + [(g[permutation], (*e, 1)) for g, e in elements]
    representatives = np.unique(np.min([g for g, _ in elements], axis=0))
    columns = np.arange(len(representatives))
    bases = []
    for signs in itertools.product((1, -1), repeat=len(symmetries)):
        basis = np.zeros((size, len(representatives)))
        for g, exponents in elements:
            character = math.prod(s for s, e in zip(signs, exponents, strict=True) if e)
            np.add.at(basis, (g[representatives], columns), character)
        norms = np.linalg.norm(basis, axis=0)
        keep = norms > 0.5
        if keep.any():
            bases.append(scipy.sparse.csr_array(basis[:, keep] / norms[keep]))
    return bases


def solve_gram(
    gram: Gram | Array,
    sizes: Sequence[int] | None = None,
    gap: float = GAP,
    start: Array | None = None,
) -> Factor:
    """Return the certified optimum for a Gram matrix of any rank, using the symmetries it has.

    What the kind of Gram matrix knows comes first; what it does not know is looked for in its entries, and
    along the attributes, where ``sizes`` says that N is a product domain. ``start`` is a dual distribution.
    Raises NumericalError if the Gram matrix is zero or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> round(solve_gram(np.eye(3)).loss, 6)
    3.0
    """
    gram = as_gram(gram)
    if gram.symmetric is None and gram.query is None and not _in_few_groups(gram):
        gram = gram.explicit
    top = float(gram.diagonal().max())
    if not (math.isfinite(top) and top > 0):
        raise NumericalError("a Gram matrix that is zero or not finite has no strategy")
    if not 1 / _EXTREME < top < _EXTREME:  # its cubes overflow, or vanish
        return solve_gram(gram.matrix() / top, sizes, gap, start).scaled(top)
    if _in_few_groups(gram):
        return _solve_alike(gram, gap, start)
    if gram.symmetric is not None:
        return _closed_form(gram.size, *gram.symmetric)
    if gram.query is not None:
        return _solve_query(gram.query)
    return _solve_explicit(gram.explicit.entries, sizes, gap, start)


def _in_few_groups(gram: Gram) -> bool:
    """Return whether values may trade places in groups of two or more on average."""
    return gram.alike is not None and 1 < gram.alike.max() + 1 <= gram.size // 2


def _solve_explicit(gram: Array, sizes: Sequence[int] | None, gap: float, start: Array | None) -> Factor:
    """Solve for a Gram matrix that has none of the forms that kinds know."""
    order = chain_order(gram) if len(gram) >= LIMITS.min_chain_cells else None
    if order is None:
        return _solve_in_order(gram, sizes, gap, start)
    ordered = _solve_in_order(gram[np.ix_(order, order)], None, gap, None if start is None else start[order])
    return ordered.repeated(np.argsort(order))


def gram_method(gram: Gram | Array) -> str:
    """Return how `solve_gram` solves a problem, without solving it.

    Examples
    --------
    >>> [gram_method(gram) for gram in (np.eye(3), np.tri(600).T @ np.tri(600), np.diag([1.0, 2.0]))]
    ['closed form', 'chain', 'dual']
    """
    found = as_gram(gram).explicit
    if found.symmetric is not None or found.query is not None:
        return "closed form"
    own = found.entries
    if len(own) >= LIMITS.min_chain_cells and (chain_order(own) is not None or chain_of(own) is not None):
        return "chain"
    return "fixed point" if len(own) > LIMITS.chains_large_cells else "dual"


def _solve_in_order(gram: Array, sizes: Sequence[int] | None, gap: float, start: Array | None) -> Factor:
    """Solve for cells that are in the order of a chain, if there is one."""
    chain = chain_of(gram) if len(gram) >= LIMITS.min_chain_cells else None
    with blas_threads(len(gram)):
        found = None if chain is None else solve_chain(gram, chain, gap, start)
        if found is None and len(gram) > LIMITS.chains_large_cells:
            rows = _few_rows(gram)
            whole = DenseSpectra(gram)
            found = solve_chain(gram, whole, gap, start) if rows is None else solve_rows(rows, gap, start)
    return found or _solve_dense(gram, sizes, gap, start)


def _few_rows(gram: Array) -> Array | None:
    """Return R with V = R'R where it has few rows, by Cholesky factors with pivots, else None."""
    least = LIMITS.rank * float(np.diagonal(gram).max())
    factor, order, rank, _ = scipy.linalg.lapack.dpstrf(gram, tol=least)
    if rank > len(gram) // 8:
        return None
    rows = np.empty((rank, len(gram)))
    rows[:, order - 1] = np.triu(factor[:rank])
    return rows


def factored_blocks(gram: Array, symmetries: list[NDArray[np.intp]]) -> list[Array]:
    """Return R_b with V the sum of R_b'R_b and R_b R_b' diagonal, one for each eigenspace of the symmetries.

    Examples
    --------
    >>> gram = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> [block.shape for block in factored_blocks(gram, symmetries_of(gram, (2,)))]
    [(1, 2), (1, 2)]
    """
    spectra = []
    for basis in _characters(len(gram), symmetries) if symmetries else [None]:
        inner = gram if basis is None else basis.T @ gram @ basis
        spectra.append((basis, *scipy.linalg.eigh(inner, driver="evd", check_finite=False)))
    top = max(float(values[-1]) for _, values, _ in spectra)
    blocks = []
    for basis, values, vectors in spectra:
        keep = values > LIMITS.rank * top
        if keep.any():
            rows = (vectors[:, keep] * np.sqrt(values[keep])).T
            blocks.append(rows if basis is None else rows @ basis.T)
    return blocks


def _solve_alike(gram: Gram, gap: float, start: Array | None) -> Factor:
    """Solve for classes of cells that may trade places, as the counties of each state.

    The optimum's dual point is constant on a class. V is then the sum of a matrix over classes and, for each
    class of s cells, a multiple of the contrasts among them: a query of the class that counts s - 1 times.
    """
    classes = gram.alike
    assert classes is not None
    counts, (between, within) = np.bincount(classes), gram.between(classes)
    members = [np.flatnonzero(classes == one) for one in range(len(counts))]
    single = np.where(counts > 1, np.diagonal(between) - within, 0.0)
    means = between.copy()
    if start is not None:
        start = np.asarray(np.bincount(classes, weights=start), dtype=float)
    np.fill_diagonal(means, within + single / counts)
    roots = np.sqrt(counts)
    values, vectors = scipy.linalg.eigh(means * np.outer(roots, roots), driver="evd", check_finite=False)
    least = LIMITS.rank * max(float(values[-1]), float(single.max()))
    single[single <= least] = 0.0
    if not single.any():  # cells that no query tells apart
        merged = solve_gram(means, None, gap, start)
        assert merged.dual is not None
        return Factor(merged.rows[:, classes], merged.loss, merged.bound, (merged.dual / counts)[classes])
    between = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, values > least].T / roots
    contrasts = np.diag((counts - 1) * np.sqrt(single / counts))[single > 0]
    blocks = [np.asarray(block, dtype=np.float64) for block in (between, contrasts) if len(block)]
    point = solve_dual(blocks, gap, start)
    rows = [block[:, classes] for block in point.factors[:-1]]
    for own in np.flatnonzero(single > 0):
        spread = np.zeros((counts[own] - 1, gram.size))
        size = math.sqrt(counts[own] / (counts[own] - 1.0)) * np.linalg.norm(point.factors[-1][:, own])
        spread[:, members[own]] = size * scipy.linalg.helmert(int(counts[own]))
        rows.append(spread)
    return Factor(np.vstack(rows), point.primal, point.dual, (point.p / counts)[classes])


def _closed_form(size: int, single: float, off: float) -> Factor:
    """Return the optimum for V = a I + b 11', whose dual point is uniform.

    X is the root of V with its diagonal scaled to 1, and the rows are its eigenvectors, scaled.
    """
    values = np.full(size, single)
    values[0] += size * off
    roots = np.sqrt(np.where(values > LIMITS.rank * values.max(), values, 0.0))
    kept = roots > 0
    rows = scipy.linalg.helmert(size, full=True)[kept] * np.sqrt(roots[kept] * size / roots.sum())[:, None]
    loss = float(roots.sum()) ** 2 / size
    return Factor(rows, loss, loss, np.full(size, 1.0 / size))


def _solve_query(row: Array, power: float = math.inf) -> Factor:
    """Return the optimum for a single query, whose loss is its largest squared entry.

    A finite ``power`` takes the norm of the squares in place of their maximum, as ``bound``: it is smooth
    in the query, and ``slope`` is its derivative. It is more than the loss, and proves nothing.
    """
    squares = row**2
    top = float(squares.max())
    if not (math.isfinite(top) and top > 0):
        raise NumericalError("queries that are all zero or not finite have no strategy")
    rows = row[None, :] / math.sqrt(top)
    if math.isinf(power):
        dual = np.zeros(len(row))
        dual[np.argmax(squares >= top * (1.0 - LIMITS.closed_form))] = 1.0
        return Factor(rows, top, top, dual)
    total = float(((squares / top) ** power).sum())
    dual = (squares / top) ** (power - 1.0) * total ** (1.0 / power - 1.0)
    return Factor(rows, top, top * total ** (1.0 / power), dual)


def _solve_dense(gram: Array, sizes: Sequence[int] | None, gap: float, start: Array | None) -> Factor:
    size = len(gram)
    symmetries = symmetries_of(gram, sizes or (size,)) if size > 8 else []
    with blas_threads(size >> len(symmetries)):
        return _solve_symmetric(gram, symmetries, gap, start)


def _solve_symmetric(
    gram: Array, symmetries: list[NDArray[np.intp]], gap: float, start: Array | None
) -> Factor:
    """Solve for a Gram matrix that commuting involutions leave unchanged."""
    size = len(gram)
    if not symmetries:
        point = solve_dual(factored_blocks(gram, []), gap, start)
        return Factor(np.vstack(point.factors), point.primal, point.dual, point.p)
    blocks = factored_blocks(gram, symmetries)
    # one design point for each orbit; p is the orbit's total, its cells share it equally
    orbit = np.arange(size)
    for permutation in (*symmetries, *symmetries):
        orbit = np.minimum(orbit, orbit[permutation])
    representatives, inverse, counts = np.unique(orbit, return_inverse=True, return_counts=True)
    # R_b D R_b' summed over an orbit: every cell contributes r r' with the same products up to the same
    # sign squared, so a representative stands for its orbit.
    reduced = [block[:, representatives] for block in blocks]
    if start is not None:
        start = np.asarray(np.bincount(inverse, weights=start), dtype=float)
    point = solve_dual(reduced, gap, start)
    rows = []
    for block, short, solved in zip(blocks, reduced, point.factors, strict=True):
        # solved = C short for the invertible C = solved short^+; apply the same C to all cells
        gram_short = short * point.p @ short.T
        rows.append(np.linalg.solve(gram_short, (short * point.p) @ solved.T).T @ block)
    return Factor(np.vstack(rows), point.primal, point.dual, (point.p / counts)[inverse])


def solve_rows(rows: Array, gap: float = GAP, start: Array | None = None) -> Factor:
    """Return the certified optimum for explicit queries W of shape (m, N) with m < N, V = W'W.

    The factorizations are of size m, so N may be large.

    Examples
    --------
    >>> import numpy as np
    >>> round(solve_rows(np.ones((1, 5))).loss, 9)
    1.0
    """
    if len(rows) == 1:
        return _solve_query(rows[0])
    values, vectors = scipy.linalg.eigh(rows @ rows.T, driver="evd", check_finite=False)
    if not (np.isfinite(values).all() and values[-1] > 0):
        raise NumericalError("queries that are all zero or not finite have no strategy")
    keep = values > LIMITS.rank * values[-1]
    point = solve_dual([vectors[:, keep].T @ rows], gap, start)
    return Factor(point.factors[0], point.primal, point.dual, point.p)


@dataclass(frozen=True)
class ConvexSolver:
    """The optimum for Gaussian noise, to a relative gap; single queries smoothed by a finite power."""

    gap: float = GAP
    power: float = math.inf
    optimal: ClassVar[bool] = True

    def gram(self, gram: Gram | Array, sizes: Sequence[int], start: Factor | None = None, /) -> Factor:
        """Solve for a Gram matrix, from the dual point of a similar one."""
        if math.isfinite(self.power):
            own = as_gram(gram)
            row = own.query
            row = own.explicit.query if row is None else row
            if row is not None:
                return _solve_query(row, self.power)
        return solve_gram(gram, sizes, self.gap, None if start is None else start.dual)

    def queries(self, rows: Array, _: Sequence[int], start: Factor | None = None, /) -> Factor:
        """Solve for explicit queries, from the dual point of similar ones."""
        if len(rows) == 1:
            return _solve_query(rows[0], self.power)
        return solve_rows(rows, self.gap, None if start is None else start.dual)

    def centered(self, size: int) -> Factor:
        """Return the centered identity: its dual point is uniform by symmetry."""
        loss = (size - 1) ** 2 / size
        return Factor(CenteredMatrix(size), loss, loss, np.full(size, 1.0 / size))
