"""Processor seconds and memory of counting one table in every engine, beside SQL written by hand.

    python benchmarks/engines.py                       every engine, a million rows
    python benchmarks/engines.py --rows 100000000      the Parquet file alone
    python benchmarks/engines.py --only csv            one engine, and the statements by hand

Each engine counts in a process of its own, several times; its processor seconds are those of this process, of
all that it started and of its server. All counts must be equal.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from engine_tables import BASE, DOMAIN, ENGINES, PAIRS, by_hand, serve
from harness import emit, figures_of, measured
from values import unmeasured

from matrixdp.domain import OutOfDomain, encode_value
from matrixdp.sources import open_source

#: What the process that counts the Parquet file may hold, and its ratio, where there are many rows.
_MOST_MB, _MOST_RATIO = 1000.0, 1.2
#: The most rows for which every engine counts, and each of them more than once.
_SMALL = 10**7
_LARGE = (BASE, "parquet")
#: Counts of one engine, of which the first is kept apart.
_TIMES = 4


def _processor_seconds(server: int | None) -> float:
    """Return the processor seconds of this process, its descendants and a server, since they started."""
    own = psutil.Process()
    spent = time.process_time() + float(sum(own.cpu_times()[2:4]))
    others = own.children(recursive=True)
    if server is not None:
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(server)
            others += [root, *root.children(recursive=True)]
    for process in others:
        with suppress(psutil.NoSuchProcess):
            spent += float(sum(process.cpu_times()[:4]))
    return spent


def _peak_mb() -> float:
    """Return the most memory that this process held, and each of those that it started and still run."""
    own = psutil.Process()
    total = 0
    for process in (own, *own.children(recursive=True)):
        with suppress(OSError):
            lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return total * 1024 / 1e6


def _digest(counts: dict[Any, Any]) -> str:
    joined = b"".join(np.ascontiguousarray(counts[pair], dtype=np.int64).tobytes() for pair in PAIRS)
    return hashlib.sha256(joined).hexdigest()


def _cells(groups: dict[Any, Any]) -> dict[Any, Any]:
    """Return the counts of groups, which have no cell without records, as arrays."""
    counts: dict[Any, Any] = {}
    for pair, table in groups.items():
        found: Any = np.zeros([DOMAIN[name].size for name in pair], dtype=np.int64)
        codes = [[_code(name, raw) for raw in table[at].to_pylist()] for at, name in enumerate(pair)]
        found[tuple(codes)] = table["n"].to_numpy()
        counts[pair] = found
    return counts


def _code(name: str, raw: object) -> int | None:
    return int(str(raw)) if name == "income" else encode_value(DOMAIN[name], raw)


def _count_here(name: str, folder: Path, times: int, server: int | None) -> None:
    """Count in this process, and print what it took."""
    warnings.simplefilter("ignore")
    make = ENGINES[name].table
    spent, seconds, digests = [], [], set()
    before, began = _processor_seconds(server), time.perf_counter()
    table = None if make is None else make(folder)
    started = _processor_seconds(server) - before, time.perf_counter() - began
    for _ in range(times):
        before, began = _processor_seconds(server), time.perf_counter()
        if make is None:
            counts: dict[Any, Any] = by_hand(name, folder)
        else:
            counts = dict(open_source(table).marginals(DOMAIN, PAIRS, OutOfDomain()))
        seconds.append(time.perf_counter() - began)
        if server is not None:
            # A server accounts for what it did for a client when that one has gone.
            time.sleep(0.2)
        spent.append(_processor_seconds(server) - before)
        digests.add(_digest(_cells(counts) if make is None else counts))
    emit(
        {"cpu": spent, "wall": seconds, "started": started, "peak_mb": _peak_mb(), "digests": sorted(digests)}
    )


def _row(name: str, folder: Path, times: int) -> dict[str, Any]:
    """Count in a process of its own, and return what it took."""
    row: dict[str, Any] = {"name": name, "title": ENGINES[name].title, "target": ENGINES[name].target}
    if missing := ENGINES[name].missing:
        return row | {"status": None, "missing": missing}
    server = serve(folder) if name == "postgresql" else None
    command = [sys.executable, __file__, "--count", name, "--folder", str(folder), "--times", str(times)]
    usage = measured([*command, *([] if server is None else ["--server", str(server)])], patience=600)
    if usage.status != 0:
        return row | {"status": usage.status}
    told = figures_of(usage.output)
    assert told is not None
    later = slice(1, None) if times > 1 else slice(None)
    return row | {
        "status": 0,
        "cpu_seconds": statistics.median(told["cpu"][later]),
        "least_cpu_seconds": min(told["cpu"][later]),
        "most_cpu_seconds": max(told["cpu"][later]),
        "seconds": statistics.median(told["wall"][later]),
        "first_cpu_seconds": told["cpu"][0] + told["started"][0],
        "first_seconds": told["wall"][0] + told["started"][1],
        "peak_mb": told["peak_mb"],
        "digests": told["digests"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--only", action="append", choices=sorted(ENGINES), default=[], metavar="ENGINE")
    for hidden, kind in (("count", str), ("folder", Path), ("times", int), ("server", int)):
        parser.add_argument(f"--{hidden}", type=kind, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.count is not None:
        _count_here(given.count, given.folder, given.times, given.server)
        return
    large = given.rows > _SMALL
    chosen = [
        name
        for name in (_LARGE if large else ENGINES)
        if name == BASE or not given.only or name in given.only
    ]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        # A process that has made a table gives back less memory than one that has not.
        forms = {name.partition("-")[0] for name in chosen}
        code = f"import engine_tables as e; e.write(e.Path({made!r}), {given.rows}, {forms})"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
        figures: dict[str, Any] = {
            "rows": given.rows,
            "marginals": len(PAIRS),
            "times": 1 if large else _TIMES,
            "most_mb": _MOST_MB if large else None,
            "file_mb": sum(file.stat().st_size for file in folder.glob("*.parquet")) / 1e6,
            "files": len(list(folder.glob("*.parquet"))),
        }
        _count_all(chosen, folder, figures)


def _count_all(chosen: list[str], folder: Path, figures: dict[str, Any]) -> None:
    rows: list[dict[str, Any]] = []
    found: set[str] = set()
    for name in chosen:
        row = _row(name, folder, figures["times"])
        if figures["most_mb"] is not None and name == "parquet":
            row["target"] = _MOST_RATIO
        found.update(row.pop("digests", ()))
        rows.append(row)
        measured_now = f"{row.get('cpu_seconds')} s, {row.get('peak_mb')} MB"
        told = measured_now if row["status"] == 0 else unmeasured(row)
        print(f"  {name}: {told}", file=sys.stderr, flush=True)
        if len(found) > 1:
            sys.exit(f"{name}: other counts than before")
        emit(figures | {"table": rows})
    failed = [row["name"] for row in rows if row["status"] not in (0, None)]
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
