"""Errors of marginals on real tables: one round and two, their models, AIM and MWEM+PGM of private-pgm.

    python benchmarks/peers.py bundled --adult adult.csv --mechanisms private-pgm/mechanisms

`--mechanisms` is the folder of that name in a checkout of private-pgm; no package has its files.
All are judged alike, against the true table, on every cell of the marginals. Everything is drawn with seeds,
so that it can be repeated; nothing of it is private.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from harness import emit
from mechanisms_of_pgm import MECHANISMS, run_mechanism
from numpy.typing import NDArray
from rounds import DELTA, EPSILONS, TABLES, tables_of

import matrixdp as mdp
from matrixdp.model.likelihood import Evidence
from matrixdp.model.mixture_fit import choose
from matrixdp.plans import Analysis
from matrixdp.queries import ProductGroup
from matrixdp.selection.rounds import CV
from matrixdp.sources import open_source

Array = NDArray[np.float64]
Codes = dict[str, NDArray[np.int64]]
Names = tuple[str, ...]

SEED = 1
#: MB of a model, and steps of a fit of AIM: less than its defaults (80 and 1,000) and MWEM+PGM's (25).
MODEL_MB, AIM_STEPS = 8.0, 250


def coded(table: Any, domain: mdp.Domain, rules: mdp.OutOfDomain) -> Codes:
    """Return the records of a table as codes, in no order."""
    if isinstance(table, dict):
        return table
    [(_, counts)] = open_source(table).marginals(domain, [domain.names], rules, mdp.Budget(mu=1).unit)
    joint = np.asarray(counts)
    held = np.nonzero(joint)
    return {
        name: np.repeat(own, np.rint(joint[held]).astype(np.int64))
        for name, own in zip(domain.names, held, strict=True)
    }


def true_marginals(table: Codes, sizes: dict[str, int], ways: int) -> dict[Names, Array]:
    """Return every marginal of at most this many attributes."""
    found = {}
    for names in (own for k in range(1, ways + 1) for own in itertools.combinations(sizes, k)):
        shape = [sizes[n] for n in names]
        places = np.ravel_multi_index([table[n] for n in names], shape)
        found[names] = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
    return found


def judged(answers: Callable[[Names], Array], truth: dict[Names, Array]) -> dict[str, float]:
    """Return the errors of all cells of all marginals."""
    held = np.concatenate([own.ravel() for own in truth.values()])
    errors = np.abs(np.concatenate([np.ravel(answers(names)) for names in truth]) - held)
    floor = max(10.0, float(next(iter(truth.values())).sum()) / 1000)
    return {
        "rmse": float(np.sqrt((errors**2).mean())),
        "l1": float(errors.mean()),
        "relative": float((errors / np.maximum(held, floor)).mean()),
        "within": float((errors < held / 3)[held > 0].mean()),
    }


def own_rows(
    table: Codes, domain: mdp.Domain, truth: dict[Names, Array], epsilon: float
) -> dict[str, dict[str, float]]:
    """Return the errors of one round and of two, by unbiased answers and by models, and of sized weights."""
    budget = mdp.Budget(epsilon=epsilon, delta=DELTA)
    rows = {}
    for kind, power, rounds in (("one round", 0.0, 1), ("one round, sized", 0.25, 1), ("two rounds", 0.0, 2)):
        entries = [mdp.marginals([list(names)], weight=own.size**power) for names, own in truth.items()]
        workload = mdp.Workload(domain, *entries)
        started = time.process_time()
        strategy = mdp.select(workload, rounds=rounds)
        measured = strategy.measure(table, budget, seed_not_private=SEED).measurement
        groups = {own.attributes: own for own in workload if isinstance(own, ProductGroup)}
        answers = {names: measured.estimates.answers(groups[names]) for names in truth}
        rows[kind] = judged(answers.__getitem__, truth) | {
            "share": _publishable(measured.analysis, groups, truth),
            "seconds": time.process_time() - started,
        }
        if not power:
            started = time.process_time()
            chosen = choose(Evidence.of(measured))
            rows[f"{kind}, mixture"] = judged(chosen.mixture.marginal, truth) | {
                "seconds": time.process_time() - started,
                "accepted": chosen.tests.accepted,
            }
    return rows


def _publishable(analysis: Analysis, groups: dict[Names, ProductGroup], truth: dict[Names, Array]) -> float:
    """Return the share of non-empty cells whose standard error is below a third of their count."""
    held = np.concatenate([own.ravel() for own in truth.values()])
    errors = np.sqrt(np.concatenate([analysis.variances(groups[names]) for names in truth]))
    return float((errors < held / CV)[held > 0].mean())


def _peer(name: str, folder: Path, table: Codes, sizes: dict[str, int], ways: int, epsilon: float) -> Any:
    truth = true_marginals(table, sizes, ways)
    own: dict[str, dict[str, Any]] = {
        "AIM": {"max_model_size": MODEL_MB, "max_iters": AIM_STEPS},
        "MWEM+PGM": {"maxsize_mb": MODEL_MB},
    }
    settings = own[name]
    done = run_mechanism(name, folder, table, sizes, list(truth), epsilon, DELTA, SEED, **settings)
    return judged(done.marginal, truth) | {"seconds": done.seconds, "fits": done.fits, "settings": settings}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--adult", type=Path, metavar="FILE", required=True)
    parser.add_argument("--mechanisms", type=Path, metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes at a time (2)")
    given = parser.parse_args()
    if given.mechanisms is None:
        print("without --mechanisms FOLDER, AIM and MWEM+PGM are left out", file=sys.stderr)
    source, domain, rules = tables_of(given.adult)[given.table]
    table, sizes = coded(source, domain, rules), {n: domain[n].size for n in domain.names}
    cases = list(itertools.product((2, 3), EPSILONS))
    rows: list[dict[str, Any]] = []
    # a process each: compiled programs fill a process's maps of memory
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        peers = {
            (name, case): pool.submit(_peer, name, given.mechanisms, table, sizes, *case)
            for case in cases
            for name in (MECHANISMS if given.mechanisms is not None else ())
        }
        for ways, epsilon in cases:
            found = own_rows(table, mdp.Domain(dict(sizes)), true_marginals(table, sizes, ways), epsilon)
            found |= {name: own.result() for (name, case), own in peers.items() if case == (ways, epsilon)}
            rows.append({"ways": ways, "epsilon": epsilon, "methods": found})
            emit({"table": given.table, "rows": rows})


if __name__ == "__main__":
    main()
