"""The global least squares of several tables: what their marginals have in common, each table's own left out.

The residuals of marginals that two tables hold are the common unknowns z. Table t estimates z by itself, as
z_t with covariance C_t at noise 1: a Kronecker product, summed over what z does not have. Its other unknowns
are its own, so that all it says of z is the information J_t = C_t^+ over its noise variance s_t, and the best
estimate of z has the covariance K, the inverse of the sum of J_t / s_t. The Schur complement of everything
else in the normal equations is that sum. With S_t the covariance at noise 1 of a table's cells with z_t,

    best table = own table + S_t' J_t (z - z_t),    z = K (sum over u of J_u z_u / s_u),

so that all changes of covariances lie in J_t K J_u, less s_t J_t where t = u. The matrices have as many rows
as there are common unknowns, whatever the cells.

Where every table measures the values of an attribute alike, its estimates have a covariance a I + b 11'.
Contrasts along such attributes are independent of their sums, and of one another with the same covariances,
so that one stands for all. Every set of such contrasts is a `_Mode`: the same least squares of the tables of
the other attributes, noisier where more values were summed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact.linear import RANK, along_axes, contrasts, inverse_root
from matrixdp.plan.part import Block, Part
from matrixdp.plan.split import TableAnalysis
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicates import Predicates, Total

__all__ = [
    "Combination",
    "LeastSquares",
    "Loss",
    "Schur",
    "asked_sets",
    "bilinear",
]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Names = tuple[str, ...]
Queries = Mapping[int, Array]
"""Queries that are sums of queries over the cells of tables, by their places, shape (queries, cells) each."""
Loss = Callable[[Array], tuple[float, Array]]
"""From the precisions of tables, one over their noise variances, to a loss and its gradient."""

#: Common unknowns, and numbers in all of the matrices among them, up to which tables are combined.
MAX_COMMON, MAX_ENTRIES = 4_096, 80_000_000
#: Attributes of more values count as one unknown where all tables measure their values alike, up to so many.
FEW_VALUES, MAX_WHOLE = 4, 8
#: Eigenvalues of sums of projections below this are rounding errors.
_DROPPED = 1e-9
#: Numbers in one array of what queries of one attribute give.
_CHUNK = 4_000_000


class Combination:
    """Several tables, each by itself; see `LeastSquares`.

    Parameters
    ----------
    tables : sequence of TableAnalysis
        What each says alone.
    """

    def __init__(self, tables: Sequence[TableAnalysis]) -> None:
        self.alone = tuple(tables)
        self.domain = tables[0].domain
        self.parts = tuple(table.parts[0] for table in tables)
        self.noise = tuple(table.noise[0] for table in tables)
        if min(self.noise) <= 0.0:
            raise NumericalError("a table without noise has no least squares with others")

    def tables(self, estimates: Sequence[Array]) -> list[Array]:
        """Return the estimate of every table from the estimates that each gives alone."""
        return list(estimates)

    def weights(self, queries: Queries) -> list[Array]:
        """Return queries on each table whose own estimates add up to the combined estimates of queries."""
        shape = len(next(iter(queries.values())))
        cells = [self.domain.cells(part.attributes) for part in self.parts]
        return [queries[t] if t in queries else np.zeros((shape, count)) for t, count in enumerate(cells)]

    def covariances(self, left: Queries, right: Queries, paired: bool) -> Array:
        """Return the covariances of explicit queries: all with all, or only in pairs.

        A least-squares estimate has the same covariance with any unbiased one, so also with the tables' own.
        """
        own = self.weights(left)
        found = [self.alone[t].row_covariances(own[t], rows, paired) for t, rows in right.items()]
        return np.asarray(sum(found))


class LeastSquares(Combination, ABC):
    """The global least squares of tables: their estimates agree in every sum that two tables determine."""

    @abstractmethod
    def variances(self, place: int, group: ProductGroup) -> Array:
        """Return the variances of a product group that a table determines, flat."""

    @abstractmethod
    def factors(self, place: int, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        """Return for each attribute what the variances are made from; see `Analysis.factors`."""

    @abstractmethod
    def loss(self, placed: Iterable[tuple[int, Group]]) -> Loss:
        """Return the weighted sum of the variances of groups that tables determine."""

    @property
    def work(self) -> float:
        """About how many multiplications one evaluation of `loss` takes, beyond few."""
        return 0.0


class Schur(LeastSquares):
    """The least squares of tables that each determine their totals; see the module's description.

    Parameters
    ----------
    tables : sequence of TableAnalysis
        What each says alone.
    common : sequence of tuple of str, optional
        The subsets of attributes whose residuals are unknowns, among them those that two tables hold. Where
        it is given, every value counts as an unknown, though all tables measure an attribute's values alike.
    """

    def __init__(self, tables: Sequence[TableAnalysis], common: Sequence[Names] | None = None) -> None:
        super().__init__(tables)
        self._whole = _whole(tables) if common is None else frozenset()
        #: Of each table the blocks on attributes whose values are not measured alike, in domain order.
        self._blocks = [self._others(part) for part in self.parts]
        common = common_subsets(_varying(tables)) if common is None else common
        names = {name for found in common for name in found} - self._whole
        known: dict[int, Array] = {}
        #: For each attribute that tables share the sum over it, and contrasts that span what they measure.
        self._bases = {name: self._basis(name, known) for name in names}
        self._views: dict[Hashable, _View] = {}
        self.modes = [self._mode(*mode) for mode in _by_contrasts(common, self._whole).items()]

    @staticmethod
    def fits(tables: Sequence[TableAnalysis]) -> bool:
        """Return whether the tables determine their totals and have few enough unknowns in common."""
        domain, varying, whole = tables[0].domain, _varying(tables), _whole(tables)
        shared = {
            tuple(n for n in one if n in other) for i, one in enumerate(varying) for other in varying[:i]
        }
        if max(domain.cells([n for n in names if n not in whole]) for names in shared) > MAX_COMMON:
            return False
        if max(len(whole.intersection(names)) for names in shared) > MAX_WHOLE:
            return False
        entries = 0
        for held, subsets in _by_contrasts(common_subsets(varying), whole).items():
            counts = {names: math.prod(domain[n].size - 1 for n in names) for names in subsets}
            holding = [set(of) for of in varying if set(of) >= set(held)]
            own = [sum(count for names, count in counts.items() if set(names) <= of) for of in holding]
            total = sum(counts.values())
            entries += 4 * sum(count**2 for count in (*own, total))
            if total > MAX_COMMON or entries > MAX_ENTRIES:
                return False
        matrices = [block.matrix for table in tables for block in table.parts[0].blocks]
        return all(matrix.rank == matrix.columns or matrix.measures_total for matrix in matrices)

    def _others(self, part: Part) -> list[Block]:
        found = [block for block in part.blocks if not self._whole.issuperset(block.attributes)]
        return sorted(found, key=lambda block: part.attributes.index(block.attributes[0]))

    def _basis(self, name: str, known: dict[int, Array]) -> Array:
        """Return the sum over an attribute, and orthonormal contrasts that span what tables measure."""
        size = self.domain[name].size
        blocks = [block for own in self._blocks for block in own if name in block.attributes]
        if any(len(block.attributes) > 1 or block.matrix.rank == size for block in blocks):
            if size not in known:
                known[size] = np.vstack([np.ones((1, size)), contrasts(size).T])
            return known[size]
        inside = np.sum([b.matrix.solve(b.matrix.written()) - 1.0 / size for b in blocks], axis=0)
        values, vectors = scipy.linalg.eigh(inside)
        return np.vstack([np.ones((1, size)), vectors[:, values > _DROPPED].T])

    def _mode(self, held: Names, subsets: Sequence[Names]) -> _Mode:
        where, unknowns = {}, 0
        for names in subsets:
            count = math.prod(len(self._bases[name]) - 1 for name in names)
            where[names] = np.arange(unknowns, unknowns + count)
            unknowns += count
        seen, places, spreads = {}, {}, {}
        for t, part in enumerate(self.parts):
            if set(held) <= set(part.attributes):
                own = [names for names in subsets if set(names) <= set(part.attributes)]
                seen[t] = self._view(self._blocks[t], own)
                places[t] = np.concatenate([where[names] for names in own])
                alike = [block for block in part.blocks if self._whole.issuperset(block.attributes)]
                spreads[t] = math.prod(_variance(block, block.attributes[0] in held) for block in alike)
        noise = {t: self.noise[t] * spread for t, spread in spreads.items()}
        return _Mode(held, unknowns, where, seen, places, spreads, noise)

    def _view(self, blocks: Sequence[Block], subsets: Sequence[Names]) -> _View:
        names = [name for block in blocks for name in block.attributes]
        patterns = tuple(tuple(name in own for name in names) for own in subsets)
        held = {name for own in subsets for name in own}
        bases = [
            self._bases[name] if name in held else np.ones((1, self.domain[name].size)) for name in names
        ]
        known = tuple(id(self._bases[name]) if name in held else self.domain[name].size for name in names)
        key = (tuple(block.matrix.digest() for block in blocks), known, patterns)
        if key not in self._views:
            self._views[key] = _View(blocks, bases, patterns)
        return self._views[key]

    # ---- between the cells of tables and a mode's tables of the other attributes ---------------

    def _order(self, t: int) -> list[int]:
        """Return the axes of a table's attributes: those of values measured alike first."""
        others = [name for block in self._blocks[t] for name in block.attributes]
        names = self.parts[t].attributes
        return sorted(
            range(len(names)), key=lambda i: -1 if names[i] in self._whole else others.index(names[i])
        )

    def _folded(self, mode: _Mode, t: int, rows: Array) -> Array:
        """Return the mode's queries, a row for each value of the contrasts, (queries x values, cells)."""
        names = self.parts[t].attributes
        tensor = rows.reshape(-1, *(self.domain[name].size for name in names))
        for axis, name in enumerate(names, 1):
            if name in self._whole:
                mean = tensor.mean(axis=axis, keepdims=True)
                tensor = tensor - mean if name in mode.contrasts else mean
        tensor = np.transpose(tensor, [0, *(1 + axis for axis in self._order(t))])
        return tensor.reshape(-1, self.domain.cells([n for n in names if n not in self._whole]))

    def _unfolded(self, mode: _Mode, t: int, found: Array) -> Array:
        """Return the mode's queries on a table's cells again, (queries, cells)."""
        names, order = self.parts[t].attributes, self._order(t)
        sizes = [self.domain[name].size for name in names]
        kept = [
            1 if n in self._whole and n not in mode.contrasts else size
            for n, size in zip(names, sizes, strict=True)
        ]
        tensor = found.reshape(-1, *(kept[axis] for axis in order))
        tensor = np.transpose(tensor, [0, *(1 + int(axis) for axis in np.argsort(order))])
        return np.broadcast_to(tensor, (len(tensor), *sizes)).reshape(len(tensor), -1)

    def _summed(self, mode: _Mode, t: int) -> int:
        """Return the number of a table's values that are summed into one."""
        names = self._whole.intersection(self.parts[t].attributes) - set(mode.contrasts)
        return math.prod(self.domain[name].size for name in names)

    def _seen(self, mode: _Mode, t: int, rows: Array) -> Array:
        """Return the covariances of queries with what a table says of the unknowns, at noise 1."""
        view = mode.views[t]
        return view.coordinates(self._folded(mode, t, rows), view.spreads)

    # ---- estimates -----------------------------------------------------------------------------

    def tables(self, estimates: Sequence[Array]) -> list[Array]:
        found = [estimate.reshape(1, -1) for estimate in estimates]
        for mode in self.modes:
            own, side = {}, np.zeros((1, mode.unknowns))
            for t, view in mode.views.items():
                sums = self._summed(mode, t) * self._folded(mode, t, estimates[t])
                own[t] = view.coordinates(sums, view.queries)
                said = np.zeros((len(sums), mode.unknowns))
                said[:, mode.places[t]] = own[t] @ view.information / mode.noise[t]
                side = side + said
            best = side @ mode.covariance
            for t, view in mode.views.items():
                moved = view.cells((best[:, mode.places[t]] - own[t]) @ view.information, view.spreads)
                found[t] = found[t] + self._unfolded(mode, t, moved) / self._summed(mode, t)
        return [own.reshape(estimate.shape) for own, estimate in zip(found, estimates, strict=True)]

    def weights(self, queries: Queries) -> list[Array]:
        found = super().weights(queries)
        for place, rows in queries.items():
            for mode in self._holding(place):
                seen = self._seen(mode, place, rows)
                for t, view in mode.views.items():
                    own = view.cells(seen @ mode.change(place, t) / mode.noise[t], view.queries)
                    found[t] = found[t] + self._unfolded(mode, t, own)
        return found

    def _holding(self, *places: int) -> Iterator[_Mode]:
        return (mode for mode in self.modes if all(place in mode.views for place in places))

    # ---- variances -----------------------------------------------------------------------------

    def covariances(self, left: Queries, right: Queries, paired: bool) -> Array:
        alone = [self.alone[t].row_covariances(left[t], right[t], paired) for t in left if t in right]
        return np.asarray(sum(alone) + self.changes(left, right, paired))

    def changes(self, left: Queries, right: Queries, paired: bool) -> Array:
        """Return how the covariances of queries differ from those of the tables' own estimates."""

        def inner(own: Array, other: Array) -> Array:
            return np.asarray(np.einsum("ij,ij->i", own, other) if paired else own @ other.T)

        total: Array = np.zeros(())
        for (t, own), (u, other) in product(left.items(), right.items()):
            for mode in self._holding(t, u):
                seen = self._seen(mode, t, own) @ mode.change(t, u)
                known = self._seen(mode, u, other)
                total = total + inner(seen.reshape(len(own), -1), known.reshape(len(other), -1))
        return total

    def variances(self, place: int, group: ProductGroup) -> Array:
        sets = asked_sets(self.parts[place], group)
        counts = [predicates.count(self.domain[name].size) for name, predicates in sets.items()]
        total = self.alone[place].variances(group).reshape(counts)
        for mode in self._holding(place):
            squares, axes = self._axes(mode, place, sets)
            change = mode.views[place].quadratic(mode.change(place, place), axes)
            change = change.reshape(
                [1 if name in squares else n for name, n in zip(sets, counts, strict=True)]
            )
            for axis, name in enumerate(sets):
                if name in squares:
                    change = change * np.expand_dims(squares[name], [*range(1, len(sets) - axis)])
            total = total + change
        return np.asarray(np.maximum(total, 0.0)).ravel()

    def _axes(
        self, mode: _Mode, place: int, sets: Mapping[str, Predicates]
    ) -> tuple[dict[str, Array], list[Array]]:
        """Return squares of what is asked of attributes measured alike, and covariances for the others."""
        squares = {}
        for name in self._whole.intersection(sets):
            size = self.domain[name].size
            of_sums = sets[name].apply(np.ones((size, 1)))[:, 0] ** 2 / size
            squares[name] = sets[name].squares(size) - of_sums if name in mode.contrasts else of_sums / size
        spreads = zip(self._blocks[place], mode.views[place].spreads, strict=True)
        return squares, [sets[block.attributes[0]].apply(own.T) for block, own in spreads]

    def factors(self, place: int, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        sets, axes = asked_sets(self.parts[place], group), self.alone[place].axes
        found: dict[str, list[Array]] = {name: [] for name in group.attributes}
        for block in self.parts[place].blocks:
            [name] = block.attributes
            found[name] = [axes.variances(block, sets)]
        for mode in self._holding(place):
            squares, columns = self._axes(mode, place, sets)
            for name, square in squares.items():
                found[name].append(square)
            for block, own in zip(self._blocks[place], columns, strict=True):
                found[block.attributes[0]] += list(own.T)
        return {name: found[name] for name in group.attributes}

    # ---- errors as functions of the tables' precisions -----------------------------------------

    @property
    def work(self) -> float:
        return math.fsum(float(mode.unknowns) ** 3 for mode in self.modes)

    def loss(self, placed: Iterable[tuple[int, Group]]) -> Loss:
        alone = np.zeros(len(self.parts))
        asked: list[dict[int, Any]] = [defaultdict(float) for _ in self.modes]
        for place, group in placed:
            alone[place] += self.alone[place].group(group).weighted / self.noise[place]
            for mode, own in zip(self.modes, asked, strict=True):
                if place in mode.views:
                    own[place] += group.weight * self._squares(mode, place, group)
        commons = [np.zeros((mode.unknowns, mode.unknowns)) for mode in self.modes]
        for mode, own, common in zip(self.modes, asked, commons, strict=True):
            for place, squares in own.items():
                information, places = mode.views[place].information, mode.places[place]
                alone[place] -= mode.spreads[place] * float((squares * information).sum())
                common[np.ix_(places, places)] += information @ squares @ information
        spreads = [np.array([*mode.spreads.values()]) for mode in self.modes]

        def evaluate(precisions: Array) -> tuple[float, Array]:
            total, gradient = float((alone / precisions).sum()), -alone / precisions**2
            for mode, common, spread in zip(self.modes, commons, spreads, strict=True):
                own = [*mode.views]
                covariance = mode.solved(precisions[own] / spread)
                pulled = covariance @ common
                total += float(np.trace(pulled))
                gradient[own] -= mode.information @ (pulled @ covariance).ravel() / spread
            return total, gradient

        return evaluate

    def _squares(self, mode: _Mode, place: int, group: Group) -> Array:
        """Return the weighted sum over a group's queries of the squares of what `_seen` returns."""
        if isinstance(group, ProductGroup) and group.query_weights is None:
            squares, axes = self._axes(mode, place, asked_sets(self.parts[place], group))
            factor = math.prod(float(square.sum()) for square in squares.values())
            return factor * mode.views[place].product([own.T @ own for own in axes])
        rows = self.alone[place].rows(group)
        if group.query_weights is not None:
            rows = rows * np.sqrt(group.query_weights)[:, None]
        seen = self._seen(mode, place, rows)
        return np.asarray(seen.T @ seen)


class _View:
    """What a table says of common unknowns at noise 1.

    An unknown has one coordinate for each attribute: 0 for the sum over it, else the number of a contrast.

    Parameters
    ----------
    blocks : sequence of Block
        What the table measures.
    bases : sequence of ndarray
        For each attribute of the blocks the sum and the contrasts that unknowns have, in rows.
    patterns : sequence of tuple of bool
        For each subset of attributes of which contrasts are common, whether it has the attribute.

    Attributes
    ----------
    counts : list of int
        The unknowns of each subset.
    queries : list of ndarray
        For each block its sums and contrasts, shape (coordinates, cells).
    spreads : list of ndarray
        The same times the covariance of the block's estimates.
    information : ndarray
        J, the pseudo-inverse of the covariance of the estimates of the unknowns.
    """

    def __init__(
        self, blocks: Sequence[Block], bases: Sequence[Array], patterns: Sequence[tuple[bool, ...]]
    ) -> None:
        self._patterns = patterns
        ranges = [
            [
                np.arange(1, len(basis)) if own else np.zeros(1, int)
                for own, basis in zip(p, bases, strict=True)
            ]
            for p in patterns
        ]
        self.counts = [math.prod(map(len, own)) for own in ranges]
        grids = [np.meshgrid(*own, indexing="ij") for own in ranges]
        index = np.array([np.concatenate([own[i].ravel() for own in grids]) for i in range(len(bases))])
        self.queries, self.spreads, self._places = [], [], []
        first, ranks = 0, []
        for block in blocks:
            axes = range(first, first := first + len(block.attributes))
            own, places = np.unique(index[axes.start : axes.stop], axis=1, return_inverse=True)
            rows = np.ones((own.shape[1], 1))
            for axis, coordinates in zip(axes, own, strict=True):
                rows = (rows[:, :, None] * bases[axis][coordinates][:, None]).reshape(len(rows), -1)
            self.queries.append(rows)
            self.spreads.append(block.matrix.covariance_times(rows.T).T)
            self._places.append(places.reshape(-1))
            ranks += [block.matrix.rank] if len(axes) == 1 else [len(bases[axis]) for axis in axes]
        shape = [len(rows) for rows in self.queries]
        self._flat = np.ravel_multi_index(self._places, shape) if shape else np.zeros(1, dtype=np.intp)
        known = [math.prod(n - 1 for n, own in zip(ranks, p, strict=True) if own) for p in patterns]
        pairs = zip(self.spreads, self.queries, strict=True)
        covariance = self.product([own @ rows.T for own, rows in pairs])
        # one scale for each subset: what a table does not determine stays orthogonal to what it does
        parts = np.split(covariance.diagonal(), np.cumsum(self.counts)[:-1])
        scales = [math.sqrt(own.mean()) if n else 1.0 for own, n in zip(parts, known, strict=True)]
        self.information = _inverse(covariance, np.repeat(scales, self.counts), sum(known))

    def product(self, matrices: Sequence[Array]) -> Array:
        """Return the product over blocks of matrices over their coordinates, between all unknowns."""
        found = np.ones((sum(self.counts),) * 2)
        for matrix, places in zip(matrices, self._places, strict=True):
            found *= matrix[np.ix_(places, places)]
        return found

    def coordinates(self, tables: Array, matrices: Sequence[Array]) -> Array:
        """Return the product of ``queries`` or ``spreads`` times tables, (tables, cells) in."""
        tensor = tables.reshape(len(tables), *(own.shape[1] for own in matrices))
        return along_axes(tensor, matrices, 1).reshape(len(tables), -1)[:, self._flat]

    def cells(self, coefficients: Array, matrices: Sequence[Array]) -> Array:
        """Return the transposed of that: (tables, unknowns) to (tables, cells)."""
        shape = [len(own) for own in matrices]
        tensor = np.zeros((len(coefficients), math.prod(shape)))
        tensor[:, self._flat] = coefficients
        back = along_axes(tensor.reshape(-1, *shape), [own.T for own in matrices], 1)
        return back.reshape(len(coefficients), -1)

    def quadratic(self, form: Array, axes: Sequence[Array]) -> Array:
        """Return g' M g for the covariances g of products with the estimates; M is symmetric."""
        total = np.zeros([len(own) for own in axes])
        ends = np.cumsum([0, *self.counts])

        def chosen(pattern: tuple[bool, ...]) -> list[Array]:
            pairs = zip(axes, pattern, strict=True)
            return [own[:, 1:] if contrast else own[:, :1] for own, contrast in pairs]

        for i, rows in enumerate(self._patterns):
            for j, columns in enumerate(self._patterns[: i + 1]):
                block = form[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
                if block.size:
                    total += (1.0 if i == j else 2.0) * bilinear(block, chosen(rows), chosen(columns))
        return total


@dataclass(eq=False)
class _Mode:
    """The common unknowns that are contrasts along some attributes measured alike, and sums over the others.

    Attributes
    ----------
    contrasts : tuple of str
        The attributes of which contrasts are meant.
    unknowns : int
        How many unknowns of the other attributes stand with them.
    subsets : dict of tuple of str to ndarray
        Which of them are those of each subset of the other attributes.
    views, places : dict
        For each table that has the contrasts, by its place: what it says, and of which unknowns.
    spreads, noise : dict of int to float
        The variance of such a contrast of sums at noise 1, and at the table's.
    """

    contrasts: Names
    unknowns: int
    subsets: dict[Names, Places]
    views: dict[int, _View]
    places: dict[int, Places]
    spreads: dict[int, float]
    noise: dict[int, float]

    @cached_property
    def information(self) -> Any:
        """What each table says of the unknowns, a sparse matrix, shape (tables, unknowns x unknowns)."""
        columns = [np.add.outer(own * self.unknowns, own).ravel() for own in self.places.values()]
        entries = np.concatenate([view.information.ravel() for view in self.views.values()])
        ends = np.cumsum([0, *map(len, columns)])
        shape = len(columns), self.unknowns**2
        return scipy.sparse.csr_array((entries, np.concatenate(columns), ends), shape=shape)

    def solved(self, precisions: Array) -> Array:
        """Return the covariance of the unknowns for given precisions of the tables."""
        root = inverse_root((precisions @ self.information).reshape(self.unknowns, self.unknowns))
        return np.asarray(root.T @ root)

    @cached_property
    def covariance(self) -> Array:
        """K."""
        return self.solved(1.0 / np.array([*self.noise.values()]))

    def change(self, t: int, u: int) -> Array:
        """Return J_t K J_u, less s_t J_t of a table with itself."""
        first, second = self.views[t].information, self.views[u].information
        found = first @ self.covariance[np.ix_(self.places[t], self.places[u])] @ second
        return np.asarray(found - self.noise[t] * first if t == u else found)


def bilinear(form: Array, left: Sequence[Array], right: Sequence[Array]) -> Array:
    """Return l M r' for all products of a row of each left matrix, and of those of the right ones.

    Examples
    --------
    >>> form = np.arange(4.0).reshape(2, 2)
    >>> bilinear(form, [np.eye(2)], [np.array([[1.0, 0.0], [1.0, 1.0]])])
    array([0., 5.])
    """
    pairs = list(zip(left, right, strict=True))
    form = form.reshape([own.shape[1] for side in (left, right) for own in side])
    # sums in both come last: until then nothing is repeated along them
    sums = [own.shape[1] == other.shape[1] == 1 for own, other in pairs]
    for axis in reversed(range(len(pairs))):
        # from (rows, columns, axes done), the last of rows and columns, to the same with one more done
        own, other = (np.ones((1, 1)),) * 2 if sums[axis] else pairs[axis]
        moved = np.moveaxis(form, (axis, 2 * axis + 1), (0, 1))
        flat = np.ascontiguousarray(moved).reshape(own.shape[1], -1)
        found = np.empty((len(own), math.prod(moved.shape[2:])))
        step = max(1, _CHUNK // max(1, flat.shape[1]))
        for first in range(0, len(own), step):
            rows = slice(first, first + step)
            half = (own[rows] @ flat).reshape(-1, other.shape[1], found.shape[1])
            found[rows] = np.matmul(other[rows, None], half)[:, 0]
        form = np.moveaxis(found.reshape(len(own), *moved.shape[2:]), 0, 2 * axis)
    for axis, (own, other) in enumerate(pairs):
        if sums[axis]:
            form = form * (own * other).reshape([-1 if i == axis else 1 for i in range(len(pairs))])
    return form


def common_subsets(marginals: Sequence[Names]) -> list[Names]:
    """Return the subsets of attributes that at least two marginals hold, small ones first.

    Examples
    --------
    >>> common_subsets([("a", "b"), ("b", "c"), ("c",)])
    [(), ('b',), ('c',)]
    """
    found: list[Names] = []
    held: dict[Names, list[Names]] = {(): list(marginals)}
    while held:
        found += sorted(held)
        larger: dict[Names, list[Names]] = defaultdict(list)
        for names, holding in held.items():
            for marginal in holding:
                first = marginal.index(names[-1]) + 1 if names else 0
                for name in marginal[first:]:
                    larger[*names, name].append(marginal)
        held = {names: holding for names, holding in larger.items() if len(holding) > 1}
    return found


def _by_contrasts(common: Sequence[Names], whole: frozenset[str]) -> dict[Names, list[Names]]:
    """Return for every set of attributes measured alike what of the others is common with it."""
    found: dict[Names, list[Names]] = defaultdict(list)
    for names in common:
        held = tuple(name for name in names if name in whole)
        found[held].append(tuple(name for name in names if name not in whole))
    return found


def _varying(tables: Sequence[TableAnalysis]) -> list[Names]:
    """Return the attributes of each table that have more than one value."""
    domain = tables[0].domain
    return [tuple(n for n in table.parts[0].attributes if domain[n].size > 1) for table in tables]


def _whole(tables: Sequence[TableAnalysis]) -> frozenset[str]:
    """Return the attributes of many values that all tables measure alike."""
    blocks = [block for table in tables for block in table.parts[0].blocks]
    names = {name for block in blocks for name in block.attributes}
    unlike = {
        name
        for block in blocks
        if len(block.attributes) > 1
        or block.matrix.columns <= FEW_VALUES
        or block.matrix.symmetric_covariance is None
        for name in block.attributes
    }
    return frozenset(names - unlike)


def _inverse(covariance: Array, scale: Array, rank: int) -> Array:
    """Return the pseudo-inverse of a matrix of known rank with entries like those of scale scale'."""
    scales = np.multiply.outer(scale, scale)
    try:
        if rank == len(covariance):
            factor = scipy.linalg.cho_factor(covariance / scales)
            return np.asarray(scipy.linalg.cho_solve(factor, np.eye(rank)) / scales)
        values, vectors = np.linalg.eigh(covariance / scales)
        kept = vectors[:, values > RANK * values[-1]]
    except (ValueError, np.linalg.LinAlgError):
        kept = np.zeros((0, 0))
    if kept.shape[1] != rank:
        raise NumericalError("measured matrices too close to singular for least squares with others")
    return np.asarray((kept / values[-rank:]) @ kept.T / scales)


def asked_sets(part: Part, group: ProductGroup) -> dict[str, Predicates]:
    """Return what a group asks of each attribute of a part."""
    return {name: group.sets.get(name, Total()) for name in part.attributes}


def _variance(block: Block, contrast: bool) -> float:
    """Return the variance of the estimate of a contrast of length 1, or of the sum, at noise 1."""
    size, structure = block.matrix.columns, block.matrix.symmetric_covariance
    assert structure is not None
    return structure[0] if contrast else size * (structure[0] + size * structure[1])
