"""A workload as the marginals algebra sees it: its weight on the residual space of every subset."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact.subsets import subset_products
from matrixdp.queries import DenseGroup, Group, ProductGroup, Total, Workload

__all__ = ["MAX_ATTRIBUTES", "MarginalSpectrum", "asked_attributes", "marginal_spectrum"]

Array = NDArray[np.float64]

#: The algebra has 2^d elements.
MAX_ATTRIBUTES = 15
#: Of a query's squared norm, what is left of a difference of equal numbers.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class MarginalSpectrum:
    """The weights of a workload's Gram matrix on residual spaces.

    Attributes
    ----------
    attributes : tuple of str
        Those of more than one value that some query asks about, in domain order.
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


def _product(group: ProductGroup) -> Array:
    """Return the weights on the group's own attributes: each query splits into mean and rest along each."""
    splits: list[Array] = []
    for predicates, size in zip(group.predicates, group.sizes, strict=True):
        squares = predicates.squares(size)
        mean = (predicates.apply(np.ones((size, 1))) ** 2).ravel() / size
        rest = squares - mean
        splits.append(np.stack([mean, np.where(rest > _ROUNDING * squares, rest, 0.0)]))
    if group.query_weights is None:
        sums = [split.sum(axis=1) for split in splits]
        return subset_products([float(pair[0]) for pair in sums], [float(pair[1]) for pair in sums])
    tensor = group.query_weights.reshape(group.counts)
    for axis, split in enumerate(splits):
        tensor = np.moveaxis(np.tensordot(split, tensor, axes=(1, axis)), 0, axis)
    return tensor


def _dense(group: DenseGroup) -> Array:
    """Return the weights on the group's own attributes by splitting its queries axis by axis."""
    rows = group.rows()
    if group.query_weights is not None:
        rows = rows * np.sqrt(group.query_weights)[:, None]
    pieces: dict[tuple[int, ...], Array] = {(): rows.reshape(len(rows), *group.sizes)}
    for axis, size in enumerate(group.sizes, start=1):
        split = {}
        for kept, piece in pieces.items():
            mean = piece.mean(axis=axis, keepdims=True)
            split[(*kept, 1)] = piece - mean
            split[(*kept, 0)] = mean * math.sqrt(size)
        pieces = split
    tensor = np.zeros((2,) * len(group.sizes))
    for kept, piece in pieces.items():
        tensor[kept] = float((piece**2).sum())
    tensor[tensor < _ROUNDING**2 * tensor.max()] = 0.0
    return tensor


def _spread(tensor: Array, group: Group, attributes: tuple[str, ...], sizes: tuple[int, ...]) -> Array:
    """Return weights on a group's attributes as weights on those of the algebra."""
    own = []
    for name, size in zip(reversed(group.attributes), reversed(group.sizes), strict=True):
        if name in attributes:
            own.append(name)
        else:
            # a total, or an attribute of one value: its mean is all there is, and no cells are multiplied
            tensor = np.take(tensor, 0, axis=group.attributes.index(name)) / size
    weights = np.zeros((2,) * len(attributes))
    others = math.prod(float(size) for name, size in zip(attributes, sizes, strict=True) if name not in own)
    weights[tuple(slice(None) if name in own else 0 for name in attributes)] = tensor * others
    return weights


def marginal_spectrum(workload: Workload) -> MarginalSpectrum:
    """Return the weights of a workload on the residual spaces of all subsets of its attributes.

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
    attributes = tuple(name for name in asked_attributes(workload) if workload.domain[name].size > 1)
    if len(attributes) > MAX_ATTRIBUTES:
        raise TooLargeError(
            f"weighted marginals: {len(attributes)} attributes are asked about; the limit is "
            f"{MAX_ATTRIBUTES}, as there are 2^d marginals. Use residual, which takes those it needs"
        )
    sizes = tuple(workload.domain[name].size for name in attributes)
    total = np.zeros((2,) * len(attributes))
    for group in workload:
        tensor = _dense(group) if isinstance(group, DenseGroup) else _product(group)
        total += group.weight * _spread(tensor, group, attributes, sizes)
    return MarginalSpectrum(attributes, sizes, total)
