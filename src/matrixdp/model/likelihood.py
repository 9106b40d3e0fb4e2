"""How likely a table makes what was measured: the loss of every measured part, its gradient, and its tests.

The loss of a part is half its squared residuals over the noise's variance, which for Gaussian noise is the
negative logarithm of the likelihood but for a constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, TooLargeError, UnsupportedQueryError
from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.linear import Array, contrasts
from matrixdp.exact.resources import one_blas_thread
from matrixdp.measure.measurement import Measurement
from matrixdp.model.constraints import Constraints
from matrixdp.model.tables import MAX_CELLS, Real, Tables, cells_of, free_attributes
from matrixdp.noise import integers
from matrixdp.plans import Part
from matrixdp.queries import Identity, Predicates, ProductGroup, Total

#: Singular values below this share of the norm are rounding errors.
_ROUNDING = 1e-12
#: The least total that a model is of: above 0, for shares of it, and far below what noise tells from 0.
_LEAST_TOTAL = 1e-9
#: How far out tails are evaluated, in standard deviations, and at how many points.
_FAR, _POINTS = 40.0, 401
#: Standard deviations that a loss may lie above the average of the true table's.
_DEVIATIONS = 3.0
#: The chance with which the true table would fail the test of any part.
_CHANCE = 1e-3
#: Parts that are named.
_NAMED = 3


@final
@dataclass(frozen=True, eq=False)
class Axis:
    """B'B of a measured matrix B along some attributes: a multiple of R'R, with entries of about 1.

    Of directions that are measured too weakly nothing is said: what is left of B are the residuals of a
    least-squares fit that moves freely along them.

    Attributes
    ----------
    matrix : MeasuredMatrix
        B.
    scale : float
        What R'R is a multiple of.
    centers : bool
        Whether R is the projection that removes the mean.
    root, gram : ndarray or None
        R and R'R; None for that projection and for the identity.
    """

    matrix: MeasuredMatrix
    scale: float = 1.0
    centers: bool = False
    root: NDArray[Any] | None = None
    gram: NDArray[Any] | None = None

    @classmethod
    def of(cls, matrix: MeasuredMatrix) -> Axis:
        """Return the axis of a measured matrix.

        Examples
        --------
        >>> from matrixdp.exact import CenteredMatrix
        >>> axis = Axis.of(CenteredMatrix(3))
        >>> axis.centers, axis.scale
        (True, 9.0)
        """
        weak, known = matrix.outside, matrix.symmetric_gram
        if known is not None and weak is None and known[1] * matrix.columns in (0.0, -known[0]):
            return cls(matrix, known[0], known[1] != 0)
        rows = matrix.uncorrelated()
        if weak is not None:
            left, values, _ = np.linalg.svd(rows @ weak.T, full_matrices=False)
            left = left[:, values > _ROUNDING * np.linalg.norm(rows)]
            rows = rows - left @ (left.T @ rows)
        scale = float(np.square(rows).sum(axis=0).max())
        root = rows / math.sqrt(scale)
        return cls(matrix, scale, root=root, gram=root.T @ root)

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.matrix.columns

    @property
    def alike(self) -> float | None:
        """a, where R'R is a I + b 11'."""
        known = self.matrix.symmetric_gram
        return None if known is None else known[0] / self.scale

    @cached_property
    def single(self) -> Axis:
        """The same in single precision."""
        return replace(self, root=_single(self.root), gram=_single(self.gram))

    def times(self, tensor: NDArray[Real]) -> NDArray[Real]:
        """Return R'R times a tensor of shape (before, size, after) along its middle axis."""
        if self.gram is not None:
            return _times(self.gram, tensor)
        return tensor - tensor.mean(axis=1, keepdims=True) if self.centers else tensor

    def residuals(self, tensor: NDArray[Real]) -> NDArray[Real]:
        """Return R times a tensor."""
        return self.times(tensor) if self.root is None else _times(self.root, tensor)

    def back(self, tensor: NDArray[Real]) -> NDArray[Real]:
        """Return R' times a tensor."""
        return self.times(tensor) if self.root is None else _times(self.root.T, tensor)

    def supported(self, tensor: Array) -> Array:
        """Return a tensor without what it has along directions that are measured too weakly."""
        weak = self.matrix.outside
        return tensor if weak is None else tensor - _times(weak.T, _times(weak, tensor))

    @cached_property
    def steepest(self) -> float:
        """The largest eigenvalue of R'R."""
        return 1.0 if self.root is None else float(np.linalg.norm(self.root, 2)) ** 2

    @cached_property
    def modes(self) -> tuple[Array, Array]:
        """The principal directions of R'R among the vectors of sum 0, as columns, with their eigenvalues."""
        basis = contrasts(self.size)
        values, turned = np.linalg.eigh(basis.T @ self.times(basis[None])[0])
        return basis @ turned, np.maximum(values, 0.0)

    @cached_property
    def sum_variance(self) -> float | None:
        """The variance of the estimated sum where the noise of R's rows has 1; None if it does not follow."""
        if not self.matrix.measures_total:
            return None
        return self.scale * float(self.matrix.covariance_times(np.ones((self.size, 1))).sum())


