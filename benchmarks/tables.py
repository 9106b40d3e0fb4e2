"""One published table: the error of our mechanisms beside what is printed.

python benchmarks/tables.py table-4
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any, cast

from cells import SPECIAL, asked_gram, select_cell, warm_up
from harness import emit
from losses import identity_error
from published import BOUND, NOT_RUN, TABLES, Row, Table
from values import equal, number

import matrixdp as mdp
from matrixdp.noise import noise_named
from matrixdp.selection.bounds.lower_bound import svd_bound_workload
from matrixdp.selection.gram.singular_values import svd_bound_gram
from matrixdp.selection.registry import MECHANISMS, Mechanism

__all__ = ["excess", "figure_of", "measured_cell"]


def excess(printed: str, ours: float) -> float:
    """Return by what share our error exceeds a printed one; 0 where it rounds to the printed digits or less.

    Examples
    --------
    >>> excess("6.63", 6.634), round(excess("6.63", 6.7), 3), excess("300,000", 299_000)
    (0.0, 0.011, 0.0)
    """
    value = number(printed)
    return 0.0 if ours <= value or equal(printed, ours) else ours / value - 1.0


def _mechanisms(table: Table) -> list[str]:
    """Return every mechanism that has a figure to show, each once."""
    asked = [column.mechanism for column in table.columns if column.mechanism not in (BOUND, NOT_RUN)]
    return [
        name
        for name in dict.fromkeys([*asked, *table.more])
        if name in (*SPECIAL, "auto")
        or noise_named(table.noise).norm in cast("Mechanism[Any]", MECHANISMS[name]).norms
    ]


def figure_of(table: Table, row: Row, workload: mdp.Workload) -> Callable[[float], float]:
    """Return how a loss at cost 1 becomes a figure of the table."""
    scale = noise_named(table.noise).error_scale(table.budget)
    unit = 1.0

    def figure(loss: float) -> float:
        return loss / scale / 2 if table.total else math.sqrt(loss / scale / workload.queries) / unit

    if table.relative:
        assert row.figures[0] is not None
        unit = figure(identity_error(workload, noise_named(table.noise))) / float(row.figures[0])
    return figure


def measured_cell(
    table: Table, row: Row, mechanism: str, figure: Callable[[float], float], bounded: bool = False
) -> dict[str, Any]:
    """Return what one mechanism reaches on one row, and the error as the table has it; or a note."""
    limit = table.limits.get(mechanism, table.limit)
    cell = select_cell(row.make, mechanism, table.noise, limit, plans=table.plans, bounded=bounded)
    if "loss" in cell:
        least = cell["loss"] if cell["rounded"] is None else min(cell["loss"], cell["rounded"])
        cell["error"] = figure(least)
        cell["released"] = None if cell["rounded"] is None else figure(cell["rounded"])
    return cell


def _row(table: Table, row: Row) -> dict[str, Any]:
    workload = row.make()
    figure = figure_of(table, row, workload)
    cells = {
        mechanism: measured_cell(table, row, mechanism, figure, mechanism == table.reference)
        for mechanism in _mechanisms(table)
    }
    bound = _spectral_bound(table, workload)
    bounds = [] if bound is None else [figure(noise_named(table.noise).variance_factor * bound)]
    svd = bounds[0] if bounds else None
    bounds += [figure(cell["bound"]) for cell in cells.values() if cell.get("bound") is not None]
    columns: list[dict[str, Any]] = []
    for column, shown in zip(table.columns, row.figures, strict=True):
        ours = svd if column.mechanism == BOUND else cells.get(column.mechanism, {}).get("error")
        found: dict[str, Any] = {"title": column.title, "mechanism": column.mechanism, "ours": ours}
        found |= {"published" if column.printed else "apart": shown}
        if column.title in row.drawn:
            found["drawn"] = True
        elif column.printed and shown is not None and ours is not None:
            found["equal"] = equal(shown, ours)
            found["worse_by"] = 0.0 if column.mechanism == BOUND else excess(shown, ours)
        columns.append(found)
    return {
        "name": row.name,
        "queries": workload.queries,
        "columns": columns,
        "lower_bound": max(bounds, default=None),
        "best": _best(table, row, cells),
        "cells": cells,
    }


def _spectral_bound(table: Table, workload: mdp.Workload) -> float | None:
    """Return the SVD bound, of attributes of any size where it has a column."""
    if table.plans:
        return svd_bound_workload(workload)
    asked = any(column.mechanism == BOUND for column in table.columns)
    return svd_bound_gram(asked_gram(workload)) if asked else None


def _best(table: Table, row: Row, cells: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return our best and the best that is printed, whatever the mechanism; or nothing."""
    printed = [
        (number(figure), figure, column.title)
        for column, figure in zip(table.columns, row.figures, strict=True)
        if figure is not None and column.printed and column.mechanism != BOUND
    ]
    own = [(cell["error"], name) for name, cell in cells.items() if "error" in cell]
    if not own:
        return {}
    error, name = min(own)
    least = {"mechanism": name, "ours": error}
    if not printed:
        return least
    _, figure, title = min(printed)
    return least | {"published": figure, "title": title, "worse_by": excess(figure, error)}


def main() -> None:
    warm_up()
    known = {table.name: table for table in TABLES}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=sorted(known))
    table = known[parser.parse_args().table]
    about: dict[str, Any] = {"title": table.title, "noise": table.noise, "total": table.total}
    about |= {
        "reference": table.reference,
        "more": list(table.more),
        "limit": table.limit,
        "drawn": table.drawn,
    }
    rows: list[dict[str, Any]] = []
    for row in table.rows:
        print(f"  {row.name}", file=sys.stderr, flush=True)
        started = time.perf_counter()
        rows.append(_row(table, row))
        print(f"    {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
        emit(about | {"rows": rows})


if __name__ == "__main__":
    main()
