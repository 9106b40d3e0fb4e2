"""The figures of COA's paper, run again, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pictures import draw_convergence
from values import plain, share, table

__all__ = ["coa_sections"]

Figures = dict[str, Any]

#: The paper's privacy parameters, and what they multiply squared errors at mu = 1 by, with its noise scale.
_EPSILON, _DELTA = 0.1, 1e-4
_SCALE = 2.0 * math.log(2.0 / _DELTA) / _EPSILON**2
_OPTIMUM, _COA, _HOMOTOPY = "optimum", "COA", "COA, Algorithm 3"
_TIMED = ("ESM", "LRM", _COA, _HOMOTOPY, _OPTIMUM)


def coa_sections(parts: dict[str, Figures], out: Path) -> list[str]:
    """Draw the picture into a folder and return the sections for which there are results."""
    lines: list[str] = []
    done = "coa-sweeps" in parts and parts["coa-sweeps"]["status"] == 0
    if done and "coa-convergence" in parts:
        sweeps, convergence = parts["coa-sweeps"]["figures"], parts["coa-convergence"]["figures"]
        lines += _observations(sweeps["figures"], convergence["curves"])
    if "coa-convergence" in parts:
        lines += _convergence(parts["coa-convergence"], out)
    if "coa-sweeps" in parts:
        lines += _sweeps(parts["coa-sweeps"])
    if "coa-steps" in parts:
        lines += _steps([parts[name] for name in ("coa-steps", "coa-step-8192") if name in parts])
    return lines


def _made(part: Figures) -> str:
    machine = part["machine"]
    return f"{machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread."


def _convergence(part: Figures, out: Path) -> list[str]:
    figures = part["figures"]
    draw_convergence(figures, out / "coa-convergence.png")
    places = (0, 1, 2, 5, 10, 15, 20, 30)
    rows = [
        [
            curve["family"],
            *[
                f"{curve['points'][at]['objective'] / curve['optimum']:.4f}"
                if at < len(curve["points"])
                else "-"
                for at in places
            ],
        ]
        for curve in figures["curves"]
    ]
    return [
        "## Figure 1: convergence",
        "",
        "![Objective, gradient and measured error at every Newton step](coa-convergence.png)",
        "",
        f"Algorithm 1 with theta = 0.001 from the identity, n = {figures['size']}, "
        f"m = {figures['curves'][0]['queries']:,} random queries, or all prefixes: the objective over the "
        "optimum of the workload itself (without theta), the norm of the gradient outside of the diagonal "
        "over that at the start, and the error of one answer to every query, the mean "
        f"of {figures['draws']} draws of noise, over the expected error of the optimum. The objective over "
        "the optimum after so many Newton steps:",
        "",
        *table(["workload", *map(str, places)], rows),
        "",
        _made(part),
        "",
    ]


def _error(row: Figures, column: str) -> float | None:
    """Return the average squared error at mu = 1."""
    loss = row["cells"].get(column, {}).get("loss")
    return None if loss is None else loss / row["queries"]


def _sweeps(part: Figures) -> list[str]:
    figures = part["figures"]
    columns = [column for column in figures["figures"][0]["rows"][0]["cells"] if column != _OPTIMUM]
    lines = [
        "## Figures 2 to 10: error",
        "",
        f"The first line is the least average squared error that any strategy has at the paper's epsilon = "
        f"{_EPSILON} and delta = {_DELTA:g}, with its noise scale sqrt(2 ln(2 / delta)) / epsilon: "
        f"{_SCALE:,.1f} times that at mu = 1. The others are ratios to it, of squared errors. A mechanism "
        f"was stopped after {figures['limit']:g} s of processor time, COA and LRM after "
        f"{figures.get('patient', figures['limit']):g}. GM is noise on every query, as the text defines it; "
        "noise on cells, from which queries are added up, is the other naive mechanism.",
        "",
    ]
    for figure in figures["figures"]:
        rows = figure["rows"]
        own = [[_OPTIMUM, *[plain(_SCALE * _least(row)) for row in rows]]]
        own += [
            [column, *[_ratio(_error(row, column), _least(row), row["cells"].get(column)) for row in rows]]
            for column in columns
        ]
        lines += [
            f"### {figure['title']}",
            "",
            *table([_varied(figure), *[_value(row["at"]) for row in rows]], own),
            "",
        ]
    lines += [
        "## Figures 11 to 13: time",
        "",
        "Processor seconds of the selections above, one thread, without a lower bound: the paper has n = "
        "1,024 with m up to 8,192, and m = 1,024 and 2,048 with n up to 8,192.",
        "",
    ]
    for figure in figures["figures"]:
        rows = [
            [column, *[_seconds(row["cells"].get(column)) for row in figure["rows"]]] for column in _TIMED
        ]
        head = [_varied(figure), *[_value(row["at"]) for row in figure["rows"]]]
        lines += [f"### {figure['title'].partition(': ')[2]}", "", *table(head, rows), ""]
    return [*lines, _made(part), ""]


def _number(figure: Figures) -> int:
    """Return the number that a figure has in the paper."""
    return int(figure["title"].split(":")[0].split()[1])


def _varied(figure: Figures) -> str:
    number = _number(figure)
    return "n" if number <= 5 else "m" if number <= 9 else "s / min(m, n)"


def _value(at: float) -> str:
    return f"{at:,}" if isinstance(at, int) else f"{at:g}"


def _least(row: Figures) -> float:
    """Return the least average squared error: of the optimum, which is solved to a gap of 1e-6 or less."""
    found = _error(row, _OPTIMUM)
    assert found is not None
    return found


def _ratio(error: float | None, least: float, cell: Figures | None) -> str:
    if error is None:
        return _missing(cell)
    ratio = error / least
    return f"{ratio:.3f}" if ratio < 100 else f"{ratio:,.0f}"


def _seconds(cell: Figures | None) -> str:
    return plain(cell["cpu_seconds"], 2) if cell and "cpu_seconds" in cell else _missing(cell)


def _missing(cell: Figures | None) -> str:
    """Return why a cell has no figure."""
    if cell is None:
        return "-"
    return "stopped" if cell.get("late") else "refused"


def _steps(parts: list[Figures]) -> list[str]:
    made = {_made(part): None for part in parts}  # each once, in order
    rows = [
        [
            f"{row['size']:,}",
            plain(row["cpu_seconds"], 3),
            f"{row['peak_mb']:,.0f} MB",
            share(1.0 - row["after"] / row["before"]),
        ]
        for part in parts
        for row in part["figures"]["rows"]
    ]
    return [
        "## One Newton step by n",
        "",
        "The first Newton step, with its five conjugate gradient steps and the two inversions, for WRange "
        f"with m = {parts[0]['figures']['queries']:,}: processor seconds, the memory of the whole process, "
        "and by how much the objective falls. Time grows with the cube of n and memory with its square, "
        "whatever m is; a whole descent takes from ten steps on.",
        "",
        *table(["n", "seconds", "peak memory", "objective falls by"], rows),
        "",
        " ".join(made),
        "",
    ]


def _pairs(figures: list[Figures], numbers: range, families: str = "") -> Iterator[Figures]:
    """Yield the rows of some figures, of one family or all."""
    for figure in figures:
        if _number(figure) in numbers and families in figure["title"]:
            yield from figure["rows"]


def _over(rows: Iterator[Figures], column: str, base: str) -> list[float]:
    """Return the ratios of two columns' errors where both have one."""
    found = [(_error(row, column), _error(row, base)) for row in rows]
    return [one / other for one, other in found if one is not None and other is not None]


