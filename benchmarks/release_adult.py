"""Release a table of the size of Adult (48,842 synthetic records) up to 3-way, through the command line.

    python benchmarks/release_adult.py hybrid
    python benchmarks/release_adult.py marginals

Only the command itself is timed; the table is made before.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import emit, measured
from schemas import ADULT

RECORDS = 48_842
SEED = 20_240_601

_WORKLOADS = {
    "hybrid": {"kway": [1, 2, 3], "predicates": {"categorical": "identity", "numeric": "prefix"}},
    "marginals": {"marginals": [1, 2, 3]},
}


def write_table(path: Path) -> dict[str, object]:
    """Write a random table with skewed columns and return its domain, as a specification has it."""
    random = np.random.default_rng(SEED)
    categorical, numeric = ADULT
    columns: dict[str, object] = {}
    domain: dict[str, object] = {}
    for i, size in enumerate(categorical):
        labels = np.array([f"v{j}" for j in range(size)])
        shares = 1.0 / np.arange(1, size + 1)
        columns[f"c{i}"] = labels[random.choice(size, RECORDS, p=shares / shares.sum())]
        domain[f"c{i}"] = labels.tolist()
    for i, size in enumerate(numeric):
        columns[f"x{i}"] = np.minimum((random.beta(2, 4, RECORDS) * size).astype(int), size - 1)
        domain[f"x{i}"] = {"min": 0, "max": size - 1}
    pq.write_table(pa.table(columns), path)
    return domain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=sorted(_WORKLOADS))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        specification = {
            "data": "adult.parquet",
            "domain": write_table(here / "adult.parquet"),
            "workload": [_WORKLOADS[given.workload]],
            "privacy": {"mu": 1.0},
        }
        (here / "adult.yaml").write_text(json.dumps(specification))
        program = Path(sys.executable).with_name("matrixdp")
        usage = measured([str(program), "release", str(here / "adult.yaml"), "--out", str(here / "out")])
        if usage.status != 0:
            sys.exit(f"the release ended with status {usage.status}")
        files = {path.name: path.stat().st_size for path in (here / "out").iterdir()}
        rows = pq.ParquetFile(here / "out" / "answers.parquet").metadata.num_rows
    emit(
        {
            "records": RECORDS,
            "answers": rows,
            "bytes": files,
            "seconds": usage.seconds,
            "cpu_seconds": usage.cpu_seconds,
            "peak_mb": usage.peak_mb,
        }
    )


if __name__ == "__main__":
    main()
