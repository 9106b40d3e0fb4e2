"""Running a program and reading how long it took and how much memory it held at most, as a whole."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["WIDE", "Usage", "emit", "machine", "measured"]

#: Seconds on the clock for each of a limit of processor time, at most: a loaded machine changes no result.
WIDE = 20.0

_PACKAGES = ("matrixdp", "numpy", "scipy", "pyarrow", "duckdb", "python-flint")
_LAUNCH = Path(__file__).with_name("launch.py")
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


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


def measured(command: list[str], patience: float | None = None, threads: int | None = None) -> Usage:
    """Run a program to its end, or until it or a process that it starts has used so much processor time.

    Parameters
    ----------
    command : list of str
    patience : float, optional
        Seconds of processor time, which other work on the machine does not use up. By the clock it has
        `WIDE` times as many, in case it waits for what never comes.
    threads : int, optional
        Of its linear algebra; as many as it wants where not given.
    """
    started = time.perf_counter()
    # a limit that this process has itself is not lifted
    limited = (
        [] if patience is None else ["/bin/sh", "-c", 'ulimit -t "$0"; exec "$@"', str(math.ceil(patience))]
    )
    reader, writer = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_LAUNCH), str(writer), *limited, *command],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        pass_fds=[writer],
        env=None if threads is None else os.environ | dict.fromkeys(_THREADS, str(threads)),
    )
    os.close(writer)
    longest = threading.TIMEOUT_MAX if patience is None else WIDE * patience
    # with everything that it has started
    stop = threading.Timer(longest, child.terminate)
    stop.daemon = True
    stop.start()
    output, _ = child.communicate()
    stop.cancel()
    seconds = time.perf_counter() - started
    with os.fdopen(reader) as pipe:
        status, used, peak = json.load(pipe)
    return Usage(seconds, used, peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024), status, output)


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
