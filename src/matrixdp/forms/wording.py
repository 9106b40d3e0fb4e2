"""The words of messages: values as a user wrote them, and names that may have been meant."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Real

import numpy as np

from matrixdp.errors import Path, Problem, did_you_mean

__all__ = ["closest", "describe_value", "is_unicode", "nearest", "unknown_name"]


def nearest(name: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """Return the names that may have been meant, at most three, the closest first.

    Examples
    --------
    >>> nearest("aeg", ["age", "sex"]), nearest("income", ["age", "sex"])
    (('age',), ())
    """
    names = list(candidates)
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    if not close:
        lowered = {candidate.lower(): candidate for candidate in names}
        close = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)]
    return tuple(close)


def closest(name: str, candidates: Iterable[str]) -> str:
    """Return the end of a message: the names that are close to `name`, else the names that exist.

    Examples
    --------
    >>> closest("aeg", ["age", "sex"])
    "; did you mean 'age'?"
    >>> closest("income", ["age", "sex"])
    "; there are 'age', 'sex'"
    """
    names = list(candidates)
    return did_you_mean(nearest(name, names)) or _listing(names)


def is_unicode(text: str) -> bool:
    r"""Return whether a text can be written; Python has some that cannot, with halves of surrogate pairs.

    Examples
    --------
    >>> is_unicode("age"), is_unicode("\ud800")
    (True, False)
    """
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def describe_value(value: object) -> str:
    """Return a short text of a value that a user wrote, as a specification would write it.

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
    if isinstance(value, int) and value.bit_length() > 10_000:
        return "an integer of thousands of digits"  # which Python does not write
    if isinstance(value, Real):
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


def unknown_name(
    path: Path, name: str, expected: str, candidates: Iterable[str], found: str | None = None
) -> Problem:
    """Return the problem of a name that does not exist.

    Parameters
    ----------
    path : tuple of str or int
        Where it stands.
    name : str
        The public name.
    expected : str
        What it should name.
    candidates : iterable of str
        The public names that exist.
    found : str, optional
        What to say was found, if not the name.

    Examples
    --------
    >>> str(unknown_name(("by", "aeg"), "aeg", "an attribute of the domain", ["age", "sex"]))
    "by.aeg: found 'aeg'; expected an attribute of the domain; did you mean 'age'?"
    """
    names = list(candidates)
    close = nearest(name, names)
    return Problem(path, found or repr(name), expected + ("" if close else _listing(names)), close)


def _listing(names: list[str]) -> str:
    listed = ", ".join(repr(candidate) for candidate in names[:10])
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"; there are {listed}{more}" if listed else "; there are none"
