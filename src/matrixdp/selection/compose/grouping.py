"""Which query groups share a product: by the attributes that they ask about, then merged while it pays."""

from __future__ import annotations

import math
from collections.abc import Callable

from matrixdp.errors import TooLargeError
from matrixdp.noise import Noise
from matrixdp.queries import Group, Workload
from matrixdp.selection.problem.kron_sum import KronSum

__all__ = ["group_products", "groups_apart", "two_groups"]

#: With more sets than this, sets are only folded into others that hold their attributes.
MAX_MERGED_SETS = 24

Members = tuple[int, ...]


def group_products(
    workload: Workload, noise: Noise, solve: Callable[[Members, float], float], merge: bool = True
) -> tuple[list[Members], float]:
    """Return sets of groups (by their places) and the total loss of solving each by one product.

    ``solve`` also gets the loss above which an answer is of no use. Without ``merge`` sets are not merged
    two by two, which takes most of the time.
    """
    asked = _by_attributes(workload)
    loss = _remembered(solve)
    names_of = {place: set(names) for names, places in asked.items() for place in places}

    def related(one: Members, other: Members) -> bool:
        # a product of sets that share no attribute has all cells of both
        first = set().union(*(names_of[place] for place in one))
        second = set().union(*(names_of[place] for place in other))
        return not first or not second or bool(first & second)

    candidates = [[tuple(places) for places in asked.values()], _folded(asked)]
    scored = [(noise.total_loss([loss(s) for s in sets]), sets) for sets in candidates]
    total, sets = min(scored, key=lambda item: item[0])
    everything = (tuple(range(len(workload))),)
    if len(sets) <= MAX_MERGED_SETS:
        for start in candidates if merge else ():
            if len(start) <= MAX_MERGED_SETS:
                merged = _merged(list(start), noise, loss, related)
                found = noise.total_loss([loss(s) for s in merged])
                if found < total:
                    total, sets = found, merged
        if loss(everything[0]) < total:
            total, sets = loss(everything[0]), list(everything)
    return list(sets), total


def two_groups(workload: Workload, noise: Noise, solve: Callable[[Members, float], float]) -> list[Members]:
    """Return two sets of groups: those whose union loses least are merged until two are left.

    Raises TooLargeError where there are too many sets of attributes to be merged two by two.
    """
    asked = _by_attributes(workload)
    sets: list[Members] = [tuple(places) for places in asked.values()]
    if len(sets) == 1:
        sets = groups_apart(workload)
    if len(sets) > MAX_MERGED_SETS:
        sets = _folded(asked)
    if len(sets) > MAX_MERGED_SETS:
        raise TooLargeError(
            f"opt-plus: {len(sets)} sets of attributes are not merged to two groups; the limit is "
            f"{MAX_MERGED_SETS}. Use clusters=merged or products"
        )
    loss = _remembered(lambda members, _: solve(members, math.inf))
    while len(sets) > 2:
        found = _best_merge(sets, noise, loss)
        assert found is not None
        sets = found[1]
    return sets


def groups_apart(workload: Workload) -> list[Members]:
    """Return every group alone; one of zeros beside the first that asks about its attributes, or the first.

    Examples
    --------
    >>> import numpy as np
    >>> import matrixdp as mdp
    >>> zeros = mdp.dense(np.zeros((1, 3)), ["b"])
    >>> workload = mdp.Workload(mdp.Domain({"a": 2, "b": 3}), mdp.marginals([["a"], ["b"]]), zeros)
    >>> groups_apart(workload)
    [(0,), (1, 2)]
    """
    names = [set(KronSum.of(workload.domain, [group]).attributes) for group in workload]
    asking = [place for place, group in enumerate(workload) if group.asks]
    homes = {place: [place] for place in asking}
    for place, own in enumerate(names):
        if place not in homes:
            homes[next((one for one in asking if own <= names[one]), asking[0])].append(place)
    return [tuple(places) for places in homes.values()]


def _by_attributes(workload: Workload) -> dict[tuple[str, ...], list[int]]:
    """Return the places of the groups that ask about the same attributes."""
    asked: dict[tuple[str, ...], list[int]] = {}
    for members in groups_apart(workload):
        names = KronSum.of(workload.domain, group_subset(workload, members)).attributes
        asked.setdefault(names, []).extend(members)
    return asked


def _remembered(solve: Callable[[Members, float], float]) -> Callable[..., float]:
    """Return the loss of a set of groups, solved once."""
    losses: dict[Members, float] = {}

    def loss(members: Members, worth: float = math.inf) -> float:
        if members not in losses:
            losses[members] = solve(members, worth)
        return losses[members]

    return loss


def _folded(asked: dict[tuple[str, ...], list[int]]) -> list[Members]:
    """Put every set of groups into one that asks about all of its attributes and more, if there is one."""
    homes: dict[tuple[str, ...], list[int]] = {}
    for names, places in sorted(asked.items(), key=lambda item: -len(item[0])):
        home = next((other for other in homes if set(names) <= set(other)), names)
        homes.setdefault(home, []).extend(places)
    return [tuple(sorted(places)) for places in homes.values()]


def _merged(
    sets: list[Members],
    noise: Noise,
    loss: Callable[..., float],
    related: Callable[[Members, Members], bool],
) -> list[Members]:
    """Merge the two sets whose union gains most, until none does."""
    while len(sets) > 1:
        now = noise.total_loss([loss(s) for s in sets])
        best = _best_merge(sets, noise, loss, related)
        if best is None or best[0] >= now * (1 - 1e-9):
            break
        sets = best[1]
    return sets


def _best_merge(
    sets: list[Members],
    noise: Noise,
    loss: Callable[..., float],
    related: Callable[[Members, Members], bool] | None = None,
) -> tuple[float, list[Members]] | None:
    """Return the least total loss with two sets merged, and the sets; None where no two may be."""
    best: tuple[float, list[Members]] | None = None
    for i in range(len(sets)):
        for j in range(i):
            if related is not None and not related(sets[i], sets[j]):
                continue
            union = tuple(sorted((*sets[i], *sets[j])))
            rest = [s for k, s in enumerate(sets) if k not in (i, j)]
            merged = loss(union, noise.total_loss([loss(sets[i]), loss(sets[j])]))
            found = noise.total_loss([*(loss(s) for s in rest), merged])
            if best is None or found < best[0]:
                best = found, [*rest, union]
    return best


def group_subset(workload: Workload, members: Members) -> list[Group]:
    """Return the groups at given places."""
    return [workload.groups[place] for place in members]
