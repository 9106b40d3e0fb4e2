"""Select for one of the named workloads and print the error at mu = 1.

python benchmarks/selection.py mix --size 40 --attributes 10 --mechanism querysmasher
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from harness import emit
from schemas import adult, all_ranges, cdf, hybrid, mix, windows

import matrixdp as mdp

WORKLOADS: dict[str, Callable[[int, int], mdp.Workload]] = {
    "mix": mix,
    "adult": lambda _size, _attributes: hybrid(adult(), [1, 2, 3]),
    "all-ranges": all_ranges,
    "cdf": lambda size, _attributes: cdf(size),
    "ranges": lambda size, _attributes: mdp.Workload(mdp.Domain({"x": range(size)}), mdp.product(x="range")),
    "windows": lambda size, _attributes: windows(size),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=sorted(WORKLOADS))
    parser.add_argument("--size", type=int, default=10, help="values of each attribute")
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--mechanism", default="auto")
    given = parser.parse_args()
    workload = WORKLOADS[given.workload](given.size, given.attributes)
    selection = mdp.select(workload, mechanism=given.mechanism).selection
    emit(
        {
            "queries": workload.queries,
            "groups": len(workload),
            "parts": len(selection.plan.parts),
            "mechanism": selection.mechanism,
            "gap": selection.certificate.gap,
            "rmse_before_rounding": math.sqrt(selection.squared_error_before_rounding / workload.queries),
            "rmse": math.sqrt(selection.total_squared_error / workload.queries),
        }
    )


if __name__ == "__main__":
    main()
