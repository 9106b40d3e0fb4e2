"""Marginals in every area of a tree, as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from areas import WAYS
from nation import Nation
from pictures import draw_errors
from values import plain, share, table

__all__ = ["AREAS", "areas_page"]

#: The parts that the page shows.
AREAS = ("areas-selection", "areas-kinds", "areas-counties", "areas-tracts", "areas-integers")
#: Workloads of the picture and of the table by level.
_SHOWN = ("3-, 3-, 2-, 1-way", "4-, 3-, 2-, 1-way, weight 1/areas")
_EPSILON = "counts of areas, epsilon 1"
_MILLION = "a million blocks, up to 3-way"
_BLOCKS = 8_000_000
_PLURALS = {"nation": "nation", "state": "states", "county": "counties", "tract": "tracts"}
_TOPDOWN = "https://arxiv.org/abs/2204.08986"


def areas_page(parts: dict[str, dict[str, Any]], out: Path) -> list[str]:
    """Draw the picture into a folder and return the page."""
    selection = parts["areas-selection"]["figures"]["rows"]
    releases = [parts[name]["figures"]["rows"][own] for name, own in _RELEASES.items() if name in parts]
    lines = [
        "# Trees of areas",
        "",
        "A census publishes tables for a nation, its states, counties and tracts. This page has the errors, "
        "seconds and memory of that for a made-up nation of 51 states, 3,143 counties and 74,000 tracts, "
        f"with {_spread(1)} counties in a state and {_spread(2)} tracts in a county, drawn lognormal. Beside "
        "the area there are sex (2 values), age (21), race (63) and Hispanic origin (2). "
        "It ends with [where others are ahead](#where-others-are-ahead-and-what-is-not-done). "
        "The [guide](../howto/publish-for-every-area.md) shows how to make such a release.",
        "",
        *_selection(selection, out),
        *(_kinds(parts["areas-kinds"]["figures"]["rows"]) if "areas-kinds" in parts else []),
        *_releases(releases),
    ]
    if "areas-integers" in parts:
        lines += _integers(parts["areas-integers"])
    largest = max(releases, key=lambda row: row["queries"], default=None)
    lines += _behind(selection, largest)
    machine = parts["areas-selection"]["machine"]
    return [
        *lines,
        f"{machine['date']}, {machine['cores']} cores, {machine['processor']}. All figures are in "
        "[results.json](results.json); `python benchmarks/run.py --only areas` measures them again (with "
        "10 GB of disk for the tracts).",
    ]


_RELEASES = {"areas-counties": "county", "areas-tracts": "tract"}


def _gains(rows: dict[str, dict[str, Any]]) -> str:
    gains = [1 - row["matrixdp"] / row["shares by level"] for row in rows.values()]
    return f"{100 * min(gains):.1f} to {100 * max(gains):.1f}%"


def _spread(level: int) -> str:
    """Return in words how many areas lie in one of a level."""
    groups = Nation.down_to("tract").groups
    children = np.bincount(np.unique(np.stack(groups[level : level + 2]), axis=1)[0])
    return f"{children.min()} to {children.max():,}"


def _selection(rows: dict[str, dict[str, Any]], out: Path) -> list[str]:
    curves = {
        name: {way: list(zip(rows[name]["areas"], rows[name]["by_level"][way], strict=True)) for way in WAYS}
        for name in _SHOWN
    }
    across = "areas of the level: nation, states, counties, tracts"
    draw_errors(curves, ("matrixdp",), across, out / "areas-errors.png", "RMSE at mu = 1")
    lines = [
        [
            name,
            f"{row['queries']:,}",
            *[plain(row[way]) for way in WAYS],
            f"{100 * row['gap']:.2f}%",
            plain(row["cpu_seconds"], 2),
            f"{row['peak_mb']:,.0f} MB",
        ]
        for name, row in rows.items()
    ]
    by_level = [
        [name, level, f"{areas:,}", *[plain(rows[name]["by_level"][way][place]) for way in WAYS]]
        for name in _SHOWN
        for place, (level, areas) in enumerate(zip(rows[name]["levels"], rows[name]["areas"], strict=True))
    ]
    everywhere = rows["up to 3-way at every level"]
    return [
        "## Selection",
        "",
        f"RMSE over all queries, those with weights by their weights, at mu = 1 (*{_EPSILON}*: pure "
        "differential privacy, Laplace noise). *Up to 3-way* are all marginals of at most three attributes; "
        "*3-, 3-, 2-, 1-way* are those of nation, states, counties and tracts; *race* is asked at nation "
        "and tracts alone, with up to 2-way marginals (tracts: 1-way). The errors follow from the "
        "strategies, without data. Of other ways they are computed, each with the least squares of all that "
        "is measured, and with a budget shared among marginals as is best for it:",
        "",
        "- *Areas alone*: the smallest areas are measured, larger ones are their sums.",
        "- *Equal shares*: every level has the same share of the budget.",
        "- *Shares by level*: each level has the share that is best if all its areas have the same number of "
        "areas below; with Laplace noise the best that a search finds.",
        "- *matrixdp*: `select` on a specification with `levels_from` and `at`. Every area has its own "
        "precision. *Gap*: how far the RMSE is above a lower bound on all strategies with this noise. "
        "Seconds are processor seconds of `select`; reading the specification, with its list of areas, takes "
        f"{plain(everywhere['reading'], 2)} more.",
        "",
        *table(["workload", "queries", *WAYS, "gap", "seconds", "peak memory"], lines),
        "",
        "Where every level asks the same with equal weights, equal shares err exactly as areas alone do: "
        "what large areas gain, small ones lose. "
        f"Shares by area err {_gains(rows)} less than shares by level, most where levels ask different "
        "tables: where a state's tables end, its precision takes from the budget of all its tracts. The "
        f"bound beside *{_EPSILON}* is one for Gaussian noise, and no Laplace strategy may come near it.",
        "",
        "![RMSE by level against the number of areas, for four ways to share a budget: weights decide which "
        "levels err least](areas-errors.png)",
        "",
        *table(["workload", "level", "areas", *WAYS], by_level, left=2),
        "",
        "With equal weights the many queries of tracts decide, and the nation gets the more noise, though "
        "little beside its counts. A weight of 1/areas lets all areas of a level count as one.",
        "",
    ]


def _kinds(rows: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        [
            name,
            f"{row['queries']:,}",
            f"{100 * row['one strategy']:.2f}%",
            f"{100 * row['gap']:.2f}%",
            plain(row["cpu_seconds"], 2),
            f"{row['peak_mb']:,.0f} MB",
        ]
        for name, row in rows.items()
    ]
    return [
        "### Several kinds of queries",
        "",
        "Cumulative counts of age in some levels, single ages in others: RMSE above a lower bound on all "
        "strategies. *One strategy* for age has precisions by area; *matrixdp* measures several combinations "
        "of ages, each with precisions of its own in every area, where that has less error.",
        "",
        *table(["workload", "queries", "one strategy", "matrixdp", "seconds", "peak memory"], lines),
        "",
    ]


def _releases(rows: list[dict[str, Any]]) -> list[str]:
    costs = [
        [
            _PLURALS[row["smallest"]],
            f"{sum(row['areas']):,}",
            f"{row['queries']:,}",
            f"{row['records']:,}",
            plain(row["cpu_seconds"], 3),
            f"{row['peak_mb']:,.0f} MB",
            plain(row["verify_cpu_seconds"], 3),
            f"{row['verify_peak_mb']:,.0f} MB",
            f"{row['files_mb']['answers']:,.0f} MB",
            f"{row['files_mb']['measurement.mdp']:,.0f} MB",
        ]
        for row in rows
    ]
    errors = [
        [_PLURALS[row["smallest"]], level, f"{predicted:.4f}"]
        + [text for own in found for text in (f"{own:.4f}", f"{own / predicted - 1:+.2%}")]
        for row in rows
        for level, predicted, *found in zip(
            row["levels"], row["predicted"], row["found"], row["found_by_workers"], strict=True
        )
    ]
    shared = [
        [
            _PLURALS[row["smallest"]],
            f"{own['runs']}",
            plain(own["cpu_seconds"], 3),
            f"{own['peak_mb']:,.0f} MB",
            f"{own['worker_peak_mb']:,.0f} MB",
            f"{own['most_moved_kb']:,.0f} kB",
        ]
        for row in rows
        for own in [row["workers"]]
    ]
    return [
        "## Releases",
        "",
        "`mdp.release` on a specification, a list of areas and records in Parquet: up to 3-way marginals in "
        "every area of every level, at mu = 1, each with its standard error and interval. Selection is "
        "included. Memory is that of the whole process.",
        "",
        *table(
            ["down to", "areas", "answers", "records", "processor seconds", "peak memory",
             "to verify, processor seconds", "to verify, peak memory", "answers, disk", "measurement, disk"],
            costs,
        ),
        "",
        "RMSE as it was predicted without data, and against the true counts of the records:",
        "",
        *table(
            ["down to", "level", "predicted", "found", "difference", "found, workers", "difference"],
            errors,
            left=2,
        ),
        "",
        "The few large areas share a few thousand draws of the noise, and may differ by some percent; the "
        "small ones may not.",
        "",
        "*Workers* are two processes here, and could be the executors of a [Spark session]"
        "(../howto/run-on-spark.md#5-a-nation-state-by-state): each counts and measures a run of areas, such "
        "as a state, and many answers are written by workers, too. Records are sorted by area. What a worker "
        "returns without noise is the totals of its run.",
        "",
        *table(
            ["down to", "runs", "processor seconds in all", "peak memory", "of a worker", "returned"],
            shared,
        ),
        "",
    ]  # fmt: skip


def _integers(part: dict[str, Any]) -> list[str]:
    row = part["figures"]
    ways = {
        "unbiased": "unbiased estimates",
        "clipped": "tracts set to 0 and rounded, then added up",
        "integers": "whole numbers that add up",
    }
    levels, shares = list(reversed(row["levels"])), row["share_of_cells"]
    lines = [[words, *[plain(row["rows"][way][level], 3) for level in levels]] for way, words in ways.items()]
    biases = [
        [words, *[f"{row['rows'][way][f'bias, {name}']:+z.2f}" for name in shares]]
        for way, words in ways.items()
    ]
    told = ", ".join(f"{name} ({share(own)})" for name, own in shares.items())
    return [
        "## Whole numbers",
        "",
        f"`model --method integers` on a table of {row['cells']} cells in every area, at rho = 1/64. True "
        f"counts of a tract's cells: {told}. The numbers are made in {plain(row['making'], 2)} "
        f"processor seconds; the whole program takes {part['peak_mb']:,.0f} MB at most.",
        "",
        *table(["RMSE of a cell", *levels], lines),
        "",
        *table(["bias of a tract's cell, by its true count", *shares], biases),
        "",
        "Where tracts are rounded one by one, the errors of larger areas are nearly all bias. Whole numbers "
        "that add up have no such bias, and err least in tracts; but small counts move up, and large ones "
        "beside them down.",
        "",
    ]


def _behind(selection: dict[str, dict[str, Any]], largest: dict[str, Any] | None) -> list[str]:
    lines = [
        "## Where others are ahead, and what is not done",
        "",
        f"- *TopDown* ([Abowd and others, 2022]({_TOPDOWN})), which the US Census Bureau made for 2020, runs "
        "on a cluster for about 8 million blocks. All its tables are non-negative whole numbers that add up, "
        "with invariants such as the population of states. Here whole numbers need one full table "
        "down to the smallest areas, and invariants are not for trees. The errors of TopDown are not "
        "compared: they depend on the data.",
        "- *Many machines.* Workers were tested as executors of a local Spark session, one of which was "
        "killed. They have not been run on several machines. Selection and the sums above the "
        "runs stay with one process.",
        "- *Later questions* to a release of this size, by `answer`, start a program and read the list "
        "of areas each time; where they were not answered before, they read all noisy answers. A server that "
        "stays up is not part of this.",
        "- *Areas that cut across the tree*, such as districts across counties, are measured beside it (the "
        "[guide](../howto/publish-for-every-area.md#areas-that-cut-across)), but such a release is held in "
        "memory.",
        "- *One tree.* If several attributes have levels, only the largest is a tree.",
        "",
    ]
    if largest is None:
        return lines
    million = selection[_MILLION]
    answers = largest["queries"] / sum(largest["areas"])
    size = sum(largest["files_mb"].values()) / largest["queries"] * answers * _BLOCKS / 1e6
    hours = largest["cpu_seconds"] / sum(largest["areas"]) * _BLOCKS / 3600
    workers = largest["workers"]
    by_workers = workers["cpu_seconds"] / sum(largest["areas"]) * _BLOCKS / 3600
    committed = largest["files_mb"]["measurement.mdp"] / sum(largest["areas"]) * _BLOCKS / 1e6
    moved = workers["most_moved_kb"] * workers["runs"] / 1e3
    select = million["cpu_seconds"] / sum(million["areas"]) * _BLOCKS
    reading = million["reading"] / sum(million["areas"]) * _BLOCKS
    memory = million["peak_mb"] / sum(million["areas"]) * _BLOCKS / 1000
    return [
        *lines,
        "### Eight million blocks",
        "",
        "**Extrapolated, not measured**: the figures above in proportion to the number of areas, for the "
        f"same {answers:,.0f} answers in each of {_BLOCKS:,} areas.",
        "",
        *table(
            ["", "extrapolated", "from"],
            [
                ["answers", f"{answers * _BLOCKS / 1e9:.0f} billion", "tracts"],
                ["disk", f"{size:.1f} TB", "tracts"],
                ["processor hours", f"{hours:.0f}", "tracts"],
                ["the same by workers", f"{by_workers:.0f}", "tracts"],
                ["noisy answers that workers commit", f"{committed:.2f} TB", "tracts"],
                ["returned by all workers, of 51 states", f"{moved:.1f} MB", "tracts"],
                ["selection, processor seconds", f"{select:,.0f}", "a million blocks"],
                ["reading the list of areas, processor seconds", f"{reading:,.0f}", "a million blocks"],
                ["selection, memory", f"{memory:.0f} GB", "a million blocks"],
            ],
        ),
        "",
        "On one machine memory would fail first: above the lowest level it grows with the areas. With "
        "workers every processor hour but those of selection and reading is shared; the sums above the runs, "
        "which one process adds up for each part, still grow with the areas of the level above blocks.",
        "",
    ]
