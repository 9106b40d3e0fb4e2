"""Every mechanism that applies, on the other workloads of the papers, with both kinds of noise.

python benchmarks/other.py workloads
python benchmarks/other.py sweeps
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

from cells import select_cell, warm_up
from harness import emit
from workloads import OTHER, SWEEPS, Make

from matrixdp.noise import NOISES
from matrixdp.selection.bounds.lower_bound import svd_bound_workload
from matrixdp.selection.registry import MECHANISMS

#: Seconds of processor time for each selection.
LIMITS = {"workloads": 8.0, "sweeps": 4.0}
#: ``hdmm`` is the best of opt-0, opt-kron, opt-plus and opt-m.
LEFT_OUT = frozenset({"hdmm"})


def compared(make: Make, noise: str, limit: float) -> dict[str, Any]:
    """Return RMSE at cost 1 of every mechanism, with ratios to the best and to the lower bound."""
    workload = make()
    queries = workload.queries
    cells: dict[str, dict[str, Any]] = {}
    for name, mechanism in MECHANISMS.items():
        if NOISES[noise].norm in getattr(mechanism, "norms", ()) and name not in LEFT_OUT:
            cells[name] = select_cell(make, name, noise, limit)
    for cell in cells.values():
        if "loss" in cell:
            cell["rmse"] = math.sqrt(min(cell["loss"], cell["rounded"] or cell["loss"]) / queries)
    bounds = [cell["bound"] for cell in cells.values() if cell.get("bound") is not None]
    svd = svd_bound_workload(workload)
    if svd is not None:
        bounds.append(NOISES[noise].variance_factor * svd)
    bound = math.sqrt(max(bounds) / queries) if bounds else None
    best = min((cell["rmse"] for cell in cells.values() if "rmse" in cell), default=None)
    for cell in cells.values():
        if "rmse" in cell and best is not None:
            cell["to_best"] = cell["rmse"] / best
            cell["to_bound"] = None if bound is None else cell["rmse"] / bound
    return {"noise": noise, "queries": queries, "lower_bound": bound, "best": best, "cells": cells}


def main() -> None:
    warm_up()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["workloads", "sweeps"])
    what = parser.parse_args().what
    limit = LIMITS[what]
    other: dict[str, dict[str, Make]] = {title: {title: make} for title, make in OTHER.values()}
    chosen = other if what == "workloads" else SWEEPS
    families: list[dict[str, Any]] = []
    for family, points in chosen.items():
        rows: list[dict[str, Any]] = []
        families.append({"family": family, "rows": rows})
        for point, make in points.items():
            for noise in NOISES:
                print(f"  {family}: {point}, {noise}", file=sys.stderr, flush=True)
                rows.append({"point": point} | compared(make, noise, limit))
            emit({"limit": limit, "left_out": sorted(LEFT_OUT), "families": families})


if __name__ == "__main__":
    main()
