"""All shares and all strategies of attributes together: one smooth descent under either noise.

The precision of a marginal is theta^p and the cost (sum theta)^p, p = 2 for Laplace and 1 for Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.selection.gram.operators import operator_of
from matrixdp.selection.gram.p_identity import loss_and_gradient, strategy_rows
from matrixdp.selection.problem.residual_traces import AxisState, ResidualTraces
from matrixdp.selection.weights.incidence import Incidence

__all__ = ["Descended", "Fixed", "Objective", "PIdentity", "Strategy", "UnitColumns", "descend", "states_of"]

Array = NDArray[np.float64]

#: Shares lie above this part of their sum.
_LEAST = 1e-9
#: Weights of rows stay below this, so that the identity's never vanish beside them.
_MAX_WEIGHT = 1e3


class Strategy(Protocol):
    """A strategy of an attribute by numbers that may be changed freely within bounds."""

    @property
    def numbers(self) -> Array:
        """The numbers, flat."""

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """What each lies between."""

    @property
    def work(self) -> int:
        """How many multiplications an evaluation takes; 0 for a strategy that stays as it is."""

    def at(self, numbers: Array) -> Strategy:
        """Return the strategy of other numbers."""

    @property
    def rows(self) -> Array:
        """B, its largest column norm 1."""

    def covariance(self) -> Array:
        """Return M = (B'B)^-1."""

    def gradient(self, by_covariance: Array) -> Array:
        """Return the derivatives by the numbers, flat, from those by M."""


@dataclass(frozen=True, eq=False)
class Fixed:
    """A strategy that stays as it is."""

    rows: Array
    numbers: ClassVar[Array] = np.zeros(0)
    bounds: ClassVar[tuple[float | None, float | None]] = (None, None)
    work: ClassVar[int] = 0

    def at(self, numbers: Array) -> Fixed:
        """Return itself: there are no numbers."""
        del numbers
        return self

    @cached_property
    def _covariance(self) -> Array:
        return np.asarray(np.linalg.inv(self.rows.T @ self.rows))

    def covariance(self) -> Array:
        """Return M."""
        return self._covariance

    def gradient(self, by_covariance: Array) -> Array:
        """Return nothing."""
        del by_covariance
        return self.numbers


@dataclass(frozen=True, eq=False)
class PIdentity:
    """For Laplace noise: the identity with weighted rows, columns of L1 norm 1."""

    theta: Array

    @property
    def numbers(self) -> Array:
        """The numbers, flat."""
        return self.theta.ravel()

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """What each lies between."""
        return 0.0, _MAX_WEIGHT

    @property
    def work(self) -> int:
        """How many multiplications an evaluation takes."""
        return 8 * int(self.theta.shape[1] * self.theta.size)

    def at(self, numbers: Array) -> PIdentity:
        """Return the strategy of other numbers."""
        return PIdentity(numbers.reshape(self.theta.shape))

    @property
    def rows(self) -> Array:
        """B, its largest column norm 1."""
        kept = self.theta[self.theta.max(axis=1) > 1e-9]
        return strategy_rows(kept)

    def covariance(self) -> Array:
        """Return M = (B'B)^-1."""
        scale = 1.0 + self.theta.sum(axis=0)
        inner = self.theta @ self.theta.T
        inner.flat[:: len(inner) + 1] += 1.0
        _, solved, _ = scipy.linalg.lapack.dposv(inner, self.theta, lower=1)
        found = -(self.theta.T @ solved)
        found.flat[:: len(found) + 1] += 1.0
        return np.asarray(found * scale * scale[:, None])

    def gradient(self, by_covariance: Array) -> Array:
        """Return the derivatives by the numbers, flat, from those by M."""
        return loss_and_gradient(operator_of(by_covariance), self.theta)[1].ravel()


@dataclass(frozen=True, eq=False)
class UnitColumns:
    """For Gaussian noise: any matrix, columns scaled to L2 norm 1."""

    entries: Array

    @property
    def numbers(self) -> Array:
        """The numbers, flat."""
        return self.entries.ravel()

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """What each lies between."""
        return None, None

    @property
    def work(self) -> int:
        """How many multiplications an evaluation takes."""
        return 8 * int(self.entries.shape[1] * self.entries.size)

    def at(self, numbers: Array) -> UnitColumns:
        """Return the strategy of other numbers."""
        return UnitColumns(numbers.reshape(self.entries.shape))

    @property
    def rows(self) -> Array:
        """B, its largest column norm 1."""
        return np.asarray(self.entries / np.linalg.norm(self.entries, axis=0))

    def covariance(self) -> Array:
        """Return M = (B'B)^-1."""
        rows = self.rows
        return np.asarray(np.linalg.inv(rows.T @ rows))

    def gradient(self, by_covariance: Array) -> Array:
        """Return the derivatives by the numbers, flat, from those by M."""
        rows, norms = self.rows, np.linalg.norm(self.entries, axis=0)
        covariance = self.covariance()
        by_rows = -2.0 * (rows @ covariance) @ by_covariance @ covariance
        by_rows -= rows * (rows * by_rows).sum(axis=0)
        return np.asarray((by_rows / norms).ravel())


def states_of(asked: ResidualTraces, strategies: Mapping[int, Strategy]) -> dict[int, AxisState]:
    """Return the strategies of all attribute types as errors see them; the others are identities."""
    return {
        type_: (
            AxisState(strategies[type_].covariance(), asked.free[type_])
            if type_ in strategies
            else AxisState(None, size)
        )
        for type_, size in zip(asked.types, asked.sizes, strict=True)
    }


@dataclass(frozen=True, eq=False)
class Descended:
    """A loss at cost 1, the shares of the measured marginals (with sum 1) and the strategies."""

    loss: float
    shares: Array
    strategies: dict[int, Strategy]


class Objective:
    """log(loss at cost 1) and its derivatives, of the logarithms of shares and the numbers of strategies."""

    def __init__(
        self, asked: ResidualTraces, incidence: Incidence, strategies: Mapping[int, Strategy], power: int
    ) -> None:
        self.asked, self.incidence, self.power = asked, incidence, power
        self.strategies = dict(sorted(strategies.items()))
        self.members = np.zeros((len(incidence.marginals), len(asked.sizes)))
        for place, marginal in enumerate(incidence.marginals):
            self.members[place, list(marginal)] = 1.0
        counts = [len(incidence.marginals), *(own.numbers.size for own in self.strategies.values())]
        self.ends = np.cumsum(counts)[:-1]

    def packed(self, shares: Array) -> Array:
        """Return the variables for shares and the strategies that were given."""
        known = [own.numbers for own in self.strategies.values()]
        return np.concatenate([np.log(shares / float(shares.sum())), *known])

    def unpacked(self, flat: Array) -> tuple[Array, dict[int, Strategy]]:
        """Return shares, of any sum, and strategies."""
        first, *rest = np.split(flat, self.ends)
        known = zip(self.strategies.items(), rest, strict=True)
        return np.exp(first), {type_: own.at(numbers) for (type_, own), numbers in known}

    def _evaluated(
        self, theta: Array, known: Mapping[int, Strategy]
    ) -> tuple[float, Array, dict[int, Array]]:
        """Return the loss, its derivatives by the logarithms of precisions (less), and those by each M."""
        states = states_of(self.asked, known)
        weights, spreads = self.asked.weights(states), np.array(self.asked.spreads(states))
        measured = theta**self.power * np.exp(-self.members @ np.log(spreads))
        precisions = self.incidence.held @ measured
        # nothing is asked of residuals that no marginal holds, whatever the strategies
        inverse = np.divide(1.0, precisions, out=np.zeros_like(precisions), where=precisions > 0)
        slopes = measured * (self.incidence.holds @ (weights * inverse**2))
        by_covariance = self.asked.slopes(states, inverse, (self.members.T @ slopes) / spreads)
        return float(weights @ inverse), slopes, by_covariance

    def value(self, shares: Array, known: Mapping[int, Strategy]) -> float:
        """Return the logarithm of the loss at cost 1."""
        loss = self._evaluated(shares, known)[0]
        return math.log(loss) + self.power * math.log(float(shares.sum()))

    def seen(self, shares: Array, known: Mapping[int, Strategy]) -> dict[int, Array]:
        """Return the derivatives of the loss by the covariance of each type's strategy."""
        return self._evaluated(shares, known)[2]

    def __call__(self, flat: Array) -> tuple[float, Array]:
        """Return the logarithm of the loss at cost 1, and its derivatives."""
        theta, known = self.unpacked(flat)
        loss, slopes, by_covariance = self._evaluated(theta, known)
        total = float(theta.sum())
        gradient = [self.power * (theta / total - slopes / loss)]
        gradient += [own.gradient(by_covariance[type_]) / loss for type_, own in known.items()]
        return math.log(loss) + self.power * math.log(total), np.concatenate(gradient)


def descend(
    asked: ResidualTraces,
    incidence: Incidence,
    shares: Array,
    strategies: Mapping[int, Strategy],
    power: int,
    iterations: int,
    tolerance: float = 1e-9,
) -> Descended:
    """Return what shares and strategies descend to; every marginal of the incidence stays measured."""
    objective = Objective(asked, incidence, strategies, power)
    bounds: list[tuple[float | None, float | None]] = [(math.log(_LEAST), 1.0)] * len(shares)
    for own in objective.strategies.values():
        bounds += [own.bounds] * own.numbers.size
    found = scipy.optimize.minimize(
        objective,
        objective.packed(shares),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": iterations, "maxfun": 2 * iterations, "ftol": tolerance, "gtol": 1e-10},
    )
    theta, known = objective.unpacked(found.x)
    return Descended(math.exp(float(found.fun)), theta / float(theta.sum()), known)
