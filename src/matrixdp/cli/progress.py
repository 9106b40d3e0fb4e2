"""Progress on stderr, for whatever takes longer than two seconds at a terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Reporter"]

_PATIENCE = 2.0


@final
class Reporter:
    """Show what is being done, once it has taken longer than two seconds; silent where stderr is a file.

    Without `elapsed` it says no time: while data are read, that would grow with the number of records.

    Examples
    --------
    >>> with Reporter() as reporter:
    ...     reporter.stage("selecting", 0.5)
    """

    def __init__(self, *, elapsed: bool = True) -> None:
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._shown: Progress | None = None
        self._task: TaskID | None = None
        self._label = "working"
        self._share: float | None = None
        self._closed = False
        self._timer = threading.Timer(_PATIENCE, self._show)
        self._timer.daemon = True

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        console = Console(stderr=True)
        if not console.is_terminal:
            return
        with self._lock:
            if self._closed:
                return
            columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn()]
            columns += [TimeElapsedColumn()] * self._elapsed
            self._shown = Progress(*columns, console=console, transient=True)
            self._task = self._shown.add_task(self._label, total=None)
            self._shown.start()
        self._update()

    def _update(self) -> None:
        with self._lock:
            if self._shown is not None and self._task is not None and not self._closed:
                total = None if self._share is None else 1.0
                self._shown.update(
                    self._task, description=self._label, total=total, completed=self._share or 0.0
                )

    def stage(self, label: str, share: float | None = None) -> None:
        """Say what is being done and, where it is known, the share that is done."""
        self._label, self._share = label, share
        self._update()

    def counter(self, label: str) -> Callable[[int, int], None]:
        """Return a function that is called with how many are done and of how many."""
        self.stage(label)

        def count(done: int, total: int) -> None:
            self.stage(label, done / total if total else None)

        return count

    def __enter__(self) -> Reporter:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._closed = True
            if self._shown is not None:
                self._shown.stop()
