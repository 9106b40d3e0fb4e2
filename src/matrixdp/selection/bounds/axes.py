"""One attribute's share of a triple of subsets: small traces and quadratic forms, linear in 1 / p.

At weights w with 1'w = 1, a strategy's covariance Z with Z 1 = 0 stands for the attribute in a subset that
keeps it, and w w' in one that does not. With q = 1 / p, what the attribute adds to a triple (B, C, E) is the
trace along the ring V Z_C q Z_E V' Z_B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.bounds.rings import Measured, Tied

__all__ = ["Axes", "Code"]

Array = NDArray[np.float64]
Code = tuple[int, ...]


@dataclass(eq=False)
class Axes:
    """What is asked and measured of single attributes.

    Parameters
    ----------
    weights : sequence of ndarray, shape (n,)
        w of each attribute type.
    grams : list of ndarray, shape (n, n), or Tied
        V of each predicate set, or a part of explicit queries.
    measured : list of Measured or Tied
        Each strategy, or a part of a joint one.
    """

    weights: Sequence[Array]
    grams: list[Array | Tied]
    measured: list[Measured | Tied]
    _seen: dict[tuple[int, int], Array] = field(default_factory=dict)
    _products: dict[tuple[int, int, int], Array] = field(default_factory=dict)
    _symmetric: dict[int, bool] = field(default_factory=dict)
    _diagonals: dict[tuple[int, int], tuple[Array, float] | None] = field(default_factory=dict)

    def gram(self, number: int) -> Array:
        """Return V of a predicate set."""
        found = self.grams[number]
        assert isinstance(found, np.ndarray)
        return found

    def strategy(self, number: int) -> Measured:
        """Return a strategy of one attribute."""
        found = self.measured[number]
        assert isinstance(found, Measured)
        return found

    def tied(self, code: Code) -> bool:
        """Return whether a share does not fall apart from those of other attributes."""
        _, *kept, one, two = code
        own = [self.measured[i] for i in kept if i >= 0] + [self.grams[i] for i in (one, two) if i >= 0]
        return any(isinstance(part, Tied) for part in own)

    def symmetric(self, number: int) -> bool:
        """Return whether what is asked is the same transposed; that of explicit queries always is."""
        if number not in self._symmetric:
            found = self.grams[number]
            self._symmetric[number] = isinstance(found, Tied) or np.allclose(
                found, found.T, rtol=1e-13, atol=0
            )
        return self._symmetric[number]

    def seen(self, slot: int, found: int) -> Array:
        """Return V Z."""
        if (slot, found) not in self._seen:
            self._seen[slot, found] = self.gram(slot) @ self.strategy(found).covariance
        return self._seen[slot, found]

    def product(self, left: int, slot: int, right: int) -> Array:
        """Return Z V Z'."""
        if (left, slot, right) not in self._products:
            self._products[left, slot, right] = self.strategy(left).covariance @ self.seen(slot, right)
        return self._products[left, slot, right]

    def diagonal(self, slot: int, found: int) -> tuple[Array, float] | None:
        """Return R' V R for Z = R R', where it is known to be diagonal, and how far that may be off."""
        if (slot, found) not in self._diagonals:
            self._diagonals[slot, found] = self.strategy(found).diagonal(self.gram(slot))
        return self._diagonals[slot, found]

    def _kept_by_all(self, b: int, c: int, e: int, one: int, two: int) -> Array:
        """Return the diagonal of Z_C V Z_B V' Z_E."""
        if b == c == e:
            # of the optimum itself it takes no product of matrices
            first, second = self.diagonal(one, b), self.diagonal(two, b)
            if first is not None and second is not None:
                found = np.asarray((self.strategy(b).root ** 2) @ (first[0] * second[0]))
                return found * (1.0 + first[1] + second[1])
        return np.asarray(np.einsum("ij,ij->j", self.product(b, one, c), self.seen(two, e)))

    def share(self, code: Code) -> tuple[Array, float]:
        """Return (g, c): the share is g'q + c, around Z_E V' Z_B V Z_C q, with the V of B u E transposed.

        The code has the type, Z of B, C and E, and V of B u C and of B u E; -1 is a subset that does not keep
        the attribute.
        """
        type_, b, c, e, one, two = code
        w = self.weights[type_]
        if b >= 0 and c >= 0 and e >= 0:
            return self._kept_by_all(b, c, e, one, two), 0.0
        image = {number: self.strategy(number).image for number in (b, c, e) if number >= 0}
        if b >= 0 and c >= 0:
            return image[c](image[b](self.gram(two) @ w) @ self.gram(one)) * w, 0.0
        if b >= 0 and e >= 0:
            return image[e](image[b](self.gram(one) @ w) @ self.gram(two)) * w, 0.0
        if c >= 0 and e >= 0:
            return image[c](w @ self.gram(one)) * image[e](w @ self.gram(two)), 0.0
        if b >= 0:
            return np.zeros(len(w)), float((self.gram(two) @ w) @ image[b](self.gram(one) @ w))
        slot, found = (one, c) if c >= 0 else (two, e)
        return image[found](w @ self.gram(slot)) * w, 0.0
