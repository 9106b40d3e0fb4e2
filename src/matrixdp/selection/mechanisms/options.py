"""The options of mechanisms: what one can be told, and the check of what it is told."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

from matrixdp.errors import WorkloadError

__all__ = ["Options", "check_options", "given_options", "option"]


@dataclass(frozen=True)
class Options:
    """What a mechanism can be told: nothing. Those that can be told something derive a class from this one.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Searched(Options):
    ...     seed: int = option(0, "of the random starting points")
    >>> Searched(seed=3)
    Searched(seed=3)
    """


O = TypeVar("O", bound=Options)  # noqa: E741


def option(
    default: Any,
    description: str,
    choices: tuple[str, ...] = (),
    least: int = 0,
    read: Callable[[object], object] | None = None,
) -> Any:
    """Return the field of an option: a whole number, a number above 0 (as its default is), or a text.

    Parameters
    ----------
    default : int, float, str or None
    description : str
    choices : tuple of str
        What a text must be one of.
    least : int
        What a whole number must be at least.
    read : callable, optional
        What reads and checks an option of another kind; its errors name the option.
    """
    about = {"description": description, "choices": choices, "least": least, "read": read}
    return field(default=default, metadata=about)


def check_options(owner: str, kinds: Iterable[type[Options]], given: Mapping[str, object]) -> None:
    """Raise WorkloadError if an option that is given is in none of some classes.

    Examples
    --------
    >>> check_options("identity", [Options], {"seed": 1})
    Traceback (most recent call last):
    matrixdp.errors.WorkloadError: seed: found an option that identity does not have; expected none
    """
    from matrixdp.forms import nearest

    known = list(dict.fromkeys(f.name for kind in kinds for f in fields(kind)))
    for name in given:
        if name not in known:
            found, has = f"an option that {owner} does not have", " or ".join(known) or "none"
            raise WorkloadError.at((name,), found, has, nearest(name, known))


def given_options(kind: type[O], given: Mapping[str, object]) -> O:
    """Return the options of a class, those that are given among them; texts are read as numbers.

    Examples
    --------
    >>> given_options(Options, {"seed": 1})  # an option of another mechanism that is tried too
    Options()
    """
    chosen = {f.name: _value(f, given[f.name]) for f in fields(kind) if f.name in given}
    return kind(**chosen)


def _value(about: Field[Any], value: object) -> Any:
    choices, default = about.metadata["choices"], about.default
    if about.metadata["read"] is not None:
        return about.metadata["read"](value)
    if choices:
        if value not in choices:
            raise WorkloadError.at((about.name,), repr(value), f"one of {', '.join(choices)}")
        return value
    read: object = value
    whole = not isinstance(default, float)
    if isinstance(value, str):
        with suppress(ValueError):
            read = int(value) if whole else float(value)
    if isinstance(read, bool) or not isinstance(read, int if whole else (int, float)):
        raise WorkloadError.at((about.name,), repr(value), "a whole number" if whole else "a number")
    least = about.metadata["least"]
    if whole and read < least:
        raise WorkloadError.at((about.name,), repr(value), f"a whole number of at least {least}")
    if not (whole or 0 < read < math.inf):
        raise WorkloadError.at((about.name,), repr(value), "a finite number above 0")
    return read
