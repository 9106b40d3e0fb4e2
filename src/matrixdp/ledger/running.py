"""Which entries of a ledger have a run that still goes on: a lock beside the ledger for each."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import final

from matrixdp.locks import Lock

__all__ = ["Running", "clear_ended", "running_path"]


def running_path(ledger: Path, entry: str) -> Path:
    """Return the file that the run of an entry holds a lock on.

    Examples
    --------
    >>> running_path(Path("health.ledger"), "ab12").name
    '.health.ledger.ab12.running'
    """
    return ledger.with_name(f".{ledger.name}.{entry}.running")


def clear_ended(ledger: Path, waiting: set[str]) -> None:
    """Remove what runs that have ended left beside a ledger, but for entries that wait for a recovery."""
    name = re.compile(rf"\.{re.escape(ledger.name)}\.([0-9a-f]{{32}})\.running")
    for path in sorted(ledger.parent.iterdir()):
        match = name.fullmatch(path.name)
        if match is not None and match[1] not in waiting and not Lock.is_held(path):
            path.unlink(missing_ok=True)


@final
class Running:
    """The run of an entry in this process: it goes on until it is ended, or nobody refers to it.

    Parameters
    ----------
    path : Path
        The file of its lock.
    """

    def __init__(self, path: Path) -> None:
        self._process = os.getpid()
        self._lock = Lock(path)

    def writes_to(self, folder: Path) -> None:
        """Note durably in which folder what is measured will be."""
        self._lock.write(str(folder))

    def end(self) -> None:
        """Say that nothing of it is left to be recovered."""
        self._lock.remove()

    def __del__(self) -> None:
        # in a process that was forked meanwhile, the run is still that of the parent
        if hasattr(self, "_lock") and os.getpid() == self._process:
            with suppress(OSError, TypeError, AttributeError):
                self._lock.remove()
