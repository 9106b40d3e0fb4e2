"""What was measured, as a model is fitted to it: every part with its noisy answers, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.resources import one_blas_thread
from matrixdp.measure.measurement import Measurement
from matrixdp.model.archive import Tables
from matrixdp.model.constraints import Constraints
from matrixdp.model.derived import cells_of, free_attributes
from matrixdp.model.measured import estimated_marginal, estimated_total
from matrixdp.model.mixture import MAX_CELLS
from matrixdp.model.terms import Axis, GramTerm, RowTerm, Term, along, gram_axis
from matrixdp.plan import Block, Part

__all__ = ["FittedPart", "Parts"]

Array = NDArray[np.float64]
#: Tails are looked at so far, in standard deviations, and at so many points.
_FAR, _POINTS = 40.0, 401
#: Standard deviations that a loss may lie above the average of the true table's.
_DEVIATIONS = 3.0


@final
@dataclass(frozen=True, eq=False)
class FittedPart:
    """One measured part, over the free attributes of its marginal.

    Attributes
    ----------
    attributes : tuple of str
        The marginal that was measured.
    free : tuple of str
        The free attributes that it follows from, in the order of the axes.
    cells : ndarray or None
        For each of their cells the one of the marginal; None where they are the same.
    size : int
        The number of cells over the free attributes.
    term : Term
        How far a table is from the noisy answers.
    """

    attributes: tuple[str, ...]
    free: tuple[str, ...]
    cells: NDArray[np.intp] | None
    size: int
    term: Term


@final
@dataclass(frozen=True, eq=False)
class Parts:
    """The measured parts that a model is fitted to.

    Attributes
    ----------
    domain : Domain
    total : float
        The number of records: an estimate, above 0, or what is publicly known.
    parts : tuple of FittedPart
        All but what was measured of the total alone.
    starts : mapping of str to ndarray
        For each free attribute the shares of its values to start from: its estimates, or equal ones.
    kurtosis : float
        The excess of the noise's fourth moment over 3 times its squared variance, over the latter.
    constraints : Constraints
        What is publicly known, which the model keeps exactly.
    """

    domain: Domain
    total: float
    parts: tuple[FittedPart, ...]
    starts: Mapping[str, Array]
    kurtosis: float
    constraints: Constraints

    @property
    def degrees(self) -> int:
        """Twice the loss of the true table, on average."""
        return sum(part.term.degrees for part in self.parts)

    @property
    def limit(self) -> float:
        """The most that noise explains of the loss: 3 standard deviations above that of the true table."""
        return self.degrees / 2 + _DEVIATIONS * self.spread

    @property
    def spread(self) -> float:
        """A bound of the standard deviation of the loss of the true table.

        Of a sum of squares z'Pz / 2 with a projection P of rank r: its variance is r/2 + the excess kurtosis
        times the sum of P_ii^2 / 4, and P_ii <= 1.
        """
        return sqrt(self.degrees * (2.0 + self.kurtosis)) / 2.0

    def losses(self, tables: Tables) -> Array:
        """Return the loss of each part, half its squared residuals over the noise's variance."""
        losses = []
        with one_blas_thread():
            for part in self.parts:
                table = tables.marginal(part.free).ravel()
                if part.cells is not None:
                    table = np.bincount(part.cells, table, part.term.cells).astype(np.float64)
                losses.append(part.term.loss(table))
        return np.array(losses)

    @classmethod
    def of(
        cls,
        measurement: Measurement,
        total: float | None = None,
        constraints: Constraints | None = None,
    ) -> Parts:
        """Return what a model of a measurement is fitted to.

        Parameters
        ----------
        measurement : Measurement
        total : float, optional
            The number of records, where it is publicly known; otherwise it is estimated.
        constraints : Constraints, optional
            What else is publicly known; a number of records that follows from it comes first.

        Raises
        ------
        UnsupportedQueryError
            If the number of records does not follow from what was measured and is not given.
        TooLargeError
            If the marginals have more than `MAX_CELLS` cells.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
        >>> measured = mdp.select(workload).measure({"sex": ["male"] * 90}, mdp.Budget(mu=1))
        >>> parts = Parts.of(measured.measurement, total=90)
        >>> parts.total, [part.attributes for part in parts.parts]
        (90.0, [('sex',)])
        """
        plan = measurement.plan
        found = [(cells_of(plan.domain, _order(part)), part) for part in plan.parts]
        sizes = [prod(plan.domain[name].size for name in free) for (free, _), _ in found]
        if sum(sizes) > MAX_CELLS:
            raise TooLargeError(
                f"the measured marginals have {sum(sizes)} cells; a model is fitted to at most {MAX_CELLS}"
            )
        parts = [
            FittedPart(part.attributes, free, cells, size, _term(part, scale.variance, values, plan.domain))
            for ((free, cells), part), size, scale, values in zip(
                found, sizes, measurement.scales, measurement.values, strict=True
            )
            if part.attributes
        ]
        known = Constraints(plan.domain) if constraints is None else constraints
        given = total if known.total is None else known.total
        counted = estimated_total(measurement) if given is None else float(given)
        return cls(plan.domain, counted, tuple(parts), _starts(measurement), _kurtosis(measurement), known)


