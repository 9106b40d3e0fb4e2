"""What parts have in common, apart for attributes that all of them measure value by value.

Estimates of single values are uncorrelated and equally precise: contrasts along such attributes are
independent of their sums, and of one another with the same covariances, so that one stands for all. What is
left are the tables of the other attributes, noisier where more values were summed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact import MeasuredMatrix
from matrixdp.plan.common_residuals import PartView
from matrixdp.queries.predicates import Predicates

__all__ = ["Mode"]

Array = NDArray[np.float64]
Names = tuple[str, ...]

#: Eigenvalues of information below this share of the largest are rounding errors.
_NO_INFORMATION = 1e-12


class Mode:
    """The common unknowns that are contrasts along some attributes, sums over others.

    Parameters
    ----------
    domain : Domain
    contrasts : tuple of str
        The attributes of which contrasts are meant.
    whole : set of str
        All attributes that the parts measure value by value.
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
        #: By part, the number of its values that are summed into one, and the variance of such sums.
        self.summed = {
            place: math.prod(size for name, size in own.items() if name in whole and name not in contrasts)
            for place, own in self._sizes.items()
        }
        self.noise = {place: noise[place] * count for place, count in self.summed.items()}
        #: With the covariance of the common unknowns as its square, L' L.
        self.root = self.solved({place: 1.0 / own for place, own in self.noise.items()})

    def solved(self, precisions: Mapping[int, float]) -> Array:
        """Return the root for given precisions of the parts."""
        total = np.zeros((self.unknowns, self.unknowns))
        for place, view in self.views.items():
            total[np.ix_(view.places, view.places)] += precisions[place] * view.information
        return _inverse_root(total)

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

    def news(self, place: int) -> Array:
        """Return F with F' F the covariance of what all parts say, as a part's own estimates see it."""
        view = self.views[place]
        found = self.root[:, view.places] @ view.loads.T
        return np.asarray(scipy.linalg.qr(found, mode="r")[0] if len(found) > found.shape[1] else found)

    def split(self, place: int, sets: Mapping[str, Predicates]) -> tuple[list[Array], list[Predicates]]:
        """Return squares of what is asked of attributes measured value by value, and the other predicates.

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


def _inverse_root(information: Array) -> Array:
    """Return L with L' L the pseudo-inverse of a matrix of information."""
    scale = 1.0 / np.sqrt(np.maximum(information.diagonal(), np.finfo(float).tiny))
    scaled = information * scale * scale[:, None]
    try:
        lower = np.linalg.cholesky(scaled)
        if float(np.diagonal(lower).min()) > math.sqrt(_NO_INFORMATION):
            solved = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
            return np.asarray(solved * scale)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(scaled)
    kept = values > _NO_INFORMATION * values[-1]
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T * scale)
