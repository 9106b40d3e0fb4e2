"""The figures of COA's paper, run again: its workloads, what it varies, the mechanisms that it compares.

python benchmarks/redrawn.py convergence
python benchmarks/redrawn.py sweeps
python benchmarks/redrawn.py steps --size 1024 --size 2048
python benchmarks/redrawn.py steps --size 8192
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import combinations, islice
from typing import Any

import numpy as np
from cells import AS_ASKED, attempt, warm_up
from harness import emit
from losses import unreconstructed_error
from numpy.typing import NDArray
from workload_families import w_discrete, w_range, w_related
from workloads import Make

import matrixdp as mdp
from matrixdp.mechanisms import solve_gram
from matrixdp.noise import GAUSSIAN
from matrixdp.papers.coa import newton_iterates
from matrixdp.selection.auto import Trials

Array = NDArray[np.float64]

#: The paper's columns: title, our mechanism, its options.
COLUMNS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("GM", AS_ASKED, {}),
    ("noise on cells", "identity", {}),
    ("WM", "wavelet", {}),
    ("HM", "hierarchical", {}),
    ("AM", "eigen-query", {}),
    ("ESM", "exponential-smoothing", {}),
    ("LRM", "low-rank", {}),
    ("COA", "coa", {}),
    ("COA, Algorithm 3", "coa", {"homotopy": "yes"}),
    ("optimum", "dense", {}),
)
#: Seconds of processor time for each selection, and for those of COA and LRM.
LIMIT, PATIENT = 6.0, 45.0
_PATIENT = frozenset({"LRM", "COA", "COA, Algorithm 3"})
#: Of figures 2 to 5; the number of queries is as printed.
_SIZES, _MANY = (64, 128, 256, 512), 1024
#: Of figures 6 to 9, which have n = 512; the numbers of queries go as far as printed.
_QUERIES, _CELLS = (32, 128, 512, 2048, 8192), 64
#: Of figure 10, which has m = n = 1,024.
_RATIOS, _BASE = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0), 128
_CONVERGENCE, _POINTS, _DRAWS = 256, 31, 20


def _line(size: int) -> mdp.Domain:
    return mdp.Domain({"x": range(size)})


def _dense(make: Callable[[mdp.Domain, int], Any], size: int, queries: int) -> mdp.Workload:
    return mdp.Workload(_line(size), make(_line(size), queries))


def _marginals(domain: mdp.Domain, queries: int) -> Any:
    """Return cells of the 2-way marginals of three attributes, drawn with replacement."""
    size = math.prod(domain[name].size for name in domain.names)
    power = round(math.log2(size))
    shape = [2 ** (power // 3 + (place < power % 3)) for place in range(3)]
    codes = np.stack(np.unravel_index(np.arange(size), shape))
    every = [
        (codes[first] == one) & (codes[second] == other)
        for first, second in combinations(range(3), 2)
        for one in range(shape[first])
        for other in range(shape[second])
    ]
    chosen = np.random.default_rng(1).integers(0, len(every), queries)
    return mdp.dense(np.array(every, dtype=float)[chosen], ["x"])


FAMILIES: dict[str, Callable[[mdp.Domain, int], Any]] = {
    "WDiscrete": lambda domain, queries: w_discrete(domain, queries, seed=1),
    "WMarginal": _marginals,
    "WRange": lambda domain, queries: w_range(domain, queries, seed=1),
    "WRelated": lambda domain, queries: w_related(domain, queries, seed=1),
}


def _related(ratio: float) -> mdp.Workload:
    return mdp.Workload(_line(_BASE), w_related(_line(_BASE), _BASE, ratio, seed=1))


def sweeps() -> dict[str, dict[int | float, Make]]:
    """Return each figure with what it varies: family and figure, value, workload."""
    by_size: dict[str, dict[int | float, Make]] = {
        f"Figure {2 + place}: {family}, m = {_MANY:,}": {
            size: partial(_dense, make, size, _MANY) for size in _SIZES
        }
        for place, (family, make) in enumerate(FAMILIES.items())
    }
    by_queries: dict[str, dict[int | float, Make]] = {
        f"Figure {6 + place}: {family}, n = {_CELLS}": {
            queries: partial(_dense, make, _CELLS, queries) for queries in _QUERIES
        }
        for place, (family, make) in enumerate(FAMILIES.items())
    }
    by_rank: dict[int | float, Make] = {ratio: partial(_related, ratio) for ratio in _RATIOS}
    return by_size | by_queries | {f"Figure 10: WRelated, m = n = {_BASE}": by_rank}


def _cell(make: Make, mechanism: str, options: dict[str, Any], limit: float) -> dict[str, Any]:
    """Return the total squared error at mu = 1 and the selection's processor seconds, without a bound."""

    def run() -> dict[str, Any]:
        setattr(Trials, "lower_bound", lambda _: None)  # noqa: B010 - this process ends with the cell
        workload = make()
        used = time.process_time()
        if mechanism == AS_ASKED:
            loss = unreconstructed_error(workload, GAUSSIAN)
        else:
            chosen = mdp.select(workload, noise="gaussian", mechanism=mechanism, **options)
            loss = chosen.selection.certificate.loss
        return {"loss": loss, "cpu_seconds": time.process_time() - used}

    return attempt(run, limit)


