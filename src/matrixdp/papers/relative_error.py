"""Weights that make relative errors small, on data that are spread evenly."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import WorkloadError
from matrixdp.language import Entry
from matrixdp.queries import Group, ProductGroup

__all__ = ["relative_error"]

Array = NDArray[np.float64]


def relative_error(domain: Domain, *entries: Entry) -> tuple[Entry, ...]:
    """Return entries with every query weighted by the inverse of its squared share of the cells.

    A query that adds up the share s of all cells (its L1 norm over their number) is answered with s times
    the number of records if these are spread evenly over the cells. Its squared error counts by 1 / s^2 then,
    so that the weighted RMSE over the number of records is the root mean square of the relative errors. On
    other data it is not: no strategy that is chosen without them can know.

    Parameters
    ----------
    domain : Domain
        The attributes.
    *entries : Entry
        Each stands for one group. Weights that they have are multiplied.

    Raises
    ------
    WorkloadError
        If an entry stands for several groups, or a query is zero everywhere.

    References
    ----------
    McKenna et al., HDMM (VLDB 2018), section 9.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"age": range(4), "sex": ["f", "m"]})
    >>> [entry] = relative_error(domain, mdp.product(age="prefix"))
    >>> mdp.Workload(domain, entry).groups[0].query_weights.round(3).tolist()  # of 1/4, 1/2, 3/4 and all
    [16.0, 4.0, 1.778, 1.0]
    """
    weighted = []
    for place, entry in enumerate(entries):
        groups = entry.expand(domain)
        if len(groups) != 1:
            found = f"an entry that stands for {len(groups)} groups"
            raise WorkloadError.at(("entries", place), found, "one for each group, as `product` makes them")
        shares = _shares(groups[0])
        if not (shares > 0).all():
            raise WorkloadError.at(("entries", place), "a query that is zero everywhere", "none")
        known = 1.0 if groups[0].query_weights is None else groups[0].query_weights
        weighted.append(replace(entry, weights=known / shares**2))
    return tuple(weighted)


def _shares(group: Group) -> Array:
    """Return the mean of the absolute entries of every query, in the order of the answers."""
    if isinstance(group, ProductGroup):
        pairs = zip(group.predicates, group.sizes, strict=True)
        means = [np.abs(predicates.rows(size)).mean(axis=1) for predicates, size in pairs]
        return np.asarray(reduce(np.multiply.outer, means, np.ones(())), dtype=np.float64).ravel()
    return np.asarray(np.abs(group.rows()).mean(axis=1), dtype=np.float64)
