"""Tables of the attributes that impossible combinations link: those of one table that has none of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import SpecificationError, TooLargeError
from matrixdp.model.constraints import Constraints

__all__ = ["MAX_LINKED", "linked_tables"]

Array = NDArray[np.float64]

#: The table of attributes that impossible combinations link has at most so many cells.
MAX_LINKED = 5_000_000
#: Sweeps over the attributes, and how near, relative to the total, their sums must come.
_SWEEPS, _NEAR = 2000, 1e-10
#: How far published sums may be missed.
_KEPT = 1e-6


def linked_tables(singles: Mapping[str, Array], known: Constraints) -> dict[tuple[str, ...], Array]:
    """Return tables of attributes and of pairs that agree, with nobody in an impossible combination.

    For each set of attributes that impossible combinations link: the table of them all that has the given
    sums and is, but for its zeros, that of independent attributes. Where the given sums need impossible
    combinations, it has others, near them.

    Parameters
    ----------
    singles : mapping of str to ndarray
        The table of each attribute.
    known : Constraints

    Returns
    -------
    dict
        The tables of linked attributes, and of each pair of them; positive where the rules allow records.

    Raises
    ------
    TooLargeError
        If the table of linked attributes has more than `MAX_LINKED` cells.
    SpecificationError
        If every combination is impossible, or published counts need impossible combinations.
    """
    found: dict[tuple[str, ...], Array] = {}
    for names in known.linked():
        cells = known.domain.cells(names)
        if cells > MAX_LINKED:
            raise TooLargeError.at(
                ("structural_zeros",),
                f"combinations that link {', '.join(names)}, whose table has {cells} cells",
                f"at most {MAX_LINKED} for method 'local'; method='mixture' needs no such table",
            )
        fixed = {table.free[0] for table in known.tables if len(table.free) == 1}
        # the last sums are met in any case: those that are published
        order = sorted(range(len(names)), key=lambda axis: names[axis] in fixed)
        table = _fitted(known.allowed(names), {axis: singles[names[axis]] for axis in order})
        for count in (1, 2):
            for kept in combinations(names, count):
                others = tuple(axis for axis, name in enumerate(names) if name not in kept)
                found[kept] = np.asarray(table.sum(axis=others))
        for published in known.tables:
            if published.free in found:
                off = published.rows @ found[published.free] - published.counts
                if float(abs(off).max()) > _KEPT * float(table.sum()):
                    expected = "counts that need no combination that is impossible"
                    raise SpecificationError.at(
                        ("invariants",), f"counts of {published.free[0]}", expected, code="conflict"
                    )
    return found


def _fitted(allowed: NDArray[np.bool_], sums: Mapping[int, Array]) -> Array:
    total = math.fsum(sums[0])
    if not allowed.any():
        expected = "rules that leave some combination of values possible"
        raise SpecificationError.at(("structural_zeros",), "no possible combination", expected, code="empty")
    table = allowed / allowed.sum() * total
    # a value whose sum is 0 has a little, so that what is possible stays positive
    raised = {
        axis: (own + total * 1e-12) * (total / (total + len(own) * total * 1e-12))
        for axis, own in sums.items()
    }
    for _ in range(_SWEEPS):
        off = 0.0
        for axis, wanted in raised.items():
            others = tuple(place for place in range(table.ndim) if place != axis)
            held = table.sum(axis=others)
            off = max(off, float(abs(held - wanted).max()))
            ratio = np.divide(wanted, held, out=np.zeros_like(held), where=held > 0)
            table = table * ratio.reshape([-1 if place == axis else 1 for place in range(table.ndim)])
        if off <= _NEAR * total:
            break
    return np.asarray(table * (total / table.sum()))