#: Axes by the digests of their matrices: parts share them.
Axes = dict[str, Axis]


def _single(array: NDArray[Any] | None) -> Any:
    return None if array is None else array.astype(np.float32)


def _times(matrix: NDArray[Real], tensor: NDArray[Real]) -> NDArray[Real]:
    if tensor.shape[2] == 1:
        return np.asarray((tensor[:, :, 0] @ matrix.T)[:, :, None])
    return np.asarray(matrix @ tensor)


def kronecker_map(
    maps: Sequence[Callable[[NDArray[Real]], NDArray[Real]]], sizes: Sequence[int], flat: NDArray[Real]
) -> NDArray[Real]:
    """Return the Kronecker product of maps of tensors, along their middle axis, times a vector.

    The vector may go on over further cells, as the columns of a matrix do.
    """
    before, after = 1, flat.size
    for apply, size in zip(maps, sizes, strict=True):
        after //= size
        flat = apply(flat.reshape(before, size, after)).ravel()
        before = flat.size // after
    return flat


@final
@dataclass(frozen=True, eq=False)
class Likelihood:
    """The loss of a table against one measured part: half of |D K x - y|^2, or of scale |K (x - target)|^2.

    K is the Kronecker product of the axes' R. The second form has least squares in y's place, and leaves out
    the part of the noise that no table can fit; the first is that of rows of different precision D. Tables
    are flat, of the free attributes. All is in the precision of the arrays.

    Attributes
    ----------
    attributes : tuple of str
        The marginal that was measured.
    free : tuple of str
        The free attributes that it follows from, in the order of the tables.
    cells : ndarray or None
        For each of their cells the one of the marginal; None where they are the same.
    axes : tuple of Axis
        In the order of the marginal's cells.
    scale : float
    target : ndarray
        The pseudo-inverse of the answers; 0 for rows of different precision.
    degrees : int
        Twice the loss of the true table, on average: the rank of K, and of different rows their number.
    precisions, answers : ndarray or None
        D and y over the noise's deviation.
    """

    attributes: tuple[str, ...]
    free: tuple[str, ...]
    cells: NDArray[np.intp] | None
    axes: tuple[Axis, ...]
    scale: float
    target: NDArray[Any]
    degrees: int
    precisions: NDArray[Any] | None = None
    answers: Any = None

    @classmethod
    def of(cls, part: Part, variance: float, values: Array, domain: Domain, known: Axes) -> Likelihood:
        """Return the likelihood of a part with noise of a given variance; `known` keeps axes by digest.

        Blocks are listed with the largest last, unless their order says which precision is whose.
        """
        blocks = list(part.blocks)
        if part.multipliers is None:
            blocks.sort(key=lambda block: block.matrix.columns)
        listed = tuple([name for block in blocks for name in block.attributes])
        free, cells = cells_of(domain, listed)
        if part.multipliers is not None:
            rows = tuple(Axis(block.matrix, root=block.matrix.written()) for block in blocks)
            deviation, target = math.sqrt(variance), np.zeros(domain.cells(listed))
            precisions, answers = part.multipliers.ravel() / deviation, values / deviation
            return cls(part.attributes, free, cells, rows, 1.0, target, len(values), precisions, answers)
        for block in blocks:
            digest = block.matrix.digest()
            known[digest] = known.get(digest) or Axis.of(block.matrix)
        axes = tuple(known[block.matrix.digest()] for block in blocks)
        solved = np.transpose(part.estimate(values, domain), [part.attributes.index(own) for own in listed])
        target = kronecker_map(
            [axis.supported for axis in axes], [axis.size for axis in axes], solved.ravel()
        )
        scale = math.prod(axis.scale for axis in axes) / variance
        degrees = math.prod(axis.matrix.support_rank for axis in axes)
        return cls(part.attributes, free, cells, axes, scale, target, degrees)

    @property
    def size(self) -> int:
        """The number of cells over the free attributes."""
        return self.target.size if self.cells is None else self.cells.size

    @property
    def separable(self) -> bool:
        """Whether it is a product of one axis for each free attribute, in the same order."""
        return self.precisions is None and self.cells is None and len(self.axes) == len(self.free)

    @property
    def alike(self) -> float | None:
        """The second derivative of the loss along every change without sums, where all are alike."""
        found = [axis.alike for axis in self.axes]
        alike = self.separable and None not in found
        return self.scale * math.prod(own or 0.0 for own in found) if alike else None

    @cached_property
    def single(self) -> Likelihood:
        """The same in single precision."""
        arrays = {name: _single(getattr(self, name)) for name in ("target", "precisions", "answers")}
        return replace(self, axes=tuple(axis.single for axis in self.axes), **arrays)

    def loss(self, table: Array) -> float:
        """Return the loss of a table: a sum of squares."""
        residuals = self._residuals(self._off(table))
        return 0.5 * self.scale * float(residuals @ residuals)

    def gradient(self, table: NDArray[Real]) -> NDArray[Real]:
        """Return the gradient of the loss of a table."""
        sizes, off = [axis.size for axis in self.axes], self._off(table)
        if self.precisions is None:
            slope = kronecker_map([axis.times for axis in self.axes], sizes, off) * self.scale
        else:
            rows = [axis.matrix.rows for axis in self.axes]
            slope = kronecker_map(
                [axis.back for axis in self.axes], rows, self.precisions * self._residuals(off)
            )
        return slope if self.cells is None else slope[self.cells]

    def _off(self, table: NDArray[Real]) -> NDArray[Real]:
        if self.cells is not None:
            table = np.bincount(self.cells, table, self.target.size).astype(table.dtype)
        return np.asarray(table - self.target)

    def _residuals(self, off: NDArray[Real]) -> NDArray[Real]:
        seen = kronecker_map([axis.residuals for axis in self.axes], [axis.size for axis in self.axes], off)
        return seen if self.precisions is None else self.precisions * seen - self.answers

    @property
    def steepest(self) -> float:
        """A bound on the second derivative of the loss along directions of length 1."""
        repeats = 1 if self.cells is None else int(np.bincount(self.cells).max())
        largest = 1.0 if self.precisions is None else float(self.precisions.max()) ** 2
        return repeats * largest * self.scale * math.prod(axis.steepest for axis in self.axes)

    def summed_to(self, name: str) -> Likelihood | None:
        """Return the likelihood of one attribute alone from a separable one; None if it does not follow."""
        scale, target = self.scale, self.target.reshape([axis.size for axis in self.axes])
        for place, axis in reversed(list(enumerate(self.axes))):
            if self.free[place] != name:
                if axis.sum_variance is None:
                    return None
                scale, target = scale / axis.sum_variance, target.sum(axis=place)
        axis = self.axes[self.free.index(name)]
        return Likelihood((name,), (name,), None, (axis,), scale, target, axis.matrix.support_rank)


