"""Weighted Fourier factorizations of one product, thresholds embedded into a larger cyclic group."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.mechanisms import (
    LIMITS,
    Choice,
    KronSum,
    Mechanism,
    Options,
    Task,
    check_table,
    product_of,
    register,
)
from matrixdp.queries import Identity, Prefix, Suffix

_SCOPE = "no bound: the basis is fixed by its paper"
#: Characters of less than this share of the largest weight are left out: the workload does not use them.
_UNUSED = 1e-12


def characters(order: int, size: int, frequencies: NDArray[np.int64]) -> Array:
    """Return the real characters of the cyclic group of a given order on its first elements.

    Examples
    --------
    >>> characters(4, 2, np.array([0, 1])).round(12).tolist()
    [[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    angles = 2.0 * np.pi * np.outer(frequencies, np.arange(size)) / order
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).reshape(2 * len(frequencies), size)


def embedded_thresholds(size: int) -> Array:
    """Return the strategy for all prefixes, or all suffixes, of n values.

    The values are the first half of the cyclic group of order 2n. There prefixes are half circles, all
    rotations of one function h, whose Fourier coefficients weigh the characters: the strategy is
    sqrt(|h^(k)|) times each character, cut back to the n values. Even frequencies but 0 have weight 0.

    References
    ----------
    Lebeda, Nikolov, Tang: Weighted Fourier factorizations: optimal Gaussian noise for differentially private
    marginal and product queries, 2025 (threshold queries as half circles of a cyclic group).

    Examples
    --------
    >>> rows = embedded_thresholds(8)
    >>> bool(np.ptp((rows**2).sum(axis=0)) < 1e-12)
    True
    """
    odd = np.arange(1, size + 1, 2)
    # |sum over j < n of exp(-2 pi i j k / 2n)| / 2n = 1 / (2 n sin(pi k / 2n)) for odd k
    weights = 1.0 / (2.0 * size * np.sin(np.pi * odd / (2.0 * size)))
    # every frequency but 0 and n stands for itself and its negative
    weights = np.where(odd == size, weights, 2.0 * weights)
    scale = np.sqrt(np.repeat(weights, 2))[:, None]
    rows = np.vstack([np.full((1, size), np.sqrt(0.5)), scale * characters(2 * size, size, odd)])
    return np.asarray(rows[np.abs(rows).max(axis=1) > 1e-9])


def weighted_characters(gram: Array) -> Array:
    """Return the characters of the cyclic group of order n, weighted by how much a workload uses each.

    Examples
    --------
    >>> rows = weighted_characters(np.eye(4))
    >>> np.allclose(rows.T @ rows, rows[0] @ rows[0] * np.eye(4))
    True
    """
    size = len(gram)
    rows = characters(size, size, np.arange(size // 2 + 1))
    rows = rows[np.abs(rows).max(axis=1) > 1e-9]
    rows = rows / np.linalg.norm(rows, axis=1)[:, None]
    used = np.einsum("ij,jk,ik->i", rows, gram, rows)
    # a cosine and a sine of one frequency share a weight, so that every column has the same norm
    pairs = np.concatenate([[0], np.repeat(np.arange(1, size), 2)])[: len(rows)]
    used = (np.bincount(pairs, used) / np.bincount(pairs))[pairs]
    kept = used > _UNUSED * used.max()
    return np.asarray(np.sqrt(np.sqrt(used[kept]))[:, None] * rows[kept])


def _embedded(task: Task[Options]) -> Choice:
    """Select the product of weighted Fourier bases, one for each attribute of one product workload.

    Attributes with prefixes or suffixes are embedded (`embedded_thresholds`); on others the characters of
    their own cyclic group are weighted (`weighted_characters`). Unions of products are served by
    ``fourier``, which does not embed. Least squares are never worse than the published estimator, which
    adds up characters.
    """
    workload = task.workload
    terms = KronSum.of(workload.domain, workload.groups)
    check_table(workload, terms.attributes, "fourier-thresholds")
    if not terms.sizes or not terms.proportional():
        raise WorkloadError(
            "fourier-thresholds: the workload is not one product; expected the same predicates on every "
            "attribute in all groups. Use fourier, which serves unions"
        )
    chosen: list[Array | None] = []
    for axis, size in enumerate(terms.sizes):
        [asked] = terms.sets[axis].values()
        key = asked.key
        if key == Identity().key(size):
            chosen.append(None)
            continue
        if size > LIMITS.axis_cells:
            raise TooLargeError(
                f"fourier-thresholds: attribute {terms.attributes[axis]!r} has {size} values; the limit is "
                f"{LIMITS.axis_cells}. Use fourier"
            )
        if key in (Prefix().key(size), Suffix().key(size)):
            chosen.append(embedded_thresholds(size))
        else:
            chosen.append(weighted_characters(asked.matrix()))
    return product_of(workload, task.noise, terms, chosen, _SCOPE)


register(
    Mechanism(
        "fourier-thresholds",
        "Weighted Fourier Factorizations: thresholds as half circles, for one product",
        (2,),
        Options,
        _embedded,
    )
)
