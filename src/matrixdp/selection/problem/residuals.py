"""A workload split into sub-workloads, one for each marginal, equal ones grouped; and their Gram matrices.

Attributes that play the same role in the workload (same size, same queries) are of one *type* and share
their weight vector w; what is asked of a type in a term is a *slot*. Sub-workloads that read the same in
types and slots are one class, solved once: the work grows with the number of classes, not of queries or
marginals. With P = I - w 1', a slot V leaves P' V P where its attribute is kept and w' V w where it is not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations, compress
from operator import itemgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.exact.resources import check_matrices
from matrixdp.queries import Total, Workload
from matrixdp.queries.predicates import groups_of_all
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.grams import CentredGram, Gram, QueryGram, SymmetricGram
from matrixdp.selection.problem.kron_sum import KronSum, Rows, WrittenQueries

Places = NDArray[np.intp]
Marginal = tuple[str, ...]
Groups = tuple[Places, ...] | None
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Slot:
    """What is asked of an attribute type in a term."""

    type: int
    gram: Gram


@dataclass(frozen=True)
class Explicit:
    """Explicit queries over attributes of given types; equal ones about others share the content."""

    content: WrittenQueries
    types: tuple[int, ...]

    @property
    def exchangeable(self) -> bool:
        """Whether two attributes of one type may be exchanged."""
        return len(set(self.types)) == 1 and self.content.exchangeable


@dataclass(frozen=True)
class ProductTerm:
    """weight x (product of w'Vw over contracted slots) x (Kronecker product of P'VP over kept slots)."""

    weight: float
    kept: tuple[int, ...]
    contracted: tuple[int, ...]


@dataclass(frozen=True)
class RowsTerm:
    """weight x the Gram matrix of explicit queries, contracted on the axes that are not kept."""

    weight: float
    explicit: int
    kept: tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class SubWorkload:
    """A class of equal sub-workloads.

    ``contents`` are the queries of the rows. ``couplings`` are terms without a piece on the marginal itself,
    which tie the pieces of smaller marginals to one another.
    """

    types: tuple[int, ...]
    sizes: tuple[int, ...]
    products: tuple[ProductTerm, ...]
    rows: tuple[RowsTerm, ...]
    marginals: tuple[Marginal, ...]
    contents: tuple[WrittenQueries, ...] = ()
    couplings: tuple[ProductTerm, ...] = ()

    @cached_property
    def groups(self) -> tuple[Places, ...] | None:
        """For each axis the group of each value, of those that no row tells apart; None beside products."""
        if self.products or not self.rows:
            return None
        own = [compress(c.groups, item.kept) for item, c in zip(self.rows, self.contents, strict=True)]
        return tuple(group for group in map(groups_of_all, zip(*own, strict=True)) if group is not None)


@dataclass(frozen=True, eq=False)
class Split:
    """A workload as classes of sub-workloads over attribute types.

    ``free`` tells which types have queries other than a I + b 11'; ``coupled_apart`` that terms tie marginals
    to one another whose union has no pieces. ``widths`` are the numbers of values of the types in a matrix
    over several attributes: see `Domain.width`. The type ``undivided``, if any, is that of an attribute
    which every sub-workload keeps: its weights are zeros, so that nothing is contracted along it.
    """

    types: dict[str, int]
    sizes: tuple[int, ...]
    free: tuple[bool, ...]
    slots: tuple[Slot, ...]
    explicit: tuple[Explicit, ...]
    classes: tuple[SubWorkload, ...]
    widths: tuple[int, ...]
    coupled_apart: bool = False
    undivided: int | None = None

    @property
    def searched(self) -> list[int]:
        """The types whose weights are searched."""
        return [type_ for type_, free in enumerate(self.free) if free and type_ != self.undivided]


def attribute_types(whole: KronSum, apart: int | None = None) -> list[int]:
    """Return a number for the role of each attribute: its size and all that is asked with it.

    The attribute in the place ``apart`` shares its number with no other.
    """
    roles: list[Counter[Hashable]] = [Counter() for _ in whole.attributes]
    kinds: dict[tuple[Hashable, ...], Hashable] = {}
    for weight, asked in whole.terms:
        keys = tuple(asked.values())
        if keys not in kinds:
            kinds[keys] = frozenset(Counter(keys).items())
        for axis, key in asked.items():
            roles[axis][key, kinds[keys], _rounded(weight)] += 1
    for rows in whole.rows:
        for axis in rows.axes:
            roles[axis][rows.queries.key, tuple(sorted(rows.queries.sizes)), _rounded(rows.weight)] += 1
    numbers: dict[Hashable, int] = {}
    pairs = zip(whole.sizes, roles, strict=True)
    found = [(size, frozenset(role.items()), axis == apart) for axis, (size, role) in enumerate(pairs)]
    return [numbers.setdefault(key, len(numbers)) for key in found]


@lru_cache(1 << 12)
def _rounded(weight: float) -> float:
    return float(f"{weight:.12g}")


_Term = tuple[tuple[int, ...], tuple[int, ...]]
"""The slots that are kept and those that are contracted."""
_Found = dict[tuple[int, ...], dict[_Term, float]]
"""By marginal: the coefficients of terms."""


def split_workload(workload: Workload, undivided: str | None = None) -> Split:
    """Split a workload into classes of sub-workloads.

    Every subset of every group's attributes appears in exactly one class, unless its pieces are zero because
    a kept attribute is only asked for its total. Disjunctions, and products with weights that are products,
    are terms of products as products are; only what has no such structure is written out.

    The attribute ``undivided`` is kept by every sub-workload; queries that do not name it ask for its total.

    Raises TooLargeError for an attribute whose Gram matrices would not fit, or that could not be measured.

    References
    ----------
    QuerySmasher (2026), Algorithm 1; ResidualPlanner (Xiao et al. 2023), Theorem 3.2.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 10, "b": 10, "c": 10})
    >>> split = split_workload(mdp.Workload(domain, mdp.marginals(2)))
    >>> [(c.sizes, len(c.marginals)) for c in split.classes]
    [((), 1), ((10,), 3), ((10, 10), 3)]
    """
    whole = KronSum.whole(workload)
    axis = None if undivided is None else whole.attributes.index(undivided)
    split = split_sum(whole if axis is None else _with_totals(whole, axis), axis)
    names = {type_: name for name, type_ in reversed(split.types.items())}
    for slot in split.slots:
        if slot.gram.symmetric is None or slot.type == split.undivided:
            most = math.inf if slot.gram.flat else LIMITS.max_measured_cells
            check_matrices([names[slot.type]], slot.gram.size, most)
    return split


def split_sum(whole: KronSum, axis: int | None = None, apart: int | None = None) -> Split:
    """Return the same of a sum, of any size; every sub-workload keeps the attribute of an axis, if given.

    The attribute in the place ``apart`` has a type of its own, as has that of the axis.
    """
    types = attribute_types(whole, axis if apart is None else apart)
    always = None if axis is None else types[axis]
    sizes, widths = (dict(zip(types, own, strict=True)) for own in (whole.sizes, whole.widths))
    slots: dict[Hashable, Slot] = {}
    numbers: dict[Hashable, int] = {}
    for type_, sets in zip(types, whole.sets, strict=True):
        for key, gram in sets.items():
            if (type_, key) not in slots and (type_ == always or not gram.total_only):
                numbers[type_, key] = len(slots)
                slots[type_, key] = Slot(type_, gram)
    found = list(slots.values())
    free = [False] * len(sizes)
    for slot in found:
        if slot.gram.symmetric is None or slot.type == always:
            free[slot.type] = True
    products, couplings = _spread_products(whole, types, found, numbers, always)
    explicit, rows = _spread_rows(whole, types, always)
    for item in explicit:
        for type_ in item.types:
            free[type_] |= sizes[type_] > 1

    classes: dict[Hashable, list[tuple[int, ...]]] = {}
    signed, told = _signer(), [found for found in (products, rows, couplings) if found]
    for marginal in sorted(sorted({*products, *rows}), key=len):
        parts = [signed(found.get(marginal)) for found in told]
        classes.setdefault((*[types[axis] for axis in marginal], *parts), []).append(marginal)

    def sub_workload(marginals: Sequence[tuple[int, ...]]) -> SubWorkload:
        first = marginals[0]
        own = tuple(RowsTerm(w, e, m) for (e, m), w in rows.get(first, {}).items())
        terms, ties = (
            tuple(ProductTerm(w, k, c) for (k, c), w in known.get(first, {}).items())
            for known in (products, couplings)
        )
        names = tuple([tuple([whole.attributes[axis] for axis in marginal]) for marginal in marginals])
        own_types = tuple(types[axis] for axis in first)
        contents = tuple(explicit[item.explicit].content for item in own)
        own_sizes = tuple(whole.sizes[axis] for axis in first)
        return SubWorkload(own_types, own_sizes, terms, own, names, contents, ties)

    return Split(
        dict(zip(whole.attributes, types, strict=True)),
        tuple(sizes[type_] for type_ in range(len(sizes))),
        tuple(free),
        tuple(found),
        tuple(explicit),
        tuple(sub_workload(marginals) for marginals in classes.values()),
        tuple(widths[type_] for type_ in range(len(sizes))),
        any(marginal not in products and marginal not in rows for marginal in couplings),
        always,
    )


def _with_totals(whole: KronSum, axis: int) -> KronSum:
    """Return a sum whose every term asks something of an attribute, where nothing else for its total."""
    total = QueryGram(Total(), whole.sizes[axis])
    sets = [{**own, total.key: total} if place == axis else own for place, own in enumerate(whole.sets)]
    terms = [(weight, dict(sorted({axis: total.key, **asked}.items()))) for weight, asked in whole.terms]
    rows = []
    for own in whole.rows:
        if axis not in own.axes:
            axes = tuple(sorted((*own.axes, axis)))
            tensor = np.expand_dims(own.queries.tensor, 1 + axes.index(axis))
            tensor = np.repeat(tensor, whole.sizes[axis], axis=1 + axes.index(axis))
            own = Rows(own.weight, axes, WrittenQueries(tensor))
        rows.append(own)
    return KronSum(whole.attributes, whole.sizes, sets, terms, rows, whole.widths)


def _signer() -> Callable[[Mapping[Any, float] | None], int]:
    """Return a function that gives what is found on a marginal a number, weights to twelve digits."""
    numbers: dict[Hashable, int] = {}
    known: dict[Hashable, int] = {}

    def signed(found: Mapping[Any, float] | None) -> int:
        items = tuple(found.items()) if found else ()
        if items not in known:
            own = tuple(sorted([(*key, _rounded(weight)) for key, weight in items]))
            known[items] = numbers.setdefault(own, len(numbers))
        return known[items]

    return signed


def _spread_products(
    whole: KronSum,
    types: Sequence[int],
    slots: Sequence[Slot],
    numbers: Mapping[Hashable, int],
    always: int | None,
) -> tuple[_Found, _Found]:
    """Return the terms of the products on every marginal, and those without a piece of their own there."""

    @lru_cache(None)
    def subsets(own: tuple[int, ...]) -> list[tuple[Callable[[Any], Any], _Term, bool]]:
        """Return what picks the axes that a term of these slots can keep, its pieces, and if they couple."""
        grams = [slots[slot].gram for slot in own]
        needed = [i for i, slot in enumerate(own) if slots[slot].type == always]
        # a kept attribute whose Gram is b 11' has no piece: only its total is asked
        keepable = [
            i
            for i, gram in enumerate(grams)
            if not gram.flat and (gram.symmetric is None or (gram.symmetric[0] > 0 and gram.size > 1))
        ]
        coupling = {i for i, gram in enumerate(grams) if gram.coupling}
        found: list[tuple[Callable[[Any], Any], _Term, bool]] = []
        for positions in _subsets(sorted({*keepable, *coupling}), needed):
            kept = tuple(own[i] for i in positions)
            contracted = tuple(sorted(s for i, s in enumerate(own) if i not in positions))
            start = sum(positions[:1])
            few = itemgetter(slice(start, start + len(positions)))  # of one axis too a tuple
            pick = few if len(positions) < 2 else itemgetter(*positions)
            found.append((pick, (kept, contracted), not coupling.isdisjoint(positions)))
        return found

    products: _Found = {}
    couplings: _Found = {}
    for weight, asked in whole.terms:
        axes = tuple(asked)
        for pick, term, coupled in subsets(tuple([numbers[types[i], key] for i, key in asked.items()])):
            found, marginal = couplings if coupled else products, pick(axes)
            terms = found.get(marginal)
            if terms is None:
                terms = found[marginal] = {}
            terms[term] = terms.get(term, 0.0) + weight
    return products, couplings


def _spread_rows(
    whole: KronSum, types: Sequence[int], always: int | None
) -> tuple[list[Explicit], dict[tuple[int, ...], dict[tuple[int, tuple[bool, ...]], float]]]:
    """Return explicit queries by content and types, and what every marginal gets of them."""
    numbers: dict[Hashable, int] = {}
    explicit: list[Explicit] = []
    rows: dict[tuple[int, ...], dict[tuple[int, tuple[bool, ...]], float]] = {}
    for one in whole.rows:
        item = Explicit(one.queries, tuple([types[axis] for axis in one.axes]))
        number = numbers.setdefault((one.queries, item.types), len(explicit))
        if number == len(explicit):
            explicit.append(item)
        needed = [i for i, type_ in enumerate(item.types) if type_ == always]
        for positions in _subsets(range(len(one.axes)), needed):
            kept = tuple(i in positions for i in range(len(one.axes)))
            if len(positions) == 1 and item.exchangeable:
                kept = (True, False)
            own = rows.setdefault(tuple([one.axes[i] for i in positions]), {})
            own[number, kept] = own.get((number, kept), 0.0) + one.weight
    return explicit, rows


def _subsets(positions: Sequence[int], needed: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the subsets of positions with those that are needed, small ones first."""
    others = [position for position in positions if position not in needed]
    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            yield tuple(sorted((*needed, *chosen))) if needed else chosen


