"""Attributes that are derived from others: a public table from the codes of the others to their own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from matrixdp.domain.levels import Valued
from matrixdp.errors import DomainError, within
from matrixdp.forms import describe_value

__all__ = ["Derivation", "by_cases", "by_map", "check_combinations", "described"]

_MOST_COMBINATIONS = 1_000_000
"""The most combinations of values of parents that a public table may have."""


@final
@dataclass(frozen=True)
class Derivation:
    """How the codes of an attribute follow from those of its parents: a table that is looked up.

    Parameters
    ----------
    of : tuple of str
        The parents that are attributes of the domain.
    columns : tuple of Valued
        The parents that are read from the table for this alone.
    codes : tuple of int
        The code for each combination of the parents' codes, row-major, those of `of` first.
    sql : str, optional
        The expression that the codes were computed by; a remark, which is not computed again.

    Examples
    --------
    >>> Derivation(("age",), (), (0, 0, 1)).of
    ('age',)
    """

    of: tuple[str, ...]
    columns: tuple[Any, ...]
    codes: tuple[int, ...]
    sql: str | None = None

    def to_spec(self) -> dict[str, object]:
        """Return the keys of a specification that say the same."""
        spec: dict[str, object] = {}
        if self.of:
            spec["of"] = list(self.of)
        if self.columns:
            spec["columns"] = {parent.name: parent.to_spec() for parent in self.columns}
        if self.sql is not None:
            spec["sql"] = self.sql
        return spec | {"codes": list(self.codes)}

    def check(self, parents: Sequence[Valued], size: int) -> None:
        """Check that there is a code of the attribute for every combination of the parents' values."""
        combinations = check_combinations(parents)
        if len(self.codes) != combinations:
            expected = f"{combinations}, one for each combination of values of {_names(parents)}"
            raise DomainError.at(("codes",), f"{len(self.codes)} codes", expected)
        wrong = next((code for code in self.codes if not 0 <= code < size), None)
        if wrong is not None:
            raise DomainError.at(("codes",), str(wrong), f"codes from 0 to {size - 1}")


def check_combinations(parents: Sequence[Valued]) -> int:
    """Return the number of combinations of the parents' values, which is limited."""
    if not parents:
        expected = "at least one attribute under `of`, or one column under `columns`"
        raise DomainError.at((), "no parents", expected)
    combinations = math.prod(parent.size for parent in parents)
    if combinations > _MOST_COMBINATIONS:
        found = f"{combinations:,} combinations of values of {_names(parents)}"
        raise DomainError.at((), found, f"at most {_MOST_COMBINATIONS:,}")
    return combinations


def by_map(parents: Sequence[Valued], written: Mapping[int, object], otherwise: object) -> list[object]:
    """Return what a map says of each value of the only parent, by its code; ``otherwise`` of the rest.

    Raises
    ------
    DomainError
        If a value has nothing and `otherwise` is None.
    """
    [parent] = parents
    return [_told(written.get(code, otherwise), parents, (code,)) for code in parent.all_codes]


def by_cases(
    parents: Sequence[Valued], cases: Sequence[tuple[Mapping[str, object], object]], otherwise: object
) -> list[object]:
    """Return what the first case that holds says of each combination of the parents' values.

    Raises
    ------
    DomainError
        If a condition is not about the parents, or no case holds and `otherwise` is None.
    """
    read = []
    for place, (when, then) in enumerate(cases):
        with within("cases", place, "when"):
            read.append((_allowed(parents, when), then))
    decided = np.full([parent.size for parent in parents], len(read))
    for place in reversed(range(len(read))):  # the first case that holds is written last
        allowed = read[place][0]
        decided[np.ix_(*(allowed.get(i, range(parent.size)) for i, parent in enumerate(parents)))] = place
    says = [*(then for _, then in read), otherwise]
    if otherwise is None and (decided == len(read)).any():
        _told(None, parents, np.argwhere(decided == len(read))[0].tolist())
    return [says[place] for place in decided.ravel().tolist()]


def described(parents: Sequence[Valued], codes: Sequence[int]) -> str:
    """Return a combination of values of the parents in words."""
    pairs = zip(parents, codes, strict=True)
    return " and ".join(f"{parent.name} {parent.label(code)}" for parent, code in pairs)


def _told(value: object, parents: Sequence[Valued], codes: Sequence[int]) -> object:
    if value is None:
        found = f"nothing for {described(parents, codes)}"
        raise DomainError.at((), found, "a value for every combination, or `otherwise` for the rest")
    return value


def _allowed(parents: Sequence[Valued], when: Mapping[str, object]) -> dict[int, Sequence[int]]:
    """Return for the places of parents which codes a condition allows."""
    names = [parent.name for parent in parents]
    found: dict[int, Sequence[int]] = {}
    for name, condition in when.items():
        with within(name):
            if name not in names:
                raise DomainError.at((), repr(name), f"one of the parents {_names(parents)}")
            parent = parents[names.index(name)]
            found[names.index(name)] = _codes(parent, condition)
    return found


def _codes(parent: Valued, condition: object) -> Sequence[int]:
    """Return the codes of a value, of a list of values, or of a range."""
    if isinstance(condition, Mapping):
        ends = condition.get("range")
        if set(condition) != {"range"} or not isinstance(ends, list | tuple) or len(ends) != 2:
            expected = "a value, a list of values, or {range: [first, last]}"
            raise DomainError.at((), describe_value(condition), expected)
        first, last = parent.code_range(*ends)
        return range(first, last + 1)
    listed = condition if isinstance(condition, list | tuple) else [condition]
    return [parent.code_of(value) for value in listed]


def _names(parents: Sequence[Valued]) -> str:
    return ", ".join(parent.name for parent in parents)
