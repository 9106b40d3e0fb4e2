"""The optimum by one spectrum a step: chains, as of prefixes and ranges, and large problems.

At the optimum g_j = F wherever p_j > 0 (`matrixdp.selection.gram.dual`), so log p is a fixed point of
log p + 3 log(g / F), with Anderson's acceleration over the last steps, from the uniform distribution or from
that of a similar problem; every step has its own strategy and bound. For chains a step takes quadratic time.
Without structure it takes one eigendecomposition, which past some thousand cells is less than Newton's steps.

Two kinds of Gram matrices V, of any positive weights, lead to eigenproblems of tridiagonal matrices:

- V_jk = u_j v_k for j <= k (a Green's matrix), whose inverse is tridiagonal: prefixes, suffixes and ranges,
  with the total or without. With D = diag(p) the eigenvectors of D^(1/2) V D^(1/2) are those of the
  tridiagonal matrix D^(-1/2) V^-1 D^(-1/2).
- V = H K H' with K diagonal, where column k of H is the step 1[j >= k] less its weighted mean W_k: prefixes
  and suffixes whose mean under weights w was removed, as in sub-workloads. With P_k = sum of p_j over j >= k
  and the bridge N_kl = P_max(k,l) (1 - P_min(k,l)), whose inverse is tridiagonal, the matrix H' D H is
  N + (P - W)(P - W)': a tridiagonal eigenproblem and one update of rank one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact.linear import Array
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.entries import green_factors

#: Largest entries that a tridiagonal matrix is scaled to, one after another.
_SCALES = (2.0**18, 1.0, 2.0**36)
#: The power of g in a step.
_POWER = 3.0
#: Steps that the acceleration looks back on.
_MEMORY = 6
#: Parts of an update of rank one below this share have no effect.
_NO_PART = 1e-16

#: How far the Gram matrix of what was solved may be from the one that was asked for.
_SOLVED = 1e-8
#: Smaller relative differences of products have lost too many digits.
_CANCELLED = 1e-6
#: Chains of at least this many values start from a grid that is coarser by this factor.
_MIN_REFINED_CELLS = 1_024
_COARSER = 4


@dataclass(frozen=True)
class Spectrum:
    """The eigenvalues s^2 of D^(1/2) V D^(1/2) as s, and loadings U with V = U U' / s^2 in their metric.

    Attributes
    ----------
    roots : ndarray, shape (r,)
        s, ascending or descending.
    loadings : ndarray, shape (n, r)
        R' Q for a factor R of V = R'R and eigenvectors Q of R D R'; their squares over s add up to g.
    """

    roots: Array
    loadings: Array


@dataclass(frozen=True)
class Chain:
    """A Gram matrix whose inverse is tridiagonal.

    Attributes
    ----------
    diagonal, beside : ndarray, shape (n,), (n - 1,)
        Of the inverse.
    """

    diagonal: Array
    beside: Array

    def spectrum(self, p: Array) -> Spectrum:
        """Return the spectrum at a distribution over values."""
        root = np.sqrt(p)
        values, vectors = _eigh(self.diagonal / p, self.beside / (root[1:] * root[:-1]))
        s = np.asarray(np.maximum(values, np.finfo(float).tiny) ** -0.5, dtype=np.float64)
        vectors *= s
        vectors /= root[:, None]
        return Spectrum(s, np.asarray(vectors, dtype=np.float64))


@dataclass(frozen=True)
class Bridge:
    """A Gram matrix of steps less their means.

    Attributes
    ----------
    steps : ndarray, shape (n - 1,)
        The diagonal of K.
    means : ndarray, shape (n - 1,)
        W.
    """

    steps: Array
    means: Array

    def spectrum(self, p: Array) -> Spectrum:
        """Return the spectrum at a distribution over values."""
        root = np.sqrt(self.steps)
        values, vectors = _eigh(
            (1.0 / p[:-1] + 1.0 / p[1:]) / self.steps, -1.0 / (p[1:-1] * root[1:] * root[:-1])
        )
        beyond = np.cumsum(p[::-1])[::-1][1:]
        update = vectors.T @ (root * (beyond - self.means))
        s, rotation = _updated(np.asarray(values[::-1] ** -0.5, dtype=np.float64), update[::-1])
        turned = vectors[:, ::-1] @ rotation
        turned *= root[:, None]
        loadings = np.zeros((len(p), len(s)))
        np.cumsum(turned, axis=0, out=loadings[1:])
        loadings -= self.means @ turned
        return Spectrum(s, loadings)


@dataclass(frozen=True)
class DenseSpectra:
    """A Gram matrix without structure.

    Attributes
    ----------
    gram : ndarray, shape (n, n)
    """

    gram: Array

    def spectrum(self, p: Array) -> Spectrum:
        """Return the spectrum at a distribution over cells."""
        root = np.sqrt(p)
        inner = self.gram * root
        inner *= root[:, None]
        values, vectors = scipy.linalg.eigh(inner, driver="evd", overwrite_a=True, check_finite=False)
        kept = values > LIMITS.rank * values[-1]
        s = np.sqrt(values[kept])
        loadings = vectors[:, kept] * s
        loadings /= root[:, None]
        return Spectrum(s, loadings)


def _eigh(diagonal: Array, beside: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of a definite tridiagonal matrix, by relatively robust ones.

    Whether LAPACK's dstemr finds those of thousands of rows depends on the scale of the matrix.
    """
    *first, last = _SCALES
    for scale in first:
        with suppress(np.linalg.LinAlgError):
            return _eigh_at(scale, diagonal, beside)
    return _eigh_at(last, diagonal, beside)


