"""The SVD bound: a lower bound on the error of every strategy, from the spectrum of the workload."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import kronecker
from matrixdp.queries import Predicates, ProductGroup, Total, Workload
from matrixdp.selection.gram.singular_values import singular_values
from matrixdp.selection.problem.kron_sum import joint_gram, table_shape
from matrixdp.selection.problem.residual_traces import MAX_ATTRIBUTES, asked_attributes

__all__ = ["MAX_SPECTRAL_CELLS", "svd_bound_gram", "svd_bound_workload"]

Array = NDArray[np.float64]

#: Cells that do not factor, up to which the spectrum of a workload is computed.
MAX_SPECTRAL_CELLS = 2_000
#: Multiplications for the spectra on all residual spaces, and entries of all Gram matrices, at most.
_MOST_WORK, _MOST_ENTRIES = 10**11, 10**8


def svd_bound_gram(gram: Array) -> float:
    """Return (sum of the singular values of W)^2 / n for an explicit Gram matrix V = W'W.

    With noise of variance 1 on every row, no strategy of sensitivity 1 (in L2, and so in L1) has less total
    squared error.

    References
    ----------
    Li and Miklau 2013, Theorem 3.3; McKenna et al., journal version, Theorem 5.

    Examples
    --------
    >>> svd_bound_gram(np.eye(3))
    3.0
    """
    return float(singular_values(gram).sum()) ** 2 / len(gram)


def _block_bound(workload: Workload) -> float | None:
    """Return the bound from the spectrum on every residual space of the symmetric attributes.

    Where every predicate set on an attribute has a Gram matrix of the form a I + b 11', all of them share
    the eigenspaces of 11'. On each product of such eigenspaces the workload is a Gram matrix over the other
    attributes alone, which is one number if there are none (weighted marginals).
    """
    if any(not isinstance(group, ProductGroup) or group.query_weights is not None for group in workload):
        return None
    groups = [group for group in workload if isinstance(group, ProductGroup)]
    sets = [dict(zip(group.attributes, group.predicates, strict=True)) for group in groups]
    sizes = {name: workload.domain[name].size for name in asked_attributes(workload)}
    joint = [
        name
        for name, size in sizes.items()
        if any(chosen.get(name, Total()).symmetric(size) is None for chosen in sets)
    ]
    spread = [name for name in sizes if name not in joint]
    cells = math.prod(sizes[name] for name in joint)
    if len(spread) > MAX_ATTRIBUTES or cells > MAX_SPECTRAL_CELLS:
        return None
    shares: dict[tuple[object, ...], Array] = {}
    chosen_sets: dict[tuple[object, ...], list[Predicates]] = {}
    for group, chosen in zip(groups, sets, strict=True):
        without, within = [], []
        for name in spread:
            a, b = chosen.get(name, Total()).symmetric(sizes[name]) or (0.0, 0.0)
            without.append(a + sizes[name] * b)
            within.append(a)
        own = [chosen.get(name, Total()) for name in joint]
        key = tuple(predicates.key(sizes[name]) for name, predicates in zip(joint, own, strict=True))
        chosen_sets[key] = own
        shares[key] = shares.get(key, 0.0) + group.weight * _subset_products(without, within)
    if joint and (2 ** len(spread) * cells**3 > _MOST_WORK or len(shares) * cells**2 > _MOST_ENTRIES):
        return None
    grams = {}
    for key, own in chosen_sets.items():
        grams[key] = kronecker(
            predicates.gram(sizes[name]) for name, predicates in zip(joint, own, strict=True)
        )
    # on each residual space, the sum of the singular values per dimension
    roots = np.zeros((2,) * len(spread))
    if joint:
        for place in np.ndindex(roots.shape):
            block = np.zeros((cells, cells))
            for key, share in shares.items():
                block += share[place] * grams[key]
            roots[place] = float(singular_values(block).sum())
    else:
        roots = np.sqrt(np.maximum(shares[()], 0.0))
    dimensions = _subset_products([1.0] * len(spread), [sizes[name] - 1.0 for name in spread])
    total = float((dimensions * roots).sum())
    return total * total / math.prod(float(size) for size in sizes.values())


def svd_bound_workload(workload: Workload) -> float | None:
    """Return the SVD bound of a workload on its loss (noise variance 1), or None where it is not known.

    It is known where the attributes on which groups differ have few cells together, and for workloads of
    symmetric predicate sets (marginals, with totals, weighted) on up to 15 attributes, with queries of any
    kind on other attributes of few cells together.

    References
    ----------
    McKenna et al., journal version, Theorems 5 and 12.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 100, "b": 50, "c": 7, "d": 4, "e": 2})
    >>> workload = mdp.Workload(domain, mdp.marginals([0, 1, 2, 3, 4, 5]))
    >>> round((2 * svd_bound_workload(workload) / workload.queries) ** 0.5, 2)  # published: 2.63
    2.63
    """
    shape = table_shape(workload)
    if shape.cells > MAX_SPECTRAL_CELLS:
        return _block_bound(workload)
    bound = 1.0
    for name, predicates in shape.factored.items():
        size = workload.domain[name].size
        symmetric = predicates.symmetric(size)
        if symmetric is not None:
            root = math.sqrt(symmetric[0]) * (size - 1) + math.sqrt(symmetric[0] + size * symmetric[1])
            bound *= root * root / size
        elif size > MAX_SPECTRAL_CELLS:
            return None
        else:
            bound *= svd_bound_gram(predicates.gram(size))
    if not shape.joint:
        return bound * shape.weight
    try:
        return bound * svd_bound_gram(joint_gram(workload, shape.joint))
    except TooLargeError:
        return None


def _subset_products(without: Sequence[float], within: Sequence[float]) -> Array:
    """Return for every subset the product of ``within`` over its members and ``without`` over the others."""
    result = np.ones(())
    for out, into in zip(without, within, strict=True):
        result = np.multiply.outer(result, np.array([out, into]))
    return result
