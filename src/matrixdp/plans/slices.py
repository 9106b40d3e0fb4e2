"""Slices of an attribute that every part keeps whole: a few of its values at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial
from itertools import chain, islice
from typing import Any, final

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix, TreeMatrix
from matrixdp.exact.linear import Array, along_axes
from matrixdp.exact.resources import memory_limit
from matrixdp.exact.trees import in_two, sums_over
from matrixdp.plans.part import Block, Part
from matrixdp.plans.pieces import PieceAnalysis, PieceEstimates
from matrixdp.plans.plan import Batch, Estimates, Plan
from matrixdp.plans.split import Split, SplitAnalysis
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicates import Identity, Predicates, Ranges, Sets, Total
from matrixdp.queries.structured import Labelled

Read = Callable[[int, int], Array]
"""Returns some consecutive rows of a part, those of its first block along one axis."""

#: A plan with at most this many cells in all of its marginals is not cut.
LEAST_CUT = 2**25
#: About so many cells does a slice have.
_CELLS = 2**20
#: Values are measured apart from one another in between so many runs.
_LEAST_RUNS, _MOST_RUNS = 16, 256
#: Bytes for each cell of the marginal that is counted and gets its noise: counts, exact and noisy answers.
_HELD = 48.0


@final
@dataclass(frozen=True, eq=False)
class Slices:
    """A plan, cut into slices of the values of its first attribute.

    Every part has a block of its own over that attribute, before all others: an identity, or sums over the
    nodes of a tree. What is measured of each value alone lies one value after the other.

    Parameters
    ----------
    plan : Split
    width : int
        The values of a slice; the last may have fewer.
    """

    plan: Split
    width: int

    @classmethod
    def of(cls, plan: Plan, least: int | None = None) -> Slices | None:
        """Return the slices of a plan; None where it cannot be cut, or has at most so many cells."""
        cells = sum(plan.domain.cells(part.attributes) for part in plan.parts)
        if not isinstance(plan, Split) or cells <= (LEAST_CUT if least is None else least):
            return None
        name = plan.domain.names[0]
        width = max(1, _CELLS * plan.domain[name].size // cells)
        return cls(plan, width) if _cuts(plan, name) else None

    @property
    def attribute(self) -> str:
        """The attribute that is cut."""
        return self.plan.domain.names[0]

    @property
    def size(self) -> int:
        """How many values it has."""
        return self.plan.domain[self.attribute].size

    def __len__(self) -> int:
        return -(-self.size // self.width)

    def __iter__(self) -> Iterator[slice]:
        """Yield the values of each slice."""
        return (slice(at, min(at + self.width, self.size)) for at in range(0, self.size, self.width))

    def own(self, part: Part, values: slice) -> tuple[Part, slice] | None:
        """Return what a part measures of each value of a slice alone, and which of its rows that is."""
        matrix, count = part.blocks[0].matrix, values.stop - values.start
        if isinstance(matrix, IdentityMatrix):
            return _with(part, IdentityMatrix(count)), _rows(part, values.start, values.stop)
        if not isinstance(matrix, TreeMatrix) or not _tells_values(matrix):
            return None
        alone = TreeMatrix((np.arange(count),), (matrix.weights[-1][values],))
        above = matrix.rows - matrix.columns
        return _with(part, alone), _rows(part, above + values.start, above + values.stop)

    @cached_property
    def levels(self) -> tuple[NDArray[np.int64], ...]:
        """The node of each value, on every level of which some part measures sums."""
        trees = (part.blocks[0].matrix for part in self.plan.parts)
        above = ((tree, own) for tree in trees if isinstance(tree, TreeMatrix) for own in _levels_above(tree))
        held = {tree.groups[place].tobytes(): tree.groups[place] for tree, place in above}
        return tuple(sorted(held.values(), key=max))

    def above(self, part: Part) -> Iterator[Above]:
        """Yield what else a part measures, level by level."""
        tree = part.blocks[0].matrix
        if not isinstance(tree, TreeMatrix):
            return
        numbers = {own.tobytes(): number for number, own in enumerate(self.levels)}
        for place in _levels_above(tree):
            first = sum(map(np.count_nonzero, tree.weights[:place]))
            yield Above(numbers[tree.groups[place].tobytes()], tree.weights[place], part, int(first))

    def runs(self) -> tuple[range, ...]:
        """Return runs of consecutive values, that can be measured apart from one another.

        They are the nodes, or some nodes side by side, of the coarsest level that has enough and where the
        values of each follow one another; of none, the values themselves.
        """
        for nodes in (*self.levels, np.arange(self.size)):
            starts = np.flatnonzero(np.diff(nodes, prepend=-1))
            if len(starts) >= _LEAST_RUNS and len(starts) == nodes.max() + 1:
                break
        starts = starts[:: -(-len(starts) // _MOST_RUNS)]
        return tuple(map(range, starts.tolist(), [*starts[1:].tolist(), self.size]))

    def within(self, runs: Sequence[range]) -> tuple[int, ...]:
        """Return the numbers of the levels of which every node lies within one run."""
        run = np.repeat(np.arange(len(runs)), [*map(len, runs)])
        return tuple(number for number, nodes in enumerate(self.levels) if not in_two(nodes, run))

    def analysed(self, values: int, noise: Sequence[float]) -> SplitAnalysis:
        """Return the errors of so many values, as if each were measured alone."""
        domain = self.plan.domain.reduced({self.attribute: values})
        parts = [_with(part, IdentityMatrix(values)) for part in self.plan.parts]
        return SplitAnalysis(domain, parts, noise, self.plan.weights | {self.attribute: np.zeros(values)})


@final
@dataclass(frozen=True, eq=False)
class Above:
    """What a part measures of sums over the nodes of one level of a tree of values.

    Attributes
    ----------
    level : int
        The number of the level among those of `Slices`.
    weights : ndarray of int64
        The weight of each node; 0 where it is not measured.
    part : Part
    before : int
        How many nodes of coarser levels it measures.
    """

    level: int
    weights: NDArray[np.int64]
    part: Part
    before: int

    def of(self, first: int, stop: int) -> tuple[Part, NDArray[np.bool_], slice]:
        """Return what it would measure of some nodes if it measured all, which of that it does, and where."""
        weights = self.weights[first:stop]
        # every node of a last level is measured, so that rows of some are left out afterwards
        every = TreeMatrix((np.arange(len(weights)),), (np.maximum(weights, 1),))
        before = self.before + int(np.count_nonzero(self.weights[:first]))
        rows = _rows(self.part, before, before + int(np.count_nonzero(weights)))
        each = self.part.rows // self.part.shape[0]
        return _with(self.part, every), np.repeat(weights > 0, each), rows


def check_held(plan: Plan) -> None:
    """Reject a plan whose counts and noisy answers do not fit in memory together, before anything is spent.

    Raises
    ------
    TooLargeError
        Names the largest marginal, the bytes, and what would fit.
    """
    cells = {part.attributes: plan.domain.cells(part.attributes) for part in plan.parts}
    largest = max(cells, key=lambda names: cells[names])
    held = 8.0 * sum(part.rows for part in plan.parts) + _HELD * cells[largest]
    most = memory_limit()
    if cells[largest] <= LEAST_CUT or held <= most:
        return
    told = f"measuring {', '.join(largest)}: {cells[largest]:,} cells; all that is measured takes about "
    told += f"{held / 1e9:,.1f} GB at once, of {most / 1e9:,.1f} GB"
    trees = [name for name in plan.domain.names if _cuts(plan, name)]
    first = f"{trees[0]!r} as the first attribute of the domain, so that it is measured in slices, or "
    raise TooLargeError(f"{told}; expected {first if trees else ''}fewer attributes at once")


def _cuts(plan: Plan, name: str) -> bool:
    """Return whether a plan could be cut along an attribute if that were the first."""
    whole = isinstance(plan, Split) and not plan.weights[name].any()
    return whole and all(_leads(part, name) for part in plan.parts)


def _with(part: Part, matrix: MeasuredMatrix) -> Part:
    return replace(part, blocks=(Block(part.blocks[0].attributes, matrix), *part.blocks[1:]))


def _rows(part: Part, first: int, stop: int) -> slice:
    """Return the rows of a part that belong to some rows of its first block."""
    each = part.rows // part.shape[0]
    return slice(first * each, stop * each)


def _tells_values(tree: TreeMatrix) -> bool:
    """Return whether the last level of a tree is the values themselves."""
    return len(tree.weights[-1]) == tree.columns


def _levels_above(tree: TreeMatrix) -> Iterator[int]:
    """Yield the places of the levels, other than the values themselves, of which something is measured."""
    for place, weights in enumerate(tree.weights):
        if weights.any() and len(weights) < tree.columns:
            yield place


def _leads(part: Part, name: str) -> bool:
    """Return whether a part has a block over an attribute alone before all others, and independent noise."""
    if not part.blocks or part.blocks[0].attributes != (name,):
        return False
    matrix = part.blocks[0].matrix
    # areas beside a tree tie the values of different nodes together
    known = isinstance(matrix, IdentityMatrix) or (isinstance(matrix, TreeMatrix) and not matrix.beside)
    return known and part.multipliers is None and part.walk is None and part.width is None


@final
@dataclass(frozen=True, eq=False)
class _Solved:
    """The least squares of a part along the attribute that is cut.

    Attributes
    ----------
    within : callable
        Returns those of some values.
    nodes, sums : ndarray, optional
        The node of each value, on the lowest level above them that is measured, and the sums over nodes.
    share : ndarray, optional
        How far a node is moved, for each unit of its variance: a child moves by that times its own.
    """

    within: Callable[[slice], Array]
    nodes: NDArray[np.int64] | None = None
    sums: Array | None = None
    share: Array | None = None

    @classmethod
    def of(cls, tree: TreeMatrix, read: Read, slices: Iterable[slice], share: Array | None = None) -> _Solved:
        """Return the least squares of a tree; its rows are read by their numbers.

        As the tree itself solves them, but what is measured of values alone is read a slice at a time: once
        for their sums, and once more for them. Where the share is known, it is read once, and sums are not.
        """
        weights = [own.astype(np.float64) for own in tree.weights]
        ends = np.cumsum([0, *map(np.count_nonzero, weights)])
        if not _tells_values(tree):
            nodes = tree.groups[-1]
            firsts = np.unique(nodes, return_index=True)[1]
            whole = TreeMatrix(tuple(own[firsts] for own in tree.groups), tree.weights)
            solved, counts = whole.solve(read(0, int(ends[-1]))), np.bincount(nodes)[:, None]
            return cls(lambda values: solved[nodes[values]] / counts[nodes[values]], nodes, solved)
        single, first = weights[-1], int(ends[-2])

        def alone(values: slice) -> Array:
            return np.asarray(read(first + values.start, first + values.stop) / single[values, None])

        def moved(share: Array, values: slice) -> Array:
            return np.asarray(alone(values) + share[nodes[values]] / single[values, None] ** 2)

        if len(weights) == 1:
            return cls(alone)
        nodes = tree.groups[-2]
        if share is not None:
            return cls(partial(moved, share), share=share)
        above = []
        for weight, start, stop in zip(weights[:-1], ends[:-2], ends[1:-1], strict=True):
            rows = read(int(start), int(stop))
            above.append(np.zeros((len(weight), rows.shape[1])))
            above[-1][weight > 0] = weight[weight > 0, None] * rows
        total = np.zeros_like(above[-1])
        for values in slices:
            own, place = np.unique(nodes[values], return_inverse=True)
            total[own] += sums_over(place, len(own)) @ alone(values)
        solved = tree.sums_above(above, total)
        share = (solved - total) / np.bincount(nodes, 1.0 / single**2)[:, None]
        return cls(partial(moved, share), nodes, solved, share)

    def summed(self, sums: Any, slices: Iterable[slice]) -> Array:
        """Return the products with a sparse matrix, shape (queries, values); where they are, of node sums."""
        if self.nodes is not None and self.sums is not None:
            over = sums[:, np.unique(self.nodes, return_index=True)[1]]
            if not (sums != over[:, self.nodes]).nnz:
                return np.asarray(over @ self.sums)
        return np.asarray(sum(sums[:, values] @ self.within(values) for values in slices))


@final
class SlicedEstimates(Estimates):
    """Estimates that follow from one slice of the noisy answers at a time.

    Parameters
    ----------
    slices : Slices
    analysis : PieceAnalysis
    values : sequence of ndarray
        The noisy answers to each part.
    shares : mapping of int to ndarray, optional
        What others know of parts, by their places: see `shares`.
    """

    def __init__(
        self,
        slices: Slices,
        analysis: PieceAnalysis,
        values: Sequence[Array],
        shares: Mapping[int, Array] | None = None,
    ) -> None:
        self._known = shares or {}
        self.slices = slices
        self._analysis = analysis
        self._values = values
        self._analysed = cache(partial(slices.analysed, noise=analysis.noise))
        self._solved = cache(self._solver)
        # those of one level at a time
        self._over = lru_cache(maxsize=1)(self._summed)

    def _solver(self, place: int) -> _Solved:
        """Return the least squares of a part along the attribute that is cut."""
        part, held = self.slices.plan.parts[place], self._values[place]
        each = part.rows // part.shape[0]
        matrix = part.blocks[0].matrix

        def read(first: int, stop: int) -> Array:
            return np.asarray(held[_rows(part, first, stop)]).reshape(stop - first, each)

        if isinstance(matrix, TreeMatrix):
            return _Solved.of(matrix, read, self.slices, self._known.get(place))
        return _Solved(lambda values: read(values.start, values.stop))

    def shares(self) -> dict[int, Array]:
        """Return what all noisy answers say of parts, with which slices follow from their own alone."""
        found = {place: self._solved(place).share for place in range(len(self._values))}
        return {place: share for place, share in found.items() if share is not None}

    def knowing(self, shares: Mapping[int, Array]) -> SlicedEstimates:
        """Return the same estimates, given the shares."""
        return SlicedEstimates(self.slices, self._analysis, self._values, shares)

    def _estimates(self, values: int, solved: Callable[[int], Array]) -> PieceEstimates:
        """Return the estimates of so many values, or sums of them, as those of a plan that has no others."""
        analysis = self._analysed(values)

        def residual(place: int) -> Array:
            return analysis.residual(analysis.parts[place], solved(place))

        return PieceEstimates(analysis, residual)

    def _within(self, values: slice) -> PieceEstimates:
        """Return the estimates of some values."""
        return self._estimates(values.stop - values.start, lambda place: self._solved(place).within(values))

    def _summed(self, predicates: Predicates) -> PieceEstimates:
        """Return the estimates of sums over values."""
        sums = _indicators(predicates, self.slices.size)
        return self._estimates(sums.shape[0], lambda place: self._solved(place).summed(sums, self.slices))

    def _each(self, attributes: tuple[str, ...]) -> Iterator[tuple[slice, Array]]:
        """Yield the estimate of a marginal, one slice after the other."""
        for values in self.slices:
            yield values, self._within(values).marginal(attributes)

    def marginal(self, attributes: tuple[str, ...]) -> Array:
        if self.slices.attribute in attributes:
            return np.concatenate([own for _, own in self._each(attributes)])
        return self._over(Total()).marginal(attributes)

    def answers(self, group: Group) -> Array:
        found = [own for *_, own in self.batches((group,))]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def batches(self, groups: Sequence[Group]) -> Iterator[Batch]:
        yield from self.sums(groups)
        yield from self.alone(groups, range(len(self.slices)))

    def sums(self, groups: Sequence[Group]) -> Iterator[Batch]:
        """Yield the estimates of the groups that add up values, one after the other."""
        for place, group in enumerate(groups):
            self._analysis.check_support(group)
            asked = self._analysis.asked(group)
            if not _asks_values(asked):
                yield place, 0, group, self._added(asked).ravel()

    def alone(self, groups: Sequence[Group], numbers: range) -> Iterator[Batch]:
        """Yield the estimates of the groups that ask each value, in one pass over slices of some numbers."""
        every = ((place, self._analysis.asked(group)) for place, group in enumerate(groups))
        alone = [(place, own) for place, own in every if isinstance(own, ProductGroup) and _asks_values(own)]
        for values in islice(self.slices, numbers.start, numbers.stop) if alone else ():
            marginal = cache(self._within(values).marginal)
            codes = Ranges(tuple((value, value) for value in range(values.start, values.stop)))
            for place, asked in alone:
                others = asked.predicates[1:]
                own = along_axes(marginal(asked.attributes), (one.apply for one in others), 1)
                some = replace(asked, predicates=(codes, *others), query_weights=None)
                yield place, values.start * math.prod(asked.counts[1:]), some, own.ravel()

    def _added(self, asked: Group) -> Array:
        """Return the estimates of a group that adds up values."""
        first = asked.predicates[0] if isinstance(asked, ProductGroup) else None
        if isinstance(first, Labelled) and isinstance(first.predicates, Sets):
            first = first.predicates  # a level
        if not isinstance(asked, ProductGroup) or not isinstance(first, Total | Sets):
            return asked.answers(self.marginal(asked.attributes))
        others = (one.apply for one in asked.predicates[1:])
        return along_axes(self._over(first).marginal(asked.attributes), others, 1)


def _asks_values(asked: Group) -> bool:
    """Return whether a group asks each value of the attribute that is cut."""
    first = asked.predicates[:1] if isinstance(asked, ProductGroup) else ()
    return any(isinstance(own, Identity) for own in first)


def _indicators(predicates: Predicates, size: int) -> Any:
    """Return the sets of some predicates, or their total, shape (queries, size), with few entries."""
    codes = predicates.sets if isinstance(predicates, Sets) else (range(size),)
    ends = np.cumsum([0, *map(len, codes)])
    places = np.fromiter(chain.from_iterable(codes), np.intp, ends[-1])
    return scipy.sparse.csc_array(
        scipy.sparse.csr_array((np.ones(ends[-1]), places, ends), (len(codes), size))
    )
