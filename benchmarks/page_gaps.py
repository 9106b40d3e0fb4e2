"""How far selections are from the optimum, as Markdown."""

from __future__ import annotations

from typing import Any

from values import plain, share, table

__all__ = ["gaps"]


def gaps(certificates: dict[str, Any] | None, ratios: dict[str, Any] | None) -> list[str]:
    """Return what certificates prove, and what `dense` shows where it can be had."""
    lines: list[str] = []
    if certificates is not None:
        lines += [
            "## How far from the optimum",
            "",
            "By what share the RMSE of `residual` may exceed that of the best strategy with Gaussian noise, "
            "as its certificate says; and with `certify`, which spends more time on the bound. Processor "
            "seconds are of the whole selection.",
            "",
            *table(
                ["workload", "gap at most", "seconds", "with `certify`", "seconds"],
                [[name, *_cells(row)] for name, row in certificates["figures"]["rows"].items()],
            ),
            "",
        ]
    if ratios is not None:
        rows = ratios["figures"]["rows"]
        words = {
            name: ", ".join(f"`{mechanism}` {share(above)}" for mechanism, above in row.items())
            for name, row in rows.items()
        }
        lines += [
            "By what share RMSE is above that of the dense optimum:",
            "",
            *[f"- {name}: {text}" for name, text in words.items()],
            "",
        ]
    return lines


def _cells(row: dict[str, Any]) -> list[str]:
    cells = []
    for gap, seconds in (("gap", "seconds"), ("certified_gap", "certified_seconds")):
        value = row.get(gap)
        cells += ["-" if value is None else share(value), plain(row.get(seconds), 2)]
    return cells
