"""The optimum for Gram matrices of chains, in quadratic time for each step: prefixes, suffixes, ranges.

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
from numpy.typing import NDArray

__all__ = ["Bridge", "Chain", "Spectrum", "chain_of", "chain_order", "green_factors"]

Array = NDArray[np.float64]

#: Relative differences from the form of a chain below this are rounding errors.
_SAME = 1e-9
#: A multiple of 11' below this share of a Gram matrix is what rounding left of a mean that was removed.
_RANK = 1e-12
#: Smaller relative differences of products have lost too many digits.
_CANCELLED = 1e-6
#: Largest entries that a tridiagonal matrix is scaled to, one after another.
_SCALES = (2.0**18, 1.0, 2.0**36)
#: Parts of an update of rank one below this share have no effect.
_NO_PART = 1e-16


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


def green_factors(gram: Array) -> tuple[Array, Array] | None:
    """Return u and v with V_jk = u_j v_k for j <= k, both positive, if a Gram matrix has that form.

    Examples
    --------
    >>> [part.tolist() for part in green_factors(np.tri(3).T @ np.tri(3))]
    [[1.0, 1.0, 1.0], [3.0, 2.0, 1.0]]
    """
    if not (gram[0] > 0).all():
        return None
    v = gram[0]
    u = np.diagonal(gram) / v
    places = np.arange(len(gram))
    return (u, v) if (u > 0).all() and _alike(gram, places, u, v) else None


def chain_order(gram: Array) -> NDArray[np.intp] | None:
    """Return the order of cells in which a Gram matrix is u_j v_k for j <= k, or None for the given order.

    None, too, where there is none. The cosine of two cells falls with the way between them: the cell
    furthest from any other is an end, and the cosines with it are the order.

    Examples
    --------
    >>> shuffled = np.array([2, 0, 3, 1])
    >>> order = chain_order((np.tri(4).T @ np.tri(4))[np.ix_(shuffled, shuffled)])
    >>> shuffled[order].tolist() in ([0, 1, 2, 3], [3, 2, 1, 0])
    True
    >>> chain_order(np.tri(4).T @ np.tri(4)) is None
    True
    """
    diagonal = np.diagonal(gram)
    if not ((diagonal > 0).all() and (gram[0] > 0).all()):
        return None
    end = int(np.argmin(gram[0] ** 2 / diagonal))
    order = np.argsort(-(gram[end] ** 2) / diagonal, kind="stable")
    if not (gram[end] > 0).all() or (np.abs(np.diff(order)) == 1).all():
        return None
    v = gram[order[0], order]
    return order if _alike(gram, order, diagonal[order] / v, v) else None


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


def _alike(gram: Array, order: NDArray[np.intp], u: Array, v: Array) -> bool:
    """Return whether the upper triangle of a Gram matrix, its cells in an order, is u v'."""
    tolerance = 1e-13 * float(np.diagonal(gram).max())
    return all(
        float(np.abs(gram[cell, order[j:]] - u[j] * v[j:]).max()) <= tolerance for j, cell in enumerate(order)
    )


def _bridge(gram: Array) -> Bridge | None:
    steps = np.diff(gram, axis=0)
    across = np.diff(steps, axis=1)
    sizes = np.diagonal(across).copy()
    if not sizes.min() > _SAME * max(float(sizes.max()), float(np.abs(gram).max()) / len(gram)):
        return None
    np.fill_diagonal(across, 0.0)
    if float(np.abs(across).max()) > _SAME * float(sizes.min()):
        return None
    means = -steps[:, 0] / sizes
    # differences do not see a multiple of 11': what is left of it beside H K H'
    if abs(float(gram[0, 0]) - float(sizes @ means**2)) > _RANK * float(np.abs(gram).max()):
        return None
    return Bridge(sizes, means)
