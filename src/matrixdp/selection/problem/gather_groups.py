"""Many groups over the same attributes, gathered to few that ask the same.

A workload of single questions, as statements are, has a group for each. Selection sees Gram matrices alone,
so groups whose queries together are one product, or the rows of one matrix, may stand as that.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matrixdp.domain import Domain
from matrixdp.queries import (
    DenseGroup,
    Group,
    Identity,
    Matrix,
    MatrixRows,
    Predicates,
    ProductGroup,
    Workload,
)
from matrixdp.selection.limits import LIMITS

#: Fewer groups over the same attributes stay apart; gathered ones have at most this many rows for each.
LEAST_GATHERED = 8
_MAX_ROWS_A_GROUP = 8


@dataclass(frozen=True)
class GivenGroups:
    """A workload entry that stands for groups as they are; it exists during selection alone."""

    groups: tuple[Group, ...]

    def expand(self, domain: Domain) -> list[Group]:
        """Return the groups."""
        del domain
        return list(self.groups)

    def to_spec(self) -> dict[str, object]:
        """Return nothing: no file has such an entry."""
        return {}


def gather_groups(workload: Workload) -> Workload:
    """Return a workload of fewer groups with the same weighted Gram matrix.

    Products that differ on one attribute alone become one product; what is left of many groups over the same
    attributes becomes one group of explicit queries, where they are few enough and no attribute factors out.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"sex": 2, "age": 90})
    >>> asked = [mdp.product(sex={"sets": [[s]]}, age={"ranges": [[0, a]]}) for s in (0, 1) for a in range(9)]
    >>> [(group.attributes, group.queries) for group in gather_groups(mdp.Workload(domain, *asked))]
    [(('sex', 'age'), 18)]
    """
    alike: dict[tuple[str, ...], list[Group]] = {}
    for group in workload:
        alike.setdefault(group.attributes, []).append(group)
    if all(len(groups) < LEAST_GATHERED for groups in alike.values()):
        return workload
    found: list[Group] = []
    for groups in alike.values():
        if len(groups) < LEAST_GATHERED:
            found += groups
            continue
        marginals, products, explicit = _sorted(groups)
        found += [*marginals, *_as_rows([*_as_products(products), *explicit])]
    if any(isinstance(group, DenseGroup) and isinstance(group.content, MatrixRows) for group in found):
        # beside explicit queries few products are rows like them: Kronecker terms would fill all cells
        few = [group for group in found if _is_few(group)]
        if sum(group.queries * math.prod(group.sizes) for group in few) <= LIMITS.written_entries:
            found = [_written(group) if _is_few(group) else group for group in found]
    return Workload(workload.domain, GivenGroups(tuple(found)))


def _is_few(group: Group) -> bool:
    """Return whether a product has far fewer queries than cells."""
    if not isinstance(group, ProductGroup) or len(group.attributes) < 2:
        return False
    cells = math.prod(group.sizes)
    return group.queries * _MAX_ROWS_A_GROUP <= cells


def _written(group: Group) -> Group:
    """Return a group as explicit queries."""
    content = MatrixRows(group.rows())
    name = ", ".join(group.attributes)
    return DenseGroup(
        name, group.attributes, content, group.sizes, group.weight, query_weights=group.query_weights
    )


def _sorted(groups: Sequence[Group]) -> tuple[list[Group], list[ProductGroup], list[Group]]:
    """Return the groups that need no matrix anywhere (equal ones once), other products, and the rest."""
    marginals: dict[Hashable, list[ProductGroup]] = {}
    products: list[ProductGroup] = []
    explicit: list[Group] = []
    for group in groups:
        if not isinstance(group, ProductGroup) or group.query_weights is not None:
            explicit.append(group)
        elif all(p.symmetric(size) for p, size in zip(group.predicates, group.sizes, strict=True)):
            marginals.setdefault(group.key(), []).append(group)
        else:
            products.append(group)
    once: list[Group] = [
        replace(same[0], weight=math.fsum(group.weight for group in same)) for same in marginals.values()
    ]
    return once, products, explicit


def _as_products(products: list[ProductGroup]) -> list[ProductGroup]:
    """Return the products, those of one weight that differ on one attribute alone as one product."""
    for axis in range(len(products[0].attributes) if products else 0):
        alike: dict[Hashable, list[ProductGroup]] = {}
        for product in products:
            keys = _keys(product)
            # a set whose Gram matrix needs no matrix keeps that
            own = keys[axis] if product.predicates[axis].symmetric(product.sizes[axis]) else None
            alike.setdefault((product.weight, own, *keys[:axis], *keys[axis + 1 :]), []).append(product)
        products = [one for same in alike.values() for one in _stacked(same, axis)]
    return products


def _keys(group: ProductGroup) -> tuple[Hashable, ...]:
    return tuple(p.key(size) for p, size in zip(group.predicates, group.sizes, strict=True))


def _stacked(groups: list[ProductGroup], axis: int) -> list[ProductGroup]:
    """Return products that differ on one attribute at most as one, the queries on it in a fixed order."""
    first, size = groups[0], groups[0].sizes[axis]
    sets = [group.predicates[axis] for group in groups]
    if len(sets) == 1 or sum(p.count(size) for p in sets) * size > LIMITS.written_entries:
        return groups
    if sets[0].symmetric(size):
        return [replace(first, weight=math.fsum(group.weight for group in groups))]
    rows = np.vstack([p.rows(size) for p in sets])
    rows = rows[np.lexsort(rows.T[::-1])]
    whole: Predicates = Identity() if np.array_equal(rows[::-1], np.eye(size)) else Matrix(rows)
    predicates = (*first.predicates[:axis], whole, *first.predicates[axis + 1 :])
    return [replace(first, predicates=predicates)]


def _as_rows(groups: list[Group]) -> list[Group]:
    """Return the groups as one of explicit queries, if they are still many."""
    queries = sum(group.queries for group in groups)
    if len(groups) < LEAST_GATHERED or queries > _MAX_ROWS_A_GROUP * len(groups) or _factors(groups):
        return groups
    sizes = groups[0].sizes
    if queries * math.prod(sizes) > LIMITS.written_entries:
        return groups
    weights = [
        group.weight * (np.ones(group.queries) if group.query_weights is None else group.query_weights)
        for group in groups
    ]
    content = MatrixRows(np.vstack([group.rows() for group in groups]))
    name = ", ".join(groups[0].attributes)
    return [DenseGroup(name, groups[0].attributes, content, sizes, query_weights=np.concatenate(weights))]


def _factors(groups: list[Group]) -> bool:
    """Return whether some attribute is asked the same in every group, so that the rest is smaller."""
    keys = [_keys(group) for group in groups if isinstance(group, ProductGroup)]
    if len(keys) < len(groups):
        return False
    return any(len(set(column)) == 1 for column in zip(*keys, strict=True))
