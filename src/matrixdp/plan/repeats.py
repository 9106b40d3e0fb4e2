"""Queries of a large product group that have equal variances, found predicate by predicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from matrixdp.plan.plan import GroupError
from matrixdp.queries import Matrix, Predicates, ProductGroup, Total

__all__ = ["COMPRESSED_QUERIES", "Representatives", "compressible", "representatives"]

Array = NDArray[np.float64]

#: Groups of more queries are looked through for repeats.
COMPRESSED_QUERIES = 1_000_000
#: Predicates of one attribute are written out up to this many entries.
_MOST_ENTRIES = 50_000_000
#: Figures that agree to so many digits are equal but for rounding.
_DIGITS = 11


@dataclass(frozen=True, eq=False)
class Representatives:
    """The different queries of a group.

    Attributes
    ----------
    group : ProductGroup
        One predicate for all that have the same variances.
    counts : list of ndarray
        For each attribute how many predicates each stands for.
    """

    group: ProductGroup
    counts: list[Array]

    def error(self, variances: Callable[[ProductGroup], Array]) -> GroupError:
        """Return the error of the whole group."""
        values = variances(self.group).reshape(self.group.counts)
        largest = float(values.max())
        for repeats in reversed(self.counts):
            values = values @ repeats
        return GroupError(float(values), float(values) * self.group.weight, largest)


def compressible(group: ProductGroup) -> bool:
    """Return whether a group is so large that its queries are looked through for repeats."""
    return group.query_weights is None and group.queries > COMPRESSED_QUERIES


def representatives(
    group: ProductGroup, factors: Mapping[str, Sequence[Array] | None]
) -> Representatives | None:
    """Return the queries of a group that differ in their variances; None if all may.

    The variance of a query is a sum over parts of products over attributes. Predicates of one attribute with
    the same factor in every part are interchangeable: all cells of a marginal, a range and its mirror image.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> [group] = mdp.product(a="prefix").expand(mdp.Domain({"a": 3}))
    >>> found = representatives(group, {"a": [np.array([2.0, 5.0, 2.0])]})
    >>> found.group.counts, found.counts[0].tolist()
    ((2,), [2.0, 1.0])
    """
    predicates: list[Predicates] = []
    counts: list[Array] = []
    for name, chosen, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
        count = chosen.count(size)
        own = factors[name]
        if not own or count == 1 or count * size > _MOST_ENTRIES:
            predicates.append(chosen)
            counts.append(np.ones(count))
            continue
        table = np.stack(own, axis=1)
        scale = np.abs(table).max(axis=0)
        rounded = np.round(table / np.where(scale > 0, scale, 1.0), _DIGITS)
        _, first, repeats = np.unique(rounded, axis=0, return_index=True, return_counts=True)
        predicates.append(chosen if len(first) == count else Matrix(chosen.rows(size)[first]))
        counts.append(np.ones(count) if len(first) == count else repeats.astype(np.float64))
    if all(isinstance(chosen, Total) or len(c) == chosen.count(size) for chosen, c, size in
           zip(group.predicates, counts, group.sizes, strict=True)):  # fmt: skip
        return None
    return Representatives(replace(group, predicates=tuple(predicates)), counts)
