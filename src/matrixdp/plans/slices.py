"""Slices of an attribute that every part keeps whole: a few of its values at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any, final

import numpy as np
from scipy import sparse

from matrixdp.exact import IdentityMatrix
from matrixdp.exact.linear import Array, along_axes
from matrixdp.plans.part import Block, Part
from matrixdp.plans.pieces import PieceAnalysis, PieceEstimates
from matrixdp.plans.plan import Estimates, Plan
from matrixdp.plans.split import Split, SplitAnalysis
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicates import Identity, Predicates, Ranges, Sets, Total

#: A plan with at most this many cells in all of its marginals is not cut.
LEAST_CUT = 2**25
#: About so many cells does a slice have.
_CELLS = 2**20


@final
@dataclass(frozen=True, eq=False)
class Slices:
    """A plan, cut into slices of the values of its first attribute.

    Every part has a block of its own over that attribute, which tells all values apart, before all others: so
    its rows, and the answers to them, lie one value after the other.

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
        size = plan.domain[name].size
        cut = not plan.weights[name].any() and all(_leads(part, name) for part in plan.parts)
        return cls(plan, max(1, _CELLS * size // cells)) if cut else None

    @property
    def attribute(self) -> str:
        """The attribute that is cut."""
        return self.plan.domain.names[0]

    @property
    def size(self) -> int:
        """How many values it has."""
        return self.plan.domain[self.attribute].size

    @property
    def number(self) -> int:
        """How many slices there are."""
        return -(-self.size // self.width)

    def __iter__(self) -> Iterator[slice]:
        """Yield the values of each slice."""
        return (slice(at, min(at + self.width, self.size)) for at in range(0, self.size, self.width))

    def rows(self, part: Part, values: slice) -> slice:
        """Return the rows of a part that are about some values."""
        each = part.rows // self.size
        return slice(values.start * each, values.stop * each)

    def part(self, part: Part, values: int) -> Part:
        """Return what a part measures of so many values."""
        return replace(part, blocks=(Block((self.attribute,), IdentityMatrix(values)), *part.blocks[1:]))

    def analysed(self, values: int, noise: Sequence[float]) -> SplitAnalysis:
        """Return the errors of so many values, as if there were no others."""
        domain = self.plan.domain.reduced({self.attribute: values})
        parts = [self.part(part, values) for part in self.plan.parts]
        return SplitAnalysis(domain, parts, noise, self.plan.weights | {self.attribute: np.zeros(values)})


def _leads(part: Part, name: str) -> bool:
    """Return whether a part has a block over an attribute alone before all others, and independent noise."""
    apart = bool(part.blocks) and part.blocks[0].attributes == (name,)
    whole = apart and isinstance(part.blocks[0].matrix, IdentityMatrix)
    return whole and part.multipliers is None and part.walk is None and part.width is None


@final
class SlicedEstimates(Estimates):
    """Estimates that follow from one slice of the noisy answers at a time."""

    def __init__(self, slices: Slices, analysis: PieceAnalysis, values: Sequence[Array]) -> None:
        self._slices = slices
        self._analysis = analysis
        self._values = values
        self._analysed = cache(partial(slices.analysed, noise=analysis.noise))

    def _within(self, values: slice) -> PieceEstimates:
        """Return the estimates of some values, as those of a plan that has no others."""
        slices = self._slices
        analysis = self._analysed(values.stop - values.start)

        def residual(place: int) -> Array:
            part = analysis.parts[place]
            own = self._values[place][slices.rows(slices.plan.parts[place], values)]
            return analysis.removed(part.attributes, part.estimate(own, analysis.domain))

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
        found = [own for _, own in self.batches(group)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def batches(self, group: Group) -> Iterator[tuple[Group, Array]]:
        self._analysis.check_support(group)
        asked = self._analysis.asked(group)
        first = asked.predicates[0] if isinstance(asked, ProductGroup) else None
        if not isinstance(asked, ProductGroup) or not isinstance(first, Identity | Total | Sets):
            yield group, asked.answers(self.marginal(asked.attributes)).ravel()
            return
        sums = None if isinstance(first, Identity) else _indicators(first, self._slices.size)
        total: Array = np.zeros((asked.counts[0], asked.queries // asked.counts[0]))
        others = asked.predicates[1:]
        for values, marginal in self._each(asked.attributes):
            own = along_axes(marginal, (one.apply for one in others), 1).reshape(len(marginal), -1)
            if sums is None:
                alone = Ranges(tuple((value, value) for value in range(values.start, values.stop)))
                yield replace(asked, predicates=(alone, *others), query_weights=None), own.ravel()
            else:
                total += sums[:, values] @ own
        if sums is not None:
            yield group, total.ravel()


def _indicators(predicates: Predicates, size: int) -> Any:
    """Return the sets of some predicates, or their total, shape (queries, size), with few entries."""
    codes = predicates.sets if isinstance(predicates, Sets) else (range(size),)
    ends = np.cumsum([0, *map(len, codes)])
    places = np.fromiter(chain.from_iterable(codes), np.intp, ends[-1])
    return sparse.csc_array(sparse.csr_array((np.ones(ends[-1]), places, ends), (len(codes), size)))
