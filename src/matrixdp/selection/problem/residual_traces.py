"""What a workload asks, for one strategy for each attribute: residuals, and how errors on them follow.

Attribute i has a strategy B with the covariance M = (B'B)^-1, z = M1 and s = 1'z. A Gram matrix V asked of it
counts tau - q / s, over s, in a residual that holds i and q / s^2 in one that does not, with tau = tr(VM) and
q = z'Vz; products of such numbers are the weights delta_T of the residuals. Attributes that play the same
role share their strategy.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact.resources import check_matrices
from matrixdp.queries import DenseGroup, Group, Predicates, ProductGroup, Total, Workload
from matrixdp.selection.problem.grams import (
    CrossGram,
    GramTerm,
    Question,
    distinct_cells,
    gram_terms,
    is_flat,
)
from matrixdp.selection.problem.kron_sum import MAX_AXIS_CELLS
from matrixdp.selection.problem.residuals import attribute_types

__all__ = [
    "MAX_ATTRIBUTES",
    "AskedAxes",
    "AskedProducts",
    "AskedRows",
    "AxisState",
    "MarginalSpectrum",
    "Slot",
    "asked_attributes",
    "asked_axes",
    "marginal_spectrum",
]

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


#: Pairs of a product and a subset of its attributes.
MAX_AXIS_PIECES = 2_000_000
#: Entries of explicit queries over the cells of their attributes.
MAX_WRITTEN_ENTRIES = 4_000_000


class _Builder:
    """Collects slots, products and explicit queries."""

    def __init__(self, workload: Workload, terms: Sequence[list[GramTerm] | None]) -> None:
        self.domain = workload.domain
        self.types = attribute_types(workload, terms)
        asked: set[str] = set()
        for group, own in zip(workload, terms, strict=True):
            for name, size in zip(group.attributes, group.sizes, strict=True):
                places = None if own is None else group.attributes.index(name)
                if places is None or any(q[places].key(size) != Total().key(size) for _, q in own or []):
                    asked.add(name)
        self.attributes = tuple(n for n in workload.domain.sort(asked) if workload.domain[n].size > 1)
        self.axes = {name: axis for axis, name in enumerate(self.attributes)}
        self.slots: dict[Hashable, int] = {}
        self.slot_list: list[Slot] = []
        self.residuals: dict[tuple[int, ...], int] = {(): 0}
        self.pieces = 0
        self.found: dict[tuple[int, int], list[tuple[float, list[int], list[int], list[int]]]] = {}
        self.rows: dict[Hashable, tuple[Array, tuple[int, ...], list[float], list[list[int]]]] = {}

    def _places(self, axes: Sequence[int]) -> list[int]:
        self.pieces += 2 ** len(axes)
        if self.pieces > MAX_AXIS_PIECES:
            raise TooLargeError(
                f"generalized-marginals: products have more than {MAX_AXIS_PIECES:,} pieces on marginals. "
                "Use residual, or ask about fewer attributes together"
            )
        return [
            self.residuals.setdefault(
                tuple(axis for axis, member in zip(axes, kept, strict=True) if member), len(self.residuals)
            )
            for kept in product((0, 1), repeat=len(axes))
        ]

    def _slot(self, name: str, question: Question, size: int) -> int:
        key = (self.types[name], question.key(size))
        if key not in self.slots:
            self.slots[key] = len(self.slot_list)
            self.slot_list.append(Slot(self.types[name], size, question, is_flat(question)))
        return self.slots[key]

    def add_product(self, group: Group, coefficient: float, questions: Sequence[Question]) -> None:
        inside, axes, outs = [], [], []
        for name, question, size in zip(group.attributes, questions, group.sizes, strict=True):
            if size == 1:
                coefficient *= float(question.gram(1).sum())
            elif question.key(size) != Total().key(size):
                slot = self._slot(name, question, size)
                if self.slot_list[slot].flat:
                    outs.append(slot)
                else:
                    inside.append(slot)
                    axes.append(self.axes[name])
        item = (coefficient * group.weight, inside, outs, self._places(axes))
        self.found.setdefault((len(inside), len(outs)), []).append(item)

    def add_rows(self, group: Group) -> None:
        if group.queries * math.prod(group.sizes) > MAX_WRITTEN_ENTRIES:
            raise TooLargeError(
                f"generalized-marginals: {group.name}: queries of {group.queries * math.prod(group.sizes):,} "
                f"entries would be written out; the limit is {MAX_WRITTEN_ENTRIES:,}. Use residual"
            )
        names = [name for name, size in zip(group.attributes, group.sizes, strict=True) if size > 1]
        types = tuple(self.types[name] for name in names)
        weights = None if group.query_weights is None else group.query_weights.tobytes()
        key = (type(group).__name__, group.key(), weights, types)
        if key not in self.rows:
            rows = group.rows()
            if group.query_weights is not None:
                rows = rows * np.sqrt(group.query_weights)[:, None]
            tensor = rows.reshape(len(rows), *[size for size in group.sizes if size > 1])
            self.rows[key] = (tensor, types, [], [])
        self.rows[key][2].append(group.weight)
        self.rows[key][3].append(self._places([self.axes[name] for name in names]))

    def build(self) -> AskedAxes:
        order = sorted(self.residuals, key=lambda one: (len(one), one))
        rank = np.empty(len(order), dtype=np.intp)
        for place, one in enumerate(order):
            rank[self.residuals[one]] = place
        products = [
            AskedProducts(
                np.array([item[0] for item in items]),
                np.array([item[1] for item in items], dtype=np.intp).reshape(len(items), inside),
                np.array([item[2] for item in items], dtype=np.intp).reshape(len(items), outs),
                rank[np.array([item[3] for item in items], dtype=np.intp)],
            )
            for (inside, outs), items in self.found.items()
        ]
        rows = [
            AskedRows(tensor, types, np.array(weights), rank[np.array(places, dtype=np.intp)])
            for tensor, types, weights, places in self.rows.values()
        ]
        sizes = tuple(self.domain[name].size for name in self.attributes)
        types = tuple(self.types[name] for name in self.attributes)
        asked = {slot.type for slot in self.slot_list if slot.question.symmetric(slot.size) is None}
        asked |= {type_ for own in rows for type_ in own.types}
        free = {type_: size for type_, size in zip(types, sizes, strict=True) if type_ in asked}
        found = AskedAxes(
            self.attributes, sizes, types, free, {}, tuple(order), self.slot_list, products, rows
        )
        _merge(found)
        return found


def _merge(asked: AskedAxes) -> None:
    """Let one value stand for all that nothing asked tells apart."""
    for type_, size in asked.free.items():
        if size > MAX_AXIS_CELLS:
            raise TooLargeError(
                f"generalized-marginals: other queries than identities on an attribute of {size:,} values; "
                f"the limit is {MAX_AXIS_CELLS:,}. Use residual"
            )
        check_matrices([asked.attributes[asked.types.index(type_)]], size)
        first, places = distinct_cells(asked.gram(type_))
        if len(first) == size:
            continue
        asked.merged[type_], asked.free[type_] = places, len(first)
        for slot in asked.slots:
            if slot.type == type_:
                slot.cells, slot.known = first, None
        for number, rows in enumerate(asked.rows):
            tensor = rows.tensor
            for axis, own in enumerate(rows.types):
                if own == type_:
                    tensor = np.take(tensor, first, axis=axis + 1)
            asked.rows[number] = replace(rows, tensor=tensor)


def asked_axes(workload: Workload) -> AskedAxes:
    """Return a workload as residuals over attribute types.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 4, "b": 4, "c": 3})
    >>> entries = [mdp.product(a="prefix", c="identity"), mdp.product(b="prefix", c="identity")]
    >>> asked = asked_axes(mdp.Workload(domain, *entries))
    >>> asked.types, asked.free, len(asked.residuals)
    ((0, 0, 1), {0: 4}, 6)
    """
    terms = [gram_terms(group) for group in workload]
    builder = _Builder(workload, terms)
    for group, own in zip(workload, terms, strict=True):
        if own is None:
            builder.add_rows(group)
            continue
        for coefficient, questions in own:
            builder.add_product(group, coefficient, questions)
    return builder.build()


#: Of arrays with an entry for every subset of the attributes.
MAX_ATTRIBUTES = 15
#: Pairs of a marginal and a residual in it, over the marginals that are asked; 3^15 is below.
MAX_PIECES = 15_000_000
#: Of a query's squared norm, what is left of a difference of equal numbers.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class MarginalSpectrum:
    """What a workload asks of the residuals of marginals, on the downward closure of the asked ones.

    Attributes
    ----------
    attributes : tuple of str
        Those of more than one value that some query asks about, in domain order.
    sizes : tuple of int
    residuals : tuple of tuple of int
        The subsets of the attributes of any group, by their places, those of fewest attributes first.
    weights : ndarray, shape (residuals,)
        delta_T = tr(P_T V) / cells of the whole domain of ``attributes``, P_T the projection onto the
        residual space of T.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    residuals: tuple[tuple[int, ...], ...]
    weights: Array

    @property
    def dimensions(self) -> Array:
        """The dimensions of the residual spaces: products of n - 1."""
        return np.array([math.prod(self.sizes[axis] - 1.0 for axis in one) for one in self.residuals])


