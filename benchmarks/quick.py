"""Measure the cheap figures again and say which are not those of results.json.

python benchmarks/run.py --quick
"""

from __future__ import annotations

import math
from typing import Any

from cells import select_cell, warm_up
from published import TABLES

from matrixdp.noise import noise_named

__all__ = ["measured_again"]

#: Seconds of processor time that a selection took at most when it was recorded.
CHEAP = 1.0
#: How far errors may differ, as a share: searches go elsewhere with other libraries and processors.
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
        if list(recorded) != [row.name for row in table.rows]:
            differences.append(f"{table.name}: other rows than in results.json; run it anew")
        scale = noise_named(table.noise).error_scale(table.budget)
        for row in table.rows:
            for mechanism, cell in recorded.get(row.name, {"cells": {}})["cells"].items():
                if cell.get("cpu_seconds", math.inf) > CHEAP or "error" not in cell:
                    continue
                found = select_cell(row.make, mechanism, table.noise, table.limit)
                measured += 1
                where = f"{table.name}; {row.name}; {mechanism}: "
                if "loss" not in found:
                    differences.append(where + found["note"])
                    continue
                loss = found["loss"] if found["rounded"] is None else min(found["loss"], found["rounded"])
                queries = recorded[row.name]["queries"]
                error = loss / scale / 2 if table.total else math.sqrt(loss / scale / queries)
                if abs(error - cell["error"]) > TOLERANCE * cell["error"]:
                    differences.append(f"{where}{error:.6g}, recorded is {cell['error']:.6g}")
    print(f"{measured} figures measured again, {len(differences)} differ")
    return measured, differences
