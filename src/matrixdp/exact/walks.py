"""The prefix sums of an ordered attribute, measured with the joint noise of a soft-threshold walk.

`matrixdp.noise.walks` has the noise, and docs/privacy.md the proof of what it costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact.linear import Array
from matrixdp.exact.matrices import MeasuredMatrix

#: Widths are integers, in this many parts of the scale of the noise.
UNIT = 1024
#: Widths above this many scales help nobody: they grow with the cube root of the number of values.
_WIDEST = 1024 * UNIT


def step_variance(widths: Array) -> Array:
    """Return E q^2 of a step q = soft(p, c), all in units of the scale."""
    return np.asarray(2.0 / (1.0 + widths))


def step_covariance(widths: Array) -> Array:
    """Return E p q of an innovation p with its step."""
    return np.asarray((widths + 2.0) / (1.0 + widths))


def innovation_variance(widths: Array) -> Array:
    """Return E p^2 of an innovation, flat on [-c, c] and with exponential tails beyond."""
    return np.asarray((widths**3 / 3.0 + widths**2 + 2.0 * widths + 2.0) / (1.0 + widths))


@final
@dataclass(frozen=True)
class WalkMatrix(MeasuredMatrix):
    """The prefix sums of n values in their order, measured with a walk: its rows share their noise.

    One record costs 1, and a replacement 2, whatever the widths: by the theorem on walks, for no other noise.
    So the power sum for the power 1 is no sum of entries, and that for the power 2 is no cost.

    Parameters
    ----------
    widths : tuple of int
        Of each row, in parts of 1024 of the noise's scale, at least 0.

    Raises
    ------
    NumericalError
        If a width is none.

    Examples
    --------
    >>> walk = WalkMatrix((1024, 1024, 0))
    >>> walk.sensitivity, walk.overlaps(1).tolist()
    (1, [[1, 0], [0, 1]])
    >>> walk.multiply(np.array([[5.0], [1.0], [2.0]])).ravel().tolist()
    [5.0, 6.0, 8.0]
    >>> (2 * walk.noise_covariance).round(3).diagonal().tolist()  # of the rows, at scale 1
    [2.667, 3.667, 4.0]
    """

    kind = "walk"
    max_entry = 1

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.widths or any(type(own) is not int or not 0 <= own <= _WIDEST for own in self.widths):
            raise NumericalError(f"a walk has a width for each value: an integer from 0 to {_WIDEST}")

    @property
    def walk(self) -> tuple[int, ...]:
        return self.widths

    @property
    def columns(self) -> int:
        return len(self.widths)

    @property
    def rows(self) -> int:
        return len(self.widths)

    @property
    def max_row_sum(self) -> int:
        return len(self.widths)

    @property
    def scaled_widths(self) -> Array:
        """The widths in units of the scale."""
        return np.array(self.widths) / UNIT

    def column_power_sum(self, power: int) -> int:
        """Return 1 for the power 1, by the theorem; else the largest sum over a column."""
        return 1 if power == 1 else len(self.widths)

    def overlaps(self, power: int) -> NDArray[np.int64]:
        """Return those of the identity: a replacement is a record that comes and another that goes."""
        own = self.column_power_sum(power)
        return np.array([[own, 0], [0, own]])[: self.columns, : self.columns]

    def magnitudes(self) -> NDArray[np.int64]:
        raise NumericalError("a walk: its cost is no sum over its rows")

    def multiply(self, array: Array) -> Array:
        return np.cumsum(array, axis=0)

    def solve(self, answers: Array) -> Array:
        return np.diff(answers, axis=0, prepend=0.0)

    def uncorrelated(self) -> Array:
        root = np.linalg.cholesky(self.noise_covariance)
        return np.asarray(scipy.linalg.solve_triangular(root, self.written(), lower=True, check_finite=False))

    @cached_property
    def noise_covariance(self) -> Array:
        """The covariance of the noise of the rows, for a scale at which Laplace noise has the variance 1."""
        widths = self.scaled_widths
        before = np.cumsum(step_variance(widths)) - step_variance(widths)
        at = np.minimum.outer(np.arange(self.rows), np.arange(self.rows))
        found = (before + step_covariance(widths))[at]
        found[np.diag_indices(self.rows)] = before + innovation_variance(widths)
        return np.asarray(found / 2.0)

    @cached_property
    def _covariance(self) -> Array:
        return self.solve(self.solve(self.noise_covariance).T)

    def covariance(self) -> Array:
        return self._covariance

    def digest(self) -> str:
        return f"walk {self.widths}"
