"""Sub-workloads at given weight vectors: Gram matrices of pieces, and how they change with the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.view.recent import Recent
from matrixdp.selection.view.sub_workloads import Split, SubWorkload

__all__ = ["Pieces", "SlotPiece", "Term", "numeric_terms"]

Array = NDArray[np.float64]
Groups = tuple[NDArray[np.intp], ...] | None

#: Terms below this share of the largest of their sub-workload are floating-point noise.
NEGLIGIBLE = 1e-14
#: Arrays of pieces of explicit queries that are kept.
_MOST_KEPT = 8


@dataclass(frozen=True, eq=False)
class SlotPiece:
    """A slot at a weight vector.

    Attributes
    ----------
    mean_square : float
        t = w' V w: what is left of the slot where its attribute is contracted.
    gram : ndarray, shape (n, n), or None
        P' V P with P = I - w 1'; None for symmetric slots, split or with V = a I.
    coefficient : float
        For a symmetric slot a, in P' V P = a (I - 11'/n), or a I where it is whole.
    representative, ratio : int, float
        The first slot on the type with a proportional piece, and the factor.
    whole : bool
        Whether P' V P = a I.
    """

    mean_square: float
    gram: Array | None
    coefficient: float
    representative: int
    ratio: float
    whole: bool = False


@dataclass(frozen=True)
class Term:
    """coefficient, of either sign, x the Kronecker product of the pieces of ``kept`` slots."""

    coefficient: float
    kept: tuple[int, ...]


@dataclass(eq=False)
class Pieces:
    """All slots and explicit queries of a split at given weights.

    Parameters
    ----------
    split : Split
    weights : sequence of ndarray
        One vector with sum 1 for each attribute type; or zeros, for an attribute that is not split.
    """

    split: Split
    weights: Sequence[Array]
    slots: list[SlotPiece] = field(init=False)
    #: Explicit queries about many attributes are mostly a few; their pieces are not to be changed.
    _rows: Recent[Array] = field(init=False, default_factory=lambda: Recent(_MOST_KEPT))
    #: By type: the representative slots, their traces, and their diagonals over those.
    _diagonals: dict[int, list[tuple[int, float, Array]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.slots = []
        for number, slot in enumerate(self.split.slots):
            w = self.weights[slot.type]
            if slot.symmetric is not None and not self.split.free[slot.type]:
                a, b = slot.symmetric
                whole = not w.any()
                if not whole or b == 0.0:
                    square = 0.0 if whole else a / slot.size + b
                    self.slots.append(SlotPiece(square, None, a, self._first(number), 1.0, whole))
                    continue
            gram = slot.predicates.gram(slot.size)
            seen = gram @ w
            mean_square = float(w @ seen)
            piece = gram - (seen if slot.definite else w @ gram)[None, :] - seen[:, None] + mean_square
            representative, ratio = self._proportional(number, piece)
            self.slots.append(
                SlotPiece(
                    max(mean_square, 0.0) if slot.definite else mean_square, piece, 0.0, representative, ratio
                )
            )

    def _first(self, number: int) -> int:
        """Return the first symmetric slot on the same type; all are proportional to it."""
        type_ = self.split.slots[number].type
        for other, piece in enumerate(self.slots):
            if self.split.slots[other].type == type_ and piece.coefficient > 0:
                return other
        return number

    def _proportional(self, number: int, piece: Array) -> tuple[int, float]:
        norm, trace = float(np.abs(piece).max()), float(np.trace(piece))
        diagonal = np.diagonal(piece)
        own = self._diagonals.setdefault(self.split.slots[number].type, [])
        if own and trace > 0.0:
            # most are told apart by their diagonals
            away = np.abs(diagonal - trace * np.stack([shape for _, _, shape in own])).max(axis=1)
            for place in np.flatnonzero(away <= 1e-12 * norm):
                other, size, _ = own[place]
                known = self.slots[other].gram
                ratio = trace / size
                if known is not None and float(np.abs(piece - ratio * known).max()) <= 1e-12 * norm:
                    return other, ratio
        if trace > 0.0:
            own.append((number, trace, diagonal / trace))
        return number, 1.0

    def scale(self, kept: tuple[int, ...]) -> float:
        """Return the largest diagonal entry of the Kronecker product of the slots' own Gram matrices."""
        return math.prod(self.split.slots[number].largest for number in kept)

    def explicit_rows(self, number: int, kept: tuple[bool, ...], groups: Groups = None) -> Array:
        """Return explicit queries as pieces on the kept axes, shape (queries, cells kept).

        With ``groups``, those of each kept axis, over one cell for each group of their values.
        """
        item = self.split.explicit[number]
        merged = None if groups is None else tuple(group.tobytes() for group in groups)
        weights = tuple(self.weights[type_].tobytes() for type_ in item.types)
        return self._rows.of(
            (id(item.content), kept, merged, weights), lambda: self._explicit_rows(number, kept, groups)
        )

    def _explicit_rows(self, number: int, kept: tuple[bool, ...], groups: Groups) -> Array:
        tensor, weights, _ = self._merged(number, kept, groups)
        for axis in range(len(kept), 0, -1):
            mean = np.tensordot(tensor, weights[axis - 1], axes=(axis, 0))
            tensor = tensor - np.expand_dims(mean, axis) if kept[axis - 1] else mean
        return np.asarray(tensor.reshape(len(tensor), -1))

    def _merged(
        self, number: int, kept: tuple[bool, ...], groups: Groups
    ) -> tuple[Array, list[Array], list[NDArray[np.intp] | None]]:
        """Return explicit queries over groups of values, the groups' weights, and the groups of each axis."""
        item = self.split.explicit[number]
        tensor = item.rows.reshape(len(item.rows), *item.sizes)
        weights = [self.weights[type_] for type_ in item.types]
        if groups is None:
            return tensor, weights, [None] * len(kept)
        left = iter(groups)
        own = [next(left) if keep else coarse for keep, coarse in zip(kept, item.groups, strict=True)]
        return (
            item.content.over(tuple(own)),
            [np.asarray(np.bincount(g, w), dtype=float) for g, w in zip(own, weights, strict=True)],
            [*own],
        )

    def explicit_gradient(
        self,
        number: int,
        kept: tuple[bool, ...],
        sensitivity: Callable[[Array], Array],
        groups: Groups = None,
    ) -> list[tuple[int, Array]]:
        """Return, per axis, (type, gradient of tr(A V)) for the Gram V of ``explicit_rows`` and fixed A.

        ``sensitivity`` returns rows times A.
        """
        item = self.split.explicit[number]
        full, weights, own = self._merged(number, kept, groups)
        rows = self.explicit_rows(number, kept, groups)
        kept_sizes = [n for n, k in zip(full.shape[1:], kept, strict=True) if k]
        image = sensitivity(rows).reshape(len(rows), *kept_sizes)
        gradients = []
        for axis, type_ in enumerate(item.types):
            # contract or centre all other axes, leaving this one raw
            tensor = full
            for other in range(len(kept), 0, -1):
                if other - 1 == axis:
                    continue
                mean = np.tensordot(tensor, weights[other - 1], axes=(other, 0))
                tensor = tensor - np.expand_dims(mean, other) if kept[other - 1] else mean
            # position of this axis among what is left: kept axes stay, contracted ones are gone
            position = 1 + sum(kept[:axis])
            raw = np.moveaxis(tensor, position, -1).reshape(-1, full.shape[axis + 1])
            if kept[axis]:
                found = -2.0 * (image.sum(axis=position).ravel() @ raw)
            else:
                found = 2.0 * (image.ravel() @ raw)
            group = own[axis]
            gradients.append((type_, found if group is None else found[group]))
        return gradients


def numeric_terms(pieces: Pieces, sub: SubWorkload) -> list[Term]:
    """Return the Kronecker terms of a sub-workload, equal ones merged, negligible ones dropped."""
    merged: dict[tuple[int, ...], float] = {}
    for product in sub.products:
        coefficient = product.weight
        for slot in product.contracted:
            coefficient *= pieces.slots[slot].mean_square
        kept = []
        for slot in product.kept:
            piece = pieces.slots[slot]
            coefficient *= piece.ratio
            if piece.gram is None:
                coefficient *= piece.coefficient / pieces.slots[piece.representative].coefficient
            kept.append(piece.representative)
        merged[tuple(kept)] = merged.get(tuple(kept), 0.0) + coefficient
    largest = max(map(abs, merged.values()), default=0.0)
    return [Term(c, k) for k, c in merged.items() if abs(c) > NEGLIGIBLE * largest]
