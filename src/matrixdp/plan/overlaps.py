"""Several parts: the normal equations on what their marginals have in common, each part's own left out.

The residuals of marginals that two parts hold are the common unknowns z. Part t estimates those that it
determines, E_t z, by itself: with covariance C_t (a Kronecker product, summed over what z does not have). Its
other unknowns are its own, so that what it says of z is the information E_t' C_t^-1 E_t, and z solves the sum
over the parts. An estimate of part t is then moved by what the others say of z: x_t + g' C_t^-1 (E_t z - z_t)
with g its covariances with z_t. The matrices have as many rows as there are common unknowns, whatever the
cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.plan.combination import Combination, Loss, Placed, asked_sets, axis_matrices
from matrixdp.plan.common_residuals import PartView, common_subsets, residual_bases, sees_total
from matrixdp.plan.direct import TableAnalysis
from matrixdp.queries.groups import Group, ProductGroup

__all__ = ["Overlaps"]

Array = NDArray[np.float64]

#: Common unknowns, and numbers in all of the matrices among them, up to which parts are combined.
MAX_COMMON, MAX_ENTRIES = 4_096, 80_000_000
#: Numbers in one array of variances before they are summed.
_CHUNK = 4_000_000
#: Eigenvalues of information below this share of the largest are rounding errors.
_NO_INFORMATION = 1e-12


class Overlaps(Combination):
    """The global least squares of several parts that each determine their totals; see `Combination`."""

    def __init__(self, tables: Sequence[TableAnalysis]) -> None:
        super().__init__(tables)
        matrices = [axis_matrices(part) for part in self.parts]
        common = common_subsets(_varying(tables))
        bases = residual_bases(matrices, {name for names in common for name in names})
        self._size = 0
        places = {}
        for names in common:
            count = math.prod(len(bases[name]) for name in names)
            places[names] = np.arange(self._size, self._size + count)
            self._size += count
        self._views = [PartView(own, bases, places) for own in matrices]
        #: With the covariance of the common unknowns as its square, L' L.
        self._root = self._solved([1.0 / variance for variance in self.noise])

    @staticmethod
    def fits(tables: Sequence[TableAnalysis]) -> bool:
        """Return whether the parts determine their totals and have few enough unknowns in common."""
        domain, varying = tables[0].domain, _varying(tables)
        shared = {
            tuple(n for n in one if n in other) for i, one in enumerate(varying) for other in varying[:i]
        }
        if max(domain.cells(names) for names in shared) > MAX_COMMON:
            return False
        counts = {names: math.prod(domain[n].size - 1 for n in names) for names in common_subsets(varying)}
        own = [sum(count for names, count in counts.items() if set(names) <= set(of)) for of in varying]
        total = sum(counts.values())
        if total > MAX_COMMON or 4 * sum(count**2 for count in (*own, total)) > MAX_ENTRIES:
            return False
        return all(sees_total(m) for table in tables for m in axis_matrices(table.parts[0]).values())

    def _solved(self, precisions: Sequence[float]) -> Array:
        total = np.zeros((self._size, self._size))
        for view, precision in zip(self._views, precisions, strict=True):
            total[np.ix_(view.places, view.places)] += precision * view.information
        return _inverse_root(total)

    def tables(self, estimates: Sequence[Array]) -> list[Array]:
        own = [view.means(estimate) for view, estimate in zip(self._views, estimates, strict=True)]
        side = np.zeros(self._size)
        for view, means, noise in zip(self._views, own, self.noise, strict=True):
            side[view.places] += means @ view.loads / noise
        common = self._root.T @ (self._root @ side)
        return [
            estimate + view.moved(view.expected(common[view.places]) - means)
            for view, estimate, means in zip(self._views, estimates, own, strict=True)
        ]

    def _news(self, place: int) -> Array:
        """Return F with F' F the covariance of what all parts say, as a part's own estimates see it."""
        view = self._views[place]
        found = self._root[:, view.places] @ view.loads.T
        return np.asarray(scipy.linalg.qr(found, mode="r")[0] if len(found) > found.shape[1] else found)

    def variances(self, place: int, group: ProductGroup) -> Array:
        view = self._views[place]
        axes = view.covariances(asked_sets(self.parts[place], group))
        total = self.alone[place].variances(group).reshape([len(own) for own in axes])
        chunk = max(1, _CHUNK // max(1, group.queries))
        for rows, sign in ((view.half * math.sqrt(self.noise[place]), -1.0), (self._news(place), 1.0)):
            for first in range(0, len(rows), chunk):
                total = total + sign * (view.applied(rows[first : first + chunk], axes) ** 2).sum(axis=0)
        return np.asarray(np.maximum(total, 0.0)).ravel()

    def _seen(self, place: int, rows: Array) -> tuple[Array, Array]:
        """Return for queries their covariances with the common estimates, and what follows for z."""
        view = self._views[place]
        own = view.row_covariances(rows)
        whole = np.zeros((len(rows), self._size))
        whole[:, view.places] = own @ view.loads
        return own, whole

    def covariances(self, left: tuple[int, Array], right: tuple[int, Array], paired: bool) -> Array:
        (own, first), (other, second) = self._seen(*left), self._seen(*right)
        form = "ij,ij->i" if paired else "ij,kj->ik"
        total = np.einsum(form, first @ self._root.T, second @ self._root.T, optimize=True)
        if left[0] == right[0]:
            view, noise = self._views[left[0]], self.noise[left[0]]
            total = total - noise * np.einsum(form, own @ view.half.T, other @ view.half.T, optimize=True)
            total = total + self.alone[left[0]].row_covariances(left[1], right[1], paired)
        return np.asarray(total)

    def local_rows(self, place: int, rows: Array) -> list[Array]:
        own, whole = self._seen(place, rows)
        known = whole @ self._root.T @ self._root
        found = []
        for t, (view, noise) in enumerate(zip(self._views, self.noise, strict=True)):
            share = known[:, view.places] @ view.loads.T / noise
            if t == place:
                share = share - own @ view.half.T @ view.half
            found.append(view.mean_rows(share) + (rows if t == place else 0.0))
        return found

    def factors(self, place: int, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        axes = dict(
            zip(
                self.parts[place].attributes,
                self._views[place].covariances(asked_sets(self.parts[place], group)),
                strict=True,
            )
        )
        table = self.alone[place]
        blocks = {block.attributes[0]: block for block in table.parts[0].blocks}
        return {
            name: [table.axes.axis_variances(blocks[name], group.sets[name]), *axes[name].T]
            if name in blocks
            else []
            for name in group.attributes
        }

    def loss(self, placed: Iterable[Placed]) -> Loss:
        alone = np.zeros(len(self.parts))
        squares = [np.zeros_like(view.half) for view in self._views]
        for place, group in placed:
            alone[place] += self.alone[place].group(group).weighted / self.noise[place]
            squares[place] += group.weight * self._squares(place, group)
        common = np.zeros((self._size, self._size))
        for place, (view, own) in enumerate(zip(self._views, squares, strict=True)):
            alone[place] -= float(np.einsum("ij,ij->", view.half @ own, view.half))
            common[np.ix_(view.places, view.places)] += view.loads.T @ own @ view.loads

        def evaluate(precisions: Array) -> tuple[float, Array]:
            root = self._solved(precisions.tolist())
            half = root @ common @ root.T
            spread = root.T @ half @ root
            gradient = -alone / precisions**2
            for place, view in enumerate(self._views):
                own = spread[np.ix_(view.places, view.places)]
                gradient[place] -= float(np.einsum("ij,ij->", own, view.information))
            return float((alone / precisions).sum() + np.trace(half)), gradient

        return evaluate

    def _squares(self, place: int, group: Group) -> Array:
        """Return the weighted sum of g g' over a group's queries, g as in the module's description."""
        view = self._views[place]
        if isinstance(group, ProductGroup) and group.query_weights is None:
            axes = view.covariances(asked_sets(self.parts[place], group))
            return view.assembled([own.T @ own for own in axes])
        found = view.row_covariances(self.alone[place].rows(group))
        weights = np.ones(len(found)) if group.query_weights is None else group.query_weights
        return np.asarray((found.T * weights) @ found)


def _varying(tables: Sequence[TableAnalysis]) -> list[tuple[str, ...]]:
    """Return the attributes of each part that have more than one value."""
    domain = tables[0].domain
    return [tuple(n for n in table.parts[0].attributes if domain[n].size > 1) for table in tables]


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
