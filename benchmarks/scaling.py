"""Processor seconds of selection against the size of an attribute, the number of attributes and of queries.

A curve ends where one selection takes longer than the limit, or its mechanism refuses the size.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from cells import select_cell, warm_up
from harness import emit
from workload_families import w_range

import matrixdp as mdp

LIMIT = 10.0
GAUSSIAN, LAPLACE = "gaussian", "laplace"


def _ranges(size: int) -> mdp.Workload:
    return mdp.Workload(mdp.Domain({"a": range(size)}), mdp.product(a="range"))


def _hybrid(attributes: int) -> mdp.Workload:
    """Return up to 2-way marginals: half of the attributes by identity, half by prefix, 10 values each."""
    half = attributes // 2
    forms: dict[str, object] = {f"c{i}": [str(v) for v in range(10)] for i in range(half)}
    forms |= {f"x{i}": range(10) for i in range(attributes - half)}
    return mdp.Workload(mdp.Domain(forms), mdp.kway([1, 2], {"categorical": "identity", "numeric": "prefix"}))


def _listed(queries: int) -> mdp.Workload:
    domain = mdp.Domain({"a": range(128)})
    return mdp.Workload(domain, w_range(domain, queries, seed=1))


#: name -> title, axis, points, workload, (mechanism, noise) of each curve
FIGURES: dict[
    str, tuple[str, str, tuple[int, ...], Callable[[int], mdp.Workload], tuple[tuple[str, str], ...]]
] = {
    "size": (
        "All ranges on one attribute",
        "values of the attribute, n",
        (16, 32, 64, 128, 256, 512, 1024),
        _ranges,
        (
            ("dense", GAUSSIAN),
            ("coa", GAUSSIAN),
            ("eigen-query", GAUSSIAN),
            ("low-rank", GAUSSIAN),
            ("exponential-smoothing", GAUSSIAN),
            ("greedy-h", LAPLACE),
            ("opt-0", LAPLACE),
        ),
    ),
    "attributes": (
        "Up to 2-way marginals and prefixes, n = 10",
        "attributes, d",
        (4, 6, 8, 10, 14, 20, 30, 40),
        _hybrid,
        (
            ("residual", GAUSSIAN),
            ("querysmasher", GAUSSIAN),
            ("residualplanner-plus", GAUSSIAN),
            ("fourier", GAUSSIAN),
            ("opt-kron", GAUSSIAN),
            ("opt-m", GAUSSIAN),
            ("opt-m", LAPLACE),
            ("opt-plus", LAPLACE),
        ),
    ),
    "queries": (
        "Random ranges (WRange), n = 128",
        "queries",
        (16, 64, 256, 1024, 4096),
        _listed,
        (
            ("dense", GAUSSIAN),
            ("coa", GAUSSIAN),
            ("eigen-query", GAUSSIAN),
            ("low-rank", GAUSSIAN),
            ("exponential-smoothing", GAUSSIAN),
            ("rotation", LAPLACE),
            ("opt-0", LAPLACE),
        ),
    ),
}


def main() -> None:
    warm_up()
    figures = []
    for name, (title, axis, points, make, curves) in FIGURES.items():
        print(f"  {title}", file=sys.stderr, flush=True)
        drawn = []
        for mechanism, noise in curves:
            curve: dict[str, Any] = {"mechanism": mechanism, "noise": noise, "points": [], "end": None}
            for point in points:
                cell = select_cell(partial(make, point), mechanism, noise, LIMIT)
                if "loss" not in cell:
                    curve["end"] = {"at": point, "note": cell["note"]}
                    break
                used = {key: cell[key] for key in ("seconds", "cpu_seconds", "peak_mb")}
                curve["points"].append({"at": point} | used)
            drawn.append(curve)
        figures.append({"name": name, "title": title, "axis": axis, "curves": drawn})
        emit({"limit": LIMIT, "figures": figures})


if __name__ == "__main__":
    main()
