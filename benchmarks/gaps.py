"""How far from the optimum: by the certificates on large workloads, beside `dense` on small ones.

python benchmarks/gaps.py certificates
python benchmarks/gaps.py dense
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import emit
from schemas import adult, cps, hybrid, one_and_two_way

import matrixdp as mdp

EXAMPLE = Path(__file__).parent.parent / "examples" / "randhie.yaml"


def _cells_and_prefixes() -> mdp.Workload:
    """Return marginals and cumulative counts of the same attributes: every pair is a sum of two products."""
    domain = mdp.Domain(dict(zip("abcdefg", (10, 8, 16, 2, 5, 7, 100), strict=True)))
    return mdp.Workload(domain, mdp.marginals([1, 2]), mdp.kway([1, 2], "prefix"))


#: name -> the workload, and whether its bound is refined by `certify`, too
WORKLOADS: dict[str, tuple[Callable[[], mdp.Workload], bool]] = {
    "bundled example": (lambda: mdp.load_specification(EXAMPLE).workload, False),
    "CPS up to 3-way": (lambda: hybrid(cps(), [1, 2, 3]), True),
    "Adult 2-way": (lambda: hybrid(adult(), [2]), True),
    "Adult up to 3-way": (lambda: hybrid(adult(), [1, 2, 3]), False),
    "prefixes, n = 10, d = 40": (lambda: one_and_two_way("prefix"), False),
    "affine, n = 10, d = 40": (lambda: one_and_two_way("affine"), False),
    "abs, n = 10, d = 40": (lambda: one_and_two_way("abs"), False),
    "marginals, n = 10, d = 40": (lambda: one_and_two_way("identity"), False),
    "cells and prefixes, d = 7": (_cells_and_prefixes, False),
}


def gap(make: Callable[[], mdp.Workload], certify: bool) -> tuple[float | None, float]:
    """Return by what share RMSE may exceed that of the best Gaussian strategy, and processor seconds."""
    workload, started = make(), time.process_time()
    selection = mdp.select(workload, mechanism="residual", noise="gaussian", certify=certify).selection
    certificate = selection.certificate
    bound = certificate.lower_bound
    share = None if bound is None else math.sqrt(certificate.loss / bound) - 1
    return share, time.process_time() - started


def _crossed(size: int, attributes: int) -> mdp.Workload:
    """Return the prefixes of each attribute within the cells of all others."""
    names = "abc"[:attributes]
    predicates: list[dict[str, Any]] = [
        {other: "prefix" if other == name else "identity" for other in names} for name in names
    ]
    entries = [mdp.product(**asked) for asked in predicates]
    return mdp.Workload(mdp.Domain({name: range(size) for name in names}), *entries)


#: name -> the workload, and the mechanisms that are compared to `dense`
SMALL: dict[str, tuple[Callable[[], mdp.Workload], tuple[str, ...]]] = {
    "crossed prefixes, 10 x 10": (lambda: _crossed(10, 2), ("auto", "opt-kron")),
    "crossed prefixes, 4 x 4 x 4": (lambda: _crossed(4, 3), ("auto", "opt-kron")),
    "crossed prefixes, 48 x 48": (lambda: _crossed(48, 2), ("weighted-product", "opt-kron")),
    "prefixes and affine pairs, 16 x 16": (lambda: one_and_two_way("affine", 16, 2), ("residual",)),
    "prefixes and affine pairs, 10 x 10 x 10": (lambda: one_and_two_way("affine", 10, 3), ("residual",)),
    "prefixes and abs pairs, 16 x 16": (lambda: one_and_two_way("abs", 16, 2), ("residual",)),
    "prefixes and abs pairs, 10 x 10 x 10": (lambda: one_and_two_way("abs", 10, 3), ("residual",)),
}


def certificates() -> None:
    rows: dict[str, dict[str, Any]] = {}
    for name, (make, refined) in WORKLOADS.items():
        print(f"  {name}", file=sys.stderr, flush=True)
        share, seconds = gap(make, certify=False)
        rows[name] = {"gap": share, "seconds": seconds}
        if refined:
            rows[name]["certified_gap"], rows[name]["certified_seconds"] = gap(make, certify=True)
        emit({"rows": rows})


def dense() -> None:
    rows: dict[str, dict[str, float]] = {}
    for name, (make, mechanisms) in SMALL.items():
        print(f"  {name}", file=sys.stderr, flush=True)
        losses = {
            mechanism: mdp.select(make(), mechanism=mechanism, noise="gaussian").selection.certificate.loss
            for mechanism in ("dense", *mechanisms)
        }
        rows[name] = {
            mechanism: math.sqrt(loss / losses["dense"]) - 1
            for mechanism, loss in losses.items()
            if mechanism != "dense"
        }
        emit({"rows": rows})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["certificates", "dense"])
    {"certificates": certificates, "dense": dense}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
