"""Series of releases: their errors beside other ways to publish period by period, and what they take.

python benchmarks/over_time.py errors
python benchmarks/over_time.py marginals
python benchmarks/over_time.py publication
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import emit, measured
from numpy.typing import NDArray
from schemas import ADULT, adult

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.series import select_series

__all__ = ["MONTHS", "RECORDS", "THROUGH"]

MONTHS = 12
RECORDS = 100_000
#: The period up to which one publication is measured, those before it published earlier.
THROUGH = 6
#: periods -> the length of sliding windows
SIZES = {12: 3, 52: 4, 365: 30}
#: name -> the predicates over time
ASKED: dict[str, tuple[str, ...]] = {
    "cumulative": ("prefix",),
    "periods, cumulative": ("identity", "prefix"),
    "periods, cumulative, sliding": ("identity", "prefix", "sliding"),
}


def _lengths(kind: str, periods: int) -> NDArray[np.int64]:
    """Return how many periods each query sums."""
    if kind == "sliding":
        return np.full(periods - SIZES[periods] + 1, SIZES[periods])
    return np.ones(periods, np.int64) if kind == "identity" else np.arange(1, periods + 1)


def _binary_tree(periods: int) -> NDArray[np.int64]:
    """Return every node of a binary tree over the periods, as rows of sums."""
    rows, width = [], 1
    while width < 2 * periods:
        rows += [
            (np.arange(periods) >= start) & (np.arange(periods) < start + width)
            for start in range(0, periods, width)
        ]
        width *= 2
    return np.array(rows, dtype=np.int64)


def _rmse(selection: Any) -> float:
    return math.sqrt(selection.total_squared_error / selection.workload.queries)


def _timed_series(workload: mdp.Workload, attribute: str) -> dict[str, float]:
    started = time.process_time()
    selection = select_series(workload, attribute, GAUSSIAN)
    return {"series": _rmse(selection), "seconds": time.process_time() - started}


def errors() -> None:
    """Compare one attribute, time, at privacy cost 1."""
    rows: list[dict[str, Any]] = []
    for periods, window in SIZES.items():
        domain = mdp.Domain({"time": range(periods)})
        for name, kinds in ASKED.items():
            entries = [mdp.product(time={"sliding": window} if kind == "sliding" else kind) for kind in kinds]
            workload = mdp.Workload(domain, *entries)
            lengths = np.concatenate([_lengths(kind, periods) for kind in kinds])
            tree = mdp.Strategy.from_matrix(
                domain, "time", _binary_tree(periods), workload=workload, noise="gaussian"
            )
            best = mdp.select(workload, mechanism="dense", noise="gaussian").selection
            assert len(lengths) == workload.queries
            rows.append(
                {
                    "periods": periods,
                    "asked": name,
                    "independent": math.sqrt(float(lengths.mean())),
                    "tree": _rmse(tree.selection),
                    "optimum": _rmse(best),
                    **_timed_series(workload, "time"),
                }
            )
            emit({"rows": rows})


def marginals() -> None:
    """Compare the marginals of Adult's attributes by month, at privacy cost 1."""
    form = {"month": range(MONTHS), **{name: adult()[name].size for name in adult().names}}
    domain = mdp.Domain(form)
    rows: list[dict[str, Any]] = []
    for ways in (1, 2):
        each = mdp.Workload(adult(), mdp.marginals([ways]))
        alone = mdp.select(each, noise="gaussian").selection
        for kinds in (("identity",), ("identity", "prefix")):
            entries = [
                mdp.product({"month": kind, **dict.fromkeys(group.attributes, "identity")})
                for kind in kinds
                for group in each
            ]
            workload = mdp.Workload(domain, *entries)
            length = np.mean([_lengths(kind, MONTHS).mean() for kind in kinds])
            whole = mdp.select(workload, mechanism="residual", noise="gaussian").selection.certificate
            assert whole.lower_bound is not None
            rows.append(
                {
                    "ways": ways,
                    "asked": "months" if len(kinds) == 1 else "months, cumulative",
                    "queries": workload.queries,
                    "independent": _rmse(alone) * math.sqrt(length),
                    "bound": math.sqrt(whole.lower_bound / workload.queries),
                    **_timed_series(workload, "month"),
                }
            )
            emit({"rows": rows})


def _publish(folder: Path, month: int) -> None:
    """Publish the months up to one; a process of its own, so that its memory is that of a publication."""
    mdp.Series.open(folder / "series").publish(folder / "table.parquet", f"2025-{month:02}")


def publication() -> None:
    """Start a series over Adult's attributes, and publish months of a random table."""
    random = np.random.default_rng(7)
    sizes = dict(zip(adult().names, (*ADULT[0], *ADULT[1]), strict=True))
    columns: dict[str, Any] = {
        name: np.minimum((random.beta(2, 4, RECORDS) * size).astype(int), size - 1)
        for name, size in sizes.items()
    }
    columns["month"] = [f"2025-{month:02}-01" for month in random.integers(1, MONTHS + 1, RECORDS)]
    specification: dict[str, Any] = {
        "domain": {
            "month": {"from": "2025-01-01", "to": "2025-12-31", "by": "month"},
            **{name: {"min": 0, "max": size - 1} for name, size in sizes.items()},
        },
        "workload": [
            {"product": {"month": ["identity", "prefix"], **dict.fromkeys(pair, "identity")}}
            for pair in combinations(sizes, 2)
        ],
        "series": {"attribute": "month"},
        "privacy": {"mu": 1.0},
    }
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent)
        pq.write_table(pa.table(columns), folder / "table.parquet")
        (folder / "series.json").write_text(json.dumps(specification))
        started = time.process_time()
        mdp.Series.start(folder / "series.json", folder / "series")
        begun = time.process_time() - started
        runs = {}
        for month in (THROUGH - 1, THROUGH):
            usage = measured([sys.executable, __file__, "publish", "--folder", parent, "--month", str(month)])
            if usage.status != 0:
                sys.exit(f"a publication ended with status {usage.status}")
            runs[month] = usage
        answers = pq.ParquetFile(folder / "series" / "answers.parquet").metadata.num_rows
    last = runs[THROUGH]
    emit(
        {
            "answers": answers,
            "start_seconds": begun,
            "publication_cpu_seconds": last.cpu_seconds,
            "publication_peak_mb": last.peak_mb,
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["errors", "marginals", "publication", "publish"])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--month", type=int)
    given = parser.parse_args()
    if given.what == "publish":
        _publish(given.folder, given.month)
    else:
        {"errors": errors, "marginals": marginals, "publication": publication}[given.what]()


if __name__ == "__main__":
    main()