def _eigh_at(scale: float, diagonal: Array, beside: Array) -> tuple[Array, Array]:
    factor = 2.0 ** np.round(np.log2(scale / np.abs(diagonal).max()))  # exact
    values, vectors = scipy.linalg.eigh_tridiagonal(
        diagonal * factor, beside * factor, lapack_driver="stemr", check_finite=False
    )
    return np.asarray(values / factor), np.asarray(vectors)


def _updated(d: Array, z: Array) -> tuple[Array, Array]:
    """Return the roots of the eigenvalues of diag(d^2) + z z' and its eigenvectors; d is ascending.

    Notes
    -----
    The secular equation by LAPACK's dlasd4; eigenvectors from the update that has exactly the eigenvalues
    found, which keeps them orthogonal (Gu and Eisenstat 1995).
    """
    relative = np.abs(z / d)
    active = np.flatnonzero(relative * relative.max(initial=0.0) > _NO_PART)
    roots, rotation = d.copy(), np.eye(len(d))
    if not len(active):
        return roots, rotation
    own, part = np.ascontiguousarray(d[active]), z[active]
    norm = float(np.linalg.norm(part))
    unit = part / norm
    apart = np.empty((len(active), len(active)))  # d_j^2 - s_i^2
    for place in range(len(active)):
        low, roots[active[place]], high, _ = scipy.linalg.lapack.dlasd4(place, own, unit, norm * norm)
        apart[:, place] = low * high
    logarithms = np.log(np.abs(apart)).sum(axis=1)
    for place in range(len(active)):
        others = np.abs((own - own[place]) * (own + own[place]))
        others[place] = 1.0
        logarithms[place] -= np.log(others).sum()
    fitted = np.exp(0.5 * logarithms) * np.sign(part)
    vectors = fitted[:, None] / apart
    vectors /= np.linalg.norm(vectors, axis=0)
    rotation[np.ix_(active, active)] = vectors
    return roots, rotation


def chain_of(gram: Array) -> Chain | Bridge | None:
    """Return the chain that a Gram matrix is of, if any.

    Examples
    --------
    >>> prefixes = np.tri(5).T @ np.tri(5)
    >>> type(chain_of(prefixes)).__name__, chain_of(np.eye(5))
    ('Chain', None)
    >>> mean = np.eye(5) - 0.2
    >>> type(chain_of(mean @ prefixes @ mean)).__name__
    'Bridge'
    """
    return _green(gram) or _bridge(gram)


