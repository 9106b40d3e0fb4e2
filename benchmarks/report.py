"""The results as Markdown."""

from __future__ import annotations

from typing import Any

__all__ = ["markdown"]

_TABLES = ("sampler", "published-error", "hdmm-tables")
_MECHANISMS = ("fourier", "querysmasher", "residual")


def markdown(document: dict[str, Any]) -> str:
    """Return the page for what `run.py` measured."""
    machine = document["machine"]
    versions = ", ".join(
        f"{name} {machine[name]}" for name in machine if name not in ("date", "processor", "cores", "system")
    )
    cases = {case["name"]: case for case in document["cases"]}
    lines = [
        "# Benchmarks",
        "",
        f"{machine['date']}; {machine['cores']} cores, {machine['processor']}, {machine['system']}; "
        f"{versions}.",
        "",
        "Made by `python benchmarks/run.py`; [results.json](results.json) has every figure. Seconds "
        "and memory are those of a whole process, from its start to its end. The mix is 1-way ranges, 2-way "
        "affine queries and 3-way prefixes on d attributes of n values.",
        "",
        *_timed([c for c in cases.values() if c["name"] not in _TABLES]),
    ]
    if "sampler" in cases and cases["sampler"]["status"] == 0:
        lines += _sampler(cases["sampler"]["figures"])
    if "published-error" in cases and cases["published-error"]["status"] == 0:
        lines += _errors(cases["published-error"]["figures"]["rows"])
    if "hdmm-tables" in cases and cases["hdmm-tables"]["status"] == 0:
        lines += _tables(cases["hdmm-tables"]["figures"]["rows"])
    return "\n".join(lines) + "\n"


def _limit(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:,.0f} {unit}"


def _timed(cases: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Time and memory",
        "",
        "| what | queries | seconds | limit | processor seconds | peak memory | limit | |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for case in cases:
        figures = case.get("figures", {})
        queries = figures.get("queries", figures.get("answers"))
        met = case["status"] == 0 and all(
            limit is None or case[key] <= limit for key, limit in case["limits"].items()
        )
        lines.append(
            f"| {case['claim']} | {'-' if queries is None else f'{queries:,}'} | {case['seconds']:.1f} | "
            f"{_limit(case['limits']['seconds'], 's')} | {case['cpu_seconds']:.1f} | "
            f"{case['peak_mb']:,.0f} MB | {_limit(case['limits']['peak_mb'], 'MB')} | "
            f"{'met' if met else 'MISSED'} |"
        )
    return [
        *lines,
        "",
        "Published for the mix with n = 40 on a 128-core server (QuerySmasher): 60 s and 3.4 GB at d = 10, "
        "3,032 s and 227 GB at d = 40. A whole release is selection, measurement, and every answer with its "
        "standard error and interval in a Parquet file; the table has 48,842 random records over the "
        "attributes of Adult.",
        "",
    ]


def _sampler(figures: dict[str, Any]) -> list[str]:
    return [
        "## Exact noise",
        "",
        "| generator | samples a second |",
        "|---|--:|",
        f"| exactly rounded Gaussian, operating system's bits | {figures['exact']:,.0f} |",
        f"| the same with offsets on the lattice | {figures['exact_with_offsets']:,.0f} |",
        f"| exactly rounded Laplace | {figures['laplace']:,.0f} |",
        f"| NumPy's floating-point normal generator (not private) | {figures['numpy_normal']:,.0f} |",
        "",
    ]


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _errors(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## Error at mu = 1",
        "",
        "RMSE over all queries, before rounding to integers; the last column is what rounding adds to "
        "`residual`. Published figures are those that the papers print; *optimum* is QuerySmasher's own "
        "problem solved to a certified optimum. `fourier` is to equal the WFF column, `querysmasher` the "
        "optimum. The rows of affine and abs queries hold 1-way prefixes too.",
        "",
        "| workload | queries | ResidualPlanner+ | HDMM | WFF | QuerySmasher | optimum | `fourier` | "
        "`querysmasher` | `residual` | rounding |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        published = " | ".join(_cell(value) for value in row["published"].values())
        ours = " | ".join(
            "-" if row[name] is None else f"{row[name]['rmse_before_rounding']:.4f}" for name in _MECHANISMS
        )
        residual = row["residual"]
        added = "-" if residual is None else f"{residual['rmse'] / residual['rmse_before_rounding'] - 1:.3%}"
        lines.append(f"| {row['name']} | {row['queries']:,} | {published} | {ours} | {added} |")
    return [
        *lines,
        "",
        "ResidualPlanner+ on Adult up to 3-way is printed as 48.90 and recomputed as 47.10.",
        "",
    ]


def _tables(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## HDMM's tables",
        "",
        "Tables 3 to 7 and example 13 of HDMM's journal version: RMSE at epsilon = 1 (Laplace noise) and at "
        "(1, 1e-6) (Gaussian noise), or, in the rows of totals, total squared error with Laplace noise of "
        "scale 1. A cell is what is printed, then ours before rounding to integers (with the seconds of its "
        "selection). The lower bound is the largest that any of the mechanisms proved.",
    ]
    for noise, total in (("laplace", False), ("gaussian", False), ("laplace", True)):
        chosen = [row for row in rows if row["noise"] == noise and row["total"] == total]
        names = list(dict.fromkeys(name for row in chosen for name in row["mechanisms"]))
        title = f"{noise.capitalize()} noise, {'total squared error' if total else 'RMSE'}"
        lines += ["", f"### {title}", "", "| workload | queries | lower bound | " + " | ".join(names) + " |"]
        lines.append("|---|--:|--:|" + "--:|" * len(names))
        for row in chosen:
            cells = [_compared(row["mechanisms"].get(name), total) for name in names]
            bound = "-" if row["lower_bound"] is None else _error(row["lower_bound"], total)
            lines.append(f"| {row['name']} | {row['queries']:,} | {bound} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _error(value: float, total: bool) -> str:
    return f"{value:,.0f}" if total else f"{value:.2f}"


def _compared(cell: dict[str, Any] | None, total: bool) -> str:
    if cell is None:
        return "-"
    printed = "-" if cell["published"] is None else _error(cell["published"], total)
    return f"{printed} / **{_error(cell['ours'], total)}** ({cell['seconds']:.1f} s)"