class Recent(Generic[T]):
    """The results of the last different requests, at most this many.

    Examples
    --------
    >>> recent = Recent[int](1)
    >>> [recent.of(key, lambda: made) for made, key in enumerate("aaba")]
    [0, 0, 2, 3]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[Hashable, T] = {}

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result for a key, made if it is not there."""
        found = self._found.pop(key) if key in self._found else make()
        if len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[key] = found
        return found


@dataclass(frozen=True, eq=False)
class SlotPiece:
    """A slot at a weight vector.

    Attributes
    ----------
    mean_square : float
        t = w' V w: what is left of the slot where its attribute is contracted.
    gram : Gram
        P' V P.
    representative, ratio : int, float
        The first slot on the type with a proportional piece, and the factor.
    """

    mean_square: float
    gram: Gram
    representative: int
    ratio: float

    @property
    def closed(self) -> float | None:
        """The a of a symmetric slot, in P' V P = a (I - 11'/n), whose weights stay uniform; else None."""
        return self.gram.a if isinstance(self.gram, SymmetricGram) else None

    @property
    def array(self) -> Array:
        """P' V P, shape (n, n)."""
        return self.gram.explicit.entries if self.closed is None else self.gram.matrix()


@dataclass(frozen=True)
class Term:
    """coefficient, of either sign, x the Kronecker product of the pieces of ``kept`` slots."""

    coefficient: float
    kept: tuple[int, ...]


