"""What each measured part says of a table of one or two attributes, in double precision."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact import MeasuredMatrix
from matrixdp.measure.measurement import Measurement
from matrixdp.model.derived import cells_of
from matrixdp.plan import Part
from matrixdp.queries.groups import ProductGroup
from matrixdp.queries.predicates import Identity, Total

__all__ = [
    "Axis",
    "KroneckerEvidence",
    "PartEvidence",
    "RowEvidence",
    "estimated_marginal",
    "estimated_total",
    "evidence_of",
]

Array = NDArray[np.float64]

#: The least total that a model is of: above 0, for shares of it, and far below what noise tells from 0.
_LEAST_TOTAL = 1e-9
#: Squared length, relative to 1, of what a vector may have outside the measured span.
_SPANNED = 1e-6


@final
@dataclass(frozen=True, eq=False)
class Axis:
    """B'B of a measured matrix B along one attribute: a I + b 11', or explicit.

    Attributes
    ----------
    size : int
    alike : float
        a.
    common : float
        b.
    gram : ndarray, shape (size, size), or None
        B'B, where it is not of this form.
    """

    size: int
    alike: float = 1.0
    common: float = 0.0
    gram: Array | None = None

    @classmethod
    def of(cls, matrix: MeasuredMatrix) -> Axis:
        """Return B'B.

        Examples
        --------
        >>> from matrixdp.exact import CenteredMatrix
        >>> Axis.of(CenteredMatrix(3))
        Axis(size=3, alike=9.0, common=-3.0, gram=None)
        """
        if matrix.symmetric_gram is None:
            return cls(matrix.columns, gram=matrix.gram())
        return cls(matrix.columns, *matrix.symmetric_gram)

    def apply(self, table: Array, axis: int) -> Array:
        """Return B'B times a table along one of its axes."""
        if self.gram is None:
            return np.asarray(self.alike * table + self.common * table.sum(axis=axis, keepdims=True))
        return np.asarray(np.moveaxis(np.tensordot(self.gram, table, axes=(1, axis)), 0, axis))

    def dense(self) -> Array:
        """Return B'B."""
        return np.asarray(self.alike * np.eye(self.size) + self.common) if self.gram is None else self.gram

    def total_variance(self) -> float | None:
        """Return the variance of the estimated sum at unit noise; None if the sum does not follow from B."""
        if self.gram is None:
            whole = self.alike + self.size * self.common
            return self.size / whole if whole > 1e-9 * self.alike else None
        ones = np.ones(self.size)
        solution = np.linalg.lstsq(self.gram, ones, rcond=1e-10)[0]
        outside = float(((self.gram @ solution - ones) ** 2).sum())
        return float(solution.sum()) if outside <= _SPANNED * self.size else None


class PartEvidence(ABC):
    """The loss of a table against one measured part, half its squared residuals over the variance.

    Attributes
    ----------
    free : tuple of str
        The attributes of the table.
    """

    free: tuple[str, ...]

    @abstractmethod
    def gradient(self, table: Array) -> Array:
        """Return the gradient of the loss of a table."""

    @abstractmethod
    def most_curved(self) -> float:
        """Return a bound on the second derivative of the loss along directions of length 1."""


@final
@dataclass(frozen=True, eq=False)
class KroneckerEvidence(PartEvidence):
    """(x - target)' (A x B) (x - target) times half a precision.

    Attributes
    ----------
    free : tuple of str
    axes : tuple of Axis
    target : ndarray, in the shape of the attributes' sizes
    precision : float
    """

    free: tuple[str, ...]
    axes: tuple[Axis, ...]
    target: Array
    precision: float

    def gradient(self, table: Array) -> Array:
        """See `PartEvidence`."""
        off = table - self.target
        for place, axis in enumerate(self.axes):
            off = axis.apply(off, place)
        return off * self.precision

    def most_curved(self) -> float:
        """See `PartEvidence`."""
        largest = [float(np.linalg.norm(axis.dense(), 2)) for axis in self.axes]
        return self.precision * math.prod(largest)

    def summed_to(self, name: str) -> KroneckerEvidence | None:
        """Return what it says of one of its attributes alone; None if that does not follow."""
        precision, target, axes = self.precision, self.target, []
        for place, (own, axis) in reversed(list(enumerate(zip(self.free, self.axes, strict=True)))):
            if own == name:
                axes.append(axis)
                continue
            variance = axis.total_variance()
            if variance is None:
                return None
            precision, target = precision / variance, target.sum(axis=place)
        return KroneckerEvidence((name,), tuple(axes), target, precision)


