"""Running a program and reading how long it took and how much memory it held at most, as a whole.

Whatever loads this ends, with words, where `matrixdp` is not that of the tree which these scripts are in.
"""

from __future__ import annotations

import json
import math
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["WIDE", "Usage", "emit", "emit_sections", "end_all", "figures_of", "machine", "measured"]

#: Seconds on the clock for each of a limit of processor time, at most: a loaded machine changes no result.
WIDE = 20.0
#: Seconds that a process which is to end has for what it leaves behind.
_LEAVE = 10.0

_PACKAGES = ("matrixdp", "numpy", "scipy", "pyarrow", "duckdb", "python-flint")
_NEEDED = ("matplotlib", "packaging", "psutil", "threadpoolctl")
_LAUNCH = Path(__file__).with_name("launch.py")
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_RUNNING: set[subprocess.Popen[str]] = set()


def _refuse_others() -> None:
    """End unless `matrixdp` is that of this tree: figures of another one would stand under its name."""
    own = Path(__file__).resolve().parent.parent / "src" / "matrixdp"
    spec = find_spec("matrixdp")
    found = None if spec is None or spec.origin is None else Path(spec.origin).resolve().parent
    if found != own:
        which = "there is no matrixdp" if found is None else f"matrixdp would be {found}"
        sys.exit(
            f"{which}; these benchmarks measure {own} alone: run `make benchmarks`, or "
            f"`PYTHONPATH={own.parent} python {sys.argv[0]}`"
        )
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(
            f"there is no {' and no '.join(missing)}; run `make benchmarks`, or `pip install --group dev`"
        )


def _leave(*_: object) -> None:
    sys.exit(128 + signal.SIGTERM)


_refuse_others()
if threading.current_thread() is threading.main_thread():
    # else servers and folders stay behind
    signal.signal(signal.SIGTERM, _leave)


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
    stop = threading.Timer(longest, _end, [child])
    stop.daemon = True
    stop.start()
    _RUNNING.add(child)
    try:
        output, _ = child.communicate()
    except BaseException:
        _end(child)
        raise
    finally:
        stop.cancel()
        _RUNNING.discard(child)
    seconds = time.perf_counter() - started
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    # who tells it can be killed too
    status, used, peak = json.loads(told) if told else (-signal.SIGKILL, 0.0, 0.0)
    return Usage(seconds, used, peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024), status, output)


def end_all() -> None:
    """End every process that is being measured, with all that it has started."""
    for child in list(_RUNNING):
        _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    """End a process and all that it has started: they are asked to, and killed some seconds later."""
    import psutil

    def lives(process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return bool(process.status() != psutil.STATUS_ZOMBIE)
        return False

    with suppress(psutil.NoSuchProcess):
        # the launcher ends with the program, which ends what it knows of, such as servers
        started = psutil.Process(child.pid).children(recursive=True)
        for program in started[:1] or [child]:
            program.terminate()
        late = time.monotonic() + _LEAVE
        while time.monotonic() < late and any(map(lives, started)):
            time.sleep(0.05)
        for process in filter(lives, started):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def figures_of(output: str) -> dict[str, Any] | None:
    r"""Return the last figures that a script has emitted, whole lines alone; None where there are none.

    Examples
    --------
    >>> figures_of('{"rows": 1}\n{"rows": 2}\na warning\n{"ro'), figures_of("Killed\n")
    ({'rows': 2}, None)
    """
    whole = [
        line for line in output.splitlines(keepends=True) if line.startswith("{") and line.endswith("\n")
    ]
    return json.loads(whole[-1]) if whole else None


def emit(figures: dict[str, Any]) -> None:
    """Print the figures of a script as one line of JSON; the last one counts, earlier ones may be partial."""
    print(json.dumps(figures), flush=True)


def emit_sections(sections: Mapping[str, Iterable[tuple[str, Callable[..., Any], tuple[Any, ...]]]]) -> None:
    """Measure the rows of each section of a page, by name, and print what is known after each."""
    rows: dict[str, dict[str, Any]] = {}
    for section, measured in sections.items():
        for name, what, arguments in measured:
            rows[name] = {"section": section} | what(*arguments)
            print(f"  {rows[name]}", file=sys.stderr, flush=True)
            emit({"rows": rows})


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
