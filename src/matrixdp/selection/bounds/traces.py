"""What single attributes, or a few that are tied to one another, add to the traces of a lower bound.

At weights w with 1'w = 1, a strategy's covariance Z with Z 1 = 0 stands for an attribute in a subset that
keeps it, and w w' in one that does not. With q = 1 / p, what the attribute adds to a triple of subsets
(B, C, E) is the trace around the ring V Z_C q Z_E V' Z_B, which is linear in q. Joint strategies and explicit
queries tie attributes together: what these add is one such trace over all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count
from string import ascii_letters

import numpy as np

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array
from matrixdp.selection.limits import LIMITS

#: What an attribute is in a triple: its type, its covariances in B, C and E, and its Gram matrices between B
#: and C and between B and E; each by number, -1 where there is none.
Code = tuple[int, int, int, int, int, int]
_Operand = tuple[Array, list[int]]
#: How far a matrix may be from the diagonal one that it is taken for, as far as vectors tell.
_SAME_TRACES = 1e-5


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
class Covariance:
    """The covariance of one attribute's strategy by a root: Z = R R'.

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
    def matrix(self) -> Array:
        """Z itself, shape (n, n); raises TooLargeError past ``LIMITS.spectral_cells`` values."""
        size = len(self.root)
        if size > LIMITS.spectral_cells:
            raise TooLargeError(
                f"a bound that multiplies {size} x {size}; the limit is {LIMITS.spectral_cells}"
            )
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
        return (multiples[0] * self.shape, away * len(places) ** 0.5) if away <= _SAME_TRACES else None


@dataclass(frozen=True, eq=False)
class Share:
    """A factor of triples, linear in each of some q: a tensor with one axis for each, of these types."""

    types: tuple[int, ...]
    tensor: Array

    def value(self, q: Sequence[Array]) -> float:
        """Return it at q by type."""
        found = self.tensor
        for type_ in reversed(self.types):
            found = found @ q[type_]
        return float(found)

    def slopes(self, q: Sequence[Array]) -> Iterator[tuple[int, Array]]:
        """Yield types with the derivatives by their q, those of each axis on their own."""
        for axis, own in enumerate(self.types):
            others = [place for place in range(len(self.types)) if place != axis]
            found = self.tensor.transpose(axis, *others)  # there may be millions: `moveaxis` is slow
            for type_ in reversed(self.types[:axis] + self.types[axis + 1 :]):
                found = found @ q[type_]
            yield own, found


