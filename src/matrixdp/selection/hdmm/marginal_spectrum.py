"""A workload as the marginals algebra sees it: its weight on the residual space of every subset."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.linops.subsets import subset_products
from matrixdp.workload import DenseGroup, Group, ProductGroup, Total, Workload

__all__ = ["MAX_ATTRIBUTES", "MarginalSpectrum", "asked_attributes", "marginal_spectrum"]

Array = NDArray[np.float64]

#: The algebra has 2^d elements.
MAX_ATTRIBUTES = 15


@dataclass(frozen=True, eq=False)
class MarginalSpectrum:
    """The weights of a workload's Gram matrix on residual spaces.

    Attributes
    ----------
    attributes : tuple of str
        Those that some query asks about, in domain order.
    sizes : tuple of int
    weights : ndarray, shape (2,) * d
        delta_T = tr(P_T V), P_T the projection onto the residual space of T on the whole domain of
        ``attributes``.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    weights: Array


def asked_attributes(workload: Workload) -> tuple[str, ...]:
    """Return the attributes on which some group asks more than the total, in domain order.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 2, "b": 3, "c": 4})
    >>> asked_attributes(mdp.Workload(domain, mdp.product(a="total", c="prefix")))
    ('c',)
    """
    asked: set[str] = set()
    for group in workload:
        if isinstance(group, DenseGroup):
            asked.update(group.attributes)
            continue
        for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
            if predicates.key(size) != Total().key(size):
                asked.add(name)
    return workload.domain.sort(asked)


def _dense(group: Group, attributes: tuple[str, ...], sizes: tuple[int, ...]) -> Array:
    """Return the weights of explicit queries by splitting their norms axis by axis."""
    rows = group.rows()
    if group.query_weights is not None:
        rows = rows * np.sqrt(group.query_weights)[:, None]
    tensor = rows.reshape(len(rows), *group.sizes)
    # attributes of the group that nobody asks about are totals: their axis is constant
    for axis in range(len(group.attributes), 0, -1):
        if group.attributes[axis - 1] not in attributes:
            tensor = np.take(tensor, 0, axis=axis)
    own = [name for name in group.attributes if name in attributes]
    pieces: dict[tuple[int, ...], Array] = {(): tensor}
    for name in own:
        size = sizes[attributes.index(name)]
        split = {}
        for kept, piece in pieces.items():
            axis = 1 + len(kept)
            mean = piece.mean(axis=axis, keepdims=True)
            split[(*kept, 1)] = piece - mean
            split[(*kept, 0)] = mean * math.sqrt(size)
        pieces = split
    weights = np.zeros((2,) * len(attributes))
    others = math.prod(n for name, n in zip(attributes, sizes, strict=True) if name not in own)
    for kept, piece in pieces.items():
        place = [0] * len(attributes)
        for name, member in zip(own, kept, strict=True):
            place[attributes.index(name)] = member
        weights[tuple(place)] = float((piece**2).sum()) * others
    return weights


def marginal_spectrum(workload: Workload) -> MarginalSpectrum:
    """Return the weights of a workload on the residual spaces of all subsets of its attributes.

    Parameters
    ----------
    workload : Workload

    Returns
    -------
    MarginalSpectrum

    Raises
    ------
    TooLargeError
        If more than ``MAX_ATTRIBUTES`` attributes are asked about.

    References
    ----------
    McKenna et al., journal version, section 7 (Theorem 10).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 2, "b": 3})
    >>> marginal_spectrum(mdp.Workload(domain, mdp.marginals([["a"]]))).weights.tolist()
    [1.0, 1.0]
    """
    attributes = asked_attributes(workload)
    if len(attributes) > MAX_ATTRIBUTES:
        raise TooLargeError(
            f"weighted marginals: {len(attributes)} attributes are asked about; the limit is "
            f"{MAX_ATTRIBUTES}, as there are 2^d marginals. Use residual, which takes those it needs"
        )
    sizes = tuple(workload.domain[name].size for name in attributes)
    total = np.zeros((2,) * len(attributes))
    for group in workload:
        if isinstance(group, ProductGroup) and group.query_weights is None:
            without, within = [], []
            sets = dict(zip(group.attributes, group.predicates, strict=True))
            for name, size in zip(attributes, sizes, strict=True):
                predicates = sets.get(name, Total())
                sums = predicates.apply(np.ones((size, 1)))
                mean = float((sums**2).sum()) / size
                without.append(mean)
                within.append(max(float(predicates.squares(size).sum()) - mean, 0.0))
            total += group.weight * subset_products(without, within)
        else:
            total += group.weight * _dense(group, attributes, sizes)
    # differences of equal numbers
    total[total < 1e-14 * total.max()] = 0.0
    return MarginalSpectrum(attributes, sizes, total)
