"""Whether a second round would pay, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from values import plain, table

__all__ = ["rounds_page"]

_TOLD = (
    "A second round of measurements may be planned from the noisy answers of the first: that costs nothing "
    "beyond the two budgets, which add up. `python benchmarks/rounds.py` asks whether it would pay, before "
    "any of it is built. The error of marginals under Gaussian noise is a closed form of how precisely each "
    "residual is measured, so the best second round after a given first one can be computed. The first round "
    "spends half of the budget; least squares over both rounds adds up their precisions.",
    "The relative error is the mean of |error| over max(count, floor), with a floor of a thousandth of the "
    "records. The share is that of non-empty cells whose standard error is below a third of their count. "
    "Changes are against one round with equal weights. *Sized* is one round that gives each marginal the "
    "weight of the root of its number of cells, without data. *Two rounds* plans the second for the figure "
    "named. *Known* is one round planned from the true table, which no private method can do. Tables: "
    "Adult with its numbers in bins, the bundled example, and `fair` of the package statsmodels: the survey "
    "of R. C. Fair (1978), 6,366 records, nine attributes of four to seven values.",
)
_FOLLOWS = "@FOLLOWS@"
_MODEL = "@MODEL@"
_PEERS = "@PEERS@"
_CELLS = "@CELLS@"
_MERGED = "@MERGED@"
#: The rows of one table, one epsilon and some marginals, in their order, and what they are called.
_METHODS = {
    "one round": "one round",
    "one round, sized": "one round, sized",
    "one round, mixture": "one round, mixture (model)",
    "two rounds": "two rounds",
    "two rounds, mixture": "two rounds, mixture (model)",
    "AIM": "AIM (model)",
    "MWEM+PGM": "MWEM+PGM (model)",
}


def rounds_page(parts: dict[str, dict[str, Any]]) -> list[str]:
    """Return the figures of one and two rounds beside one another, and beside other mechanisms."""
    part = parts["rounds"]
    head = [
        "table", "marginals", "epsilon", "relative: sized", "two rounds", "known",
        "share: one round", "sized", "two rounds", "known", "RMSE, two rounds for the share",
    ]  # fmt: skip
    return [
        "# One round or two",
        "",
        *[line for text in _TOLD for line in (text, "")],
        *table(head, [_line(row) for row in part["figures"]["rows"]], left=2),
        "",
        _FOLLOWS,
        "",
        *_model([parts[name] for name in parts if name.startswith("rounds-model-")]),
        *_peers([parts[name] for name in parts if name.startswith("peers-")]),
        *_cells(parts.get("rounds-cells")),
        "## The runs",
        "",
        *[f"- {_run(own)}" for own in parts.values()],
    ]


def _run(part: dict[str, Any]) -> str:
    machine = part["machine"]
    return (
        f"{part['claim']}: {machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread, "
        f"{part['cpu_seconds']:,.0f} processor seconds"
    )


def _model(parts: list[dict[str, Any]]) -> list[str]:
    if not parts:
        return []
    rows = []
    for part in parts:
        for row in part["figures"]["rows"]:
            one, two, known = (
                math.sqrt(sum(run[name] ** 2 for run in row["runs"]) / len(row["runs"]))
                for name in ("one", "two", "known")
            )
            changes = [f"{100 * (own / one - 1):+.1f}%" for own in (two, known)]
            name = part["figures"]["table"]
            rows.append([name, *_asked(row), plain(one, 3), plain(two, 3), plain(known, 3), *changes])
    head = ["table", "marginals", "epsilon", "one round", "two", "known", "two", "known"]
    return ["## A second round for the model", "", _MODEL, "", *table(head, rows, left=2), ""]


def _asked(row: dict[str, Any]) -> tuple[str, str]:
    return f"1 to {row['ways']}-way", f"{row['epsilon']:g}"


def _peers(parts: list[dict[str, Any]]) -> list[str]:
    if not parts:
        return []
    lines = ["## Beside AIM and MWEM+PGM", "", _PEERS, ""]
    head = ["marginals", "epsilon", "answers", "RMSE", "L1", "relative", "within a third", "seconds"]
    for part in parts:
        rows = [cells for row in part["figures"]["rows"] for cells in _methods(row)]
        lines += [f"### {part['figures']['table']}", "", *table(head, rows, left=3), ""]
    return lines


def _methods(row: dict[str, Any]) -> Iterator[list[str]]:
    for name, title in _METHODS.items():
        if name in row["methods"]:
            own = row["methods"][name]
            figures = [plain(own[key], 3) for key in ("rmse", "l1", "relative")]
            yield [*_asked(row), title, *figures, f"{100 * own['within']:.1f}%", plain(own["seconds"], 2)]


def _cells(part: dict[str, Any] | None) -> list[str]:
    if part is None:
        return []
    figures = part["figures"]
    cells = [
        [" x ".join(map(str, row["shape"])), f"{row['skew']:g}", f"{100 * (row['ratio'] - 1):+.3f}%"]
        for row in figures["cells"]
    ]
    merged = [
        [
            ", ".join(f"{name} {before} to {after}" for name, (before, after) in row["merged"].items()),
            f"1 to {row['ways']}-way",
            *(f"{100 * (row[what] / row[base] - 1):+.1f}%" for what, base in _STEPS),
        ]
        for row in figures["merged"]
    ]
    return [
        "## A weight for every cell",
        "",
        _CELLS,
        "",
        *table(["domain", "skew", "change of the error"], cells),
        "",
        "## Categories merged after a first round",
        "",
        _MERGED,
        "",
        *table(["merged", "marginals", "weights alone", "merged, too", "both"], merged, left=2),
        "",
    ]


#: What errors of merged categories are compared with.
_STEPS = (("weighted", "one weight a cell"), ("after", "weighted"), ("after", "one weight a cell"))


def _line(row: dict[str, Any]) -> list[str]:
    plans = row["plans"]

    def change(name: str, what: str) -> str:
        return f"{100 * (plans[name][what] / plans['one'][what] - 1):+.1f}%"

    shares = ("sized", "share", "true share")
    return [
        row["table"],
        f"1 to {row['ways']}-way",
        f"{row['epsilon']:g}",
        *(change(name, "relative") for name in ("sized", "relative", "true relative")),
        f"{100 * plans['one']['share']:.1f}%",
        *(change(name, "share") for name in shares),
        change("share", "rmse"),
    ]