@final
@dataclass(frozen=True)
class FitTests:
    """Whether what a model leaves of the measurement is no more than noise.

    Attributes
    ----------
    degrees : int
        The independent directions that were measured.
    loss, limit : float
        Half the squared residuals over the noise's variance, of all parts; at most this much may be left.
    tables : int
        The parts that were tested one by one.
    failed : tuple of str
        The attributes of those that the model is further from than noise explains, the worst first.
    worst : float
        The largest excess of a part's loss over the average of the true table's, as a share of what may be;
        0 where there is none.
    """

    degrees: int
    loss: float
    limit: float
    tables: int
    failed: tuple[str, ...]
    worst: float

    @property
    def accepted(self) -> bool:
        """Whether every test was passed."""
        return self.loss <= self.limit and not self.failed

    def as_dict(self) -> dict[str, object]:
        """Return them as JSON has them.

        ``relative_rms`` is the root mean square of the residuals in standard deviations of the noise: about
        1, or below.
        """
        return {
            "degrees": self.degrees,
            "loss": self.loss,
            "limit": self.limit,
            "relative_rms": math.sqrt(2.0 * self.loss / self.degrees) if self.degrees else 0.0,
            "tables": self.tables,
            "tables_failed": len(self.failed),
            "failed": list(self.failed[:_NAMED]),
            "worst": self.worst,
            "accepted": self.accepted,
        }

    def check(self, remedy: str) -> None:
        """Refuse a model that does not fit.

        Parameters
        ----------
        remedy : str
            What may make one that fits, as an imperative sentence without its end.

        Raises
        ------
        NumericalError
            Says what is wrong, and what can be done.
        """
        if self.accepted:
            return
        told = f"{self.loss:,.0f} is left where noise explains {self.limit:,.0f}"
        if self.failed:
            more = len(self.failed) - _NAMED
            named = "; ".join(self.failed[:_NAMED]) + (f" and {more} more" if more > 0 else "")
            told += f"; it is further than noise explains from {len(self.failed)} of {self.tables}: {named}"
        raise NumericalError(
            f"the model does not fit what was measured: {told}. {remedy}, or keep the unbiased answers; "
            "`accept_anyway` returns it all the same"
        )


