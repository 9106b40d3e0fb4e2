"""Counting one table in every engine, as Markdown."""

from __future__ import annotations

from typing import Any

from values import plain, table, unmeasured

__all__ = ["engines_page"]

_BASE = "statements"
_FIRST = "spark"


def engines_page(parts: list[dict[str, Any]]) -> list[str]:
    """Return one table for each size, and what is behind its target."""
    lines = [
        "# Engines",
        "",
        "One table of random records counted in every engine that is supported but Ibis and Modin: 8 "
        "attributes (4 of texts, 3 of integers, one of amounts in 40 bins), all 28 two-way marginals, 39,032 "
        "cells, and one more column that is not asked for. Every record is in the domain, so that statements "
        "written by hand need not look for others; ours do. All counts are equal to those of the statements "
        "by hand: the run ends where one is not.",
        "",
        "Every engine counts in a process of its own. Processor seconds are those of this process, of all "
        "that it started and of the server, over all their cores. The ratio is to statements written by hand "
        "for DuckDB on the Parquet file, one `GROUP BY` for each marginal, in the same run. Memory is the "
        "most that the process held (with Python, its libraries, and the table where this is in memory) and "
        "the processes that it started; that of the PostgreSQL server is not in it. Seconds, unlike "
        "processor seconds, are those of a machine that did other work as well.",
        "",
    ]
    for part in parts:
        lines += _size(part)
    return lines[:-1]


def _size(part: dict[str, Any]) -> list[str]:
    figures, machine = part["figures"], part["machine"]
    rows = figures["table"]
    base = next(row["cpu_seconds"] for row in rows if row["name"] == _BASE)
    shown = [_row(row, base, row["title"]) for row in rows if row["status"] == 0]
    shown += [_first(row, base) for row in rows if row["status"] == 0 and row["name"] == _FIRST]
    head = ["table", "processor seconds", "least to most", "ratio", "target", "seconds", "peak memory"]
    without = [f"- {row['title']}: {unmeasured(row)}" for row in rows if row["status"] != 0]
    counts = figures["times"] - 1
    about = f"medians of {counts} counts after a first one" if counts else "one count"
    files = figures.get("files", 1)
    held = f"{files} Parquet files with the same records, together" if files > 1 else "A Parquet file of"
    return [
        f"## {figures['rows']:,} rows",
        "",
        f"{held} {figures['file_mb']:,.0f} MB; {about}. {machine['date']}, {machine['cores']} "
        f"cores, {machine['processor']}.",
        "",
        *table(head, shown),
        "",
        *_behind(figures, base),
        *without,
        "",
    ]


def _row(row: dict[str, Any], base: float, title: str) -> list[str]:
    return [
        title,
        plain(row["cpu_seconds"], 3),
        f"{plain(row['least_cpu_seconds'], 3)} to {plain(row['most_cpu_seconds'], 3)}",
        plain(row["cpu_seconds"] / base, 2),
        plain(row["target"], 2),
        plain(row["seconds"], 3),
        f"{row['peak_mb']:,.0f} MB",
    ]


def _first(row: dict[str, Any], base: float) -> list[str]:
    spent = row["first_cpu_seconds"]
    figures = [plain(spent, 3), "-", plain(spent / base, 2), "-", plain(row["first_seconds"], 3), "-"]
    return ["Spark, its start and its first count", *figures]


def _behind(figures: dict[str, Any], base: float) -> list[str]:
    """Say what misses its target."""
    done = [row for row in figures["table"] if row["status"] == 0]
    late = [
        f"- {row['title']}: {plain(row['cpu_seconds'] / base, 2)} times, where {plain(row['target'], 2)} is "
        "to be reached"
        for row in done
        if row["target"] is not None and row["cpu_seconds"] > row["target"] * base
    ]
    most = figures["most_mb"]
    late += [
        f"- {row['title']}: {row['peak_mb']:,.0f} MB, where {most:,.0f} MB is to be kept to"
        for row in done
        if most is not None and row["name"] == "parquet" and row["peak_mb"] > most
    ]
    return ["Behind the target:", "", *late] if late else ["No target is missed."]
