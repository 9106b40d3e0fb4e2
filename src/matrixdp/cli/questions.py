"""Questions as the command ``answer`` is given them: entries as YAML, inline or in files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matrixdp.queries import Entry

__all__ = ["entries_of", "read_questions"]

_EXPECTED = (
    "a workload entry such as 'product: {age: {ranges: [[0, 17]]}}' or 'quantile: {age: 0.5}', or a file "
    "with one or a list of them"
)


def read_questions(queries: Iterable[str]) -> list[tuple[tuple[str, ...], Entry]]:
    """Return the entries that texts or files hold, each with what errors call it where there are several."""
    from matrixdp.specification import entry_from_spec

    written = [found for query in queries for found in entries_of(query)]
    places = [f"query {place}" for place in range(1, len(written) + 1)] if len(written) > 1 else ["query"]
    made = [entry_from_spec(*one, place) for one, place in zip(written, places, strict=True)]
    return [((place,) if len(written) > 1 else (), entry) for place, entry in zip(places, made, strict=True)]


def entries_of(query: str) -> list[tuple[Mapping[str, Any], Path]]:
    """Return the entries that a text or a file holds, and what their paths are relative to."""
    from matrixdp.errors import SpecificationError
    from matrixdp.specification import parse_yaml

    base = Path()
    if os.path.isfile(query):  # noqa: PTH113 - no error where the path is none
        base = Path(query).parent
        try:
            text = Path(query).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise SpecificationError.at(("query",), "a file that cannot be read as text", _EXPECTED) from None
        value = parse_yaml(text).value
    elif ":" not in query:
        raise SpecificationError.at(("query",), f"{query!r}, which is no file and no entry", _EXPECTED)
    else:
        value = _inline(query)
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise SpecificationError.at(("query",), "an empty list", _EXPECTED)
    found: list[tuple[Mapping[str, Any], Path]] = []
    for entry in listed:
        if not isinstance(entry, Mapping):
            raise SpecificationError.at(("query",), f"a {type(entry).__name__}", _EXPECTED)
        found.append((entry, base))
    return found


def _inline(text: str) -> object:
    """Return what a text says: YAML, or the inside of a mapping, as in ``cdf: age, by: [sex]``."""
    from matrixdp.errors import SpecificationError
    from matrixdp.specification import parse_yaml

    try:
        return parse_yaml(text).value
    except SpecificationError:
        with suppress(SpecificationError):
            return parse_yaml(f"{{{text}}}").value
        raise
