"""Does a second round, planned from the noisy answers to the first, pay? One round beside two.

    python benchmarks/rounds.py --adult adult.csv

Marginals are measured by residuals: the noise of each is a closed form of the weights of marginals. A first
round spends half of the budget, with weight 1 for every cell. For the share of publishable cells the
second is that of releases with `rounds: 2`; for relative errors, which no release offers, it is planned here.
Errors follow from variances and the true table; noise is drawn with seeds. Nothing of it is private.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness import emit
from model import read_adult
from numpy.typing import NDArray

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.rounds import CV
from matrixdp.sources import open_source

Array = NDArray[np.float64]
Names = tuple[str, ...]
#: Counts that are believed in for the cells of a marginal, and how many cells have each.
Counts = tuple[Array, Array]

HERE = Path(__file__).parent
EPSILONS, DELTA = (0.1, 1.0, 10.0), 1e-6
#: Adult in bins, the example of this repository, and a survey that statsmodels brings.
TABLES = ("Adult", "bundled", "fair")
#: The share of the first round.
FIRST = 0.5
SEEDS = 5
#: Where the bins of `affairs` in the table `fair` begin, but the first, which is 0 alone.
AFFAIRS = (1e-9, 0.5, 1.0, 2.0, 5.0, 10.0)
#: A sigmoid of log counts stands for the share of publishable cells, ever steeper; steps at each width.
_WIDTHS, _STEPS = (2.0, 1.5, 1.0, 0.7, 0.5, 0.35, 0.25), 15


class Marginals:
    """Some marginals of a table, and the residuals that they are sums of."""

    def __init__(self, sizes: Mapping[str, int], tables: Mapping[Names, Array]) -> None:
        self.sizes, self.tables = sizes, tables
        held = {own for names in tables for own in subsets(names)}
        self.residuals = sorted(held, key=lambda own: (len(own), own))
        self.costs = np.array([math.prod(1 - 1 / sizes[n] for n in own) for own in self.residuals])
        self.shares = np.zeros((len(tables), len(held)))
        for i, names in enumerate(tables):
            for j, own in enumerate(self.residuals):
                if set(own) <= set(names):
                    others = math.prod(sizes[n] ** 2 for n in names if n not in own)
                    self.shares[i, j] = self.costs[j] / others
        self.cells = np.array([own.size for own in tables.values()], dtype=np.float64)
        self.counts: list[Counts] = [(own.ravel(), np.ones(own.size)) for own in tables.values()]

    def plan(self, weights: Array, budget: float, first: Array | float = 0.0) -> Array:
        """Return the precisions of residuals with the least weighted variance, none below a first round's."""
        asked, first = self.shares.T @ weights, np.broadcast_to(first, self.costs.shape)
        total, free = budget + self.costs @ first, np.ones(len(self.costs), dtype=bool)
        while True:
            left = total - (self.costs * first)[~free].sum()
            wanted = np.sqrt(asked / self.costs) * left / np.sqrt(self.costs * asked)[free].sum()
            if not (low := free & (wanted < first)).any():
                return np.where(free, wanted, first)
            free &= ~low

    def errors(self, precisions: Array) -> Array:
        """Return the standard error of the cells of each marginal."""
        return np.asarray(np.sqrt(self.shares @ (1 / precisions)))

    def noisy(self, precisions: Array, random: np.random.Generator) -> list[Array]:
        """Return all marginals as a first round estimates them."""
        noise = {}
        for own, precision in zip(self.residuals, precisions, strict=True):
            drawn = random.normal(size=[self.sizes[n] for n in own]) / math.sqrt(precision)
            for axis in range(drawn.ndim):
                drawn = drawn - drawn.mean(axis=axis, keepdims=True)
            noise[own] = drawn
        found = []
        for names, table in self.tables.items():
            for own in subsets(names):
                others = math.prod(self.sizes[n] for n in names if n not in own)
                table = table + noise[own].reshape([self.sizes[n] if n in own else 1 for n in names]) / others
            found.append(table.ravel())
        return found

    def for_relative(self, counts: Sequence[Counts], floor: float, budget: float, first: Any = 0.0) -> Array:
        """Return the plan of the least mean of standard errors over max(count, floor)."""
        wanted = weights = np.array([(n / np.maximum(x, floor)).sum() for x, n in counts])
        for _ in range(30):
            found = self.plan(weights, budget, first)
            weights = wanted / self.errors(found)
        return found

    def for_share(self, counts: Sequence[Counts], budget: float, first: Any = 0.0) -> Array:
        """Return a plan under which many cells can be published: the best of a few local searches."""
        edges = np.linspace(-2, 14, 161)
        middles, clip = (edges[1:] + edges[:-1]) / 2, (-1.99, 13.99)
        logs = [(np.clip(np.log(np.maximum(x, 0.1) / CV), *clip), n * (x > 0.5)) for x, n in counts]
        held = np.array([np.histogram(x, edges, weights=n)[0] for x, n in logs])
        best, most = None, -1.0
        for power in (0.0, 1.0, 2.0):
            weights = self.cells**power
            found = self.plan(weights, budget, first)
            for width in np.repeat(_WIDTHS, _STEPS):
                errors = self.errors(found)
                step = 1 / (1 + np.exp((np.log(errors)[:, None] - middles) / width))
                slope = (held * step * (1 - step)).sum(axis=1) / errors**2
                weights = np.sqrt((weights / weights.max() + 1e-12) * (slope / slope.max() + 1e-12))
                found = self.plan(weights, budget, first)
                limits = np.log(self.errors(found))
                reached = sum(float(n[x > s].sum()) for (x, n), s in zip(logs, limits, strict=True))
                if reached > most:
                    best, most = found, reached
        assert best is not None
        return best

    def judged(self, errors: Array, floor: float) -> dict[str, float]:
        """Return the figures of all cells, given the standard errors of the cells of each marginal."""
        pairs = list(zip(errors, self.counts, strict=True))
        cells, present = self.cells.sum(), sum(float((x > 0).sum()) for _, (x, _) in pairs)
        relative = sum(float((error / np.maximum(x, floor)).sum()) for error, (x, _) in pairs)
        return {
            "rmse": math.sqrt(float(errors**2 @ self.cells) / cells),
            "relative": relative / cells * math.sqrt(2 / math.pi),
            "share": sum(float((error < x / CV).sum()) for error, (x, _) in pairs) / present,
        }


