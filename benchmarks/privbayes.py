"""PrivBayes and DAWA beside HDMM's figures for them: root mean squared errors of repeated runs.

    python benchmarks/privbayes.py --adult adult.csv
    python benchmarks/privbayes.py

The first is PrivBayes on UCI Adult with every value coded from 0, a column each. The second is both on tables
that are made up, as the others of the paper are not published with it. The runs are seeded, so that they can
be repeated; nothing of it is private.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from harness import emit
from numpy.typing import NDArray
from published.hdmm_conference import DAWA, MADE_UP, PAPER, PRIVBAYES
from published.tables import Row

import matrixdp as mdp
from matrixdp.measure.noisy_answers import random_source
from matrixdp.papers import dawa
from matrixdp.papers.privbayes import simulate
from matrixdp.papers.privbayes.mechanism import prepared
from matrixdp.papers.privbayes.network import PrivateCounts
from matrixdp.queries import ProductGroup

#: As many as HDMM's authors ran.
RUNS = 25
#: The columns of the file, and how many of its values make one of the domain's.
_COLUMNS = {"age": ("age", 1), "e": ("education-num", 1), "r": ("race", 1), "s": ("sex", 1)}
_COLUMNS["hours"] = ("hours-per-week", 5)
_ROWS = {row.name: row for row in PAPER.tables[0].rows}
Array = NDArray[Any]
Marginal = tuple[str, ...]


def read(path: Path) -> dict[str, NDArray[np.int64]]:
    """Return the table in the domain of HDMM's paper: ages of one year, hours in steps of five."""
    header = path.read_text(encoding="utf-8").partition("\n")[0].split(",")
    values = dict(zip(header, np.loadtxt(path, dtype=np.int64, delimiter=",", skiprows=1).T, strict=True))
    return {name: values[column] // step for name, (column, step) in _COLUMNS.items()}


def _guesses(workload: mdp.Workload, joint: Array) -> dict[str, float]:
    """Return the errors of answers that cost nothing, or next to nothing: what a model must beat."""
    records = joint.sum()
    one_way = [joint.sum(axis=tuple(j for j in range(joint.ndim) if j != i)) for i in range(joint.ndim)]
    tables = {
        "0": 0.0,
        "uniform": records / joint.size,
        "independent": records * reduce(np.multiply.outer, [own / records for own in one_way]),
    }
    return {name: _rmse(workload, _marginals(workload, joint - own).get) for name, own in tables.items()}


def _marginals(workload: mdp.Workload, joint: Array) -> dict[Marginal, Array]:
    """Return the marginals that are asked about, from a table of all attributes that are."""
    return _parts(joint, _asked(workload), list({group.attributes for group in workload}))


def _parts(joint: Array, names: Marginal, marginals: Sequence[Marginal]) -> dict[Marginal, Array]:
    return {
        own: np.asarray(joint.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in own)))
        for own in marginals
    }


def _asked(workload: mdp.Workload) -> Marginal:
    return workload.domain.sort({name for group in workload for name in group.attributes})


def _rmse(workload: mdp.Workload, errors: Callable[[Marginal], Array | None]) -> float:
    """Return the root mean squared error of all queries from the errors of the cells of each marginal.

    By the Gram matrices of the products: some workloads have too many queries to be answered one by one.
    """
    total = 0.0
    for group in workload:
        cells = errors(group.attributes)
        assert isinstance(group, ProductGroup)
        assert cells is not None
        moved = cells
        for axis, (predicates, size) in enumerate(zip(group.predicates, group.sizes, strict=True)):
            moved = np.moveaxis(np.tensordot(predicates.gram(size), moved, (1, axis)), 0, axis)
        total += float((cells * moved).sum())
    return math.sqrt(total / workload.queries)


def made_up(sizes: Sequence[int], records: int, strength: float) -> NDArray[np.int64]:
    """Return the counts of a made-up table in which all values are skewed and every two attributes depend.

    Records are drawn from the exponential of a falling line for each attribute, and of a product of smooth
    random curves for each pair, times the strength of their dependence.
    """
    random = np.random.default_rng(1)

    def along(axis: int, values: Array) -> Array:
        return values.reshape([len(values) if axis == own else 1 for own in range(len(sizes))])

    def curve(size: int) -> Array:
        place = np.arange(size) / size
        return np.asarray(np.cos(np.pi * (random.integers(1, 4) * place + random.random())))

    logs = sum((along(axis, np.linspace(0, -4, size)) for axis, size in enumerate(sizes)), np.zeros(sizes))
    for one, other in combinations(range(len(sizes)), 2):
        logs = logs + strength * along(one, curve(sizes[one])) * along(other, curve(sizes[other]))
    shares = np.exp(logs - logs.max())
    return np.asarray(random.multinomial(records, (shares / shares.sum()).ravel()).reshape(sizes))