def _green(gram: Array) -> Chain | None:
    factors = green_factors(gram)
    if factors is None:
        return None
    u, v = factors
    cross = u[1:] * v[:-1] - u[:-1] * v[1:]
    if not (cross > _CANCELLED * u[1:] * v[:-1]).all():
        return None
    middle = np.empty(len(gram))
    middle[0] = u[1] / (u[0] * cross[0])
    middle[-1] = v[-2] / (v[-1] * cross[-1])
    middle[1:-1] = (u[2:] * v[:-2] - u[:-2] * v[2:]) / (cross[:-1] * cross[1:])
    return Chain(middle, -1.0 / cross)


def _bridge(gram: Array) -> Bridge | None:
    steps = np.diff(gram, axis=0)
    across = np.diff(steps, axis=1)
    sizes = np.diagonal(across).copy()
    if not sizes.min() > LIMITS.alike * max(float(sizes.max()), float(np.abs(gram).max()) / len(gram)):
        return None
    np.fill_diagonal(across, 0.0)
    if float(np.abs(across).max()) > LIMITS.alike * float(sizes.min()):
        return None
    means = -steps[:, 0] / sizes
    # differences do not see a multiple of 11': what is left of it beside H K H'
    if abs(float(gram[0, 0]) - float(sizes @ means**2)) > LIMITS.rank * float(np.abs(gram).max()):
        return None
    return Bridge(sizes, means)


class _Acceleration:
    """Anderson's: the next point from the last ones and what the fixed-point map moved them by."""

    def __init__(self) -> None:
        self.points: list[Array] = []
        self.moves: list[Array] = []

    def next(self, point: Array, move: Array) -> Array:
        self.points = [*self.points, point][-_MEMORY:]
        self.moves = [*self.moves, move][-_MEMORY:]
        if len(self.points) == 1:
            return point + move
        changes = np.diff(np.array(self.moves), axis=0)
        shares = np.linalg.lstsq(changes.T, move, rcond=1e-10)[0]
        return np.asarray(point + move - shares @ (np.diff(np.array(self.points), axis=0) + changes))


def _fixed_point(
    chain: Chain | Bridge | DenseSpectra, start: Array, gap: float
) -> tuple[Array, Spectrum, float, float] | None:
    """Return the best distribution met, its spectrum and largest g, and the largest trace met.

    The error of the strategy is the trace times the largest g; the squared trace is a bound.
    """
    size = len(start)
    acceleration = _Acceleration()
    point = np.log(np.maximum(start / start.sum(), LIMITS.least_share / size))
    best: tuple[Array, Spectrum, float] | None = None
    least, largest = np.inf, 0.0
    for _ in range(LIMITS.max_iterations):
        p = np.exp(point - point.max())
        p = np.maximum(p / p.sum(), LIMITS.least_share / size)
        p /= p.sum()
        try:
            spectrum = chain.spectrum(p)
        except np.linalg.LinAlgError:
            break
        trace = float(spectrum.roots.sum())
        g = np.einsum("ja,ja,a->j", spectrum.loadings, spectrum.loadings, 1.0 / spectrum.roots)
        error = trace * float(g.max())
        if not (np.isfinite(error) and error > 0):
            break
        largest = max(largest, trace)
        if error < least:
            least, best = error, (p, spectrum, float(g.max()))
        if least <= largest * largest * (1.0 + gap):
            break
        move = _POWER * np.log(np.maximum(g / trace, LIMITS.least_share))  # 0 where no query counts a cell
        try:
            point = acceleration.next(np.log(p), move)
        except np.linalg.LinAlgError:
            break
    return None if best is None else (*best, largest)


