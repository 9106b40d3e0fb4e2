"""Running a program and reading how long it took and how much memory it held at most, as a whole."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["Usage", "emit", "machine", "measured"]

_PACKAGES = ("matrixdp", "numpy", "scipy", "pyarrow", "duckdb", "python-flint")


@dataclass(frozen=True)
class Usage:
    """What a whole process used.

    Attributes
    ----------
    seconds : float
        From start to end.
    cpu_seconds : float
        Of all its threads.
    peak_mb : float
        The most memory that it held.
    status : int
        Its exit status.
    output : str
        What it printed.
    """

    seconds: float
    cpu_seconds: float
    peak_mb: float
    status: int
    output: str


def measured(command: list[str], patience: float | None = None) -> Usage:
    """Run a program to its end, or for so many seconds."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout is not None
    # with everything that it has started
    stop = threading.Timer(patience or threading.TIMEOUT_MAX, os.killpg, (child.pid, signal.SIGKILL))
    stop.daemon = True
    stop.start()
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    stop.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    unit = 1e6 if sys.platform == "darwin" else 1e6 / 1024
    return Usage(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit, child.returncode, output)


def emit(figures: dict[str, Any]) -> None:
    """Print the figures of a script as one line of JSON; the last one counts, earlier ones may be partial."""
    print(json.dumps(figures), flush=True)


def machine() -> dict[str, object]:
    """Return the date, the processor and the versions; nothing that names the machine."""
    model = platform.processor() or platform.machine()
    processors = Path("/proc/cpuinfo")
    if processors.exists():
        lines = [line for line in processors.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": model,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }
