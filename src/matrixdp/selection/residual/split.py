"""Splitting a workload into sub-workloads, one for each marginal, and grouping equal ones.

Attributes that play the same role in the workload (same size, same queries) are of one *type* and share
their weight vector; a predicate set on a type is a *slot*. Sub-workloads that read the same in types and
slots are one class, solved once: the work grows with the number of classes, not of queries or marginals.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from matrixdp.queries import DenseGroup, Group, Predicates, ProductGroup, Workload

__all__ = ["Explicit", "ProductTerm", "RowsTerm", "Slot", "Split", "SubWorkload", "split_workload"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Slot:
    """A predicate set on an attribute type."""

    type: int
    predicates: Predicates
    size: int
    symmetric: tuple[float, float] | None


@dataclass(frozen=True)
class Explicit:
    """Explicit queries (their square-rooted weights multiplied in) over attributes of given types."""

    rows: Array
    types: tuple[int, ...]
    sizes: tuple[int, ...]


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
    """A class of equal sub-workloads."""

    types: tuple[int, ...]
    sizes: tuple[int, ...]
    products: tuple[ProductTerm, ...]
    rows: tuple[RowsTerm, ...]
    marginals: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Split:
    """A workload as classes of sub-workloads over attribute types."""

    types: dict[str, int]
    sizes: tuple[int, ...]
    free: tuple[bool, ...]
    slots: tuple[Slot, ...]
    explicit: tuple[Explicit, ...]
    classes: tuple[SubWorkload, ...]


def _weights_digest(group: Group) -> str:
    if group.query_weights is None:
        return ""
    return hashlib.sha256(np.ascontiguousarray(group.query_weights).tobytes()).hexdigest()


def _exchangeable(item: Explicit) -> bool:
    """Return whether explicit queries on two attributes of one type stay the same when they are exchanged."""
    if len(item.types) != 2 or item.types[0] != item.types[1]:
        return False
    tensor = item.rows.reshape(len(item.rows), *item.sizes)
    return bool(np.array_equal(tensor, np.swapaxes(tensor, 1, 2)))


def _attribute_types(workload: Workload) -> dict[str, int]:
    """Return a number for the role of each attribute: its size and all that is asked with it."""
    roles: dict[str, Counter[Hashable]] = defaultdict(Counter)
    for group in workload:
        if isinstance(group, ProductGroup):
            keys = group.key()
            assert isinstance(keys, tuple)
            whole = Counter(map(hash, keys))
            digest = _weights_digest(group)
            for name, key in zip(group.attributes, keys, strict=True):
                roles[name][(key, frozenset(whole.items()), group.weight, digest)] += 1
        else:
            for name in group.attributes:
                roles[name][(group.key(), tuple(sorted(group.sizes)), group.weight)] += 1
    numbers: dict[Hashable, int] = {}
    types = {}
    for name in workload.domain.names:
        if name in roles:
            role = (workload.domain[name].size, frozenset(roles[name].items()))
            types[name] = numbers.setdefault(role, len(numbers))
    return types


def split_workload(workload: Workload) -> Split:
    """Split a workload into classes of sub-workloads.

    Parameters
    ----------
    workload : Workload
        Any mix of product and dense groups.

    Returns
    -------
    Split
        Every subset of every group's attributes appears in exactly one class, unless its pieces are zero
        because a kept attribute is only asked for its total.

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
    types = _attribute_types(workload)
    sizes: dict[int, int] = {types[name]: workload.domain[name].size for name in types}
    slots: dict[Hashable, int] = {}
    slot_list: list[Slot] = []
    explicit: dict[Hashable, int] = {}
    explicit_list: list[Explicit] = []
    products: dict[tuple[str, ...], dict[tuple[tuple[int, ...], tuple[int, ...]], float]] = {}
    rows: dict[tuple[str, ...], dict[tuple[int, tuple[bool, ...]], float]] = {}

    def slot_of(type_: int, predicates: Predicates, size: int) -> int:
        key = (type_, predicates.key(size))
        if key not in slots:
            slots[key] = len(slot_list)
            slot_list.append(Slot(type_, predicates, size, predicates.symmetric(size)))
        return slots[key]

    for group in workload:
        names = group.attributes
        if isinstance(group, DenseGroup) or group.query_weights is not None:
            key = (type(group).__name__, group.key(), _weights_digest(group), tuple(types[n] for n in names))
            if key not in explicit:
                explicit[key] = len(explicit_list)
                matrix = group.rows()
                if group.query_weights is not None:
                    matrix = matrix * np.sqrt(group.query_weights)[:, None]
                explicit_list.append(Explicit(matrix, tuple(types[n] for n in names), group.sizes))
            exchangeable = _exchangeable(explicit_list[explicit[key]])
            for size in range(len(names) + 1):
                for positions in combinations(range(len(names)), size):
                    kept_names = tuple(names[i] for i in positions)
                    mask = tuple(i in positions for i in range(len(names)))
                    if exchangeable and size == 1:
                        mask = (True, False)
                    bucket = rows.setdefault(kept_names, {})
                    entry = (explicit[key], mask)
                    bucket[entry] = bucket.get(entry, 0.0) + group.weight
            continue
        own = [
            slot_of(types[name], predicates, n)
            for name, predicates, n in zip(names, group.predicates, group.sizes, strict=True)
        ]
        # a kept attribute whose Gram is b 11' has no piece: only its total is asked
        keepable = [
            i for i, s in enumerate(own)
            if (sym := slot_list[s].symmetric) is None or (sym[0] > 0 and slot_list[s].size > 1)
        ]  # fmt: skip
        for size in range(len(keepable) + 1):
            for positions in combinations(keepable, size):
                kept = tuple(own[i] for i in positions)
                contracted = tuple(sorted(s for i, s in enumerate(own) if i not in positions))
                terms = products.setdefault(tuple(names[i] for i in positions), {})
                terms[kept, contracted] = terms.get((kept, contracted), 0.0) + group.weight

    classes: dict[Hashable, list[tuple[str, ...]]] = {}
    for marginal in sorted({*products, *rows}, key=lambda m: (len(m), [workload.domain.index(n) for n in m])):
        signature = (
            tuple(types[name] for name in marginal),
            tuple(sorted((k, c, float(f"{w:.12g}")) for (k, c), w in products.get(marginal, {}).items())),
            tuple(sorted((e, m, float(f"{w:.12g}")) for (e, m), w in rows.get(marginal, {}).items())),
        )
        classes.setdefault(signature, []).append(marginal)
    subworkloads = []
    for marginals in classes.values():
        first = marginals[0]
        subworkloads.append(
            SubWorkload(
                tuple(types[name] for name in first),
                tuple(workload.domain[name].size for name in first),
                tuple(ProductTerm(w, k, c) for (k, c), w in products.get(first, {}).items()),
                tuple(RowsTerm(w, e, m) for (e, m), w in rows.get(first, {}).items()),
                tuple(marginals),
            )
        )
    free = [False] * len(sizes)
    for slot in slot_list:
        free[slot.type] |= slot.symmetric is None
    for item in explicit_list:
        for type_ in item.types:
            free[type_] |= sizes[type_] > 1
    return Split(
        types,
        tuple(sizes[t] for t in range(len(sizes))),
        tuple(free),
        tuple(slot_list),
        tuple(explicit_list),
        tuple(subworkloads),
    )
