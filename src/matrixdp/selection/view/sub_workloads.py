"""Splitting a workload into sub-workloads, one for each marginal, and grouping equal ones.

Attributes that play the same role in the workload (same size, same queries) are of one *type* and share
their weight vector; a predicate set on a type is a *slot*. Sub-workloads that read the same in types and
slots are one class, solved once: the work grows with the number of classes, not of queries or marginals.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.resources import check_matrices
from matrixdp.queries import Group, Workload
from matrixdp.selection.limits import MAX_MEASURED_CELLS
from matrixdp.selection.view.gram_terms import CrossGram, GramTerm, Question, gram_terms, is_flat

__all__ = [
    "Explicit",
    "ProductTerm",
    "RowsTerm",
    "Slot",
    "Split",
    "SubWorkload",
    "WrittenQueries",
    "attribute_types",
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
