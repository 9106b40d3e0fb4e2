"""The files of a release as they stand on disk: their digests, and the record that lists them."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matrixdp.errors import StorageError
from matrixdp.release.leftovers import LISTED, MEASUREMENT, RECORD, RELEASE_FORMAT
from matrixdp.release.records import read_strictly

__all__ = ["check_files", "check_listed", "entry", "plain_content"]

_LARGEST_RECORD = 1 << 30
_PLAIN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def entry(path: Path) -> dict[str, object]:
    """Return what the record says of a file: its size and its SHA-256."""
    with path.open("rb") as stream:
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


def check_listed(folder: Path, written: Mapping[str, Any]) -> None:
    """Check that every file of a release is the one that its record lists.

    Raises
    ------
    StorageError
        If a file is missing, another one, a link, or one of a release and not listed.
    """
    record = folder / RECORD
    listed = written.get("files")
    if not isinstance(listed, dict) or MEASUREMENT not in listed or not set(listed) <= set(LISTED):
        raise StorageError(f"{record}: damaged: it does not list the files of a release")
    for name in LISTED:
        path = folder / name
        if name not in listed:
            if os.path.lexists(path):
                raise StorageError(f"{path}: is not listed in {RECORD}")
            continue
        with _plain(path) as stream:
            if _entry(stream) != listed[name]:
                raise StorageError(f"{path}: does not belong to {RECORD}: its checksum is another")


def check_files(folder: Path, content: bytes) -> dict[str, Any]:
    """Return the record of a release, given its bytes, after checking every file that it lists.

    Raises
    ------
    StorageError
        If it is no record, or a file is not the one that it lists.
    """
    written = read_strictly(content, str(folder / RECORD))
    if written.get("format") != RELEASE_FORMAT:
        raise StorageError(f"{folder / RECORD}: holds something else than the record of a release")
    check_listed(folder, written)
    return written
