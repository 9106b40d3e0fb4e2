"""A workload as the marginals algebra sees it: its weight on the residual space of every asked subset."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.queries import DenseGroup, Group, ProductGroup, Total, Workload

__all__ = ["MAX_ATTRIBUTES", "MarginalSpectrum", "asked_attributes", "marginal_spectrum"]

Array = NDArray[np.float64]

#: Of arrays with an entry for every subset of the attributes.
MAX_ATTRIBUTES = 15
#: Pairs of a marginal and a residual in it, over the marginals that are asked; 3^15 is below.
MAX_PIECES = 15_000_000
#: Of a query's squared norm, what is left of a difference of equal numbers.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class MarginalSpectrum:
    """What a workload asks of the residuals of marginals, on the downward closure of the asked ones.

    Attributes
    ----------
    attributes : tuple of str
        Those of more than one value that some query asks about, in domain order.
    sizes : tuple of int
    residuals : tuple of tuple of int
        The subsets of the attributes of any group, by their places, those of fewest attributes first.
    weights : ndarray, shape (residuals,)
        delta_T = tr(P_T V) / cells of the whole domain of ``attributes``, P_T the projection onto the
        residual space of T.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    residuals: tuple[tuple[int, ...], ...]
    weights: Array

    @property
    def dimensions(self) -> Array:
        """The dimensions of the residual spaces: products of n - 1."""
        return np.array([math.prod(self.sizes[axis] - 1.0 for axis in one) for one in self.residuals])


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


def _product(group: ProductGroup, places: dict[str, int]) -> Array:
    """Return the weights on the group's own attributes: each query splits into mean and rest along each.

    Of an attribute that is not among the places (a total, or one of one value) the mean is all there is.
    """
    splits: list[Array] = []
    for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
        squares = predicates.squares(size)
        mean = (predicates.apply(np.ones((size, 1))) ** 2).ravel() / size
        rest = squares - mean
        both = [mean, np.where(rest > _ROUNDING * squares, rest, 0.0)]
        splits.append(np.stack(both[: 2 if name in places else 1]))
    if group.query_weights is not None:
        tensor = group.query_weights.reshape(group.counts)
        for axis, split in enumerate(splits):
            tensor = np.moveaxis(np.tensordot(split, tensor, axes=(1, axis)), 0, axis)
        return tensor.reshape([n for n in tensor.shape if n > 1])
    tensor = np.ones(())
    for split in splits:
        sums = split.sum(axis=1)
        tensor = np.multiply.outer(tensor, sums) if len(sums) > 1 else tensor * sums[0]
    return np.asarray(tensor)


def _dense(group: DenseGroup, places: dict[str, int]) -> Array:
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
    # what varies along an attribute of one value is nothing
    return tensor[tuple(slice(None) if name in places else 0 for name in group.attributes)]


def _spread(
    tensor: Array, group: Group, places: dict[str, int], weights: dict[tuple[int, ...], float]
) -> None:
    """Add weights on those of a group's attributes that have places to those of the closure."""
    own = [places[name] for name in group.attributes if name in places]
    scaled = tensor * (group.weight / math.prod(float(size) for size in group.sizes))
    for kept in product((0, 1), repeat=len(own)):
        residual = tuple(axis for axis, member in zip(own, kept, strict=True) if member)
        weights[residual] = weights.get(residual, 0.0) + float(scaled[kept])


def marginal_spectrum(workload: Workload) -> MarginalSpectrum:
    """Return what a workload asks of the residuals of marginals.

    References
    ----------
    McKenna et al., journal version, section 7 (Theorem 10).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 2, "b": 3})
    >>> spectrum = marginal_spectrum(mdp.Workload(domain, mdp.marginals([["a"]])))
    >>> spectrum.residuals, spectrum.weights.tolist()
    (((), (0,)), [0.5, 0.5])
    """
    attributes = tuple(name for name in asked_attributes(workload) if workload.domain[name].size > 1)
    places = {name: place for place, name in enumerate(attributes)}
    asked = {tuple(places[name] for name in group.attributes if name in places) for group in workload}
    deepest = max(map(len, asked))
    if 3**deepest > MAX_PIECES or sum(2 ** len(one) for one in asked) > MAX_PIECES:
        raise TooLargeError(
            f"weighted marginals: {len(asked):,} marginals of up to {deepest} attributes are asked about; "
            f"the limit is {MAX_PIECES:,} pairs of a marginal and one in it. Ask about fewer attributes "
            "together"
        )
    weights: dict[tuple[int, ...], float] = {(): 0.0}
    for group in workload:
        tensor = _dense(group, places) if isinstance(group, DenseGroup) else _product(group, places)
        _spread(tensor, group, places, weights)
    residuals = sorted(weights, key=lambda one: (len(one), one))
    sizes = tuple(workload.domain[name].size for name in attributes)
    found = np.array([weights[one] for one in residuals])
    return MarginalSpectrum(attributes, sizes, tuple(residuals), found)
