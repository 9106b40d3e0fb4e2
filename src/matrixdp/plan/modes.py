"""What parts have in common, apart for attributes whose values each of them measures alike.

Estimates of single values have a covariance a I + b 11': contrasts along such attributes are independent of
their sums, and of one another with the same covariances, so that one stands for all. What is left are the
tables of the other attributes, noisier where more values were summed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.linear import inverse_root
from matrixdp.plan.common_residuals import PartView
from matrixdp.queries.predicates import Predicates

__all__ = ["Mode"]

Array = NDArray[np.float64]
Names = tuple[str, ...]

#: Numbers up to which what the parts of a mode say is held in one array.
_STACKED = 1_000_000


class Mode:
    """The common unknowns that are contrasts along some attributes, sums over others.

    Parameters
    ----------
    domain : Domain
    contrasts : tuple of str
        The attributes of which contrasts are meant.
    whole : set of str
        All attributes of which every part measures the values alike.
    subsets : sequence of tuple of str
        What of the other attributes stands with the contrasts in common marginals.
    matrices : dict of int to dict of str to MeasuredMatrix
        What the parts that hold the contrasts measure, by their places.
    bases : dict of str to ndarray
        Of the other attributes: see `PartView`.
    noise : sequence of float
        The variances of all parts.
    """

    def __init__(
        self,
        domain: Domain,
        contrasts: Names,
        whole: Set[str],
        subsets: Sequence[Names],
        matrices: Mapping[int, Mapping[str, MeasuredMatrix]],
        bases: Mapping[str, Array],
        noise: Sequence[float],
    ) -> None:
        self._contrasts = contrasts
        self._whole = whole
        self._sizes = {place: {n: domain[n].size for n in own} for place, own in matrices.items()}
        places, self.unknowns = {}, 0
        for names in subsets:
            count = math.prod(len(bases[name]) for name in names)
            places[names] = np.arange(self.unknowns, self.unknowns + count)
            self.unknowns += count
        #: What the parts say of the other attributes.
        self.views = {
            place: PartView({n: m for n, m in own.items() if n not in whole}, bases, places)
            for place, own in matrices.items()
        }
        #: By part, the number of its values that are summed into one.
        self.summed = {
            place: math.prod(size for name, size in own.items() if name in whole and name not in contrasts)
            for place, own in self._sizes.items()
        }
        #: The variance of such a contrast of sums at noise 1, and at the part's.
        self.spread = {
            place: math.prod(_spread(m, name in contrasts) for name, m in own.items() if name in whole)
            for place, own in matrices.items()
        }
        self.noise = {place: noise[place] * own for place, own in self.spread.items()}
        #: With the covariance of the common unknowns as its square, L' L.
        self.root = self.solved(1.0 / np.array(list(self.noise.values())))

    @cached_property
    def _stacked(self) -> Array | None:
        """What each part says of the unknowns, shape (parts, unknowns, unknowns), where that is little."""
        if len(self.views) * self.unknowns**2 > _STACKED:
            return None
        found = np.zeros((len(self.views), self.unknowns, self.unknowns))
        for own, view in zip(found, self.views.values(), strict=True):
            own[np.ix_(view.places, view.places)] = view.information
        return found

    def solved(self, precisions: Array) -> Array:
        """Return the root for given precisions of the parts."""
        if self._stacked is not None:
            return inverse_root(np.tensordot(precisions, self._stacked, 1))
        total = np.zeros((self.unknowns, self.unknowns))
        for view, precision in zip(self.views.values(), precisions, strict=True):
            total[np.ix_(view.places, view.places)] += precision * view.information
        return inverse_root(total)

    def told(self, spread: Array) -> Array:
        """Return for each part the inner product of what it says with a matrix over the common unknowns."""
        if self._stacked is not None:
            return np.tensordot(self._stacked, spread, 2)
        inner = [
            float(np.einsum("ij,ij->", spread[np.ix_(view.places, view.places)], view.information))
            for view in self.views.values()
        ]
        return np.array(inner)

    def _order(self, place: int) -> list[int]:
        names = list(self._sizes[place])
        return [0, *sorted(range(1, 1 + len(names)), key=lambda axis: names[axis - 1] not in self._contrasts)]

    def taken(self, place: int, rows: Array) -> Array:
        """Return queries on a part's cells as queries on the summed values, for each value of the contrasts.

        Shape (queries, cells) in, (queries, values, cells of the other attributes) out.
        """
        tensor = rows.reshape(len(rows), *self._sizes[place].values())
        values = 1
        for axis, (name, size) in enumerate(self._sizes[place].items(), 1):
            if name in self._contrasts:
                tensor = tensor - tensor.mean(axis=axis, keepdims=True)
                values *= size
            elif name in self._whole:
                tensor = tensor.mean(axis=axis, keepdims=True)
        return np.transpose(tensor, self._order(place)).reshape(len(rows), values, -1)

    def given(self, place: int, found: Array) -> Array:
        """Return the queries on a part's cells again."""
        order = self._order(place)
        names = list(self._sizes[place])
        shape = [
            size if name in self._contrasts or name not in self._whole else 1
            for axis in order[1:]
            for name in [names[axis - 1]]
            for size in [self._sizes[place][name]]
        ]
        tensor = np.transpose(found.reshape(len(found), *shape), np.argsort(order))
        return np.broadcast_to(tensor, (len(found), *self._sizes[place].values())).reshape(len(found), -1)

    def seen(self, place: int, rows: Array) -> tuple[Array, Array]:
        """Return for queries their covariances with the common estimates, and what follows for z.

        Shape (queries, values of the contrasts, estimates or unknowns).
        """
        taken = self.taken(place, rows)
        view = self.views[place]
        own = view.row_covariances(taken.reshape(-1, taken.shape[2])).reshape(*taken.shape[:2], -1)
        whole = np.zeros((*own.shape[:2], self.unknowns))
        whole[..., view.places] = own @ view.loads
        return own, whole

    def change(self, place: int) -> Array:
        """Return how the covariance of the best estimates differs from a part's own, as its estimates see it.

        That is M with g' M g the change of the variance of a query whose covariances with them are g.
        """
        view = self.views[place]
        found = self.root[:, view.places] @ view.loads.T
        return np.asarray(found.T @ found - self.noise[place] * (view.half.T @ view.half))

    def split(self, place: int, sets: Mapping[str, Predicates]) -> tuple[list[Array], list[Predicates]]:
        """Return squares of what is asked of attributes of values measured alike, and the other predicates.

        The squares have a vector for each attribute of the part; of the others they are empty.
        """
        squares, others = [], []
        for name, size in self._sizes[place].items():
            if name not in self._whole:
                others.append(sets[name])
                squares.append(np.ones(0))
                continue
            of_sums = sets[name].apply(np.ones((size, 1)))[:, 0] ** 2 / size
            contrast = name in self._contrasts
            squares.append(sets[name].squares(size) - of_sums if contrast else of_sums / size)
        return squares, others


def _spread(matrix: MeasuredMatrix, contrast: bool) -> float:
    """Return the variance of the estimate of a contrast of length 1, or of the sum, at noise 1."""
    structure = matrix.symmetric_covariance
    assert structure is not None
    own, shared = structure
    return own if contrast else matrix.columns * (own + matrix.columns * shared)
