"""A disk in memory that fails on purpose, as in SQLite's own crash tests (its ``test6.c``).

At the n-th operation it refuses (an I/O error), is full, loses its power, or the process is killed. After
lost power a file has what was synced; of each sector written since then it has the new bytes, the old ones or
garbage, as a seed says, and each change of a size or of a name in the folder that was not synced happened or
did not. The disk claims nothing in its favour: no atomic sectors, no safe appends, no ordered writes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal, final

import apsw

Kind = Literal["refused", "full", "power", "killed"]
FAULTS: tuple[Kind, ...] = ("refused", "full", "power", "killed")

_NAMES = count()
_GROWS = {"create", "write", "truncate"}
#: Nothing else can be full, and between two changes of the disk nothing more can be lost.
_CONCERNED = {"full": _GROWS, "power": _GROWS | {"sync", "delete"}, "killed": _GROWS | {"sync", "delete"}}
#: Journals, whose first sync makes their names in the folder durable, as in SQLite's unix VFS.
_JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL


@final
@dataclass
class Fault:
    """What goes wrong, at which operation of those that it can concern (from 0)."""

    kind: Kind
    step: int
    #: How many operations are refused, or how many writes find the disk full.
    times: int = 1


@dataclass(eq=False)
class _Content:
    """What a file holds: as processes see it, as it was synced, and the changes in between."""

    live: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    locks: dict[_Open, int] = field(default_factory=dict)

    def survivor(self, chance: random.Random, sector: int, keeps: float, garbage: float) -> bytes:
        """Return what is left after lost power."""
        left = bytearray(self.synced)
        for offset, data in self.pending:
            if data is None:
                if chance.random() < keeps:
                    _resize(left, offset)
                continue
            end = offset + len(data)
            for start in range(offset - offset % sector, end, sector):
                first, last = max(start, offset), min(start + sector, end)
                drawn = chance.random()
                if drawn < garbage:
                    _put(left, start, chance.randbytes(min(start + sector, max(len(left), last)) - start))
                elif drawn < garbage + (1 - garbage) * keeps:
                    _put(left, first, data[first - offset : last - offset])
        return bytes(left)


def _resize(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


def _put(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


@final
class FaultyDisk(apsw.VFS):
    """One folder of files for connections of apsw, which names it as its ``vfs``.

    Attributes
    ----------
    struck : bool
        Whether the fault has happened.
    down : bool
        Whether the power is lost or the process killed: nothing goes on.
    before : callable, optional
        Is called with the name of each operation before it: another process may do something there.
    """

    def __init__(self) -> None:
        self.name = f"faulty-{next(_NAMES)}"
        super().__init__(self.name, "")
        self.sector = 512
        self.before: Callable[[str], None] | None = None
        self.load({})

    def load(self, files: Mapping[str, bytes]) -> None:
        """Begin anew with some files, all of them durable."""
        self._entries = {
            name: _Content(bytearray(content), bytes(content)) for name, content in files.items()
        }
        self._durable = dict(self._entries)
        self._changed: list[tuple[str, _Content | None]] = []
        self.down = False
        self.arm(None)

    def arm(self, fault: Fault | None) -> None:
        """Let something go wrong from now on."""
        self.fault = fault
        self.struck = False
        self._reached = -1

    def files(self) -> dict[str, bytes]:
        """Return what the operating system has in its files: what a process that was killed leaves."""
        return {name: bytes(content.live) for name, content in self._entries.items()}

    def survivors(self, seed: int) -> dict[str, bytes]:
        """Return what is on the disk after lost power."""
        chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        keeps, garbage = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0)), chance.choice((0.0, 0.0, 0.1))
        entries = dict(self._durable)
        for name in {name for name, _ in self._changed}:
            changes = [content for other, content in self._changed if other == name]
            happened = sum(chance.random() < keeps for _ in changes)
            if happened:
                entries[name] = changes[happened - 1]
        return {
            name: content.survivor(chance, self.sector, keeps, garbage)
            for name, content in sorted(entries.items())
            if content is not None
        }

    def step(self, operation: str) -> None:
        """Count an operation, and fail where the fault says so."""
        if self.before is not None and not self.down:
            self.before(operation)
        if self.down:
            raise apsw.IOError
        fault = self.fault
        if fault is None or operation not in _CONCERNED.get(fault.kind, (operation,)):
            return
        self._reached += 1
        if self._reached < fault.step:
            return
        if fault.kind in ("power", "killed"):
            self.struck = self.down = True
        elif self._reached >= fault.step + fault.times:
            return
        self.struck = True
        raise apsw.FullError if fault.kind == "full" else apsw.IOError

    def create(self, path: str) -> None:
        """Make an empty file, which must not be there yet."""
        if path in self._entries:
            raise FileExistsError
        try:
            self.step("create")
        except apsw.Error as error:
            raise OSError(28, "the disk refuses") from error
        self._made(path)

    def _made(self, path: str) -> _Content:
        content = self._entries[path] = _Content()
        self._changed.append((path, content))
        return content

    def sync_names(self) -> None:
        """Make the names in the folder durable."""
        self._durable = dict(self._entries)
        self._changed.clear()

    def excepthook(self, *_: object) -> bool:
        """Say nothing of errors that SQLite itself passes over."""
        return True

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> _Open:  # type: ignore[override]  # noqa: N802
        flags[1] = flags[0]
        if name is None:
            return _Open(self, _Content(), names=False)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path in self._entries:
            return _Open(self, self._entries[path], names=False)
        if not flags[0] & apsw.SQLITE_OPEN_CREATE:
            raise apsw.CantOpenError
        self.step("create")
        return _Open(self, self._made(path), names=bool(flags[0] & _JOURNALS))

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.step("delete")
        if filename not in self._entries:
            error = apsw.IOError()
            error.extendedresult = apsw.SQLITE_IOERR_DELETE_NOENT  # type: ignore[attr-defined]
            raise error
        del self._entries[filename]
        self._changed.append((filename, None))
        if syncdir:
            self.step("sync")
            self.sync_names()

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802
        if self.down:
            raise apsw.IOError
        content = self._entries.get(pathname)
        return content is not None and (flags != apsw.SQLITE_ACCESS_EXISTS or len(content.live) > 0)

    def xRandomness(self, numbytes: int) -> bytes:  # noqa: N802
        return bytes(numbytes)


@final
class _Open:
    """A file that is open."""

    def __init__(self, disk: FaultyDisk, content: _Content, *, names: bool) -> None:
        self._disk, self._content, self._names = disk, content, names

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.step("read")
        return bytes(self._content.live[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.step("write")
        written = bytes(data)
        _put(self._content.live, offset, written)
        self._content.pending.append((offset, written))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.step("truncate")
        _resize(self._content.live, newsize)
        self._content.pending.append((newsize, None))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.step("sync")
        self._content.synced = bytes(self._content.live)
        self._content.pending.clear()
        if self._names:
            self._disk.step("sync")
            self._disk.sync_names()
            self._names = False

    def xFileSize(self) -> int:  # noqa: N802
        if self._disk.down:
            raise apsw.IOError
        return len(self._content.live)

    def xLock(self, level: int) -> None:  # noqa: N802
        self._disk.step("lock")
        others = max((held for file, held in self._content.locks.items() if file is not self), default=0)
        if level == apsw.SQLITE_LOCK_SHARED:
            free = others < apsw.SQLITE_LOCK_PENDING
        else:
            free = others < apsw.SQLITE_LOCK_RESERVED
            if level == apsw.SQLITE_LOCK_EXCLUSIVE and free and others:
                self._content.locks[self] = apsw.SQLITE_LOCK_PENDING
                free = False
        if not free:
            raise apsw.BusyError
        self._content.locks[self] = level

    def xUnlock(self, level: int) -> None:  # noqa: N802
        self._content.locks[self] = level

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return max(self._content.locks.values(), default=0) >= apsw.SQLITE_LOCK_RESERVED

    def xClose(self) -> None:  # noqa: N802
        self._content.locks.pop(self, None)

    def xFileControl(self, op: int, ptr: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return self._disk.sector

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0

    def excepthook(self, *_: object) -> bool:
        return True


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Put files where the plain engine finds them."""
    for name, content in files.items():
        (folder / name.lstrip("/")).write_bytes(content)
