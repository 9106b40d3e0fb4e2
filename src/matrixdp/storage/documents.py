"""JSON as it stands in a file, and where two documents differ."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from typing import Any

from matrixdp.errors import Path, StorageError, format_place

__all__ = ["TOLERANCE", "differences", "read_strictly"]

#: How far a figure that floating-point arithmetic computed again may lie from what is written, relative.
TOLERANCE = 1e-9
_SHOWN = 60


def read_strictly(text: bytes, name: str) -> dict[str, Any]:
    """Return a JSON object that every reader reads alike: no key given twice, no NaN, UTF-8.

    Raises
    ------
    StorageError
        If it is none.

    Examples
    --------
    >>> read_strictly(b'{"a": 1}', "release.json")
    {'a': 1}
    """
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{name}: not JSON that all read alike ({_brief(error)})") from None
    if not isinstance(found, dict):
        raise StorageError(f"{name}: found a {type(found).__name__}; expected an object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def differences(
    written: Any, follows: Any, path: Path = (), exact: bool = False, leave: Collection[Path] = ()
) -> Iterator[str]:
    """Yield in words where a document differs from what follows; figures may differ by `TOLERANCE`.

    With `exact` they may not; what stands under the places in `leave` is not compared.

    Examples
    --------
    >>> list(differences({"a": [1, 2.0], "b": 3}, {"a": [1, 2.5]}))
    ['a[1] says 2.0; 2.5 follows', 'b is no part of it']
    """
    if path in leave:
        return
    place = format_place(path)
    if isinstance(written, dict) and isinstance(follows, dict):
        for key in dict.fromkeys((*written, *follows)):
            own = (*path, key)
            if key not in follows and own not in leave:
                yield f"{format_place(own)} is no part of it"
            elif key not in written and own not in leave:
                yield f"{format_place(own)} is missing"
            elif own not in leave:
                yield from differences(written[key], follows[key], own, exact, leave)
    elif isinstance(written, list) and isinstance(follows, list):
        if len(written) != len(follows):
            yield f"{place} has {len(written)} items; {len(follows)} follow"
            return
        for position, (one, other) in enumerate(zip(written, follows, strict=True)):
            yield from differences(one, other, (*path, position), exact, leave)
    elif not _same(written, follows, exact):
        yield f"{place} says {_brief(written)}; {_brief(follows)} follows"


def _same(written: object, follows: object, exact: bool) -> bool:
    if isinstance(written, float) and isinstance(follows, float) and not exact:
        return math.isclose(written, follows, rel_tol=TOLERANCE, abs_tol=0.0)
    return type(written) is type(follows) and written == follows


def _brief(value: object) -> str:
    text = value if isinstance(value, Exception) else json.dumps(value, ensure_ascii=False)
    return str(text) if len(str(text)) <= _SHOWN else f"{str(text)[:_SHOWN]}..."