class Traces:
    """What is asked and measured of attributes, and the traces of their products.

    Parameters
    ----------
    weights : sequence of ndarray, shape (n,)
        w of each attribute type.
    grams : list of ndarray, shape (n, n), or Tied
        V of each predicate set, or a part of explicit queries.

    Attributes
    ----------
    covariances : list of Covariance or Tied
        Of each strategy, or a part of a joint one.
    """

    def __init__(self, weights: Sequence[Array], grams: list[Array | Tied]) -> None:
        self.weights, self.grams = weights, grams
        self.covariances: list[Covariance | Tied] = []
        #: V Z; Z V Z'; R' V R for Z = R R', where it is known to be diagonal, and how far that may be off.
        self._image = cache(lambda slot, b: self.gram(slot) @ self.covariance(b).matrix)
        self._product = cache(lambda b, slot, c: self.covariance(b).matrix @ self._image(slot, c))
        self._diagonal = cache(lambda slot, b: self.covariance(b).diagonal(self.gram(slot)))
        self._turns = cache(self._is_symmetric)

    def gram(self, number: int) -> Array:
        """Return V of a predicate set."""
        found = self.grams[number]
        assert isinstance(found, np.ndarray)
        return found

    def covariance(self, number: int) -> Covariance:
        """Return the covariance of a strategy of one attribute."""
        found = self.covariances[number]
        assert isinstance(found, Covariance)
        return found

    def tied(self, code: Code) -> bool:
        """Return whether a share does not fall apart from those of other attributes."""
        _, b, c, e, one, two = code
        own = [self.covariances[i] for i in (b, c, e) if i >= 0] + [
            self.grams[i] for i in (one, two) if i >= 0
        ]
        return any(isinstance(part, Tied) for part in own)

    def trace(self, coefficient: float, slots: Sequence[int], numbers: Sequence[int]) -> float:
        """Return coefficient tr(V Z) over some attributes, or a little less."""
        total, off, tied = coefficient, 1.0, []
        for slot, number in zip(slots, numbers, strict=True):
            if isinstance(self.grams[slot], Tied) or isinstance(self.covariances[number], Tied):
                tied.append((slot, number))
                continue
            diagonal = self._diagonal(slot, number)
            if diagonal is None:
                total *= float(np.vdot(self.gram(slot), self.covariance(number).matrix))
            else:
                total *= float(diagonal[0].sum())
                off *= 1.0 + diagonal[1]
        if tied:
            labels = count(2 * len(tied))
            asked = [(slot, 2 * place, 2 * place + 1) for place, (slot, _) in enumerate(tied)]
            found = [(number, 2 * place, 2 * place + 1) for place, (_, number) in enumerate(tied)]
            operands = [*_factors(asked, self.grams, labels), *_factors(found, self.covariances, labels)]
            total *= float(_einsum(operands, []))
        return total - abs(total) * (off - 1.0)

    def share(self, code: Code) -> Share:
        """Return an attribute's share, around Z_E V' Z_B V Z_C q; a number where C and E do not keep it."""
        type_, b, c, e, one, two = code
        w = self.weights[type_]
        if b >= 0 and c >= 0 and e >= 0:
            return Share((type_,), self._kept_by_all(b, c, e, one, two))
        image = {number: self.covariance(number).image for number in (b, c, e) if number >= 0}
        if c < 0 and e < 0:
            return Share((), np.asarray((self.gram(two) @ w) @ image[b](self.gram(one) @ w)))
        if b < 0:
            left = image[c](w @ self.gram(one)) if c >= 0 else w
            right = image[e](w @ self.gram(two)) if e >= 0 else w
            return Share((type_,), left * right)
        first, second, last = (one, two, c) if c >= 0 else (two, one, e)
        return Share((type_,), image[last](image[b](self.gram(second) @ w) @ self.gram(first)) * w)

    def _kept_by_all(self, b: int, c: int, e: int, one: int, two: int) -> Array:
        """Return the diagonal of Z_C V Z_B V' Z_E."""
        if b == c == e:
            # of the optimum itself it takes no product of matrices
            first, second = self._diagonal(one, b), self._diagonal(two, b)
            if first is not None and second is not None:
                found = np.asarray((self.covariance(b).root ** 2) @ (first[0] * second[0]))
                return found * (1.0 + first[1] + second[1])
        return np.asarray(np.einsum("ij,ij->j", self._product(b, one, c), self._image(two, e)))

    def one_way_round(self, codes: Sequence[Code]) -> tuple[Code, ...]:
        """Return the codes of tied attributes in one order, equal for rings that have one trace."""
        own = sorted(codes)
        if all(self._turns(slot) for code in own for slot in code[4:] if slot >= 0):
            # the trace is that around the ring the other way too
            own = min(own, sorted((type_, b, e, c, two, one) for type_, b, c, e, one, two in own))
        return tuple(own)

    def _is_symmetric(self, slot: int) -> bool:
        """Return whether what is asked is the same transposed; that of explicit queries always is."""
        found = self.grams[slot]
        return isinstance(found, Tied) or np.allclose(found, found.T, rtol=1e-13, atol=0)

    def tied_share(self, codes: Sequence[Code]) -> Share:
        """Return the share of attributes that do not fall apart."""
        labels = count()
        operands: list[_Operand] = []
        middles: list[tuple[int, int]] = []
        ends = []
        for type_, b, c, e, one, two in codes:
            # between Z_B and V, Z_B and V', V and Z_C, Z_C and q, q and Z_E, Z_E and V'
            own = [next(labels) for _ in range(6)]
            w = self.weights[type_]
            if c >= 0 and e >= 0:
                own[4] = own[3]
            if c >= 0 or e >= 0:
                middles.append((type_, own[3] if c >= 0 else own[4]))
                operands += [] if c >= 0 and e >= 0 else [(w, [middles[-1][1]])]
            # V ends in w where B, or C, does not keep the attribute; V' where B, or E, does not
            dangling = ((b, one, 0), (b, two, 1), (c, one, 2), (e, two, 5))
            operands += [(w, [own[end]]) for kept, slot, end in dangling if kept < 0 <= slot]
            ends.append(own)
        for place, left, right in ((1, 0, 1), (2, 2, 3), (3, 4, 5), (4, 0, 2), (5, 1, 5)):
            parts = [(code[place], own[left], own[right]) for code, own in zip(codes, ends, strict=True)]
            operands += _factors(parts, self.covariances if place < 4 else self.grams, labels)
        found = _einsum(operands, [label for _, label in middles])
        return Share(tuple(type_ for type_, _ in middles), found)


def _factors(
    parts: Sequence[tuple[int, int, int]], known: Sequence[Array | Covariance | Tied], labels: Iterator[int]
) -> Iterator[_Operand]:
    """Yield the operands of a Kronecker product: for each attribute a number, -1 for none, and two labels."""
    tied: dict[int, list[tuple[Tied, int, int]]] = defaultdict(list)
    for number, left, right in parts:
        if number < 0:
            continue
        found = known[number]
        if isinstance(found, Tied):
            tied[id(found.tensor)].append((found, left, right))
        else:
            yield (found.matrix if isinstance(found, Covariance) else found), [left, right]
    for own in tied.values():
        own.sort(key=lambda part: part[0].axis)
        tensor, lefts, rights = own[0][0].tensor, [left for _, left, _ in own], [right for *_, right in own]
        if tensor.ndim == 2 * len(own):
            yield tensor, lefts + rights
        else:
            row = next(labels)
            yield tensor, [row, *lefts]
            yield tensor, [row, *rights]


def _einsum(operands: Sequence[_Operand], result: Sequence[int]) -> Array:
    written = ["".join(ascii_letters[label] for label in labels) for _, labels in operands]
    form = ",".join(written) + "->" + "".join(ascii_letters[label] for label in result)
    return np.asarray(np.einsum(form, *(tensor for tensor, _ in operands), optimize=True))
