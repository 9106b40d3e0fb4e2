"""Helpful endings for messages about names that do not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["closest"]


def closest(name: str, candidates: Iterable[str]) -> str:
    """Return the end of a message: the names that are close to `name`, else the names that exist.

    Parameters
    ----------
    name : str
        The public name that was not found.
    candidates : iterable of str
        The public names that exist.

    Returns
    -------
    str
        A clause that starts with a semicolon.

    Examples
    --------
    >>> closest("aeg", ["age", "sex"])
    "; did you mean 'age'?"
    >>> closest("income", ["age", "sex"])
    "; there are 'age', 'sex'"
    """
    names = list(candidates)
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    if not close:
        lowered = {candidate.lower(): candidate for candidate in names}
        close = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)]
    if close:
        return f"; did you mean {' or '.join(repr(match) for match in close)}?"
    listed = ", ".join(repr(candidate) for candidate in names[:10])
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"; there are {listed}{more}" if listed else "; there are none"
