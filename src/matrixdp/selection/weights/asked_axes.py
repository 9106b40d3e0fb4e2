"""What a workload asks, for one strategy for each attribute: residuals, and how errors on them follow.

Attribute i has a strategy B with the covariance M = (B'B)^-1, z = M1 and s = 1'z. A Gram matrix V asked of it
counts tau - q / s, over s, in a residual that holds i and q / s^2 in one that does not, with tau = tr(VM) and
q = z'Vz; products of such numbers are the weights delta_T of the residuals. Attributes that play the same
role share their strategy.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from matrixdp.queries import Predicates
from matrixdp.selection.view.gram_terms import CrossGram, Question

__all__ = ["AskedAxes", "AskedProducts", "AskedRows", "AxisState", "Slot"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class AxisState:
    """The strategy of an attribute as errors see it.

    Attributes
    ----------
    covariance : ndarray, shape (n, n), or None
        M; None for the identity.
    size : int
    direction : ndarray, shape (n,)
        z.
    spread : float
        s.
    """

    covariance: Array | None
    size: int
    direction: Array = field(init=False)
    spread: float = field(init=False)

    def __post_init__(self) -> None:
        known = np.ones(self.size) if self.covariance is None else self.covariance.sum(axis=0)
        object.__setattr__(self, "direction", known)
        object.__setattr__(self, "spread", float(known.sum()))


@dataclass(eq=False)
class Slot:
    """A question on attributes of one type."""

    type: int
    size: int
    question: Question
    flat: bool
    #: One of each set of values that nothing asked tells apart; None where all are told apart.
    cells: Places | None = None
    known: Array | None = None

    def queries(self) -> Array:
        """Return a Gram matrix of the queries themselves: of a pair of two products those of both."""
        question = self.question
        if not isinstance(question, CrossGram):
            return self.gram()
        gram = question.left.gram(self.size) + question.right.gram(self.size)
        return gram if self.cells is None else gram[np.ix_(self.cells, self.cells)]

    def gram(self) -> Array:
        """Return its Gram matrix; of a pair of two products the symmetric part."""
        if self.known is None:
            gram = self.question.gram(self.size)
            if self.cells is not None:
                gram = gram[np.ix_(self.cells, self.cells)]
            self.known = (gram + gram.T) / 2.0
        return self.known

    def numbers(self, state: AxisState) -> tuple[float, float]:
        """Return tau and q."""
        if state.covariance is None:
            symmetric = self.question.symmetric(self.size)
            if symmetric is not None:
                a, b = symmetric
                return self.size * (a + b), self.size * (a + self.size * b)
            if isinstance(self.question, Predicates):
                sums = self.question.apply(np.ones((self.size, 1)))
                return float(self.question.squares(self.size).sum()), float((sums**2).sum())
        gram, z = self.gram(), state.direction
        return _trace(gram, state), float(z @ gram @ z)


@dataclass(frozen=True, eq=False)
class AskedProducts:
    """Products over as many attributes each, with what each adds to which residual.

    Attributes
    ----------
    coefficients : ndarray, shape (products,)
    slots : ndarray, shape (products, attributes)
        What is asked of each attribute.
    outs : ndarray, shape (products, others)
        The same of attributes that are in no residual.
    places : ndarray, shape (products, 2^attributes)
        The residuals, in the order of `itertools.product`.
    """

    coefficients: Array
    slots: Places
    outs: Places
    places: Places


@dataclass(frozen=True, eq=False)
class AskedRows:
    """Explicit queries over attributes of given types, asked of several sets of attributes.

    Attributes
    ----------
    tensor : ndarray, shape (queries, sizes of the attributes)
    types : tuple of int
    coefficients : ndarray, shape (sets of attributes,)
    places : ndarray, shape (sets of attributes, 2^attributes)
        The residuals, in the order of `itertools.product`.
    """

    tensor: Array
    types: tuple[int, ...]
    coefficients: Array
    places: Places


@dataclass(eq=False)
class AskedAxes:
    """A workload as residuals over attribute types.

    Attributes
    ----------
    attributes : tuple of str
        Those of more than one value that some query asks about, in domain order.
    sizes, types : tuple of int
        Of each attribute.
    free : dict of int to int
        The size of each type whose strategy is worth a search, in values that something asked tells apart.
    merged : dict of int to ndarray
        For types with values that nothing asked tells apart: the place of each value among those that are.
    residuals : tuple of tuple of int
        The subsets of the attributes of any group, by place, the smallest first.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    types: tuple[int, ...]
    free: dict[int, int]
    merged: dict[int, Places]
    residuals: tuple[tuple[int, ...], ...]
    slots: list[Slot]
    products: list[AskedProducts]
    rows: list[AskedRows]

    def spreads(self, states: dict[int, AxisState]) -> list[float]:
        """Return s for every attribute."""
        return [states[type_].spread for type_ in self.types]

    def gram(self, type_: int) -> Array:
        """Return the sum of what is asked of attributes of a type, each question with a mean square of 1.

        Where nothing but zeros is, values count alike.
        """
        found = np.zeros((self.free[type_],) * 2)
        grams = [slot.queries() for slot in self.slots if slot.type == type_]
        for rows in self.rows:
            for axis, own in enumerate(rows.types):
                if own == type_:
                    flat = np.moveaxis(rows.tensor, axis + 1, -1).reshape(-1, self.free[type_])
                    grams.append(flat.T @ flat)
        for gram in grams:
            if gram.any():
                found += gram / float(np.trace(gram))
        return found if found.any() else np.eye(len(found))

    def _factors(self, states: dict[int, AxisState]) -> tuple[Array, Array, Array]:
        """Return tau and q of the slots, and their factors out of and in a residual, shape (2, slots)."""
        numbers = [slot.numbers(states[slot.type]) for slot in self.slots]
        tau, q = np.array(numbers, dtype=float).reshape(-1, 2).T
        s = np.array([states[slot.type].spread for slot in self.slots])
        return tau, q, np.stack([q / s**2, (tau - q / s) / s])

    def weights(self, states: dict[int, AxisState]) -> Array:
        """Return delta_T for the strategies of the attributes, shape (residuals,)."""
        total = np.zeros(len(self.residuals))
        factors = self._factors(states)[2]
        for own in self.products:
            outside = own.coefficients * factors[0][own.outs].prod(axis=1)
            for number, kept in enumerate(product((0, 1), repeat=own.slots.shape[1])):
                values = outside * factors[list(kept), own.slots].prod(axis=1)
                np.add.at(total, own.places[:, number], values)
        for rows in self.rows:
            for number, kept in enumerate(product((0, 1), repeat=len(rows.types))):
                value = _quadratic(rows, kept, states)
                np.add.at(total, rows.places[:, number], rows.coefficients * value)
        return np.maximum(total, 0.0)

    def slopes(self, states: dict[int, AxisState], by_weight: Array, by_spread: Array) -> dict[int, Array]:
        """Return the derivatives of a loss by M, symmetric, for every type whose strategy is free.

        Parameters
        ----------
        states : dict of int to AxisState
        by_weight : ndarray, shape (residuals,)
            The derivatives of the loss by the delta_T.
        by_spread : ndarray, shape (attributes,)
            Its derivatives by the s of the attributes at fixed delta_T.
        """
        tau, q, factors = self._factors(states)
        by_factor = np.zeros_like(factors)
        for own in self.products:
            outside = own.coefficients * factors[0][own.outs].prod(axis=1)
            for number, kept in enumerate(product((0, 1), repeat=own.slots.shape[1])):
                chosen = factors[list(kept), own.slots]
                values = outside * chosen.prod(axis=1) * by_weight[own.places[:, number]]
                for column, member in enumerate(kept):
                    np.add.at(by_factor[member], own.slots[:, column], _ratio(values, chosen[:, column]))
                for column in range(own.outs.shape[1]):
                    slots = own.outs[:, column]
                    np.add.at(by_factor[0], slots, _ratio(values, factors[0][slots]))
        found = {type_: np.zeros((size, size)) for type_, size in self.free.items()}
        spreads: dict[int, float] = defaultdict(float)
        for axis, type_ in enumerate(self.types):
            spreads[type_] += float(by_spread[axis])
        for place, slot in enumerate(self.slots):
            s = states[slot.type].spread
            out, inside = float(by_factor[0, place]), float(by_factor[1, place])
            if slot.type in found and (out or inside):
                _add(found[slot.type], slot.gram(), states[slot.type], inside / s, (out - inside) / s**2)
            spreads[slot.type] += (
                inside * (2.0 * q[place] / s - tau[place]) / s**2 - 2.0 * out * q[place] / s**3
            )
        for rows in self.rows:
            self._row_slopes(rows, states, by_weight, found, spreads)
        for type_, matrix in found.items():
            matrix += spreads[type_]
        return found

    def _row_slopes(
        self,
        rows: AskedRows,
        states: dict[int, AxisState],
        by_weight: Array,
        found: dict[int, Array],
        spreads: dict[int, float],
    ) -> None:
        """Add what explicit queries contribute to the derivatives."""
        for number, kept in enumerate(product((0, 1), repeat=len(rows.types))):
            scale = float(rows.coefficients @ by_weight[rows.places[:, number]])
            if scale == 0.0:
                continue
            for axis, type_ in enumerate(rows.types):
                gram = _seen(rows, kept, states, axis)
                state = states[type_]
                s, z = state.spread, state.direction
                q = float(z @ gram @ z)
                if kept[axis]:
                    tau = _trace(gram, state)
                    into, both, alone = 1.0 / s, -1.0 / s**2, (2.0 * q / s - tau) / s**2
                else:
                    into, both, alone = 0.0, 1.0 / s**2, -2.0 * q / s**3
                spreads[type_] += scale * alone
                if type_ in found:
                    _add(found[type_], gram, state, scale * into, scale * both)