def asked_attributes(workload: Workload) -> tuple[str, ...]:
    """Return the attributes on which some group asks more than the total, in domain order.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 2, "b": 3, "c": 4})
    >>> asked_attributes(mdp.Workload(domain, mdp.product(a="total", c="prefix")))
    ('c',)
    """
    asked: set[str] = set()
    for group in workload:
        if isinstance(group, DenseGroup):
            asked.update(group.attributes)
            continue
        for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
            if predicates.key(size) != Total().key(size):
                asked.add(name)
    return workload.domain.sort(asked)


def _product(group: ProductGroup, places: dict[str, int]) -> Array:
    """Return the weights on the group's own attributes: each query splits into mean and rest along each.

    Of an attribute that is not among the places (a total, or one of one value) the mean is all there is.
    """
    splits: list[Array] = []
    for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
        squares = predicates.squares(size)
        mean = (predicates.apply(np.ones((size, 1))) ** 2).ravel() / size
        rest = squares - mean
        both = [mean, np.where(rest > _ROUNDING * squares, rest, 0.0)]
        splits.append(np.stack(both[: 2 if name in places else 1]))
    if group.query_weights is not None:
        tensor = group.query_weights.reshape(group.counts)
        for axis, split in enumerate(splits):
            tensor = np.moveaxis(np.tensordot(split, tensor, axes=(1, axis)), 0, axis)
        return tensor.reshape([n for n in tensor.shape if n > 1])
    tensor = np.ones(())
    for split in splits:
        sums = split.sum(axis=1)
        tensor = np.multiply.outer(tensor, sums) if len(sums) > 1 else tensor * sums[0]
    return np.asarray(tensor)


