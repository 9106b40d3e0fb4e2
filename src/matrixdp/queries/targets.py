"""Target errors: the largest standard error that the queries of a group may have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

from matrixdp.errors import EntryError
from matrixdp.forms import describe_value, unknown_name
from matrixdp.queries.workload import Workload

__all__ = ["EVERY_GROUP", "group_targets"]

EVERY_GROUP = "all"
"""The name that stands for all groups without a target of their own."""


def group_targets(workload: Workload, targets: Mapping[str, float]) -> list[float | None]:
    """Return the target of every group, None for those without.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "age": 5}), mdp.marginals([0, 1]))
    >>> [group.name for group in workload], group_targets(workload, {"age": 3.0})
    (['total', 'sex', 'age'], [None, None, 3.0])
    """
    places: dict[str, list[int]] = {}
    for entry, own in zip(workload.entries, workload.places, strict=True):
        name = getattr(entry, "name", None)
        if name is not None and len(own) > 1:
            places.setdefault(name, []).extend(own)
        for place in own:
            places.setdefault(workload.groups[place].name, []).append(place)
    found: list[float | None] = [None] * len(workload)
    if not isinstance(targets, Mapping):
        raise EntryError.at(("targets",), describe_value(targets), "{group: standard error, ...}")
    if not targets:
        raise EntryError.at(("targets",), "none", "{group: standard error, ...}")
    for name, target in targets.items():
        if isinstance(target, bool) or not isinstance(target, Real):
            raise EntryError.at(("targets", name), describe_value(target), "a number above 0, in records")
        if not (math.isfinite(target) and target > 0):
            raise EntryError.at(("targets", name), repr(target), "a finite number above 0, in records")
        if name not in places and name != EVERY_GROUP:
            expected = f"a group's name as `select --all` shows it, the name of an entry, or {EVERY_GROUP}"
            found_name = "no query group of that name"
            raise EntryError(unknown_name(("targets", name), name, expected, places, found_name))
        for place in places.get(name, []):
            known = found[place]
            found[place] = float(target) if known is None else min(known, float(target))
    if EVERY_GROUP in targets and EVERY_GROUP not in places:
        found = [float(targets[EVERY_GROUP]) if target is None else target for target in found]
    return found
