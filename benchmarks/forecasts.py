"""What `matrixdp validate` expects of selections, beside the processor seconds that they take.

python benchmarks/forecasts.py

Exits with status 1 where fewer than ten of twelve are within a factor of two, or one is not within four.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product

import numpy as np
from harness import measured

import matrixdp as mdp
from matrixdp.noise import NOISES
from matrixdp.selection.auto import select

#: The factor that most forecasts keep, and that which all do.
USUAL, MOST = 2.0, 4.0
#: As large a part of them is within the usual factor.
SHARE = 10 / 12
_LIMIT = 900.0


def _sizes(*sizes: int) -> mdp.Domain:
    return mdp.Domain({f"a{place}": size for place, size in enumerate(sizes)})


def _crossed(*sizes: int) -> mdp.Workload:
    """Return the prefixes of each of two attributes, within the cells of the other."""
    sets = mdp.product(a0="prefix", a1="identity"), mdp.product(a0="identity", a1="prefix")
    return mdp.Workload(_sizes(*sizes), *sets)


def _moments(size: int) -> mdp.Workload:
    """Return quantiles, means and a variance of one attribute by others."""
    moments = mdp.ask.variance("a3", by=["a0"]), mdp.ask.mean("a3", by=["a1", "a2"])
    asked = mdp.marginals(1, max_cells=4), mdp.ask.quantile("a3", by=["a1"]), *moments
    return mdp.Workload(_sizes(2, 4, 2, size), *asked)


def _ranges(groups: int) -> mdp.Workload:
    """Return random products of ranges on two of fifteen attributes of eight values."""
    random = np.random.default_rng(1)
    asked = []
    for _ in range(groups):
        ends = np.sort(random.integers(0, 8, (2, 2)), axis=1).tolist()
        names = sorted(random.choice(15, 2, replace=False).tolist())
        asked.append(mdp.product({f"a{n}": {"ranges": [own]} for n, own in zip(names, ends, strict=True)}))
    return mdp.Workload(_sizes(*[8] * 15), *asked)


WORKLOADS: dict[str, Callable[[], mdp.Workload]] = {
    "the total": lambda: mdp.Workload(_sizes(5), mdp.marginals(0)),
    "every cell of a million": lambda: mdp.Workload(_sizes(10, 100, 1_000), mdp.marginals(3)),
    "up to 3-way marginals, d = 12": lambda: mdp.Workload(_sizes(*range(2, 14)), mdp.marginals([1, 2, 3])),
    "up to 2-way marginals, d = 150": lambda: mdp.Workload(_sizes(*[8] * 150), mdp.marginals([0, 1, 2])),
    "prefixes of 1,500 values": lambda: mdp.Workload(_sizes(1_500), mdp.product(a0="prefix")),
    "ranges of 400 values": lambda: mdp.Workload(_sizes(400), mdp.product(a0="range")),
    "prefixes of 700 values, also by 3": lambda: mdp.Workload(
        _sizes(700, 3), mdp.product(a0="prefix"), mdp.product(a0="prefix", a1="identity")
    ),
    "up to 2-way prefixes, d = 12": lambda: mdp.Workload(_sizes(*[16] * 12), mdp.kway([1, 2], "prefix")),
    "cells and prefixes, d = 5": lambda: mdp.Workload(
        _sizes(12, 9, 30, 4, 20), mdp.marginals(2), mdp.kway(2, "prefix")
    ),
    "crossed prefixes, 20 x 25": lambda: _crossed(20, 25),
    "crossed prefixes, 50 x 60": lambda: _crossed(50, 60),
    "quantiles and means of 341 values": lambda: _moments(341),
    "quantiles and means of 700 values": lambda: _moments(700),
    "differences, d = 3": lambda: mdp.Workload(
        _sizes(30, 30, 30), mdp.kway(1, "prefix"), mdp.pairwise("abs")
    ),
    "differences, d = 8": lambda: mdp.Workload(_sizes(*[14] * 8), mdp.kway(1, "prefix"), mdp.pairwise("abs")),
    "60 random products of ranges": lambda: _ranges(60),
    "three ranges of 100,000 values": lambda: mdp.Workload(
        _sizes(100_000, 4),
        mdp.product(a0={"ranges": [[0, 9], [10, 999], [1_000, 99_999]]}, a1="identity"),
    ),
}


def main() -> int:
    """Print a table, and return the exit status."""
    print(f"{'workload':36}{'noise':10}{'expected':>10}{'measured':>10}{'ratio':>8}")
    ratios = []
    for name, noise in product(WORKLOADS, NOISES):
        expected = mdp.forecast(WORKLOADS[name](), noise=noise, max_answers=10**9).select_seconds
        if expected is None:
            continue
        usage = measured([sys.executable, __file__, name, noise], _LIMIT, threads=1)
        ratios.append(expected / usage.cpu_seconds)
        print(f"{name:36}{noise:10}{expected:10.2f}{usage.cpu_seconds:10.2f}{ratios[-1]:8.2f}", flush=True)
    off = np.exp(np.abs(np.log(ratios)))
    usual = float((off <= USUAL).mean())
    print(f"{usual:.0%} within a factor of {USUAL:g}; all within {off.max():.2g}")
    return 0 if usual >= SHARE and off.max() <= MOST else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        select(WORKLOADS[sys.argv[1]](), noise=NOISES[sys.argv[2]])
        sys.exit()
    sys.exit(main())
