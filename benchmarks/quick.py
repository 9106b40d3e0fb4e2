"""Measure the cheap figures again and say which are not those of results.json.

python benchmarks/run.py --quick
"""

from __future__ import annotations

import math
from typing import Any

from cells import warm_up
from published import TABLES
from tables import figure_of, measured_cell

__all__ = ["measured_again"]

#: Seconds of processor time that a selection took at most when it was recorded.
CHEAP = 0.2
#: How far errors may differ, as a share: searches go elsewhere with other libraries and processors.
#: Between kernels of one library Laplace searches were seen to differ by 4e-5, others by less than 1e-5.
TOLERANCE = 2e-3


def measured_again(results: dict[str, dict[str, Any]]) -> tuple[int, list[str]]:
    """Select again where that was cheap, and compare errors with the recorded ones.

    Parameters
    ----------
    results : dict of str to dict
        The parts of results.json by name.

    Returns
    -------
    int
        How many figures were measured.
    list of str
        Those that differ, in words; among them tables whose rows are not those that were recorded.
    """
    warm_up()
    measured, differences = 0, []
    for table in TABLES:
        part = results.get(table.name)
        if part is None or "figures" not in part:
            differences.append(f"{table.name}: no results; run python benchmarks/run.py --only {table.name}")
            continue
        recorded = {row["name"]: row for row in part["figures"]["rows"]}
        names = [row.name for row in table.rows]
        # a part that was stopped has its first rows, and says on its page that it failed
        if list(recorded) != (names if part["status"] == 0 else names[: len(recorded)]):
            differences.append(f"{table.name}: other rows than in results.json; run it anew")
        for row in () if table.drawn else table.rows:
            cheap = [
                (mechanism, cell["error"])
                for mechanism, cell in recorded.get(row.name, {"cells": {}})["cells"].items()
                if cell.get("cpu_seconds", math.inf) <= CHEAP and "error" in cell
            ]
            figure = figure_of(table, row, row.make()) if cheap else None
            for mechanism, error in cheap:
                assert figure is not None
                found = measured_cell(table, row, mechanism, figure)
                measured += 1
                where = f"{table.name}; {row.name}; {mechanism}: "
                if "error" not in found:
                    differences.append(where + found["note"])
                elif abs(found["error"] - error) > TOLERANCE * error:
                    differences.append(f"{where}{found['error']:.6g}, recorded is {error:.6g}")
    print(f"{measured} figures measured again, {len(differences)} differ")
    return measured, differences
