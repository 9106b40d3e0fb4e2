"""Splitting a workload into sub-workloads, one for each marginal, and grouping equal ones.

Attributes that play the same role in the workload (same size, same queries) are of one *type* and share
their weight vector; a predicate set on a type is a *slot*. Sub-workloads that read the same in types and
slots are one class, solved once: the work grows with the number of classes, not of queries or marginals.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.resources import check_matrices
from matrixdp.queries import Group, Workload
from matrixdp.selection.limits import MAX_MEASURED_CELLS
from matrixdp.selection.problem.grams import CrossGram, GramTerm, Question, gram_terms, is_flat

__all__ = [
    "Explicit",
    "Pieces",
    "ProductTerm",
    "Recent",
    "RowsTerm",
    "Slot",
    "SlotPiece",
    "Split",
    "SubWorkload",
    "Term",
    "WrittenQueries",
    "attribute_types",
    "numeric_terms",
    "split_workload",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Slot:
    """What is asked of an attribute type in a term: a predicate set, or a factor of a pair of products."""

    type: int
    predicates: Question
    size: int
    symmetric: tuple[float, float] | None

    @property
    def definite(self) -> bool:
        """Whether its Gram matrix is that of queries: symmetric, with no negative eigenvalue."""
        return not isinstance(self.predicates, CrossGram)

    @cached_property
    def largest(self) -> float:
        """The largest diagonal entry of its Gram matrix."""
        if self.symmetric is not None:
            return sum(self.symmetric)
        return float(np.abs(np.diagonal(self.predicates.gram(self.size))).max())

    @property
    def flat(self) -> bool:
        """Whether nothing is left of it without its mean: it is never kept."""
        return is_flat(self.predicates)

    @property
    def coupling(self) -> bool:
        """Whether it is flat from one side alone: what is not kept there is tied to what is kept here."""
        if not isinstance(self.predicates, CrossGram) or self.symmetric is not None:
            return False
        return self.flat and not (is_flat(self.predicates.left) and is_flat(self.predicates.right))


@dataclass(frozen=True, eq=False)
class WrittenQueries:
    """Explicit queries (their square-rooted weights multiplied in), whatever attributes they are about."""

    rows: Array
    sizes: tuple[int, ...]

    @property
    def tensor(self) -> Array:
        """The queries, shape (queries, sizes ...)."""
        return self.rows.reshape(len(self.rows), *self.sizes)

    @cached_property
    def exchangeable(self) -> bool:
        """Whether there are two axes and the queries stay the same when they are exchanged."""
        square = len(self.sizes) == 2 and self.sizes[0] == self.sizes[1]
        return square and bool(np.array_equal(self.tensor, np.swapaxes(self.tensor, 1, 2)))

    @cached_property
    def groups(self) -> tuple[NDArray[np.intp], ...]:
        """For each axis the number of each value: values that no query tells apart have the same."""
        found = []
        for axis, size in enumerate(self.sizes, 1):
            slices = np.ascontiguousarray(np.moveaxis(self.tensor, axis, 0)).reshape(size, -1)
            known: dict[bytes, int] = {}
            found.append(np.array([known.setdefault(one.tobytes(), len(known)) for one in slices]))
        return tuple(found)

    def over(self, groups: tuple[NDArray[np.intp], ...]) -> Array:
        """Return the queries over one value of each group on every axis, shape (queries, groups ...)."""
        key = tuple(group.tobytes() for group in groups)
        if key not in self._over:
            tensor = self.tensor
            for axis, group in enumerate(groups, 1):
                chosen = np.unique(group, return_index=True)[1]
                if not np.array_equal(chosen, np.arange(len(group))):
                    tensor = np.take(tensor, chosen, axis=axis)
            self._over[key] = np.ascontiguousarray(tensor)
        return self._over[key]

    @cached_property
    def _over(self) -> dict[tuple[bytes, ...], Array]:
        return {}


@dataclass(frozen=True)
class Explicit:
    """Explicit queries over attributes of given types; equal ones about others share the content."""

    content: WrittenQueries
    types: tuple[int, ...]

    @property
    def rows(self) -> Array:
        """The queries, shape (queries, cells)."""
        return self.content.rows

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' sizes."""
        return self.content.sizes

    @property
    def groups(self) -> tuple[NDArray[np.intp], ...]:
        """See `WrittenQueries`."""
        return self.content.groups

    @property
    def exchangeable(self) -> bool:
        """Whether two attributes of one type may be exchanged."""
        return len(set(self.types)) == 1 and self.content.exchangeable


