"""The SVD bound: a lower bound on the error of every strategy, from the spectrum of the workload."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.linops.subsets import subset_products
from matrixdp.selection.direct import direct_shape, joint_gram
from matrixdp.selection.hdmm.marginal_spectrum import MAX_ATTRIBUTES, asked_attributes
from matrixdp.workload import ProductGroup, Total, Workload

__all__ = ["MAX_SPECTRAL_CELLS", "svd_bound_gram", "svd_bound_workload"]

Array = NDArray[np.float64]

#: Cells that do not factor, up to which the spectrum of a workload is computed.
MAX_SPECTRAL_CELLS = 2_000


def svd_bound_gram(gram: Array) -> float:
    """Return (sum of the singular values of W)^2 / n for an explicit Gram matrix V = W'W.

    With noise of variance 1 on every row, no strategy of sensitivity 1 (in L2, and so in L1) has less total
    squared error.

    Parameters
    ----------
    gram : ndarray, shape (n, n)

    References
    ----------
    Li and Miklau 2013, Theorem 3.3; McKenna et al., journal version, Theorem 5.

    Examples
    --------
    >>> svd_bound_gram(np.eye(3))
    3.0
    """
    values = scipy.linalg.eigvalsh(gram, check_finite=False)
    return float(np.sqrt(np.maximum(values, 0.0)).sum()) ** 2 / len(gram)


def _marginal_bound(workload: Workload) -> float | None:
    """Return the bound where every predicate set is symmetric: the spectrum is known subset by subset."""
    attributes = asked_attributes(workload)
    if len(attributes) > MAX_ATTRIBUTES:
        return None
    sizes = [workload.domain[name].size for name in attributes]
    eigenvalues = np.zeros((2,) * len(attributes))
    for group in workload:
        if not isinstance(group, ProductGroup) or group.query_weights is not None:
            return None
        sets = dict(zip(group.attributes, group.predicates, strict=True))
        without, within = [], []
        for name, size in zip(attributes, sizes, strict=True):
            symmetric = sets.get(name, Total()).symmetric(size)
            if symmetric is None:
                return None
            without.append(symmetric[0] + size * symmetric[1])
            within.append(symmetric[0])
        eigenvalues += group.weight * subset_products(without, within)
    dimensions = subset_products([1.0] * len(sizes), [size - 1.0 for size in sizes])
    total = float((dimensions * np.sqrt(np.maximum(eigenvalues, 0.0))).sum())
    return total * total / math.prod(float(size) for size in sizes)


def svd_bound_workload(workload: Workload) -> float | None:
    """Return the SVD bound of a workload on its loss (noise variance 1), or None where it is not known.

    It is known where the attributes on which groups differ have few cells together, and for workloads of
    symmetric predicate sets (marginals, with totals, weighted) on up to 15 attributes.

    Parameters
    ----------
    workload : Workload

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
    known = _marginal_bound(workload)
    if known is not None:
        return known
    shape = direct_shape(workload)
    if shape.cells > MAX_SPECTRAL_CELLS:
        return None
    bound = 1.0
    for name in shape.factored:
        group = next(iter(workload))
        size = workload.domain[name].size
        assert isinstance(group, ProductGroup)
        predicates = dict(zip(group.attributes, group.predicates, strict=True)).get(name, Total())
        symmetric = predicates.symmetric(size)
        if symmetric is not None:
            root = math.sqrt(symmetric[0]) * (size - 1) + math.sqrt(symmetric[0] + size * symmetric[1])
            bound *= root * root / size
        elif size > MAX_SPECTRAL_CELLS:
            return None
        else:
            bound *= svd_bound_gram(predicates.gram(size))
    if not shape.joint:
        return bound * math.fsum(group.weight for group in workload)
    try:
        return bound * svd_bound_gram(joint_gram(workload, shape.joint))
    except TooLargeError:
        return None
