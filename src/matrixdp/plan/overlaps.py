"""Several parts: the normal equations on what their marginals have in common, each part's own left out.

The residuals of marginals that two parts hold are the common unknowns z. Part t estimates those that it
determines, E_t z, by itself: with covariance C_t (a Kronecker product, summed over what z does not have). Its
other unknowns are its own, so that what it says of z is the information E_t' C_t^-1 E_t, and z solves the sum
over the parts. An estimate of part t is then moved by what the others say of z: x_t + g' C_t^-1 (E_t z - z_t)
with g its covariances with z_t. The matrices have as many rows as there are common unknowns, whatever the
cells; and attributes whose values all parts measure alike count as one unknown: see `modes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact import MeasuredMatrix
from matrixdp.plan.combination import Combination, Loss, Placed, asked_sets, axis_matrices
from matrixdp.plan.common_residuals import common_subsets, residual_bases, sees_total
from matrixdp.plan.direct import TableAnalysis
from matrixdp.plan.modes import Mode
from matrixdp.queries.groups import Group, ProductGroup

__all__ = ["Overlaps"]

Array = NDArray[np.float64]
Names = tuple[str, ...]

#: Common unknowns, and numbers in all of the matrices among them, up to which parts are combined.
MAX_COMMON, MAX_ENTRIES = 4_096, 80_000_000
#: Attributes of more values count as one unknown where all parts measure their values alike, up to so many.
FEW_VALUES, MAX_WHOLE = 4, 8


class Overlaps(Combination):
    """The global least squares of several parts that each determine their totals; see `Combination`."""

    def __init__(self, tables: Sequence[TableAnalysis]) -> None:
        super().__init__(tables)
        matrices = [axis_matrices(part) for part in self.parts]
        whole = _whole(matrices)
        common = common_subsets(_varying(tables))
        others = [{n: own for n, own in found.items() if n not in whole} for found in matrices]
        bases = residual_bases(others, {name for names in common for name in names} - whole)
        self._modes = []
        for contrasts, subsets in _by_contrasts(common, whole).items():
            held = {place: own for place, own in enumerate(matrices) if own.keys() >= set(contrasts)}
            self._modes.append(Mode(self.domain, contrasts, whole, subsets, held, bases, self.noise))

    @staticmethod
    def fits(tables: Sequence[TableAnalysis]) -> bool:
        """Return whether the parts determine their totals and have few enough unknowns in common."""
        domain, varying = tables[0].domain, _varying(tables)
        matrices = [axis_matrices(table.parts[0]) for table in tables]
        whole = _whole(matrices)
        shared = {
            tuple(n for n in one if n in other) for i, one in enumerate(varying) for other in varying[:i]
        }
        if max(domain.cells([n for n in names if n not in whole]) for names in shared) > MAX_COMMON:
            return False
        if max(len(whole.intersection(names)) for names in shared) > MAX_WHOLE:
            return False
        entries = 0
        for contrasts, subsets in _by_contrasts(common_subsets(varying), whole).items():
            counts = {names: math.prod(domain[n].size - 1 for n in names) for names in subsets}
            held = [set(of) for of in varying if set(of) >= set(contrasts)]
            own = [sum(count for names, count in counts.items() if set(names) <= of) for of in held]
            total = sum(counts.values())
            entries += 4 * sum(count**2 for count in (*own, total))
            if total > MAX_COMMON or entries > MAX_ENTRIES:
                return False
        return all(sees_total(matrix) for own in matrices for matrix in own.values())

    def _of(self, place: int) -> list[Mode]:
        return [mode for mode in self._modes if place in mode.views]

    def tables(self, estimates: Sequence[Array]) -> list[Array]:
        found = [estimate.reshape(1, -1) for estimate in estimates]
        for mode in self._modes:
            own = {}
            side: Array | float = 0.0
            for place, view in mode.views.items():
                taken = mode.summed[place] * mode.taken(place, estimates[place].reshape(1, -1))[0]
                own[place] = view.means(taken)
                said = np.zeros((len(taken), mode.unknowns))
                said[:, view.places] = own[place] @ view.loads / mode.noise[place]
                side = side + said
            common = side @ mode.root.T @ mode.root
            for place, view in mode.views.items():
                moved = view.moved(view.expected(common[:, view.places]) - own[place])
                found[place] = found[place] + mode.given(place, moved[None]) / mode.summed[place]
        return [own.reshape(estimate.shape) for own, estimate in zip(found, estimates, strict=True)]

    def variances(self, place: int, group: ProductGroup) -> Array:
        sets = dict(zip(self.parts[place].attributes, asked_sets(self.parts[place], group), strict=True))
        counts = [predicates.count(self.domain[name].size) for name, predicates in sets.items()]
        total = self.alone[place].variances(group).reshape(counts)
        for mode in self._of(place):
            view = mode.views[place]
            squares, others = mode.split(place, sets)
            axes = view.covariances(others)
            change = view.quadratic(mode.change(place), axes)
            kept = iter(change.shape)
            change = change.reshape([1 if len(square) else next(kept) for square in squares])
            for axis, square in enumerate(squares):
                if len(square):
                    change = change * square.reshape([-1 if i == axis else 1 for i in range(len(squares))])
            total = total + change
        return np.asarray(np.maximum(total, 0.0)).ravel()

    def covariances(self, left: tuple[int, Array], right: tuple[int, Array], paired: bool) -> Array:
        total = np.zeros(len(left[1]) if paired else (len(left[1]), len(right[1])))
        if left[0] == right[0]:
            total += self.alone[left[0]].row_covariances(left[1], right[1], paired)

        def inner(own: Array, other: Array) -> Array:
            first, second = own.reshape(len(own), -1), other.reshape(len(other), -1)
            return np.asarray(np.einsum("ij,ij->i", first, second) if paired else first @ second.T)

        for mode in self._of(left[0]):
            if right[0] not in mode.views:
                continue
            (own, first), (other, second) = mode.seen(*left), mode.seen(*right)
            total += inner(first @ mode.root.T, second @ mode.root.T)
            if left[0] == right[0]:
                half = mode.views[left[0]].half
                total -= mode.noise[left[0]] * inner(own @ half.T, other @ half.T)
        return total

    def local_rows(self, place: int, rows: Array) -> list[Array]:
        found = [
            rows if t == place else np.zeros((len(rows), self.domain.cells(part.attributes)))
            for t, part in enumerate(self.parts)
        ]
        for mode in self._of(place):
            own, whole = mode.seen(place, rows)
            known = whole @ mode.root.T @ mode.root
            for t, view in mode.views.items():
                share = known[..., view.places] @ view.loads.T / mode.noise[t]
                if t == place:
                    share = share - own @ view.half.T @ view.half
                back = view.mean_rows(share.reshape(-1, share.shape[2]))
                found[t] = found[t] + mode.given(t, back.reshape(*share.shape[:2], -1))
        return found

    def factors(self, place: int, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        sets = dict(zip(self.parts[place].attributes, asked_sets(self.parts[place], group), strict=True))
        table = self.alone[place]
        blocks = {block.attributes[0]: block for block in table.parts[0].blocks}
        found = {name: [table.axes.axis_variances(blocks[name], sets[name])] for name in sets}
        for mode in self._of(place):
            squares, others = mode.split(place, sets)
            axes = iter(mode.views[place].covariances(others))
            for name, square in zip(sets, squares, strict=True):
                found[name] += [square] if len(square) else list(next(axes).T)
        return {name: found.get(name, []) for name in group.attributes}

    @property
    def work(self) -> float:
        return math.fsum(float(mode.unknowns) ** 3 for mode in self._modes)

    def loss(self, placed: Iterable[Placed]) -> Loss:
        alone = np.zeros(len(self.parts))
        squares = [{t: np.zeros_like(view.half) for t, view in mode.views.items()} for mode in self._modes]
        for place, group in placed:
            alone[place] += self.alone[place].group(group).weighted / self.noise[place]
            for mode, own in zip(self._modes, squares, strict=True):
                if place in own:
                    own[place] += group.weight * self._squares(mode, place, group)
        commons = []
        for mode, found in zip(self._modes, squares, strict=True):
            commons.append(np.zeros((mode.unknowns, mode.unknowns)))
            for place, view in mode.views.items():
                own_share = float(np.einsum("ij,ij->", view.half @ found[place], view.half))
                alone[place] -= mode.spread[place] * own_share
                commons[-1][np.ix_(view.places, view.places)] += view.loads.T @ found[place] @ view.loads

        places = [np.array(list(mode.views)) for mode in self._modes]
        spreads = [np.array(list(mode.spread.values())) for mode in self._modes]

        def evaluate(precisions: Array) -> tuple[float, Array]:
            total, gradient = float((alone / precisions).sum()), -alone / precisions**2
            for mode, common, own, spread in zip(self._modes, commons, places, spreads, strict=True):
                root = mode.solved(precisions[own] / spread)
                half = root @ common @ root.T
                total += float(np.trace(half))
                gradient[own] -= mode.told(root.T @ half @ root) / spread
            return total, gradient

        return evaluate

    def _squares(self, mode: Mode, place: int, group: Group) -> Array:
        """Return the weighted sum of g g' over a group's queries, g as in the module's description."""
        view = mode.views[place]
        if isinstance(group, ProductGroup) and group.query_weights is None:
            part = self.parts[place]
            sets = dict(zip(part.attributes, asked_sets(part, group), strict=True))
            squares, others = mode.split(place, sets)
            factor = math.prod(float(square.sum()) for square in squares if len(square))
            return factor * view.assembled([own.T @ own for own in view.covariances(others)])
        found, _ = mode.seen(place, self.alone[place].rows(group))
        if group.query_weights is not None:
            found = found * np.sqrt(group.query_weights)[:, None, None]
        flat = found.reshape(-1, found.shape[2])
        return np.asarray(flat.T @ flat)


def _varying(tables: Sequence[TableAnalysis]) -> list[Names]:
    """Return the attributes of each part that have more than one value."""
    domain = tables[0].domain
    return [tuple(n for n in table.parts[0].attributes if domain[n].size > 1) for table in tables]


def _whole(parts: Sequence[Mapping[str, MeasuredMatrix]]) -> frozenset[str]:
    """Return the attributes of many values that all parts measure alike."""
    many = [(name, matrix) for own in parts for name, matrix in own.items() if matrix.columns > FEW_VALUES]
    unlike = {name for name, matrix in many if matrix.symmetric_covariance is None}
    return frozenset(name for name, _ in many) - unlike


def _by_contrasts(common: Sequence[Names], whole: frozenset[str]) -> dict[Names, list[Names]]:
    """Return for every set of such attributes what of the others stands with it in common subsets."""
    found: dict[Names, list[Names]] = {}
    for names in common:
        contrasts = tuple(name for name in names if name in whole)
        found.setdefault(contrasts, []).append(tuple(name for name in names if name not in whole))
    return found
