"""Attributes that follow from others: which are free in a model, and the cells that go with derived ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain

__all__ = ["cells_of", "free_attributes", "sources", "sum_cells"]


def sources(domain: Domain, name: str) -> tuple[str, ...]:
    """Return the attributes that an attribute follows from; itself where it follows from no others.

    One that is read, at least in part, from columns of its own does not follow from the attributes.
    """
    derivation = domain[name].codebook.derivation
    if derivation is None or derivation.columns:
        return (name,)
    return derivation.of


def free_attributes(domain: Domain) -> tuple[str, ...]:
    """Return the attributes that do not follow from others, in domain order."""
    return tuple(name for name in domain.names if sources(domain, name) == (name,))


def cells_of(domain: Domain, names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.intp] | None]:
    """Return the free attributes of a marginal, and its cell for each of their cells, flat and row-major.

    None instead of cells where the marginal is that of the free attributes itself.

    Examples
    --------
    >>> adult = {"of": ["age"], "map": {0: "no", 1: "no", 2: "yes"}}
    >>> domain = Domain({"age": {"min": 0, "max": 2}, "adult": adult})
    >>> cells_of(domain, ("adult", "age"))
    (('age',), array([0, 1, 5]))
    >>> cells_of(domain, ("age",))
    (('age',), None)
    """
    found = [sources(domain, name) for name in names]
    if all(own == (name,) for name, own in zip(names, found, strict=True)):
        return tuple(names), None
    free = domain.sort({source for own in found for source in own})
    codes = np.indices([domain[name].size for name in free], dtype=np.intp).reshape(len(free), -1)
    places = [_codes(domain, name, own, free, codes) for name, own in zip(names, found, strict=True)]
    sizes = [domain[name].size for name in names]
    return free, np.asarray(np.ravel_multi_index(places, sizes), dtype=np.intp)


def sum_cells(
    table: NDArray[np.float64], cells: NDArray[np.intp], sizes: Sequence[int]
) -> NDArray[np.float64]:
    """Return the marginal to whose cells the cells of a table of free attributes belong.

    Examples
    --------
    >>> sum_cells(np.array([5.0, 2.0, 1.0]), np.array([0, 0, 1]), (2,))
    array([7., 1.])
    """
    summed = np.bincount(cells, table.ravel(), math.prod(sizes))
    return np.asarray(summed.reshape(sizes), dtype=np.float64)


def _codes(
    domain: Domain, name: str, own: tuple[str, ...], free: tuple[str, ...], codes: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return an attribute's code in each cell of free attributes."""
    if own == (name,):
        return np.asarray(codes[free.index(name)])
    derivation = domain[name].codebook.derivation
    assert derivation is not None
    steps = [(codes[free.index(parent)], domain[parent].size) for parent in own]
    place = reduce(lambda sofar, step: sofar * step[1] + step[0], steps, np.zeros(codes.shape[1], np.intp))
    return np.asarray(derivation.codes, dtype=np.intp)[place]
