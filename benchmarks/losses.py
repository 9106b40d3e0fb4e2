"""Errors that papers print and no mechanism of the package has: without least squares, or on any table."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.noise import Noise
from matrixdp.queries import Group, Predicates, ProductGroup, Total, Workload
from matrixdp.selection.compose.product import solve_kron
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.testing import dense_queries

__all__ = ["apart_loss", "identity_error", "unreconstructed_error"]

Array = NDArray[np.float64]

#: Of an attribute with more different values none are compared with one another.
_MOST_COMPARED = 2_000


def apart_loss(workload: Workload, noise: Noise, *, gap: float = GAP, seed: int = 0) -> float:
    """Return the total squared error at privacy cost 1 of a product for each group, answered from it alone.

    Tables may have any size: what cannot be measured has an error all the same.

    References
    ----------
    McKenna et al., HDMM, journal version, definition 19.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100})
    >>> round(apart_loss(mdp.Workload(domain, mdp.marginals(2)), LAPLACE) / 2)  # their Table 3
    85070
    """
    known: dict[Hashable, float] = {}
    losses = []
    for group in (group for group in workload if group.asks):
        terms = KronSum.of(workload.domain, [group])
        key = group if terms.explicit else (terms.sizes, frozenset((k, w) for w, k in terms.products))
        if key not in known:
            known[key] = solve_kron(terms, noise, gap=gap, seed=seed, max_cells=math.inf).loss
        losses.append(known[key])
    return noise.variance_factor * noise.total_loss(losses)


def identity_error(workload: Workload, noise: Noise) -> float:
    """Return the weighted total squared error at privacy cost 1 of noise on every cell, however many.

    The mechanism ``identity`` refuses tables that cannot be counted; what its error would be is known.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({f"a{place}": 100 for place in range(20)})
    >>> identity_error(mdp.Workload(domain, mdp.marginals(1)), LAPLACE) == 2 * 20 * 100.0**20
    True
    """
    terms = KronSum.of(workload.domain, workload.groups)
    return noise.variance_factor * terms.loss([1.0] * len(terms.sizes))


def unreconstructed_error(workload: Workload, noise: Noise) -> float:
    """Return the weighted total squared error at privacy cost 1 of noisy answers as they are.

    The sensitivity is exact on tables of any size: of each attribute only values are looked at that no other
    value exceeds in what every predicate set asks of it. Raises TooLargeError if too many are left.

    References
    ----------
    McKenna et al. 2018, Tables 6 and 7, columns for noise on the workload itself.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": 100}), mdp.product(a="prefix"))
    >>> unreconstructed_error(workload, LAPLACE)  # 2 x 100 queries x 100 squared
    2000000.0
    """
    weights = [
        group.weight * (group.queries if group.query_weights is None else float(group.query_weights.sum()))
        for group in workload
    ]
    largest = _largest_column(workload, noise.norm)
    return float(noise.variance_factor * largest ** (2.0 / noise.norm) * math.fsum(weights))


def _largest_column(workload: Workload, power: int) -> float:
    """Return the largest sum over a cell of |entry|^power of all queries."""
    terms = KronSum.of(workload.domain, workload.groups)
    whole = {name for group in workload if not isinstance(group, ProductGroup) for name in group.attributes}
    sums: list[dict[Hashable, Array]] = []
    kept: list[NDArray[np.intp]] = []
    for name, size in zip(terms.attributes, terms.sizes, strict=True):
        sets = {own.key(size): own for own in (_asked_of(group, name) for group in workload)}
        sums.append({key: own.column_sums(size, power) for key, own in sets.items()})
        every = np.array(list(sums[-1].values())).T
        kept.append(np.arange(size) if name in whole else _unexceeded(every))
    shape = [len(places) for places in kept]
    if math.prod(shape) > LIMITS.max_table_cells:
        raise TooLargeError(
            f"workload: the sensitivity is the largest over {math.prod(shape):.3g} cells; the limit is "
            f"{LIMITS.max_table_cells:,}. Use residual"
        )
    norms = np.zeros(shape)
    for group in workload:
        if isinstance(group, ProductGroup):
            column = np.ones(())
            for name, size, own, places in zip(terms.attributes, terms.sizes, sums, kept, strict=True):
                column = np.multiply.outer(column, own[_asked_of(group, name).key(size)][places])
            norms += column
        else:
            rows = dense_queries(group, workload.domain, terms.attributes)
            norms += (np.abs(rows) ** power).sum(axis=0).reshape(terms.sizes)[np.ix_(*kept)]
    return float(norms.max())


def _asked_of(group: Group, name: str) -> Predicates:
    """Return what a product asks of an attribute; explicit groups ask nothing of one alone."""
    return group.sets.get(name, Total()) if isinstance(group, ProductGroup) else Total()


def _unexceeded(sums: Array) -> NDArray[np.intp]:
    """Return the places of rows than which no other is at least as large in every column."""
    distinct, first = np.unique(sums, axis=0, return_index=True)
    best = distinct.max(axis=0)
    whole = np.flatnonzero((distinct == best).all(axis=1))
    if len(whole):
        return first[whole[:1]]
    if len(distinct) > _MOST_COMPARED:
        return first
    return np.array(
        [
            place
            for place, row in zip(first, distinct, strict=True)
            if not ((distinct >= row).all(axis=1) & (distinct > row).any(axis=1)).any()
        ]
    )
