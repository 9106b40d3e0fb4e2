"""What a workload asks of every residual, for one strategy for each attribute, and its derivatives.

Attribute i has a strategy B with the covariance M = (B'B)^-1, z = M1 and s = 1'z. A Gram matrix V asked of it
counts tau - q / s, over s, in a residual that holds i and q / s^2 in one that does not, with tau = tr(VM) and
q = z'Vz; products of such numbers are the weights delta_T of the residuals. Which slots are kept in which
residuals, and which residuals are asked the same, is what `residuals` finds of a sum.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, product

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import check_matrices
from matrixdp.queries import ProductGroup, Workload
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.kron_sum import KronSum, WrittenQueries
from matrixdp.selection.problem.residuals import Slot, Split, residual_rows, split_sum

Places = NDArray[np.intp]
Kept = tuple[int, ...]
Slots = tuple[int, ...]


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

    def trace(self, gram: Array) -> float:
        """Return tr(VM)."""
        return float(np.trace(gram) if self.covariance is None else np.vdot(gram, self.covariance))

    def image(self, tensor: Array, axis: int) -> Array:
        """Return a tensor times M / s along an axis."""
        if self.covariance is None:
            return tensor / self.spread
        moved = np.moveaxis(tensor, axis, -1) @ self.covariance
        return np.moveaxis(moved / self.spread, -1, axis)


@dataclass(frozen=True, eq=False)
class _Products:
    """Products with as many slots kept and contracted each: what each adds to which class of residuals.

    ``kept`` and ``contracted`` are slots, shape (products, number of them).
    """

    coefficients: Array
    kept: Places
    contracted: Places
    classes: Places


@dataclass(frozen=True, eq=False)
class _Rows:
    """Explicit queries about attributes of given types, those of one value left out.

    Each use counts ``coefficients`` times in a class of residuals; ``kept`` says which attributes these hold,
    as a place in the order of `itertools.product`.
    """

    content: WrittenQueries
    types: tuple[int, ...]
    coefficients: Array
    kept: Places
    classes: Places

    @cached_property
    def tensor(self) -> Array:
        """The queries, axes of one value left out."""
        tensor = self.content.tensor
        return tensor.reshape(len(tensor), *[size for size in tensor.shape[1:] if size > 1])


@dataclass(eq=False)
class ResidualTraces:
    """A workload as residuals over attribute types.

    Attributes
    ----------
    attributes : tuple of str
        Those of more than one value that some query asks about, in domain order.
    sizes, types : tuple of int
        Of each attribute.
    residuals : tuple of tuple of int
        The subsets of the attributes of any group, by place, the smallest first.
    classes : ndarray of int, shape (residuals,)
        Residuals of one class are asked the same: see `SubWorkload`.
    free : dict of int to int
        The size of each type whose strategy is worth a search.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    types: tuple[int, ...]
    residuals: tuple[tuple[int, ...], ...]
    classes: Places
    free: dict[int, int]
    slots: Sequence[Slot]
    products: list[_Products]
    rows: list[_Rows]
    _grams: dict[int, Array] = field(default_factory=dict)

    def spreads(self, states: Mapping[int, AxisState]) -> list[float]:
        """Return s for every attribute."""
        return [states[type_].spread for type_ in self.types]

    def _slot(self, slot: int) -> Array:
        """Return the Gram matrix of a slot; of a pair of two products the symmetric part."""
        if slot not in self._grams:
            own = self.slots[slot].gram.matrix()
            self._grams[slot] = (own + own.T) / 2.0
        return self._grams[slot]

    def gram(self, type_: int) -> Array:
        """Return the sum of what is asked of attributes of a type, each question with a mean square of 1.

        Of a pair of two products it is that of the queries of both. Where nothing but zeros is, values count
        alike.
        """
        grams = []
        for slot, own in enumerate(self.slots):
            if own.type == type_:
                gram = own.gram
                pair = gram.asked if len(gram.asked) > 1 else ()
                both = [one.gram(gram.size) for one in pair]
                grams.append(np.sum(both, axis=0) if both else self._slot(slot))
        for rows in self.rows:
            for axis, asked in enumerate(rows.types):
                if asked == type_:
                    flat = np.moveaxis(rows.tensor, axis + 1, -1).reshape(-1, self.free[type_])
                    grams.append(flat.T @ flat)
        found = sum((gram / float(np.trace(gram)) for gram in grams if gram.any()), np.zeros(()))
        return found if found.any() else np.eye(self.free[type_])

    def _factors(self, states: Mapping[int, AxisState]) -> tuple[Array, Array, Array]:
        """Return tau and q of the slots, and their factors out of and in a residual, shape (2, slots)."""
        numbers = []
        single = AxisState(None, 1)
        for place, slot in enumerate(self.slots):
            state = states.get(slot.type, single)
            if state.covariance is None:
                numbers.append((slot.gram.trace(), slot.gram.total(), state.spread))
                continue
            own, z = self._slot(place), state.direction
            numbers.append((state.trace(own), float(z @ own @ z), state.spread))
        tau, q, s = np.array(numbers, dtype=float).reshape(-1, 3).T
        rest = tau - q / s
        inside = np.where(np.abs(rest) > LIMITS.rounding * np.abs(tau), rest, 0.0) / s
        return tau, q, np.stack([q / s**2, inside])

    def weights(self, states: Mapping[int, AxisState]) -> Array:
        """Return delta_T for the strategies of the attributes, shape (residuals,)."""
        total = np.zeros(int(self.classes.max()) + 1)
        out, inside = self._factors(states)[2]
        for own in self.products:
            values = own.coefficients * out[own.contracted].prod(axis=1) * inside[own.kept].prod(axis=1)
            np.add.at(total, own.classes, values)
        for place, rows in enumerate(self.rows):
            quadratics = self._quadratics(place, states)
            quadratics[quadratics < LIMITS.rounding**2 * quadratics.max()] = 0.0
            np.add.at(total, rows.classes, rows.coefficients * quadratics[rows.kept])
        return np.asarray(np.maximum(total, 0.0)[self.classes])

    def _quadratics(self, number: int, states: Mapping[int, AxisState]) -> Array:
        """Return the weight of explicit queries in each residual, in the order of `itertools.product`."""
        rows = self.rows[number]
        known = [states[type_] for type_ in rows.types]
        source = rows.content.source
        if isinstance(source, ProductGroup) and all(state.covariance is None for state in known):
            return _weighted_quadratics(source)
        found = []
        for kept in product((0, 1), repeat=len(rows.types)):
            left = right = residual_rows(rows.tensor, kept, [_weights(state) for state in known])
            for axis, state in enumerate(compress(known, kept)):
                right = state.image(right, axis + 1)
            found.append(float(np.vdot(left, right)))
        return np.array(found)

    def slopes(self, states: Mapping[int, AxisState], by_weight: Array, by_spread: Array) -> dict[int, Array]:
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
        (out, inside), by_factor = factors, np.zeros_like(factors)
        by_class = np.bincount(self.classes, by_weight)
        for own in self.products:
            outside, within = out[own.contracted], inside[own.kept]
            values = own.coefficients * outside.prod(axis=1) * within.prod(axis=1) * by_class[own.classes]
            for member, slots, known in ((0, own.contracted, outside), (1, own.kept, within)):
                np.add.at(by_factor[member], slots, _ratio(values[:, None], known))
        found = {type_: np.zeros((size, size)) for type_, size in self.free.items()}
        spreads: dict[int, float] = defaultdict(float)
        for axis, type_ in enumerate(self.types):
            spreads[type_] += float(by_spread[axis])

        def add(type_: int, gram: Array | None, tau: float, q: float, out: float, inside: float) -> None:
            """Add the derivatives of out x (factor out of a residual) + inside x (that in one)."""
            state = states[type_]
            s = state.spread
            spreads[type_] += inside * (2.0 * q / s - tau) / s**2 - 2.0 * out * q / s**3
            if gram is not None:
                image = gram @ state.direction
                found[type_] += inside / s * gram
                found[type_] += (out - inside) / s**2 * (image[:, None] + image[None, :])

        for place, slot in enumerate(self.slots):
            sides = float(by_factor[0, place]), float(by_factor[1, place])
            gram = self._slot(place) if slot.type in found and any(sides) else None
            if slot.type in states:
                add(slot.type, gram, float(tau[place]), float(q[place]), *sides)
        for place, rows in enumerate(self.rows):
            scales = np.bincount(
                rows.kept, rows.coefficients * by_class[rows.classes], minlength=2 ** len(rows.types)
            )
            for scale, kept in zip(scales.tolist(), product((0, 1), repeat=len(rows.types)), strict=True):
                for axis, type_ in enumerate(rows.types) if scale else ():
                    own_gram = self._seen(place, kept, states, axis)
                    state = states[type_]
                    numbers = state.trace(own_gram), float(state.direction @ own_gram @ state.direction)
                    sides = (0.0, scale) if kept[axis] else (scale, 0.0)
                    add(type_, own_gram if type_ in found else None, *numbers, *sides)
        for type_, matrix in found.items():
            matrix += spreads[type_]
        return found

    def _seen(self, number: int, kept: Kept, states: Mapping[int, AxisState], axis: int) -> Array:
        """Return the Gram matrix that one axis of explicit queries sees in one residual, all others fixed."""
        known = [states[type_] for type_ in self.rows[number].types]
        weights = [_weights(state) if other != axis else None for other, state in enumerate(known)]
        left = right = residual_rows(self.rows[number].tensor, kept, weights)
        place = sum(kept[:axis])
        others = [state if other != axis else None for other, state in enumerate(known)]
        raw = tuple(1 if other == axis else member for other, member in enumerate(kept))
        for position, state in enumerate(compress(others, raw)):
            if state is not None:
                right = state.image(right, position + 1)
        size = left.shape[place + 1]
        one, two = (np.moveaxis(tensor, place + 1, -1).reshape(-1, size) for tensor in (left, right))
        return np.asarray(one.T @ two)


