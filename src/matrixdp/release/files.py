"""The files of a release as they stand on disk, held against the record that lists them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matrixdp.errors import StorageError
from matrixdp.release.leftovers import LISTED, MEASUREMENT, RECORD, RELEASE_FORMAT
from matrixdp.storage.documents import read_strictly
from matrixdp.storage.files import plain_entry

__all__ = ["check_files", "check_listed"]


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
        if plain_entry(path) != listed[name]:
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