@final
@dataclass(frozen=True, eq=False)
class Evidence:
    """What a model is fitted to: every measured part with its noisy answers, and what is publicly known.

    Attributes
    ----------
    domain : Domain
    total : float
        The number of records: an estimate, above 0, or what is publicly known.
    parts : tuple of Likelihood
        Of all but what was measured of the total alone.
    estimates : mapping of str to ndarray or None
        The unbiased table of each free attribute; None where it does not follow.
    kurtosis : float
        The excess of the noise's fourth moment over 3 times its squared variance, over the latter.
    constraints : Constraints
        What is publicly known, which the model keeps exactly.
    """

    domain: Domain
    total: float
    parts: tuple[Likelihood, ...]
    estimates: Mapping[str, Array | None]
    kurtosis: float
    constraints: Constraints

    @classmethod
    def of(cls, measurement: Measurement, constraints: Constraints | None = None) -> Evidence:
        """Return the evidence that a model of a measurement is fitted to.

        Parameters
        ----------
        measurement : Measurement
        constraints : Constraints, optional
            What is publicly known. The number of records is estimated where none follows from it.

        Raises
        ------
        UnsupportedQueryError
            If the number of records follows neither from what was measured nor from what is known.
        TooLargeError
            If the marginals have more than `MAX_CELLS` cells.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
        >>> measured = mdp.select(workload).measure({"sex": ["male"] * 90}, mdp.Budget(mu=1))
        >>> evidence = Evidence.of(measured.measurement, Constraints.of(workload.domain, invariants=90))
        >>> evidence.total, [part.attributes for part in evidence.parts]
        (90.0, [('sex',)])
        """
        check_ended(measurement)
        domain, answered = measurement.plan.domain, measurement.answered
        cells = sum(domain.cells(cells_of(domain, part.attributes)[0]) for part, _, _ in answered)
        if cells > MAX_CELLS:
            found = f"the measured marginals have {cells} cells"
            raise TooLargeError(f"{found}; a model is fitted to at most {MAX_CELLS}")
        axes: Axes = {}
        made = [Likelihood.of(part, variance, values, domain, axes) for part, variance, values in answered]
        known = Constraints(domain) if constraints is None else constraints
        total = _estimated_total(measurement) if known.total is None else known.total
        estimates = {name: _answers(measurement, (name,), Identity()) for name in free_attributes(domain)}
        kept = tuple(one for one in made if one.attributes)
        return cls(domain, total, kept, estimates, _kurtosis(measurement), known)

    @cached_property
    def starts(self) -> dict[str, Array]:
        """For each free attribute the shares of its values to start from: its estimates, or equal ones."""
        starts = {}
        for name, estimate in self.estimates.items():
            size = self.domain[name].size
            clipped = np.ones(size) if estimate is None else np.maximum(estimate, 0.0)
            starts[name] = clipped / clipped.sum() if clipped.any() else np.full(size, 1.0 / size)
        return starts

    @property
    def degrees(self) -> int:
        """Twice the loss of the true table, on average."""
        return sum(part.degrees for part in self.parts)

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
        return math.sqrt(self.degrees * (2.0 + self.kurtosis)) / 2.0

    @property
    def limits(self) -> Array:
        """How large the loss of each part may be.

        The loss z'Pz / 2 of the true table, P a projection of rank r, is r / 2 on average. Gaussian:
        chi-square with r degrees of freedom, and P(chi2 >= r + 2 sqrt(r t) + 2 t) <= exp(-t). Heavier noise:
        the same with the deviation and the tail wider by the factor `wider`.
        """
        degrees = np.array([part.degrees for part in self.parts], dtype=np.float64)
        wider = 1.0 + self.kurtosis / 2.0
        tail = math.log(max(len(degrees), 1) / _CHANCE)
        return np.asarray(degrees / 2 + np.sqrt(degrees * tail * wider) + wider * tail)

    def losses(self, tables: Tables) -> Array:
        """Return the loss of each part."""
        with one_blas_thread():
            return np.array([part.loss(tables.marginal(part.free).ravel()) for part in self.parts])

    def tests(self, losses: Array) -> FitTests:
        """Return the tests of a model, from the loss of each part.

        Two must be passed. The loss of all parts is at most 3 standard deviations above the average of the
        true table's; and no part's alone is above what the true table's exceeds in any part with probability
        1 / 1000.

        References
        ----------
        The discrepancy principle: V. A. Morozov, On the solution of functional equations by the method of
        regularization, 1966. The tail of a chi-square: B. Laurent and P. Massart, Adaptive estimation of a
        quadratic functional by model selection, Annals of Statistics 28 (2000), lemma 1.
        """
        average = np.array([part.degrees / 2 for part in self.parts])
        excess = (losses - average) / (self.limits - average)
        order = np.argsort(-excess)
        failed = tuple(", ".join(self.parts[place].attributes) for place in order if excess[place] > 1.0)
        worst = float(excess.max(initial=0.0))
        return FitTests(self.degrees, float(losses.sum()), self.limit, len(losses), failed, worst)


