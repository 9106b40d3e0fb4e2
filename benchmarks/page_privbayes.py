"""PrivBayes on Adult beside HDMM's figures for it, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from values import plain, table

__all__ = ["privbayes_section"]

_NEIGHBOURS = {"add_remove": "added or removed", "replace": "replaced"}
_WHY = (
    "The printed figures are not reproduced, and we doubt that they are those of PrivBayes on this table. On "
    "all marginals they amount to more than half of the error of answering 0 to every query; on 2-way "
    "marginals to more than that error. A network without an edge, whose tables have no noise, has the error "
    "of independent attributes. The paper does not say which program it ran, with which theta and score, nor "
    "how the attributes were coded."
)
_OURS = (
    "What differs here from PrivBayes as published: 5% of the budget goes to a noisy number of records, "
    "which its authors take to be public. Neighbours are as each row says; theirs replace a record. "
    "Families within another one are taken from its table, so that fewer tables share the noise. Answers "
    "are exact sums over the network, not counts of drawn records. Attributes are used as they are, "
    "without taxonomies. Theta is 4 and beta 0.3, as theirs. With replacement the noise doubles and "
    "families are smaller, which errs less on this table: noise that is cut off at 0 adds records to "
    "tables that are nearly empty."
)


def privbayes_section(part: dict[str, Any]) -> list[str]:
    """Return the errors of PrivBayes, printed and ours, with those of guesses beside them."""
    figures, machine = part["figures"], part["machine"]
    head = ["workload", "", "score", "RMSE", "standard error", "to HDMM, printed", "to our `hdmm`"]
    simulations = figures["rows"][0]["runs"][0]["simulations"]
    return [
        "## PrivBayes on Adult",
        "",
        f"Root mean squared errors of {simulations} seeded runs at epsilon 1 on UCI Adult, "
        f"{figures['records']:,} records, as `matrixdp.papers.privbayes.simulate` computes them from exact "
        "answers; bias is included, and the standard error is of the simulation. *Printed* is the printed "
        "ratio times the error of HDMM that follows from the printed figure for noise on cells. *0*, "
        "*uniform* and *independent* are the errors of answering 0, of records spread evenly over all cells, "
        "and of the exact one-way marginals multiplied.",
        "",
        *table(head, [line for row in figures["rows"] for line in _lines(row)], left=3),
        "",
        _WHY,
        "",
        _OURS,
        "",
        f"{machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread.",
        "",
    ]


def _lines(row: dict[str, Any]) -> Iterator[list[str]]:
    printed = float(row["printed"]) * row["hdmm_printed"]
    yield [row["name"], "printed", "-", plain(printed), "-", row["printed"], "-"]
    for run in row["runs"]:
        what, ratio = f"one record {_NEIGHBOURS[run['neighbours']]}", plain(run["rmse"] / row["hdmm"], 3)
        error = plain(run["rmse"]), plain(run["rmse_standard_error"], 2)
        yield [row["name"], what, run["score"], *error, "-", ratio]
    for name, guess in row["guesses"].items():
        yield [row["name"], f"*{name}*", "-", plain(guess), "-", "-", plain(guess / row["hdmm"], 3)]