@dataclass(frozen=True)
class ProductTerm:
    """weight x (product of t over contracted slots) x (Kronecker product of Grams over kept slots)."""

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

    ``groups`` has for each axis the number of each value, where there are explicit queries alone: values that
    none of them tells apart have the same. ``couplings`` are terms without a piece on the marginal itself,
    which tie the pieces of smaller marginals to one another.
    """

    types: tuple[int, ...]
    sizes: tuple[int, ...]
    products: tuple[ProductTerm, ...]
    rows: tuple[RowsTerm, ...]
    marginals: tuple[tuple[str, ...], ...]
    groups: tuple[NDArray[np.intp], ...] | None = None
    couplings: tuple[ProductTerm, ...] = ()


@dataclass(frozen=True, eq=False)
class Split:
    """A workload as classes of sub-workloads over attribute types.

    ``coupled_apart`` tells that terms tie marginals to one another whose union has no pieces.
    """

    types: dict[str, int]
    sizes: tuple[int, ...]
    free: tuple[bool, ...]
    slots: tuple[Slot, ...]
    explicit: tuple[Explicit, ...]
    classes: tuple[SubWorkload, ...]
    coupled_apart: bool = False


def _weights_digest(group: Group) -> str:
    if group.query_weights is None:
        return ""
    return hashlib.sha256(np.ascontiguousarray(group.query_weights).tobytes()).hexdigest()


def attribute_types(workload: Workload, terms: Sequence[list[GramTerm] | None]) -> dict[str, int]:
    """Return a number for the role of each attribute: its size and all that is asked with it."""
    roles: dict[str, Counter[Hashable]] = defaultdict(Counter)
    wholes: dict[tuple[Hashable, ...], Hashable] = {}
    for group, own in zip(workload, terms, strict=True):
        if own is None:
            for name in group.attributes:
                digest = _weights_digest(group)
                roles[name][(group.key(), tuple(sorted(group.sizes)), group.weight, digest)] += 1
            continue
        for coefficient, asked in own:
            keys = tuple([question.key(size) for question, size in zip(asked, group.sizes, strict=True)])
            if keys not in wholes:
                wholes[keys] = frozenset(Counter(keys).items())
            for name, key in zip(group.attributes, keys, strict=True):
                roles[name][(key, wholes[keys], coefficient * group.weight)] += 1
    numbers: dict[Hashable, int] = {}
    types = {}
    for name in workload.domain.names:
        if name in roles:
            role = (workload.domain[name].size, frozenset(roles[name].items()))
            types[name] = numbers.setdefault(role, len(numbers))
    return types


_Term = tuple[tuple[int, ...], tuple[int, ...]]
"""The slots that are kept and those that are contracted."""
_Terms = dict[_Term, float]
"""Coefficients of terms."""


class _Splitter:
    """Collects the slots, the explicit queries, and what every marginal gets of each group."""

    def __init__(self, workload: Workload, terms: Sequence[list[GramTerm] | None]) -> None:
        self.types = attribute_types(workload, terms)
        self.slots: dict[Hashable, int] = {}
        self.slot_list: list[Slot] = []
        self.kept: dict[tuple[int, ...], list[tuple[tuple[int, ...], _Term, bool]]] = {}
        self.contents: dict[Hashable, WrittenQueries] = {}
        self.explicit: dict[Hashable, int] = {}
        self.explicit_list: list[Explicit] = []
        self.products: dict[tuple[str, ...], _Terms] = {}
        self.couplings: dict[tuple[str, ...], _Terms] = {}
        self.rows: dict[tuple[str, ...], dict[tuple[int, tuple[bool, ...]], float]] = {}

    def slot_of(self, type_: int, predicates: Question, size: int) -> int:
        key = (type_, predicates.key(size))
        if key not in self.slots:
            self.slots[key] = len(self.slot_list)
            self.slot_list.append(Slot(type_, predicates, size, predicates.symmetric(size)))
        return self.slots[key]

    def explicit_of(self, group: Group) -> int:
        types = tuple(self.types[name] for name in group.attributes)
        key = (type(group).__name__, group.key(), _weights_digest(group), group.sizes)
        if (key, types) not in self.explicit:
            if key not in self.contents:
                rows = group.rows()
                if group.query_weights is not None:
                    rows = rows * np.sqrt(group.query_weights)[:, None]
                self.contents[key] = WrittenQueries(rows, group.sizes)
            self.explicit[key, types] = len(self.explicit_list)
            self.explicit_list.append(Explicit(self.contents[key], types))
        return self.explicit[key, types]

    def add_explicit(self, group: Group) -> None:
        number = self.explicit_of(group)
        exchangeable = self.explicit_list[number].exchangeable
        for positions in _subsets(range(len(group.attributes))):
            mask = tuple(i in positions for i in range(len(group.attributes)))
            if exchangeable and len(positions) == 1:
                mask = (True, False)
            bucket = self.rows.setdefault(tuple(group.attributes[i] for i in positions), {})
            bucket[number, mask] = bucket.get((number, mask), 0.0) + group.weight

    def add_product(self, group: Group, coefficient: float, asked: tuple[Question, ...]) -> None:
        names, weight = group.attributes, group.weight * coefficient
        own = tuple(
            [
                self.slot_of(self.types[name], question, size)
                for name, question, size in zip(names, asked, group.sizes, strict=True)
            ]
        )
        if own not in self.kept:
            self.kept[own] = self.kept_of(own)
        for positions, term, coupled in self.kept[own]:
            found = self.couplings if coupled else self.products
            terms = found.setdefault(tuple([names[i] for i in positions]), {})
            terms[term] = terms.get(term, 0.0) + weight

    def kept_of(self, own: tuple[int, ...]) -> list[tuple[tuple[int, ...], _Term, bool]]:
        """Return the positions that a term of these slots can keep, its pieces there, and if they couple."""
        # a kept attribute whose Gram is b 11' has no piece: only its total is asked
        slots = [self.slot_list[slot] for slot in own]
        keepable = [
            i
            for i, slot in enumerate(slots)
            if not slot.flat and (slot.symmetric is None or (slot.symmetric[0] > 0 and slot.size > 1))
        ]
        coupling = {i for i, slot in enumerate(slots) if slot.coupling}
        found = []
        for positions in _subsets(sorted({*keepable, *coupling})):
            kept = tuple(own[i] for i in positions)
            contracted = tuple(sorted(s for i, s in enumerate(own) if i not in positions))
            found.append((positions, (kept, contracted), not coupling.isdisjoint(positions)))
        return found

    def classes(self, workload: Workload) -> tuple[SubWorkload, ...]:
        """Return the marginals in classes that read the same in types and slots."""
        order = {name: place for place, name in enumerate(workload.domain.names)}
        classes: dict[Hashable, list[tuple[str, ...]]] = {}
        rounded = lru_cache(lambda weight: float(f"{weight:.12g}"))
        for marginal in sorted({*self.products, *self.rows}, key=lambda m: (len(m), [order[n] for n in m])):
            signature = (
                tuple(self.types[name] for name in marginal),
                *(
                    tuple(sorted([(*key, rounded(w)) for key, w in found[marginal].items()]))
                    if marginal in found
                    else ()
                    for found in (self.products, self.rows, self.couplings)
                ),
            )
            classes.setdefault(signature, []).append(marginal)
        return tuple(self._class(workload, *marginals) for marginals in classes.values())

    def _class(self, workload: Workload, *marginals: tuple[str, ...]) -> SubWorkload:
        first = marginals[0]
        products, couplings = (
            tuple(ProductTerm(w, k, c) for (k, c), w in found.get(first, {}).items())
            for found in (self.products, self.couplings)
        )
        rows = tuple(RowsTerm(w, e, m) for (e, m), w in self.rows.get(first, {}).items())
        return SubWorkload(
            tuple(self.types[name] for name in first),
            tuple(workload.domain[name].size for name in first),
            products,
            rows,
            marginals,
            self._groups(len(first), rows) if rows and not products else None,
            couplings,
        )

    @property
    def coupled_apart(self) -> bool:
        """Whether a coupling is on attributes on which nothing else is."""
        return any(names not in self.products and names not in self.rows for names in self.couplings)

    def _groups(self, axes: int, rows: Sequence[RowsTerm]) -> tuple[NDArray[np.intp], ...]:
        """Return for each axis of a class the number of each value among those that its rows tell apart."""
        found: list[dict[int, NDArray[np.intp]]] = [{} for _ in range(axes)]
        for item in rows:
            groups = self.explicit_list[item.explicit].groups
            kept = [group for group, is_kept in zip(groups, item.kept, strict=True) if is_kept]
            for own, group in zip(found, kept, strict=True):
                own[id(group)] = group
        return tuple(
            np.unique(np.stack([*own.values()]), axis=1, return_inverse=True)[1].ravel() for own in found
        )


def _subsets(positions: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(len(positions) + 1):
        yield from combinations(positions, size)


def split_workload(workload: Workload) -> Split:
    """Split a workload into classes of sub-workloads.

    Every subset of every group's attributes appears in exactly one class, unless its pieces are zero because
    a kept attribute is only asked for its total. Disjunctions, and products with weights that are products,
    are terms of products as products are; only what has no such structure is written out.

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
    terms = [gram_terms(group) for group in workload]
    found = _Splitter(workload, terms)
    for group, own in zip(workload, terms, strict=True):
        if own is None:
            found.add_explicit(group)
            continue
        for coefficient, asked in own:
            found.add_product(group, coefficient, asked)
    sizes = {type_: workload.domain[name].size for name, type_ in found.types.items()}
    free = [False] * len(sizes)
    named = {type_: name for name, type_ in found.types.items()}
    for slot in found.slot_list:
        free[slot.type] |= slot.symmetric is None
        if slot.symmetric is None:
            check_matrices([named[slot.type]], slot.size, math.inf if slot.flat else MAX_MEASURED_CELLS)
    for item in found.explicit_list:
        for type_ in item.types:
            free[type_] |= sizes[type_] > 1
    return Split(
        found.types,
        tuple(sizes[type_] for type_ in range(len(sizes))),
        tuple(free),
        tuple(found.slot_list),
        tuple(found.explicit_list),
        found.classes(workload),
        found.coupled_apart,
    )