@final
@dataclass(frozen=True, eq=False)
class RowEvidence(PartEvidence):
    """Half |B x - y|^2 over the variance, for rows of different precision and attributes that follow.

    Attributes
    ----------
    free : tuple of str
    shape : tuple of int
        Of the table.
    cells : ndarray or None
        For each cell of the table the one of the measured marginal, flat.
    matrices : tuple of ndarray
        B is their Kronecker product, over the measured marginal.
    multipliers : ndarray
        Of the rows, over the standard deviation.
    answers : ndarray
        Over the standard deviation.
    """

    free: tuple[str, ...]
    shape: tuple[int, ...]
    cells: NDArray[np.intp] | None
    matrices: tuple[Array, ...]
    multipliers: Array
    answers: Array

    def gradient(self, table: Array) -> Array:
        """See `PartEvidence`."""
        flat, columns = table.ravel(), [matrix.shape[1] for matrix in self.matrices]
        if self.cells is not None:
            flat = np.asarray(np.bincount(self.cells, flat, math.prod(columns)), dtype=np.float64)
        off = self.multipliers * _along(self.matrices, flat.reshape(columns)).ravel() - self.answers
        rows = [len(matrix) for matrix in self.matrices]
        back = _along([matrix.T for matrix in self.matrices], (self.multipliers * off).reshape(rows)).ravel()
        return (back if self.cells is None else back[self.cells]).reshape(self.shape)

    def most_curved(self) -> float:
        """See `PartEvidence`."""
        repeats = 1 if self.cells is None else int(np.bincount(self.cells).max())
        largest = math.prod(float(np.linalg.norm(matrix, 2)) ** 2 for matrix in self.matrices)
        return repeats * largest * float(self.multipliers.max()) ** 2


def _along(matrices: list[Array] | tuple[Array, ...], table: Array) -> Array:
    for matrix in matrices:  # each contracts the first axis and puts its own last
        table = np.tensordot(table, matrix, axes=(0, 1))
    return np.asarray(table)


def evidence_of(part: Part, variance: float, values: Array, domain: Domain) -> PartEvidence:
    """Return what a part says, measured with noise of a given variance."""
    free, cells = cells_of(domain, part.listed)
    plain = cells is None and part.multipliers is None
    if plain and all(len(block.attributes) == 1 for block in part.blocks):
        axes = {block.attributes[0]: Axis.of(block.matrix) for block in part.blocks}
        own = tuple(axes[name] for name in part.attributes)
        return KroneckerEvidence(part.attributes, own, part.estimate(values, domain), 1.0 / variance)
    deviation = math.sqrt(variance)
    if cells is None:
        # the blocks list the attributes in an order of their own
        shape = [domain[name].size for name in part.attributes]
        places = np.arange(math.prod(shape)).reshape(shape)
        order = np.transpose(places, [part.attributes.index(name) for name in part.listed]).ravel()
        free, cells = part.attributes, np.argsort(order)
    return RowEvidence(
        free,
        tuple(domain[name].size for name in free),
        cells,
        tuple(block.matrix.written() for block in part.blocks),
        (np.ones(part.rows) if part.multipliers is None else part.multipliers.ravel()) / deviation,
        values / deviation,
    )


def estimated_marginal(measurement: Measurement, name: str) -> Array | None:
    """Return the unbiased estimate of an attribute's table; None where it does not follow."""
    group = ProductGroup("start", (name,), (Identity(),), (measurement.plan.domain[name].size,))
    try:
        return measurement.estimates.answers(group)
    except UnsupportedQueryError:
        return None


def estimated_total(measurement: Measurement) -> float:
    """Return the estimated number of records, above 0.

    Raises
    ------
    UnsupportedQueryError
        If it does not follow from what was measured.
    """
    domain, parts = measurement.plan.domain, measurement.plan.parts
    precise = np.argsort([own.variance for own in measurement.scales], kind="stable")
    # a marginal may have been measured by itself: its cells sum to the total
    for names in ((), *(parts[place].attributes for place in precise)):
        sizes = tuple(domain[name].size for name in names)
        group = ProductGroup("total", names, tuple(Total() for _ in names), sizes)
        try:
            return max(float(measurement.estimates.answers(group)[0]), _LEAST_TOTAL)
        except UnsupportedQueryError:
            continue
    raise UnsupportedQueryError(
        "the number of records does not follow from what was measured: a model needs it; give it as a "
        "public total, or measure it (`marginals: 0` in the workload)"
    )