def _answers(measurement: Measurement, names: Sequence[str], asked: Predicates) -> Array | None:
    """Return the unbiased answers to a product over a marginal; None where they do not follow."""
    sizes = tuple(measurement.plan.domain[name].size for name in names)
    try:
        group = ProductGroup("marginal", tuple(names), (asked,) * len(sizes), sizes)
        return measurement.estimates.answers(group)
    except UnsupportedQueryError:
        return None


def check_ended(measurement: Measurement) -> None:
    """Reject a series with periods to come: what is not measured yet would count as 0."""
    periods = measurement.periods
    if periods is not None and periods.through < measurement.plan.domain[periods.attribute].size:
        told = (
            "a series that has not ended: a model needs all of its periods; fit it after the last publication"
        )
        raise UnsupportedQueryError(told, "not-yet")


def _estimated_total(measurement: Measurement) -> float:
    """Return the estimated number of records, above 0; refuse where it does not follow."""
    precise = np.argsort([variance for _, variance, _ in measurement.answered], kind="stable")
    # a marginal may have been measured by itself: its cells sum to the total
    for names in ((), *(measurement.answered[place][0].attributes for place in precise)):
        found = _answers(measurement, names, Total())
        if found is not None:
            return max(float(found[0]), _LEAST_TOTAL)
    raise UnsupportedQueryError(
        "the number of records does not follow from what was measured: a model needs it; give it as a "
        "public total, or measure it (`marginals: 0` in the workload)"
    )


def _kurtosis(measurement: Measurement) -> float:
    """Return the largest excess kurtosis of the noise of a part, from tail probabilities."""
    tails, noise = measurement.tails, measurement.plan.noise
    least, walks, radius = tails.least, tails.walks, tails.radius
    joint = max((walk.largest_kurtosis() for walk in walks.values()), default=-math.inf)
    if radius is not None:
        joint = max(joint, radius.kurtosis())
    if len(walks) + len(tails.under_radius) == len(measurement.plan.parts):
        return joint
    if math.isfinite(least):
        return max(joint, integers.excess_kurtosis(least))
    deviation = math.sqrt(noise.variance_factor)
    points = np.linspace(0.0, _FAR, _POINTS)
    beyond = [float(noise.distribution.upper_tail(Fraction(point * deviation))) for point in points]
    # E Z^4 is the integral of 4 z^3 P(|Z| > z)
    return max(joint, float(np.trapezoid(8.0 * points**3 * beyond, points)) - 3.0)
