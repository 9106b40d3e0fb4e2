"""Would a second round, planned for the model of the first, pay? Root mean squared errors of mixtures.

    python benchmarks/model_rounds.py bundled --adult adult.csv

A first round spends half of the budget, with weight 1 for every cell. What its model misses of a residual,
beyond what noise explains, is what a second round can mend there: a residual that is measured with variance v
and missed by e in a degree of freedom is known to 1 / (1 / v + 1 / e). The second round minimizes the sum of
that over all cells. A model follows the noise that it was fitted to, so that it is never taken to miss less
than the variance of that noise. "Known" plans from what the model truly misses, which no private method can
do. All noise is drawn with seeds; nothing of it is private.
"""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path

import numpy as np
from harness import emit
from numpy.typing import NDArray
from peers import coded, true_marginals
from rounds import DELTA, EPSILONS, FIRST, TABLES, Marginals, tables_of

import matrixdp as mdp
from matrixdp.exact import CenteredMatrix
from matrixdp.model.constraints import Constraints
from matrixdp.model.likelihood import Axis, Evidence, Likelihood
from matrixdp.model.mixture_fit import MixtureFit, choose
from matrixdp.noise import GAUSSIAN

Array = NDArray[np.float64]
Names = tuple[str, ...]
#: Noisy residuals, each with its precision.
Measured = dict[Names, tuple[float, Array]]

#: Adult takes minutes a run with marginals of three attributes.
SEEDS, WAYS = {"Adult": 1, "bundled": 2, "fair": 2}, {"Adult": (2,), "bundled": (2, 3), "fair": (2, 3)}
#: What a model truly misses at least, squared, and the steps of a search.
_LEAST, _HALVINGS = 1e-9, 300


class Rounds:
    """Residuals of a table, measured with noise, and the models of what was measured."""

    def __init__(self, domain: mdp.Domain, own: Marginals) -> None:
        self.domain, self.own = domain, own
        self.axes = {n: Axis(CenteredMatrix(domain[n].size), 1.0, True) for n in domain.names}
        self.truth = {}
        for names in own.residuals:
            holder, table = next(item for item in own.tables.items() if set(names) <= set(item[0]))
            others = tuple(i for i, n in enumerate(holder) if n not in names)
            self.truth[names] = centred(table.sum(axis=others))
        self.degrees = np.array([math.prod(domain[n].size - 1 for n in own) for own in own.residuals])

    def measured(self, precisions: Array, random: np.random.Generator) -> Measured:
        found = {}
        for names, precision in zip(self.own.residuals, precisions, strict=True):
            true = self.truth[names]
            noise = random.normal(size=true.shape)
            if precision > 0:
                found[names] = precision, true + centred(noise) / math.sqrt(precision)
        return found

    def model(self, found: Measured) -> MixtureFit:
        total = float(found[()][1])
        parts = tuple(
            Likelihood(own, own, None, tuple(self.axes[n] for n in own), precision, values.ravel(), degrees)
            for (own, (precision, values)), degrees in zip(found.items(), self._degrees(found), strict=True)
            if own
        )
        starts: dict[str, Array | None] = {
            n: found[n,][1] + total / self.domain[n].size for n in self.domain.names
        }
        return choose(Evidence(self.domain, max(total, 1.0), parts, starts, 0.0, Constraints(self.domain)))

    def _degrees(self, found: Measured) -> list[int]:
        return [math.prod(self.domain[n].size - 1 for n in own) for own in found]

    def missed(self, fit: MixtureFit, found: Measured | None) -> Array:
        """Return by how much a model misses residuals, squared, a degree: beyond noise, or truly."""
        misses = []
        for names, degrees in zip(self.own.residuals, self.degrees, strict=True):
            own = centred(fit.mixture.marginal(names)) if names else np.array(math.inf)
            if found is None:
                misses.append(float(np.square(own - self.truth[names]).sum()) / degrees)
            else:
                precision, values = found[names]
                beyond = float(np.square(own - values).sum()) / degrees - 1 / precision
                misses.append(max(beyond, 1 / precision))
        return np.maximum(misses, _LEAST)

    def second(self, missed: Array, budget: float, first: Array) -> Array:
        """Return the precisions of both rounds together that leave the least error in all cells."""
        own = self.own
        asked, total = own.shares.T @ own.cells, budget + own.costs @ first
        low, high = 1e-30, 1e30
        for _ in range(_HALVINGS):
            level = math.sqrt(low * high)
            precisions = np.maximum(np.sqrt(asked / (level * own.costs)) - 1 / missed, first)
            low, high = (level, high) if own.costs @ precisions > total else (low, level)
        return precisions

    def rmse(self, fit: MixtureFit) -> float:
        errors = [(fit.mixture.marginal(own) - table).ravel() for own, table in self.own.tables.items()]
        return float(np.sqrt(np.square(np.concatenate(errors)).mean()))


def centred(table: Array) -> Array:
    """Return a table less its means along every axis."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def pooled(first: Measured, second: Measured) -> Measured:
    """Return both rounds as one: means weighted by precisions."""
    found = dict(first)
    for names, (precision, values) in second.items():
        before, other = found[names]
        both = before + precision
        found[names] = both, (before * other + precision * values) / both
    return found


def _row(own: Marginals, domain: mdp.Domain, budget: float, seed: int) -> dict[str, float]:
    """Return the errors of the models of one round and of two."""
    rounds = Rounds(domain, own)
    random = np.random.default_rng(seed)
    one = rounds.model(rounds.measured(own.plan(own.cells, budget), random))
    precisions = own.plan(own.cells, FIRST * budget)
    first = rounds.measured(precisions, random)
    half = rounds.model(first)
    row = {"one": rounds.rmse(one)}
    for name, found in (("two", first), ("known", None)):
        rest = rounds.second(rounds.missed(half, found), (1 - FIRST) * budget, precisions) - precisions
        row[name] = rounds.rmse(rounds.model(pooled(first, rounds.measured(rest, random))))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--adult", type=Path, metavar="FILE", required=True)
    given = parser.parse_args()
    source, read, rules = tables_of(given.adult)[given.table]
    sizes, rows = {n: read[n].size for n in read.names}, []
    for ways, epsilon in itertools.product(WAYS[given.table], EPSILONS):
        truth = true_marginals(coded(source, read, rules), sizes, ways)
        own, domain = Marginals(sizes, truth), mdp.Domain(dict(sizes))
        budget = GAUSSIAN.error_scale(mdp.Budget(epsilon=epsilon, delta=DELTA))
        found = [_row(own, domain, budget, seed) for seed in range(SEEDS[given.table])]
        rows.append({"ways": ways, "epsilon": epsilon, "runs": found})
        emit({"table": given.table, "rows": rows})


if __name__ == "__main__":
    main()