def _on_made_up(workload: mdp.Workload, records: int, strength: float) -> dict[str, Any]:
    """Return the error of PrivBayes on a made-up table of this many records."""
    names = _asked(workload)
    joint = made_up([workload.domain[name].size for name in names], records, strength)
    exact = _marginals(workload, joint)
    ready, random = prepared(workload, mdp.Budget(epsilon=1)), random_source(0)
    counts = PrivateCounts(lambda marginals: _parts(joint, names, marginals))
    squares, parents = [], 0
    for _ in range(RUNS):
        network = ready.run(counts, random)
        parents += sum(len(own) for _, own in network.families)
        found = {own: network.marginal(own) for own in exact}
        errors = {
            own: network.records * table - exact[own] for own, table in found.items() if table is not None
        }
        squares.append(_rmse(workload, errors.get) ** 2)
    rmse = math.sqrt(float(np.mean(squares)))
    return {
        "strength": strength,
        "simulations": RUNS,
        "rmse": rmse,
        "rmse_standard_error": float(np.std(squares, ddof=1)) / math.sqrt(RUNS) / (2 * rmse),
        "parents": parents / RUNS / len(names),
        "guesses": _guesses(workload, joint),
    }


def histograms(cells: int) -> dict[str, Array]:
    """Return how the records of made-up histograms are spread: smoothly, in runs, and on few values."""
    random, place = np.random.default_rng(2), np.arange(cells) / cells
    smooth = np.exp(-0.5 * ((place - 0.2) / 0.1) ** 2) + 0.3 * np.exp(-3 * place)
    runs = np.repeat(random.exponential(size=32), cells // 32)
    few = np.where(random.random(cells) < 0.03, random.pareto(1.0, cells), 0.0)
    return {
        name: own / own.sum() for name, own in (("smooth", smooth), ("32 runs", runs), ("few values", few))
    }


def _dawa_on_made_up(workload: mdp.Workload) -> list[dict[str, Any]]:
    tables, cells = [], workload.domain.shape[0]
    for kind, shares in histograms(cells).items():
        for records in (10**5, 10**7):
            counts = np.random.default_rng(3).multinomial(records, shares)
            table = {"a": np.repeat(np.arange(cells), counts)}
            found = dawa.simulate(workload, table, mdp.Budget(epsilon=1), simulations=RUNS)
            tables.append({"kind": kind, "records": records, **vars(found)})
    return tables


def _row(row: Row, printed: str, *others: str) -> dict[str, Any]:
    """Return what all rows have: the error of HDMM, ours and that of the printed figures."""
    workload, identity = row.make(), row.figures[0]
    assert identity is not None
    errors = {
        own: mdp.select(workload, mechanism=own, noise="laplace").rmse(mdp.Budget(epsilon=1))
        for own in ("hdmm", "identity", *others)
    }
    return {
        "name": row.name,
        "queries": workload.queries,
        "printed": printed,
        **errors,
        "hdmm_printed": errors["identity"] / float(identity),
    }


def _adult(path: Path) -> dict[str, Any]:
    table = read(path)
    rows: list[dict[str, Any]] = []
    for name, printed in PRIVBAYES.items():
        workload = _ROWS[name].make()
        joint = np.zeros(workload.domain.shape)
        np.add.at(joint, tuple(table[own] for own in workload.domain.names), 1)
        runs = []
        for kind in ("add_remove", "replace"):
            budget = mdp.Budget(epsilon=1, neighbours=kind)
            for score in ("R", "I"):
                found = simulate(workload, table, budget, simulations=RUNS, score=score)
                runs.append({"neighbours": kind, "score": score, **vars(found)})
        own = {"guesses": _guesses(workload, joint), "runs": runs}
        rows.append(_row(_ROWS[name], printed) | own)
    return {"records": len(table["age"]), "rows": rows}


def _made_up() -> dict[str, Any]:
    privbayes = []
    for name, (printed, records) in MADE_UP.items():
        tables = [_on_made_up(_ROWS[name].make(), records, strength) for strength in (0.5, 1.5)]
        privbayes.append(_row(_ROWS[name], printed) | {"records": records, "tables": tables})
    histograms = [
        _row(_ROWS[name], printed, "greedy-h") | {"tables": _dawa_on_made_up(_ROWS[name].make())}
        for name, printed in DAWA.items()
    ]
    return {"privbayes": privbayes, "dawa": histograms}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, metavar="FILE")
    path = parser.parse_args().adult
    emit(_made_up() if path is None else _adult(path))


if __name__ == "__main__":
    main()
