"""Quartiles of what a release has cumulative counts of."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from matrixdp.queries import Group, Identity, Prefix, ProductGroup
from matrixdp.release.release import Release

__all__ = ["MAX_STRATA", "MAX_VALUES", "quartiles"]

#: Values of an attribute, categories of another, and tables, at most.
MAX_VALUES, MAX_STRATA, _MOST = 500, 12, 6


def quartiles(release: Release) -> Iterator[tuple[str, pa.Table]]:
    """Yield a title and the quartiles, for attributes with cumulative counts and one or no other attribute.

    Each is what `Release.quantile` returns.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": range(8)}), mdp.product(age="prefix"))
    >>> release = mdp.select(workload).measure({"age": [3] * 99}, mdp.Budget(rho=9)).reconstruct()
    >>> [(title, table.column("estimate").to_pylist()) for title, table in quartiles(release)]
    [('age', [3.0, 3.0, 3.0])]
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    for group in release.workload:
        asked = _asked(group)
        if asked is not None and asked not in found:
            found.append(asked)
    for name, others in found[:_MOST]:
        title = f"{name} by {others[0]}" if others else name
        yield title, release.quantile(name, by=others)


def _asked(group: Group) -> tuple[str, tuple[str, ...]] | None:
    """Return the attribute that a group cumulates, and those by which it does; None where it does not."""
    if not isinstance(group, ProductGroup) or not 1 <= len(group.attributes) <= 2:
        return None
    sets = list(zip(group.attributes, group.predicates, group.sizes, strict=True))
    along = [name for name, own, size in sets if isinstance(own, Prefix) and size <= MAX_VALUES]
    others = [name for name, own, size in sets if isinstance(own, Identity) and size <= MAX_STRATA]
    if len(along) != 1 or len(along) + len(others) != len(sets):
        return None
    return along[0], tuple(others)