def _weights(state: AxisState) -> Array:
    return state.direction / state.spread


def _ratio(values: Array, factors: Array) -> Array:
    # a factor is 0 only where it is at its least, so that nothing changes with it
    return np.divide(values, factors, out=np.zeros_like(factors), where=factors != 0.0)


def _weighted_quadratics(group: ProductGroup) -> Array:
    """Return the weight of weighted products in each residual of identities, without writing them out."""
    assert group.query_weights is not None
    tensor = group.query_weights.reshape(group.counts)
    for axis, (predicates, size) in enumerate(zip(group.predicates, group.sizes, strict=True)):
        squares = predicates.squares(size)
        mean = (predicates.apply(np.ones((size, 1))) ** 2).ravel() / size
        rest = np.where(squares - mean > LIMITS.rounding * squares, squares - mean, 0.0)
        split = np.stack([mean, rest][: min(size, 2)]) / size
        tensor = np.moveaxis(np.tensordot(split, tensor, axes=(1, axis)), 0, axis)
    return tensor.ravel()


def residual_traces(workload: Workload, apart: str | None = None) -> ResidualTraces:
    """Return a workload as residuals over attribute types, for strategies that are searched.

    An attribute may be given that has a type of its own.

    Raises TooLargeError where memory does not hold the matrices of an attribute.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 4, "b": 4, "c": 3})
    >>> entries = [mdp.product(a="prefix", c="identity"), mdp.product(b="prefix", c="identity")]
    >>> traces = residual_traces(mdp.Workload(domain, *entries))
    >>> traces.types, traces.free, len(traces.residuals)
    ((0, 0, 1), {0: 4}, 6)
    """
    whole = KronSum.of(workload.domain, workload.groups)
    found = _traces(whole, None if apart is None else whole.attributes.index(apart))
    for type_, size in found.free.items():
        check_matrices([found.attributes[found.types.index(type_)]], size)
    return found


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


