"""Refusals as tables: what is tried, and the code and the place of the error that it must raise.

Each package of tests may have a module `refusals` with a list REFUSALS. `tests/test_messages.py` runs all of
them and holds their messages in one snapshot; `pytest tests/test_messages.py --snapshot-update` renews it.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from matrixdp.errors import MatrixDPError, format_place


@dataclass(frozen=True)
class Refusal:
    """An attempt that must fail: its name, the code and place of the error, and what is tried.

    The attempt is given an empty folder where it takes one, which places call FOLDER.
    """

    name: str
    code: str
    place: str
    attempt: Callable[..., Any]
    error: type[MatrixDPError] = MatrixDPError
    line: int | None = None


def calling(function: Callable[..., Any], *given: Any, **named: Any) -> Callable[[], Any]:
    """Return the attempt to call a function; what is given need not be what it takes."""
    return lambda: function(*given, **named)


def numbered(kind: str, rows: Iterable[tuple[str, str, Callable[..., Any]]]) -> list[Refusal]:
    """Return the refusals of a table of codes, places and attempts, named by the first two."""
    seen: Counter[str] = Counter()
    found = []
    for code, place, attempt in rows:
        name = f"{kind}: {place} {code}"
        seen[name] += 1
        found.append(Refusal(f"{name} {seen[name]}", code, place, attempt))
    return found


def refused(refusal: Refusal, folder: Path) -> str:
    """Hold an attempt against its refusal, and return the message without the names of temporary folders."""
    with pytest.raises(refusal.error) as caught:
        refusal.attempt(folder) if refusal.attempt.__code__.co_argcount else refusal.attempt()
    error = caught.value
    place = format_place(error.path).replace(str(folder), "FOLDER")
    assert (error.code, place) == (refusal.code, refusal.place), str(error)
    position = error.problem.position if error.problem else None
    assert refusal.line is None or position == f"line {refusal.line}", str(error)
    return str(error).replace(str(folder), "FOLDER").replace(str(Path.cwd()), "HERE")
