"""A workload as one table: which attributes factor out, and the Gram matrix of the rest."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact.resources import check_matrices
from matrixdp.queries import Total, Workload
from matrixdp.selection.view.gram_terms import Question, gram_terms
from matrixdp.selection.view.product_sums import sum_of_products
from matrixdp.selection.view.product_terms import product_terms

__all__ = ["MAX_TABLE_CELLS", "TableShape", "check_cells", "check_table", "joint_gram", "table_shape"]

Array = NDArray[np.float64]

#: A part on several attributes is measured over the data vector of their table: up to this many cells.
MAX_TABLE_CELLS = 100_000_000


def check_table(workload: Workload, names: tuple[str, ...], mechanism: str) -> None:
    """Raise TooLargeError if the table of some attributes has more cells than can be counted."""
    check_cells(workload.domain.cells(names), names, mechanism)


def check_cells(cells: int, names: Sequence[str], mechanism: str, most: float | None = None) -> None:
    """Raise TooLargeError if a table has more cells than can be counted, or than a limit."""
    limit = MAX_TABLE_CELLS if most is None else most
    if cells > limit:
        raise TooLargeError(
            f"{mechanism}: {' x '.join(names)} has {cells:.3g} cells; the limit is {limit:,}. Use residual, "
            "which never forms the whole table"
        )


@dataclass(frozen=True)
class TableShape:
    """How a workload looks as one table.

    Attributes
    ----------
    factored : dict of str to Question
        Attributes with proportional queries in every group, and which.
    joint : tuple of str
        The others.
    cells : int
        Cells of the joint attributes.
    weight : float
        What the products of the factored attributes count together, weights and coefficients of all terms.
    """

    factored: dict[str, Question]
    joint: tuple[str, ...]
    cells: int
    weight: float


def table_shape(workload: Workload) -> TableShape:
    """Return which attributes factor out of a workload.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 10, "b": 10})
    >>> table_shape(mdp.Workload(domain, mdp.product(a="prefix", b="range"))).cells
    1
    """
    weight, terms = 0.0, 0
    explicit: set[str] = set()
    asked: defaultdict[str, dict[Hashable, Question]] = defaultdict(dict)
    times: Counter[str] = Counter()
    for group in workload:
        own = gram_terms(group)
        if own is None:
            terms += 1
            explicit.update(group.attributes)
            continue
        for coefficient, questions in own:
            terms += 1
            weight += coefficient * group.weight
            times.update(group.attributes)
            for name, question, size in zip(group.attributes, questions, group.sizes, strict=True):
                asked[name].setdefault(question.key(size), question)
    factored, joint = {}, []
    for name in workload.domain.sort({*explicit, *asked}):
        size = workload.domain[name].size
        known = asked[name]
        if times[name] < terms:  # the other terms ask for its total
            known.setdefault(Total().key(size), Total())
        if name in explicit or len(known) > 1:
            joint.append(name)
        elif Total().key(size) not in known:
            [factored[name]] = known.values()
    return TableShape(factored, tuple(joint), workload.domain.cells(tuple(joint)), weight)


def joint_gram(workload: Workload, joint: tuple[str, ...]) -> Array:
    """Return the sum over groups of the Gram matrices on the joint attributes, weights included."""
    terms = product_terms(workload.domain, workload.groups)
    axes = [terms.attributes.index(name) for name in joint]
    sizes = tuple(terms.sizes[axis] for axis in axes)
    merged: dict[tuple[Hashable, ...], float] = {}
    for weight, keys in terms.products:
        own = tuple(keys[axis] for axis in axes)
        merged[own] = merged.get(own, 0.0) + weight
    check_matrices(joint, math.prod(sizes))
    total = np.zeros((math.prod(sizes),) * 2)
    for weight, places, rows in terms.explicit:
        shape = [size if axis in places else 1 for axis, size in zip(axes, sizes, strict=True)]
        spread = np.broadcast_to(rows.reshape(len(rows), *shape), (len(rows), *sizes))
        flat = spread.reshape(len(rows), len(total))
        total += weight * (flat.T @ flat)
    if merged:
        total += sum_of_products(
            [
                (weight, [terms.gram(axis, key) for axis, key in zip(axes, own, strict=True)])
                for own, weight in merged.items()
            ]
        )
    return total