@dataclass(eq=False)
class Pieces:
    """All slots and explicit queries of a split at given weights.

    Parameters
    ----------
    split : Split
    weights : sequence of ndarray
        One vector with sum 1 for each attribute type.
    """

    split: Split
    weights: Sequence[Array]
    slots: list[SlotPiece] = field(init=False)
    #: Explicit queries about many attributes are mostly a few; their pieces are not to be changed.
    _rows: Recent[Array] = field(init=False, default_factory=lambda: Recent(LIMITS.kept_arrays))
    #: By type: the representative slots, their traces, and their diagonals over those.
    _diagonals: dict[int, list[tuple[int, float, Array]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.slots = []
        for number, slot in enumerate(self.split.slots):
            w, symmetric = self.weights[slot.type], slot.gram.symmetric
            if symmetric is not None and not self.split.free[slot.type]:
                a, b = symmetric
                size = slot.gram.size
                left = SymmetricGram(a, -a / size, size)
                self.slots.append(SlotPiece(a / size + b, left, *self._first(number, a)))
                continue
            piece = CentredGram(slot.gram, w)
            proportional = self._proportional(number, piece.explicit.entries)
            self.slots.append(SlotPiece(piece.mean_square, piece, *proportional))

    def _first(self, number: int, coefficient: float) -> tuple[int, float]:
        """Return the first symmetric slot on the same type; all are proportional to it."""
        for other, piece in enumerate(self.slots):
            if self.split.slots[other].type == self.split.slots[number].type and piece.closed:
                return other, coefficient / piece.closed
        return number, 1.0

    def _proportional(self, number: int, piece: Array) -> tuple[int, float]:
        norm, trace = float(np.abs(piece).max()), float(np.trace(piece))
        diagonal = np.diagonal(piece)
        own = self._diagonals.setdefault(self.split.slots[number].type, [])
        if own and trace > 0.0:
            # most are told apart by their diagonals
            away = np.abs(diagonal - trace * np.stack([shape for _, _, shape in own])).max(axis=1)
            for place in np.flatnonzero(away <= 1e-12 * norm):
                other, size, _ = own[place]
                known, ratio = self.slots[other].array, trace / size
                if float(np.abs(piece - ratio * known).max()) <= 1e-12 * norm:
                    return other, ratio
        if trace > 0.0:
            own.append((number, trace, diagonal / trace))
        return number, 1.0

    def scale(self, kept: tuple[int, ...]) -> float:
        """Return the largest diagonal entry of the Kronecker product of the slots' own Gram matrices."""
        return math.prod(self.split.slots[number].gram.largest() for number in kept)

    def explicit_rows(self, number: int, kept: tuple[bool, ...], groups: Groups = None) -> Array:
        """Return explicit queries as pieces on the kept axes, shape (queries, cells kept).

        With ``groups``, those of each kept axis, over one cell for each group of their values.
        """
        item = self.split.explicit[number]
        merged = None if groups is None else tuple(group.tobytes() for group in groups)
        weights = tuple(self.weights[type_].tobytes() for type_ in item.types)
        return self._rows.of(
            (id(item.content), kept, merged, weights), lambda: self._explicit_rows(number, kept, groups)
        )

    def _explicit_rows(self, number: int, kept: tuple[bool, ...], groups: Groups) -> Array:
        tensor, weights, _ = self._merged(number, kept, groups)
        tensor = residual_rows(tensor, kept, weights)
        return np.asarray(tensor.reshape(len(tensor), -1))

    def _merged(
        self, number: int, kept: tuple[bool, ...], groups: Groups
    ) -> tuple[Array, list[Array], list[Places | None]]:
        """Return explicit queries over groups of values, the groups' weights, and the groups of each axis."""
        item = self.split.explicit[number]
        tensor = item.content.tensor
        weights = [self.weights[type_] for type_ in item.types]
        if groups is None:
            return tensor, weights, [None] * len(kept)
        left = iter(groups)
        own = [next(left) if keep else coarse for keep, coarse in zip(kept, item.content.groups, strict=True)]
        return (
            item.content.over(tuple(own)),
            [np.asarray(np.bincount(g, w), dtype=float) for g, w in zip(own, weights, strict=True)],
            [*own],
        )

    def explicit_gradient(
        self,
        number: int,
        kept: tuple[bool, ...],
        sensitivity: Callable[[Array], Array],
        groups: Groups = None,
    ) -> list[tuple[int, Array]]:
        """Return, per axis, (type, gradient of tr(A V)) for the Gram V of ``explicit_rows`` and fixed A.

        ``sensitivity`` returns rows times A.
        """
        item = self.split.explicit[number]
        full, weights, own = self._merged(number, kept, groups)
        rows = self.explicit_rows(number, kept, groups)
        kept_sizes = [n for n, k in zip(full.shape[1:], kept, strict=True) if k]
        image = sensitivity(rows).reshape(len(rows), *kept_sizes)
        gradients = []
        for axis, type_ in enumerate(item.types):
            # contract or centre all other axes, leaving this one raw
            others = [None if other == axis else w for other, w in enumerate(weights)]
            tensor = residual_rows(full, kept, others)
            # position of this axis among what is left: kept axes stay, contracted ones are gone
            position = 1 + sum(kept[:axis])
            raw = np.moveaxis(tensor, position, -1).reshape(-1, full.shape[axis + 1])
            if kept[axis]:
                found = -2.0 * (image.sum(axis=position).ravel() @ raw)
            else:
                found = 2.0 * (image.ravel() @ raw)
            group = own[axis]
            gradients.append((type_, found if group is None else found[group]))
        return gradients

    def coefficient(self, product: ProductTerm) -> float:
        """Return the coefficient of a term, its kept slots replaced by the first proportional ones."""
        contracted = math.prod(self.slots[slot].mean_square for slot in product.contracted)
        return product.weight * contracted * math.prod(self.slots[slot].ratio for slot in product.kept)


def residual_rows(tensor: Array, kept: Sequence[int], weights: Sequence[Array | None]) -> Array:
    """Return explicit queries without their mean along kept axes, contracted along the others.

    An axis without weights stays as it is.
    """
    for axis in range(len(kept), 0, -1):
        w = weights[axis - 1]
        if w is not None:
            mean = np.tensordot(tensor, w, axes=(axis, 0))
            tensor = tensor - np.expand_dims(mean, axis) if kept[axis - 1] else mean
    return tensor


def numeric_terms(pieces: Pieces, sub: SubWorkload) -> list[Term]:
    """Return the Kronecker terms of a sub-workload, equal ones merged, negligible ones dropped."""
    merged: dict[tuple[int, ...], float] = {}
    for product in sub.products:
        kept = tuple([pieces.slots[slot].representative for slot in product.kept])
        merged[kept] = merged.get(kept, 0.0) + pieces.coefficient(product)
    largest = max(map(abs, merged.values()), default=0.0)
    return [Term(c, k) for k, c in merged.items() if abs(c) > LIMITS.rounding * largest]
