"""PrivBayes on Adult beside HDMM's figures for it: root mean squared errors of repeated runs.

    python benchmarks/privbayes.py --adult adult.csv

`adult.csv` is UCI Adult with every value coded from 0, a column each. The runs are seeded, so that they can
be repeated; nothing of it is private.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from harness import emit
from numpy.typing import NDArray
from published.hdmm_conference import PAPER, PRIVBAYES

import matrixdp as mdp
from matrixdp.papers.privbayes import simulate

#: As many as HDMM's authors ran.
RUNS = 25
#: The columns of the file, and how many of its values make one of the domain's.
_COLUMNS = {"age": ("age", 1), "e": ("education-num", 1), "r": ("race", 1), "s": ("sex", 1)}
_COLUMNS["hours"] = ("hours-per-week", 5)
Array = NDArray[np.float64]


def read(path: Path) -> dict[str, NDArray[np.int64]]:
    """Return the table in the domain of HDMM's paper: ages of one year, hours in steps of five."""
    header = path.read_text(encoding="utf-8").partition("\n")[0].split(",")
    values = dict(zip(header, np.loadtxt(path, dtype=np.int64, delimiter=",", skiprows=1).T, strict=True))
    return {name: values[column] // step for name, (column, step) in _COLUMNS.items()}


def _guesses(workload: mdp.Workload, table: dict[str, NDArray[np.int64]]) -> dict[str, float]:
    """Return the errors of answers that cost nothing, or next to nothing: what a model must beat."""
    joint = np.zeros(workload.domain.shape)
    np.add.at(joint, tuple(table[name] for name in workload.domain.names), 1)
    records = joint.sum()
    one_way = [joint.sum(axis=tuple(j for j in range(joint.ndim) if j != i)) for i in range(joint.ndim)]
    independent = np.array(records)
    for own in one_way:
        independent = np.multiply.outer(independent, own / records)
    tables = {"0": 0 * joint, "uniform": np.full(joint.shape, records / joint.size)}

    def rmse(other: Array) -> float:
        squares = [
            group.answers((joint - other).sum(axis=_others(workload, group.attributes))) ** 2
            for group in workload
        ]
        return math.sqrt(sum(float(own.sum()) for own in squares) / workload.queries)

    return {name: rmse(own) for name, own in (tables | {"independent": independent}).items()}


def _others(workload: mdp.Workload, kept: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(axis for axis, name in enumerate(workload.domain.names) if name not in kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", type=Path, metavar="FILE", required=True)
    table = read(parser.parse_args().adult)
    rows: list[dict[str, Any]] = []
    for row in (own for own in PAPER.tables[0].rows if own.name in PRIVBAYES):
        workload, identity = row.make(), row.figures[0]
        assert identity is not None
        budgets = {kind: mdp.Budget(epsilon=1, neighbours=kind) for kind in ("add_remove", "replace")}
        runs = []
        for kind, budget in budgets.items():
            for score in ("R", "I"):
                found = simulate(workload, table, budget, simulations=RUNS, score=score)
                runs.append({"neighbours": kind, "score": score, **vars(found)})
        errors = {
            own: mdp.select(workload, mechanism=own, noise="laplace").rmse(budgets["add_remove"])
            for own in ("hdmm", "identity")
        }
        rows.append(
            {
                "name": row.name,
                "queries": workload.queries,
                "printed": PRIVBAYES[row.name],
                "hdmm": errors["hdmm"],
                "hdmm_printed": errors["identity"] / float(identity),
                "guesses": _guesses(workload, table),
                "runs": runs,
            }
        )
    emit({"records": len(table["age"]), "rows": rows})


if __name__ == "__main__":
    main()
