"""Which versions run: this program's, Python's, and those of the libraries that it uses."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator
from importlib import metadata

from matrixdp import __version__

__all__ = ["versions"]

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def versions() -> str:
    """Return what a report of an error should begin with, a line each.

    Examples
    --------
    >>> versions().splitlines()[0] == f"matrixdp {__version__}"
    True
    """
    return "\n".join((f"matrixdp {__version__}", *_others()))


def _others() -> Iterator[str]:
    yield f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    try:
        required = metadata.requires("matrixdp") or []
    except metadata.PackageNotFoundError:
        return  # run from its files, without being installed
    needed = [text for text in required if "extra ==" not in text]
    yield "needed: " + ", ".join(_found(needed))
    yield "for extras: " + (", ".join(_found(text for text in required if "extra ==" in text)) or "none")


def _found(required: Iterable[str]) -> Iterator[str]:
    """Yield the names and versions of what is installed, each once."""
    for name in sorted({found[0] for text in required if (found := _NAME.match(text))}):
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
