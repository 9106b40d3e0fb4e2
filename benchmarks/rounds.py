"""Would a second round, planned from the noisy answers of the first, pay? One round beside two.

    python benchmarks/rounds.py --adult adult.csv

Marginals are measured by residuals: the noise of each is a closed form of the weights of marginals. A first
round spends half of the budget, with weight 1 for every cell. The second reweights marginals from its
answers; both measure the same residuals, so that their precisions add up in least squares. Errors follow
from variances and the true table; only the first round is drawn, with seeds. Nothing of it is private.
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
#: A cell can be published where its standard error is less than its count over this.
CV = 3.0
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

    def judged(self, precisions: Array, floor: float) -> dict[str, float]:
        """Return the errors of all cells under a plan, against the true table."""
        pairs = list(zip(self.errors(precisions), self.counts, strict=True))
        cells, present = self.cells.sum(), sum(float((x > 0).sum()) for _, (x, _) in pairs)
        relative = sum(float((error / np.maximum(x, floor)).sum()) for error, (x, _) in pairs)
        return {
            "rmse": math.sqrt(float(self.errors(precisions) ** 2 @ self.cells) / cells),
            "relative": relative / cells * math.sqrt(2 / math.pi),
            "share": sum(float((error < x / CV).sum()) for error, (x, _) in pairs) / present,
        }


def subsets(names: Names) -> list[Names]:
    return [own for k in range(len(names) + 1) for own in itertools.combinations(names, k)]


def without_noise(noisy: Array, error: float) -> Counts:
    """Return a distribution of counts that explains noisy ones: maximum likelihood on a grid, by EM."""
    low, high = (math.log(max(error / 3, 0.5)), math.log(1.05 * max(float(noisy.max()), error) + 1))
    grid = np.concatenate([[0.0], np.exp(np.linspace(low, high, 60))])
    seen = noisy if len(noisy) <= 4000 else np.quantile(noisy, (np.arange(2000) + 0.5) / 2000)
    powers = -0.5 * ((seen[:, None] - grid) / np.maximum(error, 0.1 * grid)) ** 2
    likelihood, prior = np.exp(powers - powers.max(axis=1, keepdims=True)), np.full(len(grid), 1 / len(grid))
    for _ in range(60):
        posterior = likelihood * prior
        prior = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    return grid, prior * len(noisy)


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


def _mean(found: list[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.mean([one[key] for one in found])) for key in found[0]}


def _plans(own: Marginals, budget: float, floor: float) -> dict[str, dict[str, float]]:
    first = own.plan(own.cells, FIRST * budget)
    rest, errors = (1 - FIRST) * budget, own.errors(first)
    relative, share = [], []
    for seed in range(SEEDS):
        noisy = own.noisy(first, np.random.default_rng(seed))
        seen = [(x, np.ones(len(x))) for x in noisy]
        relative.append(own.judged(own.for_relative(seen, floor, rest, first), floor))
        seen = [without_noise(x, float(s)) for x, s in zip(noisy, errors, strict=True)]
        share.append(own.judged(own.for_share(seen, rest, first), floor))
    return {
        "one": own.judged(own.plan(own.cells, budget), floor),
        "sized": own.judged(own.plan(own.cells**1.5, budget), floor),
        "relative": _mean(relative),
        "share": _mean(share),
        "true relative": own.judged(own.for_relative(own.counts, floor, budget), floor),
        "true share": own.judged(own.for_share(own.counts, budget), floor),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, metavar="FILE", required=True)
    rows = []
    for name, (table, domain, rules) in tables_of(parser.parse_args().adult).items():
        for ways in (2, 3):
            asked = [own for k in range(1, ways + 1) for own in itertools.combinations(domain.names, k)]
            counted = open_source(table).marginals(domain, asked, rules, mdp.Budget(mu=1).unit)
            tables = {own: np.asarray(counts, dtype=np.float64) for own, counts in counted}
            own = Marginals({n: domain[n].size for n in domain.names}, tables)
            floor = max(10.0, float(next(iter(tables.values())).sum()) / 1000)
            for epsilon in EPSILONS:
                budget = GAUSSIAN.error_scale(mdp.Budget(epsilon=epsilon, delta=DELTA))
                plans = _plans(own, budget, floor)
                rows.append({"table": name, "ways": ways, "epsilon": epsilon, "floor": floor, "plans": plans})
    emit({"rows": rows})


if __name__ == "__main__":
    main()
