"""Gradients of parts: those that share all attributes but their largest take one product."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.model.parts import FittedPart, Parts
from matrixdp.model.products import khatri_rao, split_at
from matrixdp.model.terms import Axis, GramTerm, along

__all__ = ["Bundle", "bundles_of"]

Single = NDArray[np.float32]


class Bundle(ABC):
    """Parts whose gradients are computed together, in single precision.

    Attributes
    ----------
    places : list of int
        Where they stand among all parts.
    size : int
        The number of their cells.
    """

    places: list[int]
    size: int

    @abstractmethod
    def sides(self, weights: Single, factors: Sequence[Single]) -> tuple[Single, Single, Single]:
        """Return both sides of the product, and between them the gradient of the loss."""

    @abstractmethod
    def add(self, to_left: Single, to_right: Single, gradients: Sequence[Single]) -> None:
        """Add product times gradient of both sides to the gradients of the attributes."""

    def descend(
        self, weights: Single, factors: Sequence[Single], gradients: Sequence[Single], times: float
    ) -> None:
        """Add share times gradient, so many times, to those of the weights and of each attribute."""
        left, right, slope = self.sides(weights, factors)
        slope = slope * np.float32(times)
        to_left = left * (right @ slope.T)
        gradients[0] += to_left.sum(axis=1)
        self.add(to_left, right * (left @ slope), gradients[1:])


def _scatter(own: Sequence[int], sizes: Sequence[int], inner: Single, gradients: Sequence[Single]) -> None:
    """Add to the gradient of each factor of a Khatri-Rao product, given product times gradient."""
    tensor = inner.reshape(len(inner), *sizes)
    for axis, place in enumerate(own):
        others = tuple(other + 1 for other in range(len(own)) if other != axis)
        gradients[place] += tensor.sum(axis=others) if others else tensor


@final
class _One(Bundle):
    """One part of any kind."""

    def __init__(self, place: int, part: FittedPart, own: list[int], sizes: list[int]) -> None:
        self.places, self.size, self._part = [place], part.size, part
        cut = split_at(sizes)
        self._left, self._right = own[:cut], own[cut:]
        self._sizes = sizes[:cut], sizes[cut:]

    def sides(self, weights: Single, factors: Sequence[Single]) -> tuple[Single, Single, Single]:
        """See `Bundle`."""
        left = khatri_rao([factors[place] for place in self._left], weights)
        right = khatri_rao([factors[place] for place in self._right], np.ones_like(weights))
        table, cells = (left.T @ right).ravel(), self._part.cells
        if cells is not None:
            table = np.bincount(cells, table, self._part.term.cells).astype(np.float32)
        slope = self._part.term.gradient(table)
        slope = slope if cells is None else slope[cells]
        return left, right, slope.reshape(left.shape[1], right.shape[1])

    def add(self, to_left: Single, to_right: Single, gradients: Sequence[Single]) -> None:
        """See `Bundle`."""
        _scatter(self._left, self._sizes[0], to_left, gradients)
        _scatter(self._right, self._sizes[1], to_right, gradients)


@final
class _Several(Bundle):
    """Parts on the same attributes, measured alike, and one more attribute each: its values side by side."""

    def __init__(
        self, places: list[int], terms: list[GramTerm], left: list[int], right: list[int], sizes: list[int]
    ) -> None:
        self.places, self._left, self._right = places, left, right
        self._axes = terms[0].axes[:-1]
        self._sizes = [axis.size for axis in self._axes]
        self._ends = np.cumsum([0, *sizes]).tolist()
        rows = int(np.prod(self._sizes))
        self._target = np.hstack([term.target.reshape(rows, -1).astype(np.float32) for term in terms])
        self.size = self._target.size
        self._scales = np.repeat([np.float32(term.scale) for term in terms], sizes)
        self._means, self._matrices = _column_axes([term.axes[-1] for term in terms], self._ends)

    def sides(self, weights: Single, factors: Sequence[Single]) -> tuple[Single, Single, Single]:
        """See `Bundle`."""
        left = khatri_rao([factors[place] for place in self._left], weights)
        right = np.concatenate([factors[place] for place in self._right], axis=1)
        off = left.T @ right - self._target
        slope = along(self._axes, off.ravel(), off.shape[1]).reshape(off.shape) * self._scales
        if self._means is not None:
            slope = slope - (slope @ self._means[0]) @ self._means[1]
        for start, end, matrix in self._matrices:
            slope[:, start:end] = slope[:, start:end] @ matrix
        return left, right, slope

    def add(self, to_left: Single, to_right: Single, gradients: Sequence[Single]) -> None:
        """See `Bundle`."""
        _scatter(self._left, self._sizes, to_left, gradients)
        for place, (start, end) in zip(self._right, pairwise(self._ends), strict=True):
            gradients[place] += to_right[:, start:end]


def _column_axes(
    axes: Sequence[Axis], ends: Sequence[int]
) -> tuple[tuple[Single, Single] | None, list[tuple[int, int, Single]]]:
    """Return how means are taken of columns and put back, and the matrices of the other columns."""
    centered = [place for place, axis in enumerate(axes) if axis.removes_mean]
    back = np.zeros((len(centered), ends[-1]), dtype=np.float32)
    for row, place in enumerate(centered):
        back[row, ends[place] : ends[place + 1]] = 1.0
    means = None if not centered else (np.ascontiguousarray((back / back.sum(axis=1, keepdims=True)).T), back)
    spans = zip(pairwise(ends), axes, strict=True)
    return means, [(*span, axis.matrix) for span, axis in spans if axis.matrix is not None]


def bundles_of(parts: Parts) -> list[Bundle]:
    """Return all parts in bundles."""
    places = {name: place for place, name in enumerate(parts.starts)}
    sizes = [len(start) for start in parts.starts.values()]
    alike: dict[object, list[int]] = {}
    for place, part in enumerate(parts.parts):
        term, key = part.term, None
        if isinstance(term, GramTerm) and part.cells is None and len(term.axes) == len(part.free):
            key = (part.free[:-1], tuple(axis.key for axis in term.axes[:-1]))
        alike.setdefault(place if key is None else key, []).append(place)
    found: list[Bundle] = []
    for together in alike.values():
        members = [parts.parts[place] for place in together]
        terms = [member.term for member in members if isinstance(member.term, GramTerm)]
        own = [places[name] for name in members[0].free]
        if len(together) == 1 or len(terms) < len(members):
            found += [_One(together[0], members[0], own, [sizes[place] for place in own])]
        else:
            last = [places[member.free[-1]] for member in members]
            found += [_Several(together, terms, own[:-1], last, [sizes[place] for place in last])]
    return found
