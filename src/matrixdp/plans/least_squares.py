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
from matrixdp.exact.linear import RANK, Array, along_axes, contrasts, inverse_root
from matrixdp.plans.part import Part
from matrixdp.plans.split import TableAnalysis
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicates import Predicates, Total

Places = NDArray[np.intp]
Names = tuple[str, ...]
Queries = Mapping[int, Array]
"""Queries that are sums of queries over the cells of tables, by their places, shape (queries, cells) each."""
Loss = Callable[[Array], tuple[float, Array]]
"""From the precisions of tables, one over their noise variances, to a loss and its gradient."""

#: Common unknowns, and numbers in all of the matrices among them, up to which tables are combined.
MAX_COMMON, MAX_ENTRIES = 4_096, 80_000_000
#: Attributes of more values count as one unknown where all tables measure their values alike, up to
#: this many attributes.
FEW_VALUES, MAX_WHOLE = 4, 8
#: Eigenvalues of sums of projections below this are rounding errors.
_DROPPED = 1e-9
#: Numbers in one array of what queries of one attribute give.
_CHUNK = 4_000_000


class Combination:
    """Several tables, each by itself; they are what `Schur` and `Pair` combine.

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


class Schur(Combination):
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
        whole: frozenset[str] = frozenset()
        if common is None:
            whole, common = _whole(tables), common_subsets(_varying(tables))
        #: For each attribute that tables share the sum over it, and contrasts that span what they measure.
        self._bases: dict[str, Array] = {}
        known: dict[int, Array] = {}
        for name in {name for names in common for name in names} - whole:
            self._bases[name] = self._basis(name, known)
        self._views: dict[Hashable, _View] = {}
        self.modes = [self._mode(*mode) for mode in _by_contrasts(common, whole).items()]

    @staticmethod
    def fits(tables: Sequence[TableAnalysis]) -> bool:
        """Return whether the tables determine their totals and have few enough unknowns in common."""
        domain, varying, whole = tables[0].domain, _varying(tables), _whole(tables)
        for names in {
            frozenset(one).intersection(two) for i, one in enumerate(varying) for two in varying[:i]
        }:
            if domain.cells([*names - whole]) > MAX_COMMON or len(names & whole) > MAX_WHOLE:
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

    def _basis(self, name: str, known: dict[int, Array]) -> Array:
        size = self.domain[name].size
        blocks = [block for part in self.parts for block in part.blocks if name in block.attributes]
        if any(len(block.attributes) > 1 or block.matrix.rank == size for block in blocks):
            if size not in known:
                known[size] = np.vstack([np.ones((1, size)), contrasts(size).T])
            return known[size]
        inside = np.sum([b.matrix.solve(b.matrix.written()) - 1.0 / size for b in blocks], axis=0)
        values, vectors = scipy.linalg.eigh(inside)
        return np.vstack([np.ones((1, size)), vectors[:, values > _DROPPED].T])

    def _mode(self, held: Names, subsets: Sequence[Names]) -> _Mode:
        unknowns, count = {}, 0
        for names in subsets:
            own = math.prod(len(self._bases[name]) - 1 for name in names)
            unknowns[names] = np.arange(count, count + own)
            count += own
        views, places = {}, {}
        for t, part in enumerate(self.parts):
            if set(held) <= set(part.attributes):
                seen = [names for names in subsets if set(names) <= set(part.attributes)]
                views[t] = self._view(part, held, seen)
                places[t] = np.concatenate([unknowns[names] for names in seen])
        return _Mode(count, unknowns, views, places, {t: self.noise[t] for t in views})

    def _view(self, part: Part, held: Names, subsets: Sequence[Names]) -> _View:
        """Return the view of a table; one serves for all that measure and share the same."""
        index = part.attributes.index
        shared = {name for names in subsets for name in names}
        bases = {
            n: self._bases[n] if n in shared else np.ones((1, self.domain[n].size)) for n in part.attributes
        }
        matrices = tuple((*map(index, block.attributes), block.matrix.digest()) for block in part.blocks)
        chosen = tuple(tuple(map(index, names)) for names in (held, *subsets))
        key = matrices, chosen, tuple(id(own) if len(own) > 1 else own.shape for own in bases.values())
        if key not in self._views:
            self._views[key] = _View(part, bases, held, subsets)
        return self._views[key]

    def _holding(self, *places: int) -> Iterator[_Mode]:
        return (mode for mode in self.modes if all(place in mode.views for place in places))

    # ---- estimates -----------------------------------------------------------------------------

    def tables(self, estimates: Sequence[Array]) -> list[Array]:
        found = [estimate.reshape(1, -1) for estimate in estimates]
        for mode in self.modes:
            own, side = {}, np.zeros((1, 1, mode.unknowns))
            for t, view in mode.views.items():
                own[t] = view.coordinates(estimates[t].reshape(1, -1), view.queries)
                said = np.zeros((*own[t].shape[:2], mode.unknowns))
                said[..., mode.places[t]] = own[t] @ view.information / self.noise[t]
                side = side + said
            best = side @ mode.covariance
            for t, view in mode.views.items():
                moved = (best[..., mode.places[t]] - own[t]) @ view.information
                found[t] = found[t] + view.cells(moved, view.spreads)
        return [own.reshape(estimate.shape) for own, estimate in zip(found, estimates, strict=True)]

    def weights(self, queries: Queries) -> list[Array]:
        found = super().weights(queries)
        for place, rows in queries.items():
            for mode in self._holding(place):
                seen = mode.views[place].coordinates(rows, mode.views[place].spreads)
                for t, view in mode.views.items():
                    own = view.cells(seen @ mode.change(place, t) / self.noise[t], view.queries)
                    found[t] = found[t] + own
        return found

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
                first, second = mode.views[t], mode.views[u]
                seen = first.coordinates(own, first.spreads) @ mode.change(t, u)
                known = second.coordinates(other, second.spreads)
                total = total + inner(seen.reshape(len(own), -1), known.reshape(len(other), -1))
        return total

    def variances(self, place: int, group: ProductGroup) -> Array:
        """Return the variances of a product group that a table determines, flat."""
        sets = asked_sets(self.parts[place], group)
        total = self.alone[place].variances(group)
        for mode in self._holding(place):
            total = total + mode.views[place].quadratic(mode.change(place, place), sets).ravel()
        return np.asarray(np.maximum(total, 0.0))

    def factors(self, place: int, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        """Return for each attribute what the variances are made from; see `Analysis.factors`."""
        part, axes = self.parts[place], self.alone[place].axes
        found = {block.attributes[0]: [axes.variances(block, group.sets)] for block in part.blocks}
        for mode in self._holding(place):
            view = mode.views[place]
            for axis, (own, _) in zip(view.order, view.axes(asked_sets(part, group)), strict=True):
                found[part.attributes[axis]] += list(own.T)
        return {name: found.get(name, []) for name in group.attributes}

    # ---- errors as functions of the tables' precisions -----------------------------------------

    @property
    def work(self) -> float:
        """About how many multiplications one evaluation of `loss` takes."""
        return math.fsum(float(mode.unknowns) ** 3 for mode in self.modes)

    def loss(self, placed: Iterable[tuple[int, Group]]) -> Loss:
        """Return the weighted sum of the variances of groups that tables determine."""
        alone = np.zeros(len(self.parts))
        asked: list[dict[int, Any]] = [defaultdict(float) for _ in self.modes]
        for place, group in placed:
            alone[place] += self.alone[place].group(group).weighted / self.noise[place]
            for mode, found in zip(self.modes, asked, strict=True):
                if place in mode.views:
                    found[place] += group.weight * self._squares(mode.views[place], place, group)
        commons = [np.zeros((mode.unknowns, mode.unknowns)) for mode in self.modes]
        for mode, found, common in zip(self.modes, asked, commons, strict=True):
            for place, squares in found.items():
                information, places = mode.views[place].information, mode.places[place]
                alone[place] -= float((squares * information).sum())
                common[np.ix_(places, places)] += information @ squares @ information

        def evaluate(precisions: Array) -> tuple[float, Array]:
            total, gradient = float((alone / precisions).sum()), -alone / precisions**2
            for mode, common in zip(self.modes, commons, strict=True):
                own = [*mode.views]
                covariance = mode.solved(precisions[own])
                pulled = covariance @ common
                total += float(np.trace(pulled))
                gradient[own] -= mode.information @ (pulled @ covariance).ravel()
            return total, gradient

        return evaluate

    def _squares(self, view: _View, place: int, group: Group) -> Array:
        """Return the weighted sum over a group's queries of gg', g their covariances with the unknowns."""
        if isinstance(group, ProductGroup) and group.query_weights is None:
            axes = view.axes(asked_sets(self.parts[place], group))
            return view.product([own.T @ other for own, other in axes])
        rows = self.alone[place].rows(group)
        if group.query_weights is not None:
            rows = rows * np.sqrt(group.query_weights)[:, None]
        seen = view.coordinates(rows, view.spreads)
        seen = seen.reshape(-1, seen.shape[2])
        return np.asarray(seen.T @ seen)


class _View:
    """What a table says at noise 1 of common unknowns: contrasts along some attributes, sums over others.

    An unknown has one coordinate for each attribute: 0 for the sum over it, else the number of a contrast.
    Along the contrasts of a mode there are as many unknowns as values, all alike.

    Parameters
    ----------
    part : Part
        What the table measures.
    bases : mapping of str to ndarray
        For each attribute of the part the sum and the contrasts that unknowns have, in rows.
    held : tuple of str
        The attributes measured alike whose contrasts are meant.
    subsets : sequence of tuple of str
        The other attributes of which contrasts are common.

    Attributes
    ----------
    queries : list
        For each block its sums and contrasts, shape (coordinates, cells), or a function that removes means.
    spreads : list
        The same times the covariance of the block's estimates.
    information : ndarray
        J, the pseudo-inverse of the covariance of the estimates of the unknowns.
    """

    def __init__(self, part: Part, bases: Mapping[str, Array], held: Names, subsets: Sequence[Names]) -> None:
        place = part.attributes.index
        self._held, self._subsets = held, subsets
        blocks = sorted(part.blocks, key=lambda b: (b.attributes[0] not in held, place(b.attributes[0])))
        self._listed = listed = [name for block in blocks for name in block.attributes]
        self.order = [place(name) for name in self._listed]
        self._sizes = [bases[name].shape[1] for name in part.attributes]
        self._columns = [block.matrix.columns for block in blocks]
        self._values = math.prod(self._columns[: len(held)])
        ranges = [[np.arange(1, len(bases[n])) if n in own else [0] for n in listed] for own in subsets]
        grids = [np.meshgrid(*own, indexing="ij") for own in ranges]
        self._counts = [math.prod(map(len, own)) for own in ranges]
        index = {n: np.concatenate([own[i].ravel() for own in grids]) for i, n in enumerate(listed)}
        self.queries: list[Any] = []
        self.spreads: list[Any] = []
        self._places, covariances, ranks = [], [], {}
        for block in blocks:
            if block.attributes[0] in held:
                assert block.matrix.symmetric_covariance is not None
                variance, _ = block.matrix.symmetric_covariance
                self.queries.append(_Contrasts(1.0))
                self.spreads.append(_Contrasts(variance))
                covariances.append(np.full((1, 1), variance))
                self._places.append(np.zeros(sum(self._counts), dtype=np.intp))
                continue
            own, where = np.unique([index[n] for n in block.attributes], axis=1, return_inverse=True)
            rows = np.ones((own.shape[1], 1))
            for name, coordinates in zip(block.attributes, own, strict=True):
                rows = (rows[:, :, None] * bases[name][coordinates][:, None]).reshape(len(rows), -1)
                ranks[name] = block.matrix.rank if len(block.attributes) == 1 else len(bases[name])
            self.queries.append(rows)
            self.spreads.append(block.matrix.covariance_times(rows.T).T)
            covariances.append(self.spreads[-1] @ rows.T)
            self._places.append(where.reshape(-1))
        self._shape = [len(own) for own in self.queries[len(held) :]]
        others = self._places[len(held) :]
        self._flat = np.ravel_multi_index(others, self._shape) if others else np.zeros(1, dtype=np.intp)
        known = [math.prod(ranks[name] - 1 for name in names) for names in subsets]
        self.information = _inverse(self.product(covariances), self._counts, known)

    def product(self, matrices: Sequence[Array]) -> Array:
        """Return the product over blocks of matrices over their coordinates, between all unknowns."""
        found = np.ones((sum(self._counts),) * 2)
        for matrix, places in zip(matrices, self._places, strict=True):
            found *= matrix[np.ix_(places, places)]
        return found

    def coordinates(self, tables: Array, maps: Sequence[Any]) -> Array:
        """Return ``queries`` or ``spreads`` times tables, (tables, cells) to (tables, values, unknowns)."""
        tensor = np.transpose(tables.reshape(-1, *self._sizes), [0, *(1 + axis for axis in self.order)])
        tensor = along_axes(tensor.reshape(-1, *self._columns), maps, 1)
        return tensor.reshape(len(tables), self._values, -1)[:, :, self._flat]

    def cells(self, coefficients: Array, maps: Sequence[Any]) -> Array:
        """Return the transposed of that, (tables, values, unknowns) to (tables, cells)."""
        tensor = np.zeros((*coefficients.shape[:2], math.prod(self._shape)))
        tensor[:, :, self._flat] = coefficients
        tensor = tensor.reshape(-1, *self._columns[: len(self._held)], *self._shape)
        tensor = along_axes(tensor, [own if callable(own) else own.T for own in maps], 1)
        tensor = tensor.reshape(-1, *(self._sizes[axis] for axis in self.order))
        tensor = np.transpose(tensor, [0, *(1 + np.argsort(self.order))])
        return tensor.reshape(len(coefficients), -1)

    def axes(self, sets: Sequence[Predicates]) -> list[tuple[Array, Array]]:
        """Return for each block factors of gg', g the covariances of its predicates with the unknowns."""
        found = []
        for axis, size, spread in zip(self.order, self._columns, self.spreads, strict=True):
            if isinstance(spread, np.ndarray):
                found.append((sets[axis].apply(spread.T),) * 2)
            else:
                sums = sets[axis].apply(np.ones((size, 1)))
                own = sets[axis].squares(size)[:, None] - sums**2 / size
                found.append((spread.variance**2 * own, np.ones_like(sums)))
        return found

    def quadratic(self, form: Array, sets: Sequence[Predicates]) -> Array:
        """Return g' M g for the covariances g of products with the unknowns, as counts; M is symmetric."""
        axes, ends = self.axes(sets), np.cumsum([0, *self._counts])

        def chosen(names: Names, side: int) -> list[Array]:
            pairs = zip(self._listed, axes, strict=True)
            return [own[side][:, 1:] if name in names else own[side][:, :1] for name, own in pairs]

        total = np.zeros([len(own) for own, _ in axes])
        for i, rows in enumerate(self._subsets):
            for j, columns in enumerate(self._subsets[: i + 1]):
                block = form[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
                if block.size:
                    factor = 1.0 if i == j else 2.0
                    total += factor * bilinear(block, chosen(rows, 0), chosen(columns, 1))
        return np.transpose(total, np.argsort(self.order))


@dataclass(eq=False)
class _Mode:
    """The common unknowns that are contrasts along some attributes measured alike, and sums over the others.

    Attributes
    ----------
    unknowns : int
        How many unknowns of the other attributes stand with them.
    subsets : dict of tuple of str to ndarray
        Which of them are those of each subset of the other attributes.
    views, places, noise : dict
        For each table that has the contrasts: what it says, of which unknowns, and its noise variance.
    """

    unknowns: int
    subsets: dict[Names, Places]
    views: dict[int, _View]
    places: dict[int, Places]
    noise: dict[int, float]

    @cached_property
    def information(self) -> Any:
        """The information of each table about the unknowns, sparse, shape (tables, unknowns x unknowns)."""
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


def _inverse(covariance: Array, counts: Sequence[int], ranks: Sequence[int]) -> Array:
    """Return the pseudo-inverse of a covariance, from the unknowns and the rank of each subset."""
    # one scale for each subset: what a table does not determine stays orthogonal to what it does
    parts = np.split(covariance.diagonal(), np.cumsum(counts)[:-1])
    scale = [math.sqrt(own.mean()) if rank else 1.0 for own, rank in zip(parts, ranks, strict=True)]
    scales = np.multiply.outer(*[np.repeat(scale, counts)] * 2)
    rank, kept = sum(ranks), np.zeros((0, 0))
    try:
        if rank == len(covariance):
            factor = scipy.linalg.cho_factor(covariance / scales)
            return np.asarray(scipy.linalg.cho_solve(factor, np.eye(rank)) / scales)
        values, vectors = np.linalg.eigh(covariance / scales)
        kept = vectors[:, values > RANK * values[-1]]
    except (ValueError, np.linalg.LinAlgError):
        pass
    if kept.shape[1] != rank:
        raise NumericalError("measured matrices too close to singular for least squares with others")
    inverse = (kept / values[-rank:]) @ kept.T
    # unknowns of which a table says nothing, not even rounding errors
    told = inverse.diagonal() > RANK * inverse.diagonal().max()
    return np.asarray(np.where(np.logical_and.outer(told, told), inverse, 0.0) / scales)


def asked_sets(part: Part, group: ProductGroup) -> list[Predicates]:
    """Return the predicate set of a group on each attribute of a part."""
    return [group.sets.get(name, Total()) for name in part.attributes]


@dataclass(frozen=True)
class _Contrasts:
    """All contrasts along an attribute, times the variance of each: an array less its means."""

    variance: float

    def __call__(self, array: Array) -> Array:
        return np.asarray(self.variance * (array - array.mean(axis=0)))