def _span(ratios: list[float]) -> str:
    if not ratios:
        return "nothing to compare with, stopped at its limit,"
    low, high = min(ratios), max(ratios)
    return f"{plain(low, 3)} to {plain(high, 3)} times"


def _times(rows: Iterator[Figures], column: str) -> str:
    found = [row["cells"][column]["cpu_seconds"] for row in rows if "cpu_seconds" in row["cells"][column]]
    return f"{plain(min(found), 2)} to {plain(max(found), 2)} s" if found else "no time within its limit"


def _closing(rows: list[Figures]) -> str:
    """Return how far the best other mechanism is from LRM at the first and the last rank that it has."""
    found = [row for row in rows if _error(row, "LRM") is not None]
    if not found:
        return "nothing to compare with: LRM has no figure"
    said = []
    for row in (found[0], found[-1]):
        others = [_error(row, column) for column in ("GM", "noise on cells", "WM", "HM", "AM", "ESM")]
        least, own = min(error for error in others if error is not None), _error(row, "LRM")
        assert own is not None
        said.append(f"{plain(least / own, 3)} times LRM's error at s = {row['at']:g}")
    return ", ".join(said)


def _observations(figures: list[Figures], curves: list[Figures]) -> list[str]:
    """Return what the text says of its figures beside what these runs show."""
    every, sizes, numbers, rank = range(2, 11), range(2, 6), range(6, 10), range(10, 11)
    falls = [
        all(
            after[key] < before[key]
            for before, after in zip(curve["points"], curve["points"][1:], strict=False)
        )
        for curve in curves
        for key in ("objective", "optimality")
    ]
    tenth = [
        curve["points"][min(10, len(curve["points"]) - 1)]["objective"] / curve["points"][-1]["objective"]
        for curve in curves
    ]
    reached = (
        [row for row in figure["rows"] if _error(row, _COA)] for figure in figures if _varied(figure) == "n"
    )
    largest = [rows[-1] for rows in reached if rows]
    weaker = [ratio for column in ("AM", "ESM") for ratio in _over(_pairs(figures, sizes), column, _COA)]
    rows = [
        [
            "Figure 1: objective and gradient fall at every iteration",
            f"{sum(falls[::2])} of {len(curves)} objectives do, and {sum(falls[1::2])} of the gradients",
        ],
        [
            "Figure 1: the objective is stable after the 10th iteration",
            f"it is then {_span(tenth)} what it is at the last point of the picture",
        ],
        [
            "COA and LRM have the least error in all settings",
            f"COA has {_span(_over(_pairs(figures, every), _COA, _OPTIMUM))} the optimum's, LRM "
            f"{_span(_over(_pairs(figures, every), 'LRM', _OPTIMUM))}; COA's Algorithm 3, which the paper "
            f"does not report, {_span(_over(_pairs(figures, every), _HOMOTOPY, _OPTIMUM))}",
        ],
        [
            "Figures 2 to 5: over two orders of magnitude less than GM, above all for large n",
            "at the largest n that COA reaches within its limit GM has "
            f"{_span(_over(iter(largest), 'GM', _COA))} COA's error, noise on cells "
            f"{_span(_over(iter(largest), 'noise on cells', _COA))}; with m fixed GM's falls as n grows",
        ],
        [
            "Figure 4: on WRange WM and HM are comparable to COA and LRM",
            f"WM has {_span(_over(_pairs(figures, sizes, 'WRange'), 'WM', _OPTIMUM))}, HM "
            f"{_span(_over(_pairs(figures, sizes, 'WRange'), 'HM', _OPTIMUM))} the optimum's",
        ],
        [
            "Figures 2 to 5: AM and ESM are usually strictly worse than COA",
            f"in {sum(ratio > 1.0 for ratio in weaker)} of {len(weaker)} cells; AM has "
            f"{_span(_over(_pairs(figures, sizes), 'AM', _OPTIMUM))} the optimum's, ESM "
            f"{_span(_over(_pairs(figures, sizes), 'ESM', _OPTIMUM))}",
        ],
        [
            "Figures 6, 8 and 9: WM and HM have less error than GM; figure 7 (WMarginal): more",
            "; ".join(
                f"{family}: WM {_span(_over(_pairs(figures, numbers, family), 'WM', 'GM'))} GM's, "
                f"{_span(_over(_pairs(figures, numbers, family), 'WM', 'noise on cells'))} that of noise on "
                "cells"
                for family in ("WDiscrete", "WMarginal", "WRange", "WRelated")
            ),
        ],
        [
            "Figure 10: at least an order of magnitude less than all others, the gap closing as s grows",
            "the best other than LRM and COA has " + _closing(list(_pairs(figures, rank))),
        ],
        [
            "Figure 11: COA's time does not depend on m, LRM's grows with it",
            f"COA takes {_times(_pairs(figures, numbers), _COA)}, LRM "
            f"{_times(_pairs(figures, numbers), 'LRM')} (here W enters LRM too through W'W, so that its time "
            "grows with the rank alone)",
        ],
    ]
    return [
        "## What the text says, and what these runs show",
        "",
        "The figures are pictures: no value of any curve stands in the text, and nothing of this page is "
        "counted among printed figures. What can be held against a run are the observations. WDiscrete has "
        "entries 1 with probability 0.02 and else -1, WRange random ranges, WRelated products of normal "
        "factors with rank 0.2 times the smaller side, as the low-rank mechanism's authors have them; the "
        "paper prints no probability and no rank. WMarginal draws cells of the 2-way marginals of three "
        "attributes of powers of two, with replacement; the paper's domain is not printed, and without "
        "replacement 64 cells have fewer such queries than its 1,024. Seeds are 1.",
        "",
        *table(["in the text", "here, squared errors"], rows, left=2),
        "",
    ]