def _dense(group: DenseGroup, places: dict[str, int]) -> Array:
    """Return the weights on the group's own attributes by splitting its queries axis by axis."""
    rows = group.rows()
    if group.query_weights is not None:
        rows = rows * np.sqrt(group.query_weights)[:, None]
    pieces: dict[tuple[int, ...], Array] = {(): rows.reshape(len(rows), *group.sizes)}
    for axis, size in enumerate(group.sizes, start=1):
        split = {}
        for kept, piece in pieces.items():
            mean = piece.mean(axis=axis, keepdims=True)
            split[(*kept, 1)] = piece - mean
            split[(*kept, 0)] = mean * math.sqrt(size)
        pieces = split
    tensor = np.zeros((2,) * len(group.sizes))
    for kept, piece in pieces.items():
        tensor[kept] = float((piece**2).sum())
    tensor[tensor < _ROUNDING**2 * tensor.max()] = 0.0
    # what varies along an attribute of one value is nothing
    return tensor[tuple(slice(None) if name in places else 0 for name in group.attributes)]


def _spread(
    tensor: Array, group: Group, places: dict[str, int], weights: dict[tuple[int, ...], float]
) -> None:
    """Add weights on those of a group's attributes that have places to those of the closure."""
    own = [places[name] for name in group.attributes if name in places]
    scaled = tensor * (group.weight / math.prod(float(size) for size in group.sizes))
    for kept in product((0, 1), repeat=len(own)):
        residual = tuple(axis for axis, member in zip(own, kept, strict=True) if member)
        weights[residual] = weights.get(residual, 0.0) + float(scaled[kept])


def marginal_spectrum(workload: Workload) -> MarginalSpectrum:
    """Return what a workload asks of the residuals of marginals.

    References
    ----------
    McKenna et al., journal version, section 7 (Theorem 10).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 2, "b": 3})
    >>> spectrum = marginal_spectrum(mdp.Workload(domain, mdp.marginals([["a"]])))
    >>> spectrum.residuals, spectrum.weights.tolist()
    (((), (0,)), [0.5, 0.5])
    """
    attributes = tuple(name for name in asked_attributes(workload) if workload.domain[name].size > 1)
    places = {name: place for place, name in enumerate(attributes)}
    asked = {tuple(places[name] for name in group.attributes if name in places) for group in workload}
    deepest = max(map(len, asked))
    if 3**deepest > MAX_PIECES or sum(2 ** len(one) for one in asked) > MAX_PIECES:
        raise TooLargeError(
            f"weighted marginals: {len(asked):,} marginals of up to {deepest} attributes are asked about; "
            f"the limit is {MAX_PIECES:,} pairs of a marginal and one in it. Ask about fewer attributes "
            "together"
        )
    weights: dict[tuple[int, ...], float] = {(): 0.0}
    for group in workload:
        tensor = _dense(group, places) if isinstance(group, DenseGroup) else _product(group, places)
        _spread(tensor, group, places, weights)
    residuals = sorted(weights, key=lambda one: (len(one), one))
    sizes = tuple(workload.domain[name].size for name in attributes)
    found = np.array([weights[one] for one in residuals])
    return MarginalSpectrum(attributes, sizes, tuple(residuals), found)