def _stands_for(spectrum: Spectrum, gram: Array) -> bool:
    """Return whether U U' is the Gram matrix, as far as a vector tells."""
    probe = 1.0 + np.cos(np.arange(len(gram)))
    seen = gram @ probe
    away = spectrum.loadings @ (spectrum.loadings.T @ probe) - seen
    return float(np.abs(away).max()) <= _SOLVED * float(np.abs(seen).max())


def _start(gram: Array, chain: Chain | Bridge | DenseSpectra) -> Array:
    """Return a distribution to start from: for large chains the optimum on a coarser grid."""
    size = len(gram)
    if size >= _MIN_REFINED_CELLS and isinstance(chain, Chain):
        places = np.rint(grid(size, size // _COARSER)).astype(np.intp)
        inner = gram[np.ix_(places, places)]
        coarser = chain_of(inner)
        if coarser is not None:
            found = _fixed_point(coarser, _start(inner, coarser), LIMITS.inner_gap)
            if found is not None:
                return _refined(found[0], size)
    return np.full(size, 1.0 / size)


def solve_chain(
    gram: Array, chain: Chain | Bridge | DenseSpectra, gap: float, start: Array | None = None
) -> Factor | None:
    """Return the optimum for the Gram matrix of a chain, certified, or None where the digits do not suffice.

    ``start`` is the dual distribution of a similar problem.

    Examples
    --------
    >>> prefixes = np.tri(40).T @ np.tri(40)
    >>> found = solve_chain(prefixes, chain_of(prefixes), 1e-6)
    >>> found.loss / found.bound - 1 < 1e-6
    True
    """
    size = len(gram)
    if size > LIMITS.chains_large_cells:
        gap = max(gap, LIMITS.loose_gap)
    found = _fixed_point(chain, _start(gram, chain) if start is None else start, gap)
    if found is None or not _stands_for(found[1], gram):
        return None
    p, spectrum, peak, trace = found
    loss = float(spectrum.roots.sum()) * peak
    rows = spectrum.loadings
    rows *= (peak * spectrum.roots) ** -0.5
    return Factor(rows.T, loss, min(trace * trace, loss), p)


def grid(size: int, points: int) -> Array:
    """Return evenly spaced places among the values 0 to size - 1, as far from -1 and size as from each other.

    Prefixes, suffixes and ranges, sampled there, are those of an attribute of as many values as points.

    Examples
    --------
    >>> grid(7, 3).tolist()
    [1.0, 3.0, 5.0]
    """
    return np.asarray((np.arange(points) + 1.0) * (size + 1) / (points + 1) - 1.0)


def _refined(distribution: Array, size: int) -> Array:
    """Return a distribution over evenly spaced places as one over more values that has the same shape.

    Near an end the optimum changes from one value to the next, however many there are, and falls by a power
    further away; in the middle it depends on the share of the way. Between the two it goes from the one to
    the other.

    Examples
    --------
    >>> _refined(np.array([4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0]) / 16, 16).round(3)[:5].tolist()
    [0.144, 0.09, 0.06, 0.054, 0.043]
    """
    points = len(distribution)
    ratio = (size + 1) / (points + 1)
    near = max(points // 32, min(4, points // 3))
    ends = []
    for logarithms in (np.log(distribution), np.log(distribution[::-1])):
        places, counted = np.arange(points), np.arange((size + 1) // 2)
        # the power by which it falls
        power = (logarithms[2 * near] - logarithms[near]) / np.log((2 * near + 1) / (near + 1))
        by_value = np.interp(counted, places, logarithms) - power * np.log(ratio)
        by_share = np.interp(np.log((counted + 1) / ratio), np.log(places + 1), logarithms)
        part = np.log((counted + 1) / (0.5 * near)) / np.log(4.0 * ratio)
        ends.append(by_value + np.clip(part, 0.0, 1.0) * (by_share - by_value))
    found = np.exp(np.concatenate([ends[0][: size - size // 2], ends[1][: size // 2][::-1]]))
    return np.asarray(found / found.sum())
