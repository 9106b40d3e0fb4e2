"""Tables 3 to 7 and example 13 of HDMM's journal version: error of every mechanism beside what is printed.

Ours are before rounding to integers. Pure differential privacy at epsilon = 1; Gaussian noise at
(epsilon, delta) = (1, 1e-6) by the exact curve. Mechanisms that this version does not have are left out.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import emit

import matrixdp as mdp
from matrixdp.selection import MECHANISMS

EXAMPLES = Path(__file__).parent.parent / "examples"
ALL = ["identity", "total"]
BUDGETS = {"laplace": mdp.Budget(epsilon=1), "gaussian": mdp.Budget(epsilon=1, delta=1e-6)}


def _one(kind: str, size: int) -> mdp.Workload:
    return mdp.Workload(mdp.Domain({"a": range(size)}), mdp.product(a=kind))


def _cps(kind: str | list[str]) -> mdp.Workload:
    domain = mdp.Domain(
        {"income": range(100), "age": range(50), "marital": 7, "race": 4, "sex": ["female", "male"]}
    )
    return mdp.Workload(domain, mdp.product(income=kind, age=kind, marital=ALL, race=ALL, sex=ALL))


def _sf1() -> mdp.Workload:
    return mdp.load_specification(EXAMPLES / "sf1.yaml").workload


def _two_way() -> mdp.Workload:
    return mdp.Workload(mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100}), mdp.marginals(2))


def _cross() -> mdp.Workload:
    domain = mdp.Domain({"a": range(100), "b": range(100)})
    return mdp.Workload(domain, mdp.product(a="prefix"), mdp.product(b="prefix"))


_BASELINES = ("identity", "hierarchical", "wavelet", "hb", "greedy-h")
_ONE = (*_BASELINES, "opt-0")
_MANY = ("identity", "opt-kron", "opt-plus", "opt-m")
#: name, noise, workload, what is printed by mechanism
ROWS: list[tuple[str, str, Callable[[], mdp.Workload], dict[str, float]]] = [
    *(
        (
            f"{name}, n = {size}",
            "laplace",
            lambda kind=kind, size=size: _one(kind, size),
            dict(zip(_ONE, printed, strict=True)),
        )
        for name, kind, size, printed in [
            ("all ranges", "range", 64, (6.63, 11.28, 10.11, 6.63, 6.34, 5.55)),
            ("all ranges", "range", 256, (13.11, 16.27, 14.87, 8.90, 9.72, 8.07)),
            ("all ranges", "range", 1024, (26.15, 21.83, 20.26, 12.82, 14.70, 11.08)),
            ("prefix", "prefix", 64, (8.06, 9.42, 9.37, 8.06, 6.04, 5.32)),
            ("prefix", "prefix", 256, (16.03, 13.16, 13.09, 8.97, 9.13, 7.35)),
            ("prefix", "prefix", 1024, (32.02, 17.29, 17.20, 12.87, 14.32, 9.58)),
        ]
    ),
    *(
        (
            f"{name}, n = {size}",
            "gaussian",
            lambda kind=kind, size=size: _one(kind, size),
            dict(zip(_ONE, printed, strict=True)),
        )
        for name, kind, size, printed in [
            ("all ranges", "range", 64, (19.82, 12.74, 11.42, 19.82, 14.64, 9.73)),
            ("all ranges", "range", 256, (39.18, 16.20, 14.81, 18.80, 23.34, 12.26)),
            ("prefix", "prefix", 64, (24.08, 10.64, 10.58, 24.08, 14.04, 8.87)),
            ("prefix", "prefix", 256, (47.89, 13.11, 13.03, 18.95, 22.11, 10.66)),
        ]
    ),
    ("SF1", "laplace", _sf1, dict(zip(_MANY, (23.20, 7.30, 30.55, 9.56), strict=True))),
    (
        "CPS, all marginals",
        "laplace",
        lambda: _cps(ALL),
        dict(zip(_MANY, (5.38, 4.85, 4.85, 4.84), strict=True)),
    ),
    (
        "CPS, all prefix-marginals",
        "laplace",
        lambda: _cps("prefix"),
        dict(zip(_MANY, (98.06, 40.59, 40.59, 69.38), strict=True)),
    ),
    ("SF1", "gaussian", _sf1, dict(zip(_MANY, (69.33, 9.80, 75.66, 14.31), strict=True))),
    (
        "CPS, all marginals",
        "gaussian",
        lambda: _cps(ALL),
        dict(zip(_MANY, (16.08, 7.85, 7.85, 7.86), strict=True)),
    ),
    (
        "CPS, all prefix-marginals",
        "gaussian",
        lambda: _cps("prefix"),
        dict(zip(_MANY, (292.93, 29.48, 29.49, 104.09), strict=True)),
    ),
]
#: Total squared error with Laplace noise of scale 1: half of that at epsilon = 1.
TOTALS: list[tuple[str, Callable[[], mdp.Workload], dict[str, float]]] = [
    (
        "all 2-way marginals on (2, 5, 50, 100)",
        _two_way,
        {"identity": 300_000, "opt-kron": 213_270, "opt-plus": 85_070, "opt-m": 62_886},
    ),
    ("prefix x total and total x prefix on 100 x 100", _cross, {"opt-kron": 33_385, "opt-plus": 14_252}),
]


def _select(workload: mdp.Workload, noise: str, mechanism: str) -> tuple[float, float | None, float] | None:
    """Return the total squared error at the budget before rounding, the lower bound, and the seconds."""
    started = time.perf_counter()
    try:
        selection = mdp.select(workload, noise=noise, mechanism=mechanism).selection
    except mdp.MatrixDPError as error:
        print(f"{mechanism}: {error}", file=sys.stderr)
        return None
    scale = BUDGETS[noise].error_scale(noise)
    bound = selection.certificate.lower_bound
    seconds = time.perf_counter() - started
    return selection.squared_error_before_rounding / scale, None if bound is None else bound / scale, seconds


def _row(
    name: str, noise: str, workload: mdp.Workload, printed: dict[str, float], total: bool
) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "noise": noise, "queries": workload.queries, "total": total}
    cells: dict[str, Any] = {}
    bounds = []
    for mechanism in dict.fromkeys([*printed, "residual", "hdmm"]):
        if mechanism not in MECHANISMS:
            continue
        found = _select(workload, noise, mechanism)
        if found is None:
            continue
        error = found[0] / 2 if total else math.sqrt(found[0] / workload.queries)
        cells[mechanism] = {"published": printed.get(mechanism), "ours": error, "seconds": found[2]}
        if found[1] is not None:
            bounds.append(found[1] / 2 if total else math.sqrt(found[1] / workload.queries))
        print(f"{name}, {noise}, {mechanism}: {error:.5g}, {found[2]:.1f} s", file=sys.stderr)
    row["mechanisms"] = cells
    row["lower_bound"] = max(bounds, default=None)
    return row


def main() -> None:
    rows = [_row(name, noise, make(), printed, False) for name, noise, make, printed in ROWS]
    rows += [_row(name, "laplace", make(), printed, True) for name, make, printed in TOTALS]
    emit({"rows": rows})


if __name__ == "__main__":
    main()
