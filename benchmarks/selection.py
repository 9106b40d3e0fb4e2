"""Select for one of the named workloads and print the error at mu = 1, or at epsilon = 1.

python benchmarks/selection.py mix --size 40 --attributes 10 --mechanism querysmasher
python benchmarks/selection.py adult --mechanism generalized-marginals --noise laplace
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

from harness import emit
from schemas import adult, all_ranges, cdf, cps, hybrid, mix, one_and_two_way, windows

import matrixdp as mdp

WORKLOADS: dict[str, Callable[[int, int], mdp.Workload]] = {
    "mix": mix,
    "adult": lambda _size, _attributes: hybrid(adult(), [1, 2, 3]),
    "adult-pairs": lambda _size, _attributes: hybrid(adult(), [2]),
    "adult-marginals": lambda _size, _attributes: mdp.Workload(adult(), mdp.marginals([0, 1, 2, 3])),
    "cps-marginals": lambda _size, _attributes: mdp.Workload(cps(), mdp.marginals([0, 1, 2, 3, 4, 5])),
    "pairs-of-prefixes": lambda size, attributes: one_and_two_way("prefix", size, attributes),
    "pairs-of-ranges": lambda size, attributes: one_and_two_way("range", size, attributes),
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
    parser.add_argument("--noise", choices=("gaussian", "laplace"), default="gaussian")
    given = parser.parse_args()
    workload = WORKLOADS[given.workload](given.size, given.attributes)
    start = time.process_time()
    selection = mdp.select(workload, mechanism=given.mechanism, noise=given.noise).selection
    seconds = time.process_time() - start
    emit(
        {
            "queries": workload.queries,
            "groups": len(workload),
            "parts": len(selection.plan.parts),
            "mechanism": selection.mechanism,
            "gap": selection.certificate.gap,
            "rmse_before_rounding": math.sqrt(selection.squared_error_before_rounding / workload.queries),
            "rmse": math.sqrt(selection.total_squared_error / workload.queries),
            "processor_seconds": seconds,
        }
    )


if __name__ == "__main__":
    main()
