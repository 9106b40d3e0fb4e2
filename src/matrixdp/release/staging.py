"""Folders that appear whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matrixdp.errors import StorageError
from matrixdp.storage.archive import sync_folder, temporary_name

__all__ = ["RELEASE_FILES", "RELEASE_FORMAT", "staged_folder"]

RELEASE_FORMAT = "matrixdp release"
#: The files that a release consists of; nothing else is ever replaced.
RELEASE_FILES = ("release.json", "measurement.mdp", "answers.parquet", "answers.csv")


@contextmanager
def staged_folder(out: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Give a temporary folder beside `out`, which takes its place when all went well.

    If anything fails, the temporary folder is removed and `out` is as it was. It must not be there, or be
    empty, or, with `force`, hold a release: nothing else is ever replaced.

    Raises
    ------
    StorageError
        If `out` holds something, or its parent cannot be written to. Before anything is written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     with staged_folder(f"{parent}/out") as folder:
    ...         written = (folder / "release.json").write_text("{}")
    ...     sorted(path.name for path in Path(parent, "out").iterdir())
    ['release.json']
    """
    target = Path(os.path.abspath(out))  # noqa: PTH100 - keeps a symbolic link to where the user points
    replaces = _check(target, force)
    partial = temporary_name(target, "partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except OSError as error:
        raise StorageError(f"{target}: cannot be written ({error.strerror})") from None
    try:
        yield partial
        for file in partial.iterdir():
            with file.open("rb+") as stream:
                os.fsync(stream.fileno())
        sync_folder(partial)
        _check(target, force)
        if replaces:
            _replace(partial, target)
        else:
            partial.replace(target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _replace(partial: Path, target: Path) -> None:
    old = temporary_name(target, "old")
    target.replace(old)
    try:
        partial.replace(target)
    except BaseException:
        old.replace(target)
        raise
    for name in RELEASE_FILES:
        (old / name).unlink(missing_ok=True)
    old.rmdir()


def _check(target: Path, force: bool) -> bool:
    """Return whether a release would be replaced; refuse to touch anything else."""
    if not target.exists() and not target.is_symlink():
        return False
    if not target.is_dir() or target.is_symlink():
        raise StorageError(f"{target}: found a file; expected a folder that is not there yet")
    names = {path.name for path in target.iterdir()}
    if not names:
        return False
    if not _is_release(target) or not names <= set(RELEASE_FILES):
        raise StorageError(f"{target}: found a folder with other files; expected one that is not there yet")
    if not force:
        raise StorageError(f"{target}: found an earlier release; use another folder, or force to replace it")
    return True


def _is_release(folder: Path) -> bool:
    try:
        written = json.loads((folder / "release.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(written, dict) and written.get("format") == RELEASE_FORMAT
