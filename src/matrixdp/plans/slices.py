"""Slices of an attribute that every part keeps whole: a few of its values at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any, final

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix, TreeMatrix
from matrixdp.exact.linear import Array, along_axes
from matrixdp.exact.resources import memory_limit
from matrixdp.exact.trees import sums_over
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
#: Bytes for each cell of the marginal that is counted and gets its noise: counts, exact and noisy answers.
_HELD = 48.0


@final
@dataclass(frozen=True, eq=False)
class Slices:
    """A plan, cut into slices of the values of its first attribute.

    Every part has a block of its own over that attribute, before all others: an
    identity, or sums over the nodes of a tree. What is measured of each value alone lies one value after the
    other.

    Parameters
    ----------
    plan : Split
    width : int
        The values of a slice; the last may have fewer.
    """

    plan: Split
    width: int

    @classmethod
    def of(cls, plan: Plan) -> Slices | None:
        """Return the slices of a plan; None where it cannot be cut, or need not be."""
        cells = sum(plan.domain.cells(part.attributes) for part in plan.parts)
        if not isinstance(plan, Split) or cells <= LEAST_CUT:
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

    def above(self, part: Part) -> Above | None:
        """Return what else a part measures; None where there is nothing."""
        tree = part.blocks[0].matrix
        if not isinstance(tree, TreeMatrix):
            return None
        last = -1 if _tells_values(tree) else len(tree.groups)
        groups, weights = tree.groups[:last], tree.weights[:last]
        if not any(own.any() for own in weights):
            return None
        nodes = groups[-1]
        firsts = np.unique(nodes, return_index=True)[1]
        # every node of a last level is measured, so that rows of some are left out afterwards
        measured = np.concatenate(
            [*(np.ones(np.count_nonzero(own), bool) for own in weights[:-1]), weights[-1] > 0]
        )
        padded = (*weights[:-1], np.maximum(weights[-1], 1))
        over = TreeMatrix(tuple(own[firsts] for own in groups), padded)
        chosen = np.repeat(measured, part.rows // tree.rows)
        return Above(nodes, _with(part, over), chosen, _rows(part, 0, int(np.count_nonzero(measured))))

    def analysed(self, values: int, noise: Sequence[float]) -> SplitAnalysis:
        """Return the errors of so many values, as if each were measured alone."""
        domain = self.plan.domain.reduced({self.attribute: values})
        parts = [_with(part, IdentityMatrix(values)) for part in self.plan.parts]
        return SplitAnalysis(domain, parts, noise, self.plan.weights | {self.attribute: np.zeros(values)})


@final
@dataclass(frozen=True, eq=False)
class Above:
    """What a part measures of sums over the nodes of a tree of values.

    Attributes
    ----------
    nodes : ndarray of int64
        The node of each value, on the lowest level of those.
    part : Part
        What it would measure of them if it measured all.
    chosen : ndarray of bool
        Which of these rows it does.
    rows : slice
        Which of its own rows they are.
    """

    nodes: NDArray[np.int64]
    part: Part
    chosen: NDArray[np.bool_]
    rows: slice


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


def _leads(part: Part, name: str) -> bool:
    """Return whether a part has a block over an attribute alone before all others, and independent noise."""
    if not part.blocks or part.blocks[0].attributes != (name,):
        return False
    matrix = part.blocks[0].matrix
    # areas beside a tree tie the values of different nodes together
    known = isinstance(matrix, IdentityMatrix) or (isinstance(matrix, TreeMatrix) and not matrix.beside)
    return known and part.multipliers is None and part.walk is None and part.width is None


def _solved(tree: TreeMatrix, read: Read, slices: Iterable[slice]) -> Callable[[slice], Array]:
    """Return what gives the least squares of a tree for some values; its rows are read by their numbers.

    As the tree itself solves them, but what is measured of values alone is read a slice at a time: once
    for their sums, and once more for them.
    """
    weights = [own.astype(np.float64) for own in tree.weights]
    ends = np.cumsum([0, *map(np.count_nonzero, weights)])
    if not _tells_values(tree):
        nodes = tree.groups[-1]
        firsts = np.unique(nodes, return_index=True)[1]
        whole = TreeMatrix(tuple(own[firsts] for own in tree.groups), tree.weights)
        estimate = whole.solve(read(0, int(ends[-1]))) / np.bincount(nodes)[:, None]
        return lambda values: estimate[nodes[values]]
    single, first = weights[-1], int(ends[-2])

    def alone(values: slice) -> Array:
        return np.asarray(read(first + values.start, first + values.stop) / single[values, None])

    if len(weights) == 1:
        return alone
    above = []
    for weight, start, stop in zip(weights[:-1], ends[:-2], ends[1:-1], strict=True):
        rows = read(int(start), int(stop))
        above.append(np.zeros((len(weight), rows.shape[1])))
        above[-1][weight > 0] = weight[weight > 0, None] * rows
    nodes = tree.groups[-2]
    sums = sums_over(nodes, len(weights[-2])).tocsc()
    share = tree.share(above, sum(sums[:, values] @ alone(values) for values in slices))
    return lambda values: alone(values) + share[nodes[values]] / single[values, None] ** 2


@final
class SlicedEstimates(Estimates):
    """Estimates that follow from one slice of the noisy answers at a time."""

    def __init__(self, slices: Slices, analysis: PieceAnalysis, values: Sequence[Array]) -> None:
        self._slices = slices
        self._analysis = analysis
        self._values = values
        self._analysed = cache(partial(slices.analysed, noise=analysis.noise))
        self._solved = cache(self._solver)

    def _solver(self, place: int) -> Callable[[slice], Array]:
        """Return what gives the least squares of a part, along the attribute that is cut, for some values."""
        part, held = self._slices.plan.parts[place], self._values[place]
        each = part.rows // part.shape[0]
        matrix = part.blocks[0].matrix

        def read(first: int, stop: int) -> Array:
            return np.asarray(held[_rows(part, first, stop)]).reshape(stop - first, each)

        if isinstance(matrix, TreeMatrix):
            return _solved(matrix, read, self._slices)
        return lambda values: read(values.start, values.stop)

    def _within(self, values: slice) -> PieceEstimates:
        """Return the estimates of some values, as those of a plan that has no others."""
        analysis = self._analysed(values.stop - values.start)

        def residual(place: int) -> Array:
            part = analysis.parts[place]
            return analysis.removed(
                part.attributes, part.estimate(self._solved(place)(values), analysis.domain)
            )

        return PieceEstimates(analysis, residual)

    def _each(self, attributes: tuple[str, ...]) -> Iterator[tuple[slice, Array]]:
        """Yield the estimate of a marginal, one slice after the other."""
        for values in self._slices:
            yield values, self._within(values).marginal(attributes)

    def marginal(self, attributes: tuple[str, ...]) -> Array:
        found = (own for _, own in self._each(attributes))
        if self._slices.attribute in attributes:
            return np.concatenate(list(found))
        return np.asarray(sum(found))

    def answers(self, group: Group) -> Array:
        found = [own for *_, own in self.batches((group,))]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def batches(self, groups: Sequence[Group]) -> Iterator[Batch]:
        """Yield the estimates of groups: sums over values group by group, then all else in one pass."""
        alone = []
        for place, group in enumerate(groups):
            self._analysis.check_support(group)
            asked = self._analysis.asked(group)
            if (
                isinstance(asked, ProductGroup)
                and asked.predicates
                and isinstance(asked.predicates[0], Identity)
            ):
                alone.append((place, asked))
            else:
                yield place, 0, group, self._summed(asked).ravel()
        for values in self._slices if alone else ():
            marginal = cache(self._within(values).marginal)
            codes = Ranges(tuple((value, value) for value in range(values.start, values.stop)))
            for place, asked in alone:
                others = asked.predicates[1:]
                own = along_axes(marginal(asked.attributes), (one.apply for one in others), 1)
                some = replace(asked, predicates=(codes, *others), query_weights=None)
                yield place, values.start * math.prod(asked.counts[1:]), some, own.ravel()

    def _summed(self, asked: Group) -> Array:
        """Return the estimates of a group that adds up values."""
        first = asked.predicates[0] if isinstance(asked, ProductGroup) else None
        if isinstance(first, Labelled) and isinstance(first.predicates, Sets):
            first = first.predicates  # a level
        if not isinstance(asked, ProductGroup) or not isinstance(first, Total | Sets):
            return asked.answers(self.marginal(asked.attributes))
        sums = _indicators(first, self._slices.size)
        total: Array = np.zeros((asked.counts[0], asked.queries // asked.counts[0]))
        for values in self._slices:
            own = sums[:, values]
            if own.nnz:
                cells = self._within(values).marginal(asked.attributes)
                cells = along_axes(cells, (one.apply for one in asked.predicates[1:]), 1)
                total += own @ cells.reshape(len(cells), -1)
        return total


def _indicators(predicates: Predicates, size: int) -> Any:
    """Return the sets of some predicates, or their total, shape (queries, size), with few entries."""
    codes = predicates.sets if isinstance(predicates, Sets) else (range(size),)
    ends = np.cumsum([0, *map(len, codes)])
    places = np.fromiter(chain.from_iterable(codes), np.intp, ends[-1])
    return scipy.sparse.csc_array(
        scipy.sparse.csr_array((np.ones(ends[-1]), places, ends), (len(codes), size))
    )
