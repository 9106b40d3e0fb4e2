"""Intervals of a series hold the truth as often as they say, whenever their answers were published.

False alarms: for each question the intervals of many strata, each with noise of its own, are compared with
the least and the most that hold the truth by chance with a probability of one in 100,000: at most one in
1,000 for all questions and both kinds of noise; the seeds are fixed.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

import matrixdp as mdp

STRATA, CONFIDENCE, CHANCE = 1000, 0.95, 1e-5
MONTHS = [f"2025-{month:02}" for month in range(1, 7)]
OVER_TIME: list[Any] = ["identity", "prefix", {"sliding": 3}, {"change": 1}, {"level": "quarter"}]
SPEC: dict[str, Any] = {
    "domain": {
        "month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month", "levels": ["quarter"]},
        "stratum": {"min": 0, "max": STRATA - 1},
    },
    "workload": [{"product": {"month": kind, "stratum": "identity"}} for kind in OVER_TIME],
    "series": {"attribute": "month"},
}


@pytest.mark.parametrize("privacy", [{"rho": 0.5}, {"epsilon": 1}], ids=["gaussian", "laplace"])
def test_intervals_hold(tmp_path: Path, privacy: dict[str, float]):
    counts = np.random.default_rng(5).poisson(2, (len(MONTHS), STRATA))
    month, stratum = (np.repeat(codes.ravel(), counts.ravel()) for codes in np.indices(counts.shape))
    table = {"month": [f"{MONTHS[code]}-15" for code in month], "stratum": stratum}
    series = mdp.Series.start(
        {**SPEC, "privacy": privacy}, tmp_path / "series", confidence=CONFIDENCE, seed_not_private=True
    )
    for seed, last in enumerate(["2025-01", "2025-04", "2025-06"]):
        series.publish(table, last, seed_not_private=seed)

    asked: dict[str, list[bool]] = {}
    for row in pq.read_table(series.folder / "answers.parquet").to_pylist():
        first, _, second = row["month"].partition(" less ")
        if second:
            weights = np.array([(one == first) - (one == second) for one in MONTHS], dtype=int)
        else:
            ends = f"{row['month_from']:%Y-%m}", f"{row['month_to']:%Y-%m}"
            weights = np.array([ends[0] <= one <= ends[1] for one in MONTHS])
        truth = weights @ counts[:, int(row["stratum"])]
        hits = asked.setdefault(f"{row['group']}: {row['month']}", [])
        hits.append(bool(row["lower"] <= truth <= row["upper"]))
    assert len(asked) == 6 + 6 + 4 + 5 + 2
    least, most = (binom.ppf(chance, STRATA, CONFIDENCE) for chance in (CHANCE, 1 - CHANCE))
    for question, hits in asked.items():
        assert len(hits) == STRATA
        assert least <= sum(hits), question
        # the bound that holds for every combination of Laplace noise is wider
        assert "epsilon" in privacy or sum(hits) <= most, question
