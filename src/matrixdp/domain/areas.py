"""Areas and the larger areas that they lie in: values of an attribute and its levels, from one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from matrixdp.display import counted
from matrixdp.domain.rules import canonical_text
from matrixdp.errors import DomainError
from matrixdp.forms import unknown_name

AREAS = (
    "a table of areas: a column of areas, then one for each level with the larger area that they lie in, "
    "or the columns area, parent and level"
)
"""What lists areas, for messages."""

Columns = Mapping[str, Sequence[str]]
"""The columns of a table by their names, each with a text in every row."""
Levels = dict[str, dict[str, list[str]]]
"""For each level its areas, each with the values in it; those in none of them under an empty text."""


def areas_of(table: Mapping[str, Sequence[object]]) -> tuple[Sequence[str], Levels]:
    """Return the values that a table of areas lists, and their levels, coarse to fine.

    Parameters
    ----------
    table : mapping of str to list
        The values, then a column for each level, in any order, empty where a value skips the level. Or the
        columns ``area``, ``parent`` and ``level``, with a row for each area, the larger ones too.

    Raises
    ------
    DomainError
        If an area is listed twice or lies in two of one level, the levels do not nest, or a value lies in no
        area of the coarsest one.

    Examples
    --------
    >>> areas_of({"tract": ["1", "2", "3"], "county": ["a", "", "b"], "state": ["x", "x", "y"]})
    (['1', '2', '3'], {'state': {'x': ['1', '2'], 'y': ['3']}, 'county': {'a': ['1'], '': ['2'], 'b': ['3']}})
    """
    columns: Columns = {name: list(map(canonical_text, column)) for name, column in table.items()}
    rows = len(next(iter(columns.values()), ()))
    for name, column in columns.items():
        if len(column) != rows:
            expected = f"{rows}, one in each row"
            raise DomainError.at((name,), f"{len(column)} values", expected, code="wrong-size")
    if columns.keys() == {"area", "parent", "level"}:
        columns = _by_level(**columns)
    (first, values), *others = columns.items() or [("", ())]
    if not values or not others:
        found = f"a table of {counted(len(columns), 'column')} and {counted(rows, 'row')}"
        raise DomainError.at((), found, AREAS, code="wrong-size" if rows else "empty")
    _check_once(first, values)
    places: dict[str, NDArray[np.int64]] = {}
    for name, column in others:
        known = {area: place for place, area in enumerate(dict.fromkeys(column))}
        places[name] = np.array([known[area] if area else -1 for area in column])
    names = _coarse_to_fine(places)
    for coarse, fine in combinations(names, 2):
        if len(apart := _apart(places[fine], places[coarse])):
            row, above = int(apart[0]), columns[coarse]
            area = columns[fine][row]
            pair = (columns[fine].index(area), row)
            lies = [f"{values[own]!r} in {repr(above[own]) if above[own] else 'none'}" for own in pair]
            found = f"{fine} {area!r} in two of the level {coarse!r}: {' and '.join(lies)}"
            expected = f"levels that nest, each {fine} within one {coarse}; name areas of one name apart"
            raise DomainError.at((fine, row), found, expected, code="conflict")
    top = columns[names[0]]
    if "" in top:
        found = f"no area for {values[top.index('')]!r}"
        expected = f"an area for every value, as no level is coarser than {names[0]!r}"
        raise DomainError.at((names[0], top.index("")), found, expected, code="empty")
    levels: Levels = {name: {} for name in names}
    for name, groups in levels.items():
        for area, value in zip(columns[name], values, strict=True):
            groups.setdefault(area, []).append(value)
    return values, levels


def _check_once(name: str, areas: Sequence[str]) -> None:
    seen: set[str] = set()
    for row, area in enumerate(areas):
        if area in seen:
            found = f"{area!r} a second time"
            raise DomainError.at((name, row), found, "each area once, in one larger one", code="duplicate")
        seen.add(area)


def _apart(fine: NDArray[np.int64], coarse: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the rows whose area of one level lies elsewhere in another level than in its first row."""
    rows = np.flatnonzero(fine >= 0)
    above = np.zeros(int(fine.max(initial=0)) + 1, dtype=np.int64)
    above[fine[rows][::-1]] = coarse[rows][::-1]
    found: NDArray[np.intp] = rows[above[fine[rows]] != coarse[rows]]
    return found


def _coarse_to_fine(places: Mapping[str, NDArray[np.int64]]) -> list[str]:
    """Return the levels by how many lie within each less how many hold it, complete and short ones first."""
    score = dict.fromkeys(places, 0)
    for one, other in combinations(places, 2):
        within = not len(_apart(places[one], places[other]))
        holds = not len(_apart(places[other], places[one]))
        score[one] += holds - within
        score[other] += within - holds
    return sorted(places, key=lambda name: (-score[name], places[name].min() < 0, places[name].max()))


def _by_level(area: Sequence[str], parent: Sequence[str], level: Sequence[str]) -> Columns:
    """Return the columns of levels where each area names its parent; the values are nobody's parents."""
    _check_once("area", area)
    rows = {name: row for row, name in enumerate(area)}
    for row, above in enumerate(parent):
        if above and above not in rows:
            expected = "an area of the table, or an empty text for the largest areas"
            raise DomainError(unknown_name(("parent", row), above, expected, area))
    parents = set(parent)
    names = dict.fromkeys(name for name, own in zip(level, area, strict=True) if own in parents)
    paths: dict[str, dict[str, str]] = {}
    for row, first in enumerate(area):
        path: dict[str, str] = {}
        own = first
        while own:
            name = level[rows[own]]
            if name in path:
                again = "itself" if path[name] == own else f"{own!r}, both {name!r}"
                found = f"{path[name]!r} below {again}"
                expected = "parents without a cycle, each of another level"
                raise DomainError.at(("parent", row), found, expected, code="conflict")
            path[name], own = own, parent[rows[own]]
        if first not in parents:
            paths[first] = path
    return {"area": [*paths], **{name: [path.get(name, "") for path in paths.values()] for name in names}}