def _add(total: Array, gram: Array, state: AxisState, by_trace: float, by_mean: float) -> None:
    """Add the derivative by M of by_trace tau + by_mean q."""
    image = gram @ state.direction
    total += by_trace * gram
    total += by_mean * (image[:, None] + image[None, :])


def _ratio(values: Array, factors: Array) -> Array:
    # a factor is 0 only where it is at its least, so that nothing changes with it
    return np.divide(values, factors, out=np.zeros_like(values), where=factors != 0.0)


def _trace(gram: Array, state: AxisState) -> float:
    return float(np.trace(gram) if state.covariance is None else np.vdot(gram, state.covariance))


def _inside(tensor: Array, axis: int, state: AxisState) -> Array:
    """Return a tensor times (M - zz' / s) / s along an axis."""
    z, s = state.direction, state.spread
    moved = np.moveaxis(tensor, axis, -1)
    image = moved if state.covariance is None else moved @ state.covariance
    image = (image - np.multiply.outer(moved @ z, z / s)) / s
    return np.moveaxis(image, -1, axis)


def _contracted(rows: AskedRows, kept: Sequence[int], states: dict[int, AxisState], without: int) -> Array:
    """Return the queries with the axes that are not kept replaced by means, all but one."""
    tensor = rows.tensor
    for axis in range(len(kept), 0, -1):
        if not kept[axis - 1] and axis - 1 != without:
            state = states[rows.types[axis - 1]]
            tensor = np.tensordot(tensor, state.direction / state.spread, axes=(axis, 0))
            tensor = np.expand_dims(tensor, axis)
    return tensor


def _quadratic(rows: AskedRows, kept: Sequence[int], states: dict[int, AxisState]) -> float:
    """Return what explicit queries weigh in one residual."""
    left = right = _contracted(rows, kept, states, -1)
    for axis, member in enumerate(kept):
        if member:
            right = _inside(right, axis + 1, states[rows.types[axis]])
    return float(np.vdot(left, right))


def _seen(rows: AskedRows, kept: Sequence[int], states: dict[int, AxisState], axis: int) -> Array:
    """Return the Gram matrix that one axis sees in one residual with all others fixed."""
    left = right = _contracted(rows, kept, states, axis)
    for other, member in enumerate(kept):
        if member and other != axis:
            right = _inside(right, other + 1, states[rows.types[other]])
    size = left.shape[axis + 1]
    one, two = (np.moveaxis(tensor, axis + 1, -1).reshape(-1, size) for tensor in (left, right))
    return np.asarray(one.T @ two)