T = TypeVar("T")


class Recent(Generic[T]):
    """The results of the last different requests, at most so many.

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
        """Return what is known under a key, or make it."""
        found = self._found.pop(key) if key in self._found else make()
        if len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[key] = found
        return found


Groups = tuple[NDArray[np.intp], ...] | None

#: Terms below this share of the largest of their sub-workload are floating-point noise.
NEGLIGIBLE = 1e-14
#: Arrays of pieces of explicit queries that are kept.
_MOST_KEPT = 8


@dataclass(frozen=True, eq=False)
class SlotPiece:
    """A slot at a weight vector.

    Attributes
    ----------
    mean_square : float
        t = w' V w: what is left of the slot where its attribute is contracted.
    gram : ndarray, shape (n, n), or None
        P' V P with P = I - w 1'; None for symmetric slots, split or with V = a I.
    coefficient : float
        For a symmetric slot a, in P' V P = a (I - 11'/n), or a I where it is whole.
    representative, ratio : int, float
        The first slot on the type with a proportional piece, and the factor.
    whole : bool
        Whether P' V P = a I.
    """

    mean_square: float
    gram: Array | None
    coefficient: float
    representative: int
    ratio: float
    whole: bool = False


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
        One vector with sum 1 for each attribute type; or zeros, for an attribute that is not split.
    """

    split: Split
    weights: Sequence[Array]
    slots: list[SlotPiece] = field(init=False)
    #: Explicit queries about many attributes are mostly a few; their pieces are not to be changed.
    _rows: Recent[Array] = field(init=False, default_factory=lambda: Recent(_MOST_KEPT))
    #: By type: the representative slots, their traces, and their diagonals over those.
    _diagonals: dict[int, list[tuple[int, float, Array]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.slots = []
        for number, slot in enumerate(self.split.slots):
            w = self.weights[slot.type]
            if slot.symmetric is not None and not self.split.free[slot.type]:
                a, b = slot.symmetric
                whole = not w.any()
                if not whole or b == 0.0:
                    square = 0.0 if whole else a / slot.size + b
                    self.slots.append(SlotPiece(square, None, a, self._first(number), 1.0, whole))
                    continue
            gram = slot.predicates.gram(slot.size)
            seen = gram @ w
            mean_square = float(w @ seen)
            piece = gram - (seen if slot.definite else w @ gram)[None, :] - seen[:, None] + mean_square
            representative, ratio = self._proportional(number, piece)
            self.slots.append(
                SlotPiece(
                    max(mean_square, 0.0) if slot.definite else mean_square, piece, 0.0, representative, ratio
                )
            )

    def _first(self, number: int) -> int:
        """Return the first symmetric slot on the same type; all are proportional to it."""
        type_ = self.split.slots[number].type
        for other, piece in enumerate(self.slots):
            if self.split.slots[other].type == type_ and piece.coefficient > 0:
                return other
        return number

    def _proportional(self, number: int, piece: Array) -> tuple[int, float]:
        norm, trace = float(np.abs(piece).max()), float(np.trace(piece))
        diagonal = np.diagonal(piece)
        own = self._diagonals.setdefault(self.split.slots[number].type, [])
        if own and trace > 0.0:
            # most are told apart by their diagonals
            away = np.abs(diagonal - trace * np.stack([shape for _, _, shape in own])).max(axis=1)
            for place in np.flatnonzero(away <= 1e-12 * norm):
                other, size, _ = own[place]
                known = self.slots[other].gram
                ratio = trace / size
                if known is not None and float(np.abs(piece - ratio * known).max()) <= 1e-12 * norm:
                    return other, ratio
        if trace > 0.0:
            own.append((number, trace, diagonal / trace))
        return number, 1.0

    def scale(self, kept: tuple[int, ...]) -> float:
        """Return the largest diagonal entry of the Kronecker product of the slots' own Gram matrices."""
        return math.prod(self.split.slots[number].largest for number in kept)

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
        for axis in range(len(kept), 0, -1):
            mean = np.tensordot(tensor, weights[axis - 1], axes=(axis, 0))
            tensor = tensor - np.expand_dims(mean, axis) if kept[axis - 1] else mean
        return np.asarray(tensor.reshape(len(tensor), -1))

    def _merged(
        self, number: int, kept: tuple[bool, ...], groups: Groups
    ) -> tuple[Array, list[Array], list[NDArray[np.intp] | None]]:
        """Return explicit queries over groups of values, the groups' weights, and the groups of each axis."""
        item = self.split.explicit[number]
        tensor = item.rows.reshape(len(item.rows), *item.sizes)
        weights = [self.weights[type_] for type_ in item.types]
        if groups is None:
            return tensor, weights, [None] * len(kept)
        left = iter(groups)
        own = [next(left) if keep else coarse for keep, coarse in zip(kept, item.groups, strict=True)]
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
            tensor = full
            for other in range(len(kept), 0, -1):
                if other - 1 == axis:
                    continue
                mean = np.tensordot(tensor, weights[other - 1], axes=(other, 0))
                tensor = tensor - np.expand_dims(mean, other) if kept[other - 1] else mean
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


def numeric_terms(pieces: Pieces, sub: SubWorkload) -> list[Term]:
    """Return the Kronecker terms of a sub-workload, equal ones merged, negligible ones dropped."""
    merged: dict[tuple[int, ...], float] = {}
    for product in sub.products:
        coefficient = product.weight
        for slot in product.contracted:
            coefficient *= pieces.slots[slot].mean_square
        kept = []
        for slot in product.kept:
            piece = pieces.slots[slot]
            coefficient *= piece.ratio
            if piece.gram is None:
                coefficient *= piece.coefficient / pieces.slots[piece.representative].coefficient
            kept.append(piece.representative)
        merged[tuple(kept)] = merged.get(tuple(kept), 0.0) + coefficient
    largest = max(map(abs, merged.values()), default=0.0)
    return [Term(c, k) for k, c in merged.items() if abs(c) > NEGLIGIBLE * largest]