def _order(part: Part) -> tuple[str, ...]:
    return tuple(name for block in _ordered(part) for name in block.attributes)


def _ordered(part: Part) -> list[Block]:
    """Return the blocks with the largest last, unless their order says which multiplier is whose."""
    if part.multipliers is not None:
        return list(part.blocks)
    return sorted(part.blocks, key=lambda block: block.matrix.columns)


def _term(part: Part, variance: float, values: Array, domain: Domain) -> Term:
    """Return how far a table is from the noisy answers of a part."""
    blocks = _ordered(part)
    if part.multipliers is not None:
        deviation = sqrt(variance)
        return RowTerm(
            tuple(block.matrix.written() for block in blocks),
            part.multipliers.ravel() / deviation,
            values / deviation,
        )
    axes = [gram_axis(block.matrix) for block in blocks]
    solved = part.estimate(values, domain)
    target = np.transpose(solved, [part.attributes.index(name) for name in _order(part)])
    return GramTerm(
        tuple(axis for axis, _, _ in axes),
        tuple(root for _, root, _ in axes),
        prod(scale for _, _, scale in axes) / variance,
        along([_supported(block.matrix) for block in blocks], target.ravel()),
        prod(block.matrix.support_rank for block in blocks),
    )


def _supported(matrix: MeasuredMatrix) -> Axis:
    """Return the projection to what a matrix supports: a target may lie far off along all else."""
    weak = matrix.outside
    return Axis(matrix.columns, matrix=None if weak is None else np.eye(matrix.columns) - weak.T @ weak)


def _starts(measurement: Measurement) -> dict[str, Array]:
    starts = {}
    for name in free_attributes(measurement.plan.domain):
        size = measurement.plan.domain[name].size
        estimate = estimated_marginal(measurement, name)
        clipped = np.ones(size) if estimate is None else np.maximum(estimate, 0.0)
        starts[name] = clipped / clipped.sum() if clipped.any() else np.full(size, 1.0 / size)
    return starts


def _kurtosis(measurement: Measurement) -> float:
    """Return the excess kurtosis of the noise, from its tail probabilities."""
    noise = measurement.plan.noise
    deviation = sqrt(noise.variance_factor)
    points = np.linspace(0.0, _FAR, _POINTS)
    tails = [float(noise.distribution.upper_tail(Fraction(point * deviation))) for point in points]
    # E Z^4 is the integral of 4 z^3 P(|Z| > z)
    return float(np.trapezoid(8.0 * points**3 * tails, points)) - 3.0
