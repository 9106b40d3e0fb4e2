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

from matrixdp.selection.bounds.rings import Tied

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
    measured : list of ndarray, shape (n, n), or Tied
        Z of each strategy, or a part of a joint one.
    """

    weights: Sequence[Array]
    grams: list[Array | Tied]
    measured: list[Array | Tied]
    _seen: dict[tuple[int, int], Array] = field(default_factory=dict)
    _products: dict[tuple[int, int, int], Array] = field(default_factory=dict)

    def gram(self, number: int) -> Array:
        """Return V of a predicate set."""
        found = self.grams[number]
        assert isinstance(found, np.ndarray)
        return found

    def covariance(self, number: int) -> Array:
        """Return Z of a strategy."""
        found = self.measured[number]
        assert isinstance(found, np.ndarray)
        return found

    def tied(self, code: Code) -> bool:
        """Return whether a share does not fall apart from those of other attributes."""
        _, *kept, one, two = code
        own = [self.measured[i] for i in kept if i >= 0] + [self.grams[i] for i in (one, two) if i >= 0]
        return any(isinstance(part, Tied) for part in own)

    def seen(self, slot: int, found: int) -> Array:
        """Return V Z."""
        if (slot, found) not in self._seen:
            self._seen[slot, found] = self.gram(slot) @ self.covariance(found)
        return self._seen[slot, found]

    def product(self, left: int, slot: int, right: int) -> Array:
        """Return Z V Z'."""
        if (left, slot, right) not in self._products:
            self._products[left, slot, right] = self.covariance(left) @ self.seen(slot, right)
        return self._products[left, slot, right]

    def share(self, code: Code) -> tuple[Array, float]:
        """Return (g, c): the share is g'q + c.

        The code has the type, Z of B, C and E, and V of B u C and of B u E; -1 is a subset that does not keep
        the attribute.
        """
        type_, b, c, e, one, two = code
        w = self.weights[type_]
        if b >= 0 and c >= 0 and e >= 0:
            return np.einsum("ij,ij->j", self.product(b, one, c), self.seen(two, e)), 0.0
        if b >= 0 and c >= 0:
            return ((self.gram(two) @ w) @ self.product(b, one, c)) * w, 0.0
        if b >= 0 and e >= 0:
            return ((self.gram(one) @ w) @ self.product(b, two, e)) * w, 0.0
        if c >= 0 and e >= 0:
            return (w @ self.seen(one, c)) * (w @ self.seen(two, e)), 0.0
        if b >= 0:
            return np.zeros(len(w)), float((self.gram(two) @ w) @ self.covariance(b) @ (self.gram(one) @ w))
        slot, found = (one, c) if c >= 0 else (two, e)
        return (w @ self.seen(slot, found)) * w, 0.0
