"""Folders that appear whole or not at all."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matrixdp.errors import SafeNote, StorageError
from matrixdp.locks import Lock
from matrixdp.release.leftovers import (
    MEASUREMENT,
    RELEASE_FILES,
    REPLACED,
    REQUEST,
    RUNNING,
    SPENT,
    UNFINISHED,
    is_release,
    remove_release,
    settle,
    spent_for,
    unmark,
)
from matrixdp.storage.archive import sync_folder, temporary_name

__all__ = ["staged_folder"]

_WORKING_FOLDER = -100
_EXCHANGE = 2


@contextmanager
def staged_folder(
    out: str | os.PathLike[str], *, force: bool = False, keep: bool = False, spends: str | None = None
) -> Iterator[Path]:
    """Give a temporary folder beside `out`, which takes its place when all went well.

    If anything fails, the temporary folder is removed and `out` is as it was. It must not be there, or be
    empty, or, with `force`, hold a release: nothing else is ever replaced. With `keep` a measurement that
    was written whole stays in the temporary folder when something fails after it, and the error has a note
    that says what was spent (`matrixdp.release.leftovers.mark_spent`) and where it is. `spends` is the budget
    that is spent for the folder once it is there, for whoever has a release in it already.

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
    try:
        settle(target)
        replaces = _check(target, force, spends)
        partial = temporary_name(target, UNFINISHED)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "a name that is not a path"
        raise StorageError(f"{target}: cannot be written ({reason})") from None
    lock: Lock | None = None
    try:
        lock = Lock(partial / RUNNING)
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
        # only now, so that a folder elsewhere that has it was never put in its place
        unmark(target)
    except BaseException as error:
        told = _clear(partial, target, keep)
        if keep and told is not None:
            error.add_note(SafeNote(told))
        raise
    finally:
        if lock is not None:
            lock.free()


def _clear(partial: Path, target: Path, keep: bool) -> str | None:
    """Remove a temporary folder after a failure; say what became of a budget that was spent for it."""
    marks = [path for folder in (partial, target) if (path := folder / SPENT).exists()]
    if not marks:
        shutil.rmtree(partial, ignore_errors=True)
        return None
    budget, command = spent_for(marks[0].parent)
    spent = f"The budget was spent: {budget}"
    if marks[0].parent == target:
        shutil.rmtree(partial, ignore_errors=True)
        return f"{spent}. The release is whole in {target}"
    if not keep or not (partial / MEASUREMENT).exists():
        shutil.rmtree(partial, ignore_errors=True)
        return f"{spent}. No measurement was kept"
    for path in partial.iterdir():
        if path.name not in (MEASUREMENT, SPENT, REQUEST):
            path.unlink(missing_ok=True)
    return (
        f"{spent}. The measurement is whole: {partial / MEASUREMENT}. `matrixdp {command}` makes a "
        "release of it, at no further cost"
    )


def _replace(partial: Path, target: Path) -> None:
    if _exchange(partial, target):
        sync_folder(target.parent)
        remove_release(partial)
        return
    old = temporary_name(target, REPLACED)
    target.replace(old)
    try:
        partial.replace(target)
    except BaseException:
        if not target.exists():
            old.replace(target)
        raise
    sync_folder(target.parent)
    remove_release(old)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; return False, having done nothing, where that cannot be."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    places = _WORKING_FOLDER, os.fsencode(one), _WORKING_FOLDER, os.fsencode(other)
    return bool(rename(*places, _EXCHANGE) == 0)


def _check(target: Path, force: bool, spends: str | None = None) -> bool:
    """Return whether a release would be replaced; refuse to touch anything else."""
    if not target.exists() and not target.is_symlink():
        return False
    if not target.is_dir() or target.is_symlink():
        raise StorageError(f"{target}: found a file; expected a folder that is not there yet")
    names = {path.name for path in target.iterdir()}
    if not names:
        return False
    if not is_release(target) or not names <= set(RELEASE_FILES):
        raise StorageError(f"{target}: found a folder with other files; expected one that is not there yet")
    if not force:
        again = "" if spends is None else _again(target, spends)
        raise StorageError(
            f"{target}: found an earlier release; {again}use another folder, or replace it "
            "(force=True, or --force)"
        )
    return True


def _again(target: Path, spends: str) -> str:
    """Say what another release would spend, and how to do without."""
    return (
        f"a new one would spend {spends} once more, on top of what that one spent, and to replace it gives "
        f"nothing back. `matrixdp answer {target} QUERY` answers further queries of it at no further cost. "
        "To spend all the same, "
    )
