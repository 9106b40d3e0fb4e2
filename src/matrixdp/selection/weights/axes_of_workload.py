"""From a workload to what it asks of residuals, for one strategy for each attribute."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact.resources import check_matrices
from matrixdp.queries import Group, Total, Workload
from matrixdp.selection.gram.opt_0 import distinct_cells
from matrixdp.selection.view.gram_terms import GramTerm, Question, gram_terms, is_flat
from matrixdp.selection.view.product_terms import MAX_AXIS_CELLS
from matrixdp.selection.view.sub_workloads import attribute_types
from matrixdp.selection.weights.asked_axes import AskedAxes, AskedProducts, AskedRows, Slot

__all__ = ["asked_axes"]

Array = NDArray[np.float64]

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