def run_sweeps() -> None:
    warm_up()
    done: list[dict[str, Any]] = []
    for title, points in sweeps().items():
        rows: list[dict[str, Any]] = []
        done.append({"title": title, "rows": rows})
        for value, make in points.items():
            cells = {
                column: _cell(make, mechanism, options, PATIENT if column in _PATIENT else LIMIT)
                for column, mechanism, options in COLUMNS
            }
            said = {column: cell.get("loss", cell.get("note")) for column, cell in cells.items()}
            print(f"  {title}, {value}: {said}", file=sys.stderr, flush=True)
            rows.append({"at": value, "queries": make().queries, "cells": cells})
        emit({"limit": LIMIT, "patient": PATIENT, "figures": done})


def run_convergence() -> None:
    """Print objective, optimality and the test error at every point of Algorithm 1."""
    curves: list[dict[str, Any]] = []
    line = _line(_CONVERGENCE)
    asked = {family: np.asarray(make(line, _MANY).matrix, float) for family, make in FAMILIES.items()}
    asked["all prefixes"] = np.tri(_CONVERGENCE)
    for family, queries in asked.items():
        gram = queries.T @ queries
        random = np.random.default_rng(7)
        points: list[dict[str, float]] = []
        for point in islice(newton_iterates(gram, 1e-3), _POINTS):
            noise = random.standard_normal((_CONVERGENCE, _DRAWS))
            # X = A'A: the estimates of cells err by A^-1 noise
            errors = queries @ np.linalg.solve(np.linalg.cholesky(point.matrix).T, noise)
            points.append(
                {
                    "objective": point.objective / len(queries),
                    "optimality": point.optimality,
                    "test_error": float((errors**2).sum(axis=0).mean()) / len(queries),
                }
            )
        optimum = solve_gram(gram).loss / len(queries)
        curves.append({"family": family, "queries": len(queries), "optimum": optimum, "points": points})
    emit({"size": _CONVERGENCE, "draws": _DRAWS, "curves": curves})


def run_steps(sizes: list[int]) -> None:
    """Print seconds and memory of one Newton step, with its five conjugate gradient steps."""
    rows: list[dict[str, Any]] = []
    for size in sizes:
        queries = np.asarray(w_range(_line(size), _MANY, seed=1).matrix, dtype=np.float64)
        gram = queries.T @ queries
        used = time.process_time()
        first, second = islice(newton_iterates(gram, 1e-3), 2)
        seconds = time.process_time() - used
        unit = 1e6 if sys.platform == "darwin" else 1e6 / 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
        rows.append(
            {
                "size": size,
                "cpu_seconds": seconds,
                "peak_mb": peak,
                "before": first.objective / _MANY,
                "after": second.objective / _MANY,
            }
        )
        emit({"queries": _MANY, "rows": rows})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["convergence", "sweeps", "steps"])
    parser.add_argument("--size", type=int, action="append", metavar="N", help="cells, for steps")
    given = parser.parse_args()
    if given.what == "sweeps":
        run_sweeps()
    elif given.what == "convergence":
        run_convergence()
    else:
        run_steps(given.size or [512, 1024, 2048, 4096])


if __name__ == "__main__":
    main()
