"""Locks and temporary folders that last as long as the process that took them, however it ends."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Self, final

from matrixdp.errors import StorageError, file_problem

_PREFIX = "matrixdp-"
_OWNER = "owner"
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def whole_path(path: str | os.PathLike[str]) -> Path:
    """Return the whole path of what is, or will be, at a path, read as the system reads it.

    A link at its end stays, so that a user's link is told by its name; ``link/..`` is the folder that holds
    what the link leads to.

    Examples
    --------
    >>> whole_path("/tmp/out"), whole_path("/tmp/none/../out")
    (PosixPath('/tmp/out'), PosixPath('/tmp/out'))
    """
    own = Path(path).absolute()
    if ".." not in own.parts:
        return own
    return Path(os.path.realpath(own)) if own.name == ".." else Path(os.path.realpath(own.parent), own.name)


def _locking(path: Path) -> ModuleType:
    try:
        import fcntl
    except ImportError:  # on Windows
        expected = "Linux, macOS or another POSIX system; on Windows, use its subsystem for Linux"
        told = f"{path}: found a system without locks that end with their process; expected {expected}"
        raise StorageError(told, "not-supported") from None
    return fcntl


def _still_at(path: Path, descriptor: int) -> bool:
    """Return whether what was opened is still what a path leads to."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False


@final
class Lock:
    """A lock on a file, which the operating system takes back when its process ends.

    It is the process that is asked for and not its number, which another one may have by now. What is
    forked while the lock is held holds it too. Who holds the lock may write a text into the file, for
    whoever finds it later.

    Parameters
    ----------
    path : Path
        The file; it is made if it is not there.

    Raises
    ------
    StorageError
        If somebody holds the lock, or the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "running")
    ...     with Lock(path):
    ...         Lock.is_held(path)
    ...     Lock.is_held(path)
    True
    False
    """

    def __init__(self, path: Path) -> None:
        fcntl = _locking(path)
        self.path = path
        try:
            # no link is followed: what is written into the file, or made, must not be elsewhere
            self._descriptor: int | None = os.open(path, _FLAGS, 0o600)
        except (OSError, ValueError) as error:
            raise StorageError(f"{path}: cannot be opened ({file_problem(error)})") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.free()
            why = "held by a process that still runs"
            if not isinstance(error, BlockingIOError):
                why = f"cannot be locked ({error.strerror})"
            raise StorageError(f"{path}: {why}") from None
        if not _still_at(path, self._descriptor):
            self.free()
            raise StorageError(f"{path}: removed by another process while it was being locked")

    @staticmethod
    def is_held(path: Path) -> bool:
        """Return whether a process that still runs holds the lock."""
        if not path.exists():
            return False
        try:
            Lock(path).free()
        except StorageError:
            return True
        return False

    def write(self, text: str) -> None:
        """Write a text into the file, durably, in the place of an earlier one."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, os.fsencode(text), 0)
            os.fsync(self._descriptor)

    def read(self) -> str:
        """Return the text that was written into the file, at most 64 KiB of it; empty if there is none."""
        return "" if self._descriptor is None else os.fsdecode(os.pread(self._descriptor, 1 << 16, 0))

    def remove(self) -> None:
        """Remove the file, which nobody will need again, and let go of it."""
        if self._descriptor is not None:
            self.path.unlink(missing_ok=True)
            self.free()

    def free(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Lock a folder itself, whatever its name becomes, for as long as a process replaces or signs it.

    Where there is no folder, or the system has no such locks, nothing is locked.

    Raises
    ------
    StorageError
        If another process has locked it, or has replaced it meanwhile.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, folder_lock(Path(folder)):
    ...     with folder_lock(Path(folder)):
    ...         pass
    Traceback (most recent call last):
        ...
    matrixdp.errors.StorageError: ...: another run is writing there
    """
    descriptor, free = None, True
    try:
        import fcntl

        folder = Path(os.path.realpath(folder))
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        free = False
    except (ImportError, OSError, ValueError):
        pass
    try:
        if descriptor is not None and not (free and _still_at(folder, descriptor)):
            raise StorageError(f"{folder}: another run is writing there", "already-spent")
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def private_folder(where: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Give a temporary folder that only this user can open, and remove it afterwards.

    What killed processes of this user on this machine left is removed first. It lies in another folder, or
    in the system's for such.

    Raises
    ------
    StorageError
        If the temporary folder cannot be written to.

    Examples
    --------
    >>> with private_folder() as folder:
    ...     oct(folder.stat().st_mode)
    '0o40700'
    >>> folder.exists()
    False
    """
    try:
        for left in Path(where or tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            _remove_left(left)
        folder, process = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where)), os.getpid()
        lock = Lock(folder / _OWNER)
        lock.path.write_text(platform.node())
    except (OSError, StorageError) as error:
        reason, cure = getattr(error, "strerror", None) or error, "name another one"
        cure += " in the variable TMPDIR" if where is None else f" than {os.fspath(where)}"
        raise StorageError(f"the temporary folder cannot be used ({reason}); {cure}") from None
    try:
        yield folder
    finally:
        # A copy of the process leaves the folder to the one that made it.
        if os.getpid() == process:
            shutil.rmtree(folder, ignore_errors=True)
        lock.free()


def _remove_left(folder: Path) -> None:
    """Remove a folder whose process is gone."""
    held = folder / _OWNER
    with suppress(OSError, StorageError):
        # The owner writes once it has the lock: an empty file may be about to be locked.
        if folder.lstat().st_uid == os.geteuid() and held.lstat().st_size:
            with Lock(held) as lock:
                # Locks of other machines need not be seen here. An empty file was removed meanwhile.
                # No link is followed.
                if lock.read() in ("", platform.node()):
                    shutil.rmtree(folder, ignore_errors=True)
