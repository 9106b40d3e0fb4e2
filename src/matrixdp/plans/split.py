"""Direct and split plans: a query is answered from one table, or is the sum of one piece on each marginal."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import ClassVar, final

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, UnsupportedQueryError
from matrixdp.exact import IdentityMatrix
from matrixdp.exact.linear import Array
from matrixdp.noise import Noise
from matrixdp.plans.axes import shortened
from matrixdp.plans.part import Block, Part
from matrixdp.plans.pieces import PieceAnalysis, PieceEstimates
from matrixdp.plans.plan import Estimates, Plan
from matrixdp.queries.groups import DenseGroup, Group, over
from matrixdp.queries.predicates import Total

#: How far from 1 the sum of a weight vector may be.
_WEIGHT_SUM = 1e-6


@final
@dataclass(frozen=True, eq=False)
class Direct(Plan, kind="direct"):
    """One part, on whose marginal every query is answered as it stands."""

    words: ClassVar[str] = "one table"
    walks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.parts) != 1:
            raise NumericalError("a direct plan has one part")

    @classmethod
    def of(cls, domain: Domain, blocks: Sequence[Block], noise: Noise) -> Direct:
        """Return the plan that measures the Kronecker product of blocks at the whole privacy cost."""
        names = domain.sort([name for block in blocks for name in block.attributes])
        return cls(domain, (Part(names, tuple(blocks), 1.0).at_cost(noise),), noise)

    def analysed(self, noise: Sequence[float]) -> TableAnalysis:
        [part], [variance] = self.parts, noise
        return TableAnalysis(self.domain, part, variance)


class TableAnalysis(PieceAnalysis):
    """Estimates and errors of queries on the table that one part measures; nothing is contracted.

    An attribute of a single value counts as measured: a part says as much of it as of the total.
    """

    def __init__(self, domain: Domain, part: Part, variance: float) -> None:
        if any(block.matrix.residual for block in part.blocks):
            raise NumericalError(f"part {part.attributes}: residuals alone; their sums need a split plan")
        single = [n for n in domain.names if domain[n].size == 1 and n not in part.attributes]
        if single:
            blocks = (*part.blocks, *(Block((name,), IdentityMatrix(1)) for name in single))
            multipliers = part.multipliers
            if multipliers is not None:
                multipliers = multipliers.reshape([block.matrix.rows for block in blocks])
            names = domain.sort([*part.attributes, *single])
            part = replace(part, attributes=names, blocks=blocks, multipliers=multipliers)
        whole = {name: np.zeros(domain[name].size) for name in part.attributes}
        super().__init__(domain, (part,), (variance,), whole)

    def pieces(self, attributes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
        measured = self.parts[0].attributes
        missing = [name for name in attributes if name not in measured]
        if missing:
            raise UnsupportedQueryError(
                f"attribute {missing[0]!r} was not measured: the strategy measures one table of "
                f"{', '.join(measured)}"
            )
        yield measured, 0

    def asked(self, group: Group) -> Group:
        measured = self.parts[0].attributes
        if isinstance(group, DenseGroup) or set(group.attributes) <= set(measured):
            return group
        own = {n: p for n, p in group.sets.items() if n in measured or not isinstance(p, Total)}
        sizes = tuple(self.domain[name].size for name in own)
        return replace(group, attributes=tuple(own), predicates=tuple(own.values()), sizes=sizes)

    def rows(self, group: Group) -> Array:
        """Return the queries of a group over the cells of the table, shape (queries, cells)."""
        return self.rows_on_parts(group)[0]

    def row_covariances(self, left: Array, right: Array, paired: bool) -> Array:
        """Return the covariances of queries over the cells of the table, or only those in one place."""
        return self._row_covariances(0, left, right, paired)

    def noise_of(self, rows: Array) -> Array:
        """Return how far each noise variable moves queries over the cells; see `Analysis.noise_terms`."""
        return np.asarray(np.sqrt(self.noise[0]) * self._measured_rows(self.parts[0], rows))

    def answering(self, table: Array) -> Estimates:
        """Return the answers of a table of estimates."""
        return PieceEstimates(self, lambda _place: table)

    def marginal(self, attributes: tuple[str, ...], residual: Callable[[int], Array]) -> Array:
        others = [axis for axis, name in enumerate(self.parts[0].attributes) if name not in attributes]
        return np.asarray(residual(0).sum(axis=tuple(others)))


def residual_weights(size: int) -> Array:
    """Return the uniform weight vector of QuerySmasher: 1/n for each of n values."""
    return np.full(size, 1.0 / size)


def check_weight_vectors(domain: Domain, weights: Mapping[str, Array]) -> None:
    """Refuse weights that do not fit an attribute, or sum neither to 1 nor are all zero."""
    for name in domain.names:
        vector = weights[name]
        sums_up = not vector.any() or abs(float(vector.sum()) - 1.0) < _WEIGHT_SUM
        if vector.shape != (domain[name].size,) or not sums_up:
            raise NumericalError(f"the weights of attribute {name!r} do not fit it, or do not sum to 1")


def subsets(attributes: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the subsets of attributes, small ones first."""
    for size in range(len(attributes) + 1):
        yield from combinations(attributes, size)


