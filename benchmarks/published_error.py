"""Error at mu = 1 beside the figures that papers print.

Ours are `rmse_before_rounding`; the figure after rounding to integers, which is what is measured, stands
beside them. "Optimum" is what QuerySmasher's own problem gives when it is solved to a certified optimum.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from harness import emit
from schemas import adult, cps, cps_pairs, hybrid, mix, one_and_two_way

import matrixdp as mdp

#: name, workload, published RP+, HDMM, WFF, QuerySmasher, the optimum with uniform weights
ROWS: list[tuple[str, Callable[[], mdp.Workload], tuple[float | None, ...]]] = [
    ("CPS 1-way", lambda: hybrid(cps(), [1]), (3.18, 3.347, 3.589, 3.135, 3.1350)),
    ("CPS 2-way", lambda: hybrid(cps(), [2]), (6.36, 6.625, 7.841, 6.194, 6.1918)),
    ("CPS 3-way", lambda: hybrid(cps(), [3]), (8.12, 8.634, 10.267, 7.903, 7.8860)),
    ("CPS up to 3-way", lambda: hybrid(cps(), [1, 2, 3]), (8.39, 8.623, 10.594, 8.140, 8.1400)),
    ("CPS 2-way affine", lambda: cps_pairs("affine"), (10.012, None, 7.147, 5.935, 4.825)),
    ("CPS 2-way abs", lambda: cps_pairs("abs"), (10.476, None, 7.387, 5.900, 4.865)),
    ("Adult 1-way", lambda: hybrid(adult(), [1]), (5.11, 5.648, 5.804, 5.047, 5.0468)),
    ("Adult 2-way", lambda: hybrid(adult(), [2]), (17.63, 21.111, 22.493, 17.632, 17.1902)),
    ("Adult 3-way", lambda: hybrid(adult(), [3]), (47.19, 60.025, 66.934, 47.055, 45.5516)),
    ("Adult up to 3-way", lambda: hybrid(adult(), [1, 2, 3]), (48.90, 61.613, 66.794, 47.853, 45.4649)),
    ("marginal, n = 10, d = 40", lambda: one_and_two_way("identity"), (23.48, None, 23.48, 23.48, 23.4766)),
    ("prefix, n = 10, d = 40", lambda: one_and_two_way("prefix"), (36.23, None, 39.70, 33.70, 33.6934)),
    ("range, n = 10, d = 40", lambda: one_and_two_way("range"), (48.95, None, 41.36, 41.08, 41.0759)),
    ("circular, n = 10, d = 40", lambda: one_and_two_way("circular"), (None, None, 39.77, 39.77, 39.7721)),
    ("affine, n = 10, d = 40", lambda: one_and_two_way("affine"), (62.48, None, 45.23, 28.25, 28.0097)),
    ("abs, n = 10, d = 40", lambda: one_and_two_way("abs"), (85.99, None, 64.11, 35.85, 30.1029)),
    ("mix, n = 10, d = 10", lambda: mix(10, 10), (22.49, None, 25.37, 20.41, 20.4104)),
    ("mix, n = 10, d = 20", lambda: mix(10, 20), (57.17, None, 65.13, 51.63, 51.5455)),
    ("mix, n = 20, d = 10", lambda: mix(20, 10), (None, None, None, None, 33.7509)),
]
_COLUMNS = ("ResidualPlanner+", "HDMM", "WFF", "QuerySmasher", "optimum")


def _figures(workload: mdp.Workload, mechanism: str) -> dict[str, float] | None:
    try:
        selection = mdp.select(workload, mechanism=mechanism).selection
    except mdp.TooLargeError as error:
        print(f"{mechanism}: {error}", file=sys.stderr)
        return None
    queries = workload.queries
    return {
        "rmse_before_rounding": math.sqrt(selection.squared_error_before_rounding / queries),
        "rmse": math.sqrt(selection.total_squared_error / queries),
    }


def main() -> None:
    rows: list[dict[str, Any]] = []
    for name, make, published in ROWS:
        workload = make()
        row: dict[str, Any] = {"name": name, "queries": workload.queries}
        row["published"] = dict(zip(_COLUMNS, published, strict=True))
        for mechanism in ("fourier", "querysmasher", "residual"):
            started = time.perf_counter()
            row[mechanism] = _figures(workload, mechanism)
            print(f"{name}, {mechanism}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
        rows.append(row)
    emit({"rows": rows})


if __name__ == "__main__":
    main()
