"""Processor seconds of select, release and report beside two busy processes, as a ratio to those without.

    python benchmarks/busy.py

The specification is that of the bundled example. Threads that wait for one another use up processor time
where others work: what a command takes beside them may be at most 1.5 times what it takes alone, in the same
run.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import emit, measured

EXAMPLE = Path(__file__).parent.parent / "examples" / "randhie.yaml"
MOST = 1.5
TIMES = 3


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep this many processors busy."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def main() -> None:
    program = str(Path(sys.executable).with_name("matrixdp"))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:

        def spent(command: str, number: int) -> float:
            out = f"{folder}/{number}"
            arguments = {
                "select": ["select", str(EXAMPLE)],
                "release": ["release", str(EXAMPLE), "--out", out],
                "report": ["report", out, "--out", f"{out}.html"],
            }[command]
            usage = measured([program, *arguments])
            if usage.status != 0:
                sys.exit(f"{command} ended with status {usage.status}")
            return usage.cpu_seconds

        for command in ("select", "release", "report"):
            seconds: dict[int, list[float]] = {0: [], 2: []}
            for number in range(2 * TIMES):
                others = 2 * (number % 2)  # one after the other, so that both meet what else the machine does
                with busy(others):
                    seconds[others].append(spent(command, number))
            alone, beside = (statistics.median(found) for found in seconds.values())
            row: dict[str, Any] = {
                "command": command,
                "alone": alone,
                "beside": beside,
                "ratio": beside / alone,
            }
            rows.append(row | {"all_alone": seconds[0], "all_beside": seconds[2]})
    emit({"most": MOST, "times": TIMES, "table": rows})
    over = [row["command"] for row in rows if row["ratio"] > MOST]
    if over:
        sys.exit(f"more than {MOST} times beside busy processes: {', '.join(over)}")


if __name__ == "__main__":
    main()