def subsets(names: Names) -> list[Names]:
    return [own for k in range(len(names) + 1) for own in itertools.combinations(names, k)]


def tables_of(adult: Path) -> dict[str, tuple[Any, mdp.Domain, mdp.OutOfDomain]]:
    given = mdp.load_specification(HERE.parent / "examples" / "randhie.yaml")
    bundled = HERE.parent / "examples" / "randhie.parquet", given.workload.domain, given.out_of_domain
    return {
        "Adult": (*read_adult(adult, True), mdp.OutOfDomain.drop()),
        "bundled": bundled,
        "fair": (*read_fair(), mdp.OutOfDomain.drop()),
    }


def read_fair() -> tuple[dict[str, NDArray[np.int64]], mdp.Domain]:
    """Return the survey of R. C. Fair (1978) from statsmodels: 6,366 records, all attributes coded from 0."""
    try:
        from statsmodels.datasets import fair  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        sys.exit("there is no statsmodels, which has the table `fair`: pip install statsmodels")
    table, sizes = {}, {}
    for name, values in fair.load_pandas().data.items():
        if name == "affairs":
            table[name], sizes[name] = np.digitize(values, AFFAIRS), len(AFFAIRS) + 1
        else:
            held, table[name] = np.unique(values, return_inverse=True)
            sizes[name] = len(held)
    return table, mdp.Domain(sizes)


def made_up() -> tuple[dict[str, NDArray[np.int64]], mdp.Domain]:
    """Return 20,000 records, one of whose attributes is too fine for most budgets: 500 places, all alike."""
    sizes, random = {"place": 500, "a": 8, "b": 8, "c": 8}, np.random.default_rng(2)
    table = {name: np.minimum(random.geometric(0.35, 20_000) - 1, 7) for name in sizes}
    table["place"] = random.integers(0, 500, 20_000)
    return table, mdp.Domain(sizes)


def _mean(found: list[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


def _plans(
    own: Marginals, table: Any, domain: mdp.Domain, rules: mdp.OutOfDomain, epsilon: float, floor: float
) -> dict[str, dict[str, float]]:
    asked = mdp.Budget(epsilon=epsilon, delta=DELTA)
    budget = GAUSSIAN.error_scale(asked)
    first = own.plan(own.cells, FIRST * budget)
    workload = mdp.Workload(domain, *(mdp.marginals([list(names)]) for names in own.tables))
    strategy = mdp.select(workload, rounds=2)
    relative, share = [], []
    for seed in range(SEEDS):
        seen = [(x, np.ones(len(x))) for x in own.noisy(first, np.random.default_rng(seed))]
        found = own.for_relative(seen, floor, (1 - FIRST) * budget, first)
        relative.append(own.judged(own.errors(found), floor))
        measured = strategy.measure(table, asked, seed_not_private=seed, out_of_domain=rules)
        analysis = measured.measurement.analysis
        errors = np.sqrt([float(analysis.variances(group)[0]) for group in workload])
        share.append(own.judged(errors, floor))
    plans = {
        "one": own.plan(own.cells, budget),
        "sized": own.plan(own.cells**1.5, budget),
        "true relative": own.for_relative(own.counts, floor, budget),
        "true share": own.for_share(own.counts, budget),
    }
    known = {name: own.judged(own.errors(plan), floor) for name, plan in plans.items()}
    return known | {"relative": _mean(relative), "share": _mean(share)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, metavar="FILE", required=True)
    rows = []
    tried = {**tables_of(parser.parse_args().adult), "made up": (*made_up(), mdp.OutOfDomain.drop())}
    for name, (table, domain, rules) in tried.items():
        for ways in (2, 3):
            asked = [own for k in range(1, ways + 1) for own in itertools.combinations(domain.names, k)]
            counted = open_source(table).marginals(domain, asked, rules, mdp.Budget(mu=1).unit)
            tables = {own: np.asarray(counts, dtype=np.float64) for own, counts in counted}
            own = Marginals({n: domain[n].size for n in domain.names}, tables)
            floor = max(10.0, float(next(iter(tables.values())).sum()) / 1000)
            for epsilon in EPSILONS:
                plans = _plans(own, table, domain, rules, epsilon, floor)
                rows.append({"table": name, "ways": ways, "epsilon": epsilon, "floor": floor, "plans": plans})
    emit({"rows": rows})


if __name__ == "__main__":
    main()
