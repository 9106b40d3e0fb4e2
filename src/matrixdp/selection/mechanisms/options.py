"""The options of mechanisms: what one can be told, and the check of what it is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def option(default: Any, description: str, choices: tuple[str, ...] = ()) -> Any:
    """Return the field of an option: a whole number or a number, as its default is, or one of some texts.

    Parameters
    ----------
    default : int, float or str
    description : str
    choices : tuple of str
        What a text must be one of.
    """
    return field(default=default, metadata={"description": description, "choices": choices})


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
    if choices:
        if value not in choices:
            raise WorkloadError.at((about.name,), repr(value), f"one of {', '.join(choices)}")
        return value
    read: object = value
    if isinstance(value, str):
        with suppress(ValueError):
            read = float(value) if isinstance(default, float) else int(value)
    wanted, kinds = ("a number", (int, float)) if isinstance(default, float) else ("a whole number", (int,))
    if isinstance(read, bool) or not isinstance(read, kinds):
        raise WorkloadError.at((about.name,), repr(value), wanted)
    return read
