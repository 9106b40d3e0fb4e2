"""How a strategy was chosen, as a release tells it: words and figures that nothing is computed from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from matrixdp.errors import SpecificationError
from matrixdp.forms.wording import is_unicode

__all__ = ["checked_origin"]


def _text(value: object) -> bool:
    # what has no form in UTF-8 could not be written
    return isinstance(value, str) and is_unicode(value)


def _number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _number_or_none(value: object) -> bool:
    return value is None or _number(value)


def _objective(value: object) -> bool:
    return value in ("sum", "max")


_Check = tuple[Callable[[object], bool], str]
_FIELDS: dict[str, _Check] = {
    "mechanism": (_text, "text"),
    "reason": (_text, "text"),
    "objective": (_objective, "sum or max"),
}
_CERTIFICATE: dict[str, _Check] = {
    "loss": (_number, "a finite number"),
    "lower_bound": (_number_or_none, "a finite number or null"),
    "gap": (_number_or_none, "a finite number or null"),
    "scope": (_text, "text"),
    "figures": (_text, "text"),
}


def checked_origin(origin: object) -> dict[str, Any]:
    """Return what is known of an origin, each field of its type; other fields are left out.

    Raises
    ------
    SpecificationError
        If it is no mapping, or a field is of another type.

    Examples
    --------
    >>> checked_origin({"mechanism": "residual", "reason": "asked for", "seconds": 3})
    {'mechanism': 'residual', 'reason': 'asked for'}
    """
    if not isinstance(origin, Mapping):
        raise SpecificationError.at(("origin",), f"a {type(origin).__name__}", "a mapping")
    kept = _kept(origin, _FIELDS, ("origin",))
    certificate = origin.get("certificate")
    if isinstance(certificate, Mapping):
        kept["certificate"] = _kept(certificate, _CERTIFICATE, ("origin", "certificate"))
    elif certificate is not None:
        found = f"a {type(certificate).__name__}"
        raise SpecificationError.at(("origin", "certificate"), found, "a mapping")
    return kept


def _kept(given: Mapping[str, object], fields: Mapping[str, _Check], path: tuple[str, ...]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, (holds, expected) in fields.items():
        if name not in given:
            continue
        if not holds(given[name]):
            raise SpecificationError.at((*path, name), f"a {type(given[name]).__name__}", expected)
        kept[name] = given[name]
    return kept
