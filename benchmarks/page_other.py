"""Every mechanism on workloads for which nothing is printed, as Markdown."""

from __future__ import annotations

from typing import Any

from values import plain, table

__all__ = ["random_page", "workloads_page"]

#: The mechanism to whose time the others are compared, by noise.
REFERENCES = {"gaussian": "residual", "laplace": "opt-m"}
_LEGEND = (
    "RMSE at privacy cost 1 (Laplace noise: epsilon = 1; Gaussian noise: mu = 1), from the strategy before "
    "rounding to integers. *To best* and *to bound* are ratios to the least RMSE with the same noise, and to "
    "the largest lower bound that any mechanism proved."
)


def workloads_page(part: dict[str, Any]) -> list[str]:
    """Return one table for each workload, both kinds of noise side by side."""
    figures = part["figures"]
    lines = ["# Other workloads", "", _LEGEND + _limits(figures), ""]
    lines += [
        f"Time is processor seconds of selection as a ratio to `{REFERENCES['gaussian']}`, with Laplace "
        f"noise to `{REFERENCES['laplace']}`, in the same run. Mechanisms stand in the order of their error "
        "with Gaussian noise, those without it last.",
        "",
    ]
    for family in figures["families"]:
        by_noise = {row["noise"]: row for row in family["rows"]}
        lines += [
            f"## {family['family']}",
            "",
            f"{family['rows'][0]['queries']:,} queries. {_bounds(by_noise)}",
            "",
            *_table(by_noise),
            "",
            *_absent(by_noise),
        ]
    return [*lines, _made(part)]


def _made(part: dict[str, Any]) -> str:
    machine = part["machine"]
    return f"{machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread."


def _limits(figures: dict[str, Any]) -> str:
    left = ", ".join(f"`{name}`" for name in figures["left_out"])
    return (
        f" Every selection is stopped after {figures['limit']:g} s of processor time. {left} is left out, as "
        "it takes the best of `opt-0`, `opt-kron`, `opt-plus` and `opt-m`; so does `auto`, of several."
    )


def _bounds(by_noise: dict[str, dict[str, Any]]) -> str:
    known = [
        f"{noise.capitalize()} noise {plain(row['lower_bound'])}"
        for noise, row in by_noise.items()
        if row["lower_bound"] is not None
    ]
    return "Lower bound: " + ", ".join(known) + "." if known else "No lower bound is known."


def _table(by_noise: dict[str, dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for row in by_noise.values() for name in row["cells"]))
    shown = [name for name in names if any("rmse" in row["cells"].get(name, {}) for row in by_noise.values())]
    head = ["mechanism"]
    for noise in by_noise:
        head += [f"{noise.capitalize()}: RMSE", "to best", "to bound", "time"]
    order = sorted(shown, key=lambda name: _errors(by_noise, name))
    return table(head, [[f"`{name}`", *_cells(by_noise, name)] for name in order])


def _errors(by_noise: dict[str, dict[str, Any]], name: str) -> tuple[float, float]:
    gaussian, laplace = (
        by_noise[noise]["cells"].get(name, {}).get("rmse", float("inf")) for noise in ("gaussian", "laplace")
    )
    return gaussian, laplace


def _cells(by_noise: dict[str, dict[str, Any]], name: str) -> list[str]:
    cells = []
    for noise, row in by_noise.items():
        cell = row["cells"].get(name, {})
        if "rmse" not in cell:
            cells += ["-", "-", "-", "stopped" if cell.get("late") else "-"]
            continue
        unit = row["cells"].get(REFERENCES[noise], {}).get("cpu_seconds")
        cells += [plain(cell["rmse"]), _ratio(cell["to_best"]), _ratio(cell["to_bound"])]
        cells.append("-" if not unit else plain(cell["cpu_seconds"] / unit, 2))
    return cells


def _ratio(value: float | None) -> str:
    if value is None:
        return "-"
    return f"**{value:.3f}**" if value < 1.0005 else f"{value:.3f}" if value < 100 else f"{value:,.0f}"


def _absent(by_noise: dict[str, dict[str, Any]]) -> list[str]:
    """Return which mechanisms have no figure, and why, in short."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for noise, row in by_noise.items():
        for name, cell in row["cells"].items():
            if "note" in cell:
                reasons.setdefault((name, _short(name, cell["note"])), []).append(noise)
    if not reasons:
        return []
    lines = [f"- `{name}` ({' and '.join(noises)}): {note}" for (name, note), noises in reasons.items()]
    return ["<details><summary>Without a figure</summary>", "", *lines, "", "</details>", ""]


def _short(name: str, note: str) -> str:
    """Return the first sentence of a reason."""
    text = note.removeprefix(f"{name}: ").partition(". ")[0].partition("; use ")[0]
    return text if len(text) <= 160 else text[:157] + "..."


def random_page(part: dict[str, Any]) -> list[str]:
    """Return one table for each family and kind of noise: mechanisms down, what is varied across."""
    figures = part["figures"]
    lines = ["# Random workloads", "", _LEGEND + _limits(figures), ""]
    lines += [
        "The families of the low-rank mechanism and of COA, seed 1: WDiscrete has entries 1 with probability "
        "0.02 and else -1, WRange random ranges, WRelated products of normal factors with rank 0.2 times the "
        "smaller side unless another stands, WMarginal cells of 2-way marginals over 3 or 4 attributes. "
        "A cell is the ratio to the best / to the bound.",
        "",
    ]
    for family in figures["families"]:
        for noise in ("gaussian", "laplace"):
            rows = [row for row in family["rows"] if row["noise"] == noise]
            lines += [
                f"## {family['family']}, {noise.capitalize()} noise",
                "",
                *_sweep(rows),
                "",
                *_late(rows),
            ]
    return [*lines, _made(part)]


def _sweep(rows: list[dict[str, Any]]) -> list[str]:
    head = ["mechanism", *[row["point"] for row in rows]]
    names = [name for name in rows[0]["cells"] if any("rmse" in row["cells"][name] for row in rows)]

    def total(name: str) -> tuple[int, float]:
        found = [row["cells"][name]["to_best"] for row in rows if "rmse" in row["cells"][name]]
        return -len(found), sum(found) / len(found)

    lines = [
        ["least RMSE", *[plain(row["best"]) for row in rows]],
        ["lower bound", *[plain(row["lower_bound"]) for row in rows]],
    ]
    cells = [[f"`{name}`", *[_pair(row["cells"][name]) for row in rows]] for name in sorted(names, key=total)]
    return table(head, [*lines, *cells])


def _pair(cell: dict[str, Any]) -> str:
    if "rmse" not in cell:
        return "-"
    return f"{_ratio(cell['to_best'])} / {_ratio(cell['to_bound']).strip('*')}"


def _late(rows: list[dict[str, Any]]) -> list[str]:
    late: dict[str, list[str]] = {}
    for row in rows:
        for name, cell in row["cells"].items():
            if cell.get("late") or cell.get("failed"):
                point = row["point"] + (": failed" if cell.get("failed") else "")
                late.setdefault(name, []).append(point)
    if not late:
        return []
    text = "; ".join(f"`{name}` ({', '.join(points)})" for name, points in late.items())
    return [f"Not within the limit: {text}.", ""]
