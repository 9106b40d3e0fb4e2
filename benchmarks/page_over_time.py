"""Series of releases, as Markdown."""

from __future__ import annotations

from typing import Any

from over_time import RECORDS, SIZES, THROUGH
from values import plain, table

__all__ = ["over_time_page"]


def over_time_page(
    errors: dict[str, Any], marginals: dict[str, Any], publication: dict[str, Any]
) -> list[str]:
    """Return the page of releases over time."""
    alone = [
        [
            str(row["periods"]),
            row["asked"],
            *[f"{row[name]:.3f}" for name in ("independent", "tree", "series", "optimum")],
            f"{row['independent'] / row['series']:.2f}",
            _seconds(row["seconds"]),
        ]
        for row in errors["figures"]["rows"]
    ]
    tables = [
        [
            f"{row['ways']}-way, {row['asked']}",
            f"{row['queries']:,}",
            *[f"{row[name]:.3f}" for name in ("independent", "series", "bound")],
            f"{row['independent'] / row['series']:.2f}",
            _seconds(row["seconds"]),
        ]
        for row in marginals["figures"]["rows"]
    ]
    took, machine = publication["figures"], publication["machine"]
    windows = ", ".join(f"{window} of {periods}" for periods, window in SIZES.items())
    return [
        "# Releases over time",
        "",
        "RMSE over all queries of all periods at privacy cost 1, Gaussian noise. A series publishes each "
        "answer when its last period is over, and revises none. Four ways are compared:",
        "",
        "- *Independent*: a release of its own for every period, each at the whole cost, since a record is "
        "in one period. Sums over periods add their answers, and with them their errors.",
        "- *Tree*: every node of a binary tree over the periods, all answers by least squares. Least squares "
        "uses nodes that end later, so answers published as periods end have larger errors.",
        "- *Series*: `select_series`.",
        "- *Optimum*: `dense`, the best strategy that measures everything at the end.",
        "",
        "Processor seconds are those of the selection of the series.",
        "",
        "## Time alone",
        "",
        f"Sliding windows are {windows} periods long.",
        "",
        *table(
            [
                "periods", "queries", "independent", "tree", "series", "optimum",
                "independent / series", "processor seconds",
            ],
            alone, left=2,
        ),
        "",
        "## Marginals by month",
        "",
        "The marginals of the 14 attributes of Adult in each of twelve months. Independent releases measure "
        "each month with the best strategy for its marginals. The bound is the lower bound on the error of "
        "every strategy, also of those that measure at the end.",
        "",
        *table(
            [
                "marginals", "queries", "independent", "series", "lower bound",
                "independent / series", "processor seconds",
            ],
            tables,
        ),
        "",
        "## One publication",
        "",
        f"All 2-way marginals of the same attributes by month and cumulatively, from {RECORDS:,} random "
        f"records in Parquet. The start of the series took {plain(took['start_seconds'], 2)} processor "
        f"seconds. The publication of month {THROUGH}, after that of the months before it, took "
        f"{plain(took['publication_cpu_seconds'], 3)} processor seconds and held at most "
        f"{took['publication_peak_mb']:,.0f} MB. The release then has {took['answers']:,} answers with "
        f"standard errors and intervals. {machine['date']}, {machine['processor']}.",
    ]  # fmt: skip


def _seconds(value: float) -> str:
    """Return processor seconds; systems count them in hundredths."""
    return "below 0.01" if value < 0.01 else f"{value:.2f}"