def marginal_spectrum(workload: Workload) -> MarginalSpectrum:
    """Return the traces of a workload in the residuals of marginals, for identities.

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
    whole = KronSum.of(workload.domain, workload.groups)
    asked = set(_marginals(whole))
    deepest = max(map(len, asked))
    if 3**deepest > LIMITS.max_pieces or sum(2 ** len(one) for one in asked) > LIMITS.max_pieces:
        raise TooLargeError(
            f"weighted marginals: {len(asked):,} marginals of up to {deepest} attributes are asked about; "
            f"the limit is {LIMITS.max_pieces:,} pairs of a marginal and one in it. Ask about fewer "
            "attributes together"
        )
    found = _traces(whole)
    identities = {type_: AxisState(None, size) for type_, size in zip(found.types, found.sizes, strict=True)}
    return MarginalSpectrum(found.attributes, found.sizes, found.residuals, found.weights(identities))


def _marginals(whole: KronSum) -> list[tuple[int, ...]]:
    """Return the attributes of every term, and of all explicit queries, whose residuals it is asked of."""
    found = [
        tuple([axis for axis, key in asked.items() if not whole.sets[axis][key].flat])
        for _, asked in whole.terms
    ]
    found += [rows.axes for rows in whole.rows]
    return [tuple([axis for axis in one if whole.sizes[axis] > 1]) for one in found]


def _traces(whole: KronSum, apart: int | None = None) -> ResidualTraces:
    """Return a sum as residuals over attribute types."""
    split = split_sum(whole, apart=apart)
    sizes = {name: size for name, size in zip(whole.attributes, whole.sizes, strict=True) if size > 1}
    place = {name: number for number, name in enumerate(sizes)}
    residuals: dict[tuple[int, ...], int] = {(): len(split.classes)}
    products: dict[tuple[int, int], list[tuple[float, Slots, Slots, int]]] = {}
    uses: dict[int, list[tuple[float, int, int]]] = {}
    for number, sub in enumerate(split.classes):
        if 1 in sub.sizes:
            continue  # nothing is left without the mean over one value
        residuals |= {tuple([place[name] for name in one]): number for one in sub.marginals}
        for term in sub.products:
            own = products.setdefault((len(term.kept), len(term.contracted)), [])
            own.append((term.weight, term.kept, term.contracted, number))
        for item in sub.rows:
            types = split.explicit[item.explicit].types
            kept = [one for one, type_ in zip(item.kept, types, strict=True) if split.sizes[type_] > 1]
            at = sum(2**power for power, one in enumerate(reversed(kept)) if one)
            uses.setdefault(item.explicit, []).append((item.weight, at, number))
    ordered = sorted(sorted(residuals), key=len)
    return ResidualTraces(
        tuple(sizes),
        tuple(sizes.values()),
        tuple([split.types[name] for name in sizes]),
        tuple(ordered),
        np.array([residuals[one] for one in ordered]),
        {type_: split.sizes[type_] for type_, free in enumerate(split.free) if free},
        split.slots,
        [_products_of(own) for own in products.values()],
        [_rows_of(split, explicit, own) for explicit, own in uses.items()],
    )


def _products_of(items: Sequence[tuple[float, Slots, Slots, int]]) -> _Products:
    weights, kept, contracted, classes = zip(*items, strict=True)
    inside, outside = (np.array(own, dtype=np.intp).reshape(len(items), -1) for own in (kept, contracted))
    return _Products(np.array(weights), inside, outside, np.array(classes))


def _rows_of(split: Split, explicit: int, uses: Sequence[tuple[float, int, int]]) -> _Rows:
    item = split.explicit[explicit]
    types = tuple(type_ for type_ in item.types if split.sizes[type_] > 1)
    return _Rows(item.content, types, *map(np.array, zip(*uses, strict=True)))
