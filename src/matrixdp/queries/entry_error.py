"""The error of a workload entry that is wrong at a named place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import final

import numpy as np

from matrixdp.errors import WorkloadError

__all__ = ["EntryError", "Path", "describe_value", "format_place"]

Path = tuple[str | int, ...]
"""Keys of mappings and positions in lists, from the outside in."""

_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def format_place(path: Iterable[str | int]) -> str:
    """Return a place in a specification as text.

    Parameters
    ----------
    path : iterable of str or int
        Keys and positions, from the outside in.

    Examples
    --------
    >>> format_place(("workload", 2, "product", "age", "ranges", 0))
    'workload[2].product.age.ranges[0]'
    >>> format_place(("domain", "hours a week"))
    "domain['hours a week']"
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text


def describe_value(value: object) -> str:
    """Return a short text of a value that a user wrote, as a specification would write it.

    Parameters
    ----------
    value : object
        The value.

    Examples
    --------
    >>> [describe_value(value) for value in (None, True, 0.5, "age", [0, 200], {"min": 0})]
    ['nothing (null)', 'true', '0.5', "'age'", '[0, 200]', 'a mapping with the keys min']
    """
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"{value[:60]!r}..."
    if isinstance(value, int | float | np.integer | np.floating):
        text = format(value)
        return text if len(text) <= 40 else f"{text[:40]}..."
    if isinstance(value, Mapping):
        keys = ", ".join(str(key) for key in list(value)[:8])
        return f"a mapping with the keys {keys}" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        if not value:
            return "an empty list"
        short = len(value) <= 4 and not any(isinstance(item, list | tuple | Mapping) for item in value)
        return f"[{', '.join(map(describe_value, value))}]" if short else f"a list of {len(value)}"
    return f"a value of type {type(value).__name__}"


@final
class EntryError(WorkloadError):
    """A workload entry that is wrong at a named place.

    Parameters
    ----------
    path : tuple of str or int
        Where in the entry, with the keys of a specification: ``("product", "age", "ranges", 0)``.
    found : str
        What stands there.
    expected : str
        What would be right.

    Examples
    --------
    >>> str(EntryError(("kway",), "5", "at most 3"))
    'kway: found 5; expected at most 3'
    """

    def __init__(self, path: Path, found: str, expected: str) -> None:
        super().__init__(f"{format_place(path)}: found {found}; expected {expected}")
        self.path = path
        self.found = found
        self.expected = expected