@final
@dataclass(frozen=True, eq=False)
class Split(Plan, kind="split"):
    """One part for each marginal, on which a piece of every query is answered.

    A query on attributes A splits into one piece for each subset A' of A, by contracting it with the weights
    over A minus A' and removing its weighted mean along A'.

    Parameters
    ----------
    domain, parts, noise
        See `Plan`.
    weights : dict of str to ndarray
        For each attribute a vector with sum 1; all zeros where the attribute stays whole, and no piece of a
        query is contracted along it.
    """

    words: ClassVar[str] = "one part for each marginal"
    walks: ClassVar[bool] = True
    radii: ClassVar[bool] = True

    weights: dict[str, Array]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_distinct()
        check_weight_vectors(self.domain, self.weights)

    def analysed(self, noise: Sequence[float]) -> SplitAnalysis:
        return SplitAnalysis(self.domain, self.parts, noise, self.weights)


class SplitAnalysis(PieceAnalysis):
    """Estimates and errors of queries that split over the subsets of their attributes."""

    @cached_property
    def undivided(self) -> frozenset[str]:
        """The attributes that every part has and that no query is contracted along."""
        shared = frozenset.intersection(*(frozenset(part.attributes) for part in self.parts))
        return frozenset(name for name in shared if not self.axes.weights[name].any())

    def asked(self, group: Group) -> Group:
        """Return a group that asks for the total of every undivided attribute that it does not name."""
        missing = self.undivided.difference(group.attributes)
        if not missing:
            return group
        names = self.domain.sort([*group.attributes, *missing])
        return over(group, names, tuple(self.axes.sizes(names)))

    def pieces(self, attributes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
        undivided = self.undivided
        for kept in subsets(attributes):
            if not undivided or undivided <= set(kept):
                yield kept, self.places.get(kept)

    def seen(self, attributes: tuple[str, ...]) -> Hashable:
        if self.undivided:
            return super().seen(attributes)
        return tuple(map(self._kinds.get, subsets(attributes)))  # a part lies as its place among them says

    @cached_property
    def _kinds(self) -> dict[tuple[str, ...], int]:
        """By marginal a number of its part, the same for those with equal matrices and noise."""
        numbers: dict[Hashable, int] = {}
        known: dict[Hashable, int] = {}
        kinds = {}
        for part, noise in zip(self.parts, self.noise, strict=True):
            # of many parts most have the same matrices, and most list their attributes in order
            blocks = [(id(block.matrix), len(block.attributes)) for block in part.blocks]
            order = () if part.listed == part.attributes else tuple(map(part.attributes.index, part.listed))
            own = noise, id(part.multipliers), order, *blocks
            if own not in known:
                key = noise, part.key(part.attributes)
                known[own] = numbers.setdefault(key, len(numbers))
            kinds[part.attributes] = known[own]
        return kinds

    def marginal(self, attributes: tuple[str, ...], residual: Callable[[int], Array]) -> Array:
        missing = self.undivided.difference(attributes)
        if missing:
            names = self.domain.sort([*attributes, *missing])
            axes = tuple(axis for axis, name in enumerate(names) if name in missing)
            return np.asarray(self.marginal(names, residual).sum(axis=axes))
        sizes = self.axes.sizes(attributes)
        pieces: dict[tuple[str, ...], Array] = {}
        for kept in subsets(attributes):
            if kept in self.places:
                shape = [size if name in kept else 1 for name, size in zip(attributes, sizes, strict=True)]
                pieces[kept] = residual(self.places[kept]).reshape(shape)
        # spread along one attribute after the other, so that few sums are as large as the marginal
        for axis, name in enumerate(attributes):
            weights = shortened(self.axes.weights[name]).reshape([-1, *[1] * (len(sizes) - axis - 1)])
            for kept in [own for own in pieces if name not in own]:
                whole = tuple(own for own in attributes if own in kept or own == name)
                pieces[whole] = pieces.pop(kept) * weights + pieces.get(whole, 0.0)
        return sum(pieces.values(), np.zeros(sizes))
