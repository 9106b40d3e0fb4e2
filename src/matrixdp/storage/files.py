"""Files of a folder as they stand on disk: their digests, and what they hold, if they are plain files."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from pathlib import Path

from matrixdp.errors import StorageError

__all__ = ["entry", "plain_content", "plain_entry"]

_LARGEST_RECORD = 1 << 30
_PLAIN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def entry(path: Path) -> dict[str, object]:
    """Return what a record says of a file: its size and its SHA-256."""
    with path.open("rb") as stream:
        return _entry(stream)


def plain_entry(path: Path) -> dict[str, object]:
    """Return the same of a file of a folder that somebody else may have written.

    Raises
    ------
    StorageError
        If it is not there, or is a link or no file.
    """
    with _plain(path) as stream:
        return _entry(stream)


def _entry(stream: io.BufferedReader) -> dict[str, object]:
    digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"bytes": os.fstat(stream.fileno()).st_size, "sha256": digest}


def _plain(path: Path) -> io.BufferedReader:
    """Open a file of a folder, if it is one: no link that leads out of it, no pipe."""
    try:
        descriptor = os.open(path, _PLAIN)
    except FileNotFoundError:
        raise StorageError(f"{path}: no such file") from None
    except (OSError, ValueError):
        raise StorageError(f"{path}: cannot be read, or is a link; expected a file") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(f"{path}: found something else than a file")
    return os.fdopen(descriptor, "rb")


def plain_content(path: Path, limit: int = _LARGEST_RECORD) -> bytes:
    """Return what a file of a release holds.

    Raises
    ------
    StorageError
        If it is not there, is a link or no file, or has more bytes than the limit.
    """
    with _plain(path) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise StorageError(f"{path}: found more than {limit} bytes")
    return content
