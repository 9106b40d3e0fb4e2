"""Triples' shares of attributes that a joint strategy or explicit queries tie together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_letters

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError

__all__ = ["MAX_AXIS_CELLS", "Measured", "Ring", "Tied"]

Array = NDArray[np.float64]
Code = tuple[int, ...]

#: Attributes whose covariances are written out and multiplied have up to this many values.
MAX_AXIS_CELLS = 2_000
#: How far a matrix may be from the diagonal one that it is taken for, as far as vectors tell.
_SAME = 1e-5
#: Cells of a tensor over the attributes with a factor q, at most.
_MOST_CELLS = 1_000_000


@dataclass(frozen=True, eq=False)
class Tied:
    """One attribute's part of a tensor over several.

    Attributes
    ----------
    tensor : ndarray
        Explicit queries, shape (m, n_1, n_2, ...), or a covariance, shape (n_1, n_2, ..., n_1, n_2, ...).
    axis : int
        The attribute's place; all are 0 where the attributes may be exchanged.
    """

    tensor: Array
    axis: int


@dataclass(frozen=True, eq=False)
class Measured:
    """A strategy of one attribute, by a root of its covariance: Z = R R'.

    Attributes
    ----------
    root : ndarray, shape (n, r)
        R.
    shape : ndarray, shape (r,), optional
        What R' V R is a multiple of, as a diagonal matrix, for the V that the strategy is the optimum of.
    """

    root: Array
    shape: Array | None = None

    @cached_property
    def covariance(self) -> Array:
        """Z itself, shape (n, n); raises TooLargeError past ``MAX_AXIS_CELLS`` values."""
        size = len(self.root)
        if size > MAX_AXIS_CELLS:
            raise TooLargeError(f"a bound that multiplies {size} x {size}; the limit is {MAX_AXIS_CELLS}")
        return np.asarray(self.root @ self.root.T)

    def image(self, vector: Array) -> Array:
        """Return Z times a vector."""
        return np.asarray(self.root @ (vector @ self.root))

    def diagonal(self, gram: Array) -> tuple[Array, float] | None:
        """Return R' V R where it is diagonal, as far as two vectors tell, and how far traces may be off.

        The second is relative. With E what is off, |tr E| is at most r^(1/2) |E|, and the vectors, whose
        entries are near 1, tell |E|.
        """
        if self.shape is None:
            return None
        places = np.arange(len(self.shape))
        multiples, away = [], 0.0
        for probe in (1.0 + np.cos(places), np.sin(3.0 * places) + 0.5):
            expected = self.shape * probe
            seen = (gram @ (self.root @ probe)) @ self.root
            multiples.append(float(expected @ seen) / float(expected @ expected))
            apart = float(np.linalg.norm(seen - multiples[0] * expected))
            away = max(away, apart / max(float(np.linalg.norm(seen)), np.finfo(float).tiny))
        return (multiples[0] * self.shape, away * len(places) ** 0.5) if away <= _SAME else None


class Ring:
    """The trace around V Z_C q Z_E V' Z_B over attributes that do not fall apart.

    Parameters
    ----------
    codes : sequence of tuple of int
        For each attribute what `Axes.share` takes.
    weights : sequence of ndarray
        By type.
    grams : sequence of ndarray or Tied
        By number.
    measured : sequence of Measured or Tied
        By number.
    """

    def __init__(
        self,
        codes: Sequence[Code],
        weights: Sequence[Array],
        grams: Sequence[Array | Tied],
        measured: Sequence[Measured | Tied],
    ) -> None:
        self.codes, self._grams, self._measured = codes, grams, measured
        self._labels = iter(range(len(ascii_letters)))
        self._operands: list[tuple[Array, list[int]]] = []
        #: For each attribute with a factor q: its type, its label, and what multiplies q.
        self._middles: list[tuple[int, int, Array]] = []
        ends = [self._ends(code, weights[code[0]]) for code in codes]
        for place, (left, right) in {1: (0, 1), 2: (2, 3), 3: (4, 5)}.items():
            self._join([(code[place], end[left], end[right]) for code, end in zip(codes, ends, strict=True)])
        for place, (left, right) in {4: (0, 2), 5: (1, 5)}.items():
            asked = [(code[place], end[left], end[right]) for code, end in zip(codes, ends, strict=True)]
            self._ask(asked)

    def _ends(self, code: Code, w: Array) -> list[int]:
        """Return an attribute's labels around the ring, and close the ends of subsets without it.

        Between Z_B and V, Z_B and V', V and Z_C, Z_C and q, q and Z_E, Z_E and V'.
        """
        type_, b, c, e, one, two = code
        labels = [next(self._labels) for _ in range(6)]
        if c >= 0 and e >= 0:
            labels[4] = labels[3]
        if c >= 0 or e >= 0:
            both = c >= 0 and e >= 0
            self._middles.append((type_, labels[3] if c >= 0 else labels[4], np.ones(len(w)) if both else w))
        # V ends in w where B, or C, does not keep the attribute; V' where B, or E, does not
        for kept, asked, label in ((b, one, 0), (b, two, 1), (c, one, 2), (e, two, 5)):
            if kept < 0 and asked >= 0:
                self._operands.append((w, [labels[label]]))
        return labels

    def _join(self, kept: list[tuple[int, int, int]]) -> None:
        """Add the strategies of one subset."""
        tied: dict[int, list[tuple[int, int, int]]] = {}
        for number, left, right in kept:
            if number < 0:
                continue
            found = self._measured[number]
            if isinstance(found, Tied):
                tied.setdefault(id(found.tensor), []).append((number, left, right))
            else:
                self._operands.append((found.covariance, [left, right]))
        for parts in tied.values():
            tensor, ordered = self._ordered(parts, self._measured)
            self._operands.append(
                (tensor, [left for _, left, _ in ordered] + [right for *_, right in ordered])
            )

    def _ask(self, asked: list[tuple[int, int, int]]) -> None:
        """Add what is asked of one pair of subsets."""
        tied = []
        for number, left, right in asked:
            if number < 0:
                continue
            found = self._grams[number]
            if isinstance(found, Tied):
                tied.append((number, left, right))
            else:
                self._operands.append((found, [left, right]))
        if tied:
            tensor, ordered = self._ordered(tied, self._grams)
            row = next(self._labels)
            self._operands.append((tensor, [row, *(left for _, left, _ in ordered)]))
            self._operands.append((tensor, [row, *(right for *_, right in ordered)]))

    @staticmethod
    def _ordered(
        parts: list[tuple[int, int, int]], found: Sequence[Array | Measured | Tied]
    ) -> tuple[Array, list[tuple[int, int, int]]]:
        def axis(part: tuple[int, int, int]) -> int:
            own = found[part[0]]
            assert isinstance(own, Tied)
            return own.axis

        first = found[parts[0][0]]
        assert isinstance(first, Tied)
        return first.tensor, sorted(parts, key=axis)

    def value(self, q: Sequence[Array]) -> float:
        """Return the trace."""
        return float(self._contracted(q, []))

    def slopes(self, q: Sequence[Array]) -> Iterator[tuple[int, Array]]:
        """Yield types with the derivatives of the trace by their q, each attribute's on its own."""
        for place, (type_, label, factor) in enumerate(self._middles):
            yield type_, factor * self._contracted(q, [label], without=place)

    def _contracted(self, q: Sequence[Array], result: list[int], without: int = -1) -> Array:
        """Return the trace, or what is left of it with one attribute's q and factor taken out."""
        middles = [
            (factor * q[type_], [label])
            for place, (type_, label, factor) in enumerate(self._middles)
            if place != without
        ]
        # vectors beside one small tensor need no search for an order, which would cost more than the sums
        return _einsum([*self._fixed, *middles], result, ordered=len(self._fixed) > 1)

    @cached_property
    def _fixed(self) -> list[tuple[Array, list[int]]]:
        """What does not depend on q: one tensor over the attributes with a factor q, if it is small."""
        if math.prod(len(factor) for *_, factor in self._middles) > _MOST_CELLS:
            return self._operands
        labels = [label for _, label, _ in self._middles]
        return [(_einsum(self._operands, labels), labels)]


def _einsum(operands: list[tuple[Array, list[int]]], result: list[int], ordered: bool = True) -> Array:
    written = ["".join(ascii_letters[label] for label in labels) for _, labels in operands]
    form = ",".join(written) + "->" + "".join(ascii_letters[label] for label in result)
    return np.asarray(np.einsum(form, *(tensor for tensor, _ in operands), optimize=ordered))
