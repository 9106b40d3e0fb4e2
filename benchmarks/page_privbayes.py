"""PrivBayes and DAWA beside HDMM's figures for them, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from values import plain, table

__all__ = ["made_up_section", "privbayes_section"]

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
#: Why a row of the table has no figure of ours for DAWA or PrivBayes.
_NO_FIGURE = {
    "CPS, both (PrivBayes)": "the survey's file is public, but the paper does not say which of its records "
    "were taken, nor how incomes were put into 100 values",
    "CPH, SF1 and SF1+ (PrivBayes)": "the records of the Census are confidential; the paper does not say "
    "which table stood for them",
    "Patent, ranges of width 32 and prefix (DAWA)": "the histogram is that of DPBench, which is not part of "
    "the paper; how many records it was scaled to is not said",
    "Patent, permuted ranges; Taxi, both (DAWA)": "nothing is printed: DAWA timed out. Ours takes one "
    "attribute, so that both workloads on Taxi are rejected",
    "Adult, both (DAWA); Patent and Taxi (PrivBayes)": "nothing is printed: not applicable",
}
_HOW = (
    "**These tables are made up: they say nothing about the printed figures.** They show which order of "
    "magnitude to expect on tables of the same domain, and how much it depends on the table. All of it is "
    "seeded, at epsilon 1, with one record added or removed."
)
_TABLES = (
    "The logarithm of the share of a cell is a falling line for each attribute, from 0 to -4, and for each "
    "pair of attributes the product of two random cosines, times the strength that the rows name. All pairs "
    "depend on one another then, which no small network says exactly. CPS has {cps:,} records, CPH {cph:,}, "
    "as many as people lived in the United States in 2010. *Printed* is the printed ratio, to the HDMM of "
    "the paper. *Independent* and *uniform* are the errors, relative to our `hdmm`, of the exact one-way "
    "marginals multiplied and of records spread evenly. *Parents* are those of an attribute, on average."
)
_FOUND = (
    "The printed ratios of CPS are of the order that these tables have. Those of SF1 and SF1+ are far above "
    "ours, and between the ratios of independent attributes at the two strengths. On CPH one table "
    "holds all attributes, so that the network loses nothing: what is left is noise that is cut off at 0, "
    "which adds records to cells that are nearly empty. HDMM does not cut off, and its noise averages out."
)
_HISTOGRAMS = (
    "Histograms of 1,024 values: *smooth* is a bell on a falling curve, *32 runs* has 32 runs of equal "
    "shares, *few values* has records on about 3% of the values. Records are drawn from these shares, so "
    "that equal shares are not equal counts. The printed ratios are within the range of these tables: they "
    "are as much about the histogram and its number of records as about DAWA."
)


def made_up_section(part: dict[str, Any]) -> list[str]:
    """Return why rows have no figures, and the errors on tables that are made up."""
    figures, machine = part["figures"], part["machine"]
    networks, histograms = figures["privbayes"], figures["dawa"]
    runs = networks[0]["tables"][0]["simulations"]
    records = {row["name"][:3].lower(): row["records"] for row in networks}
    head = ["workload", "strength", "parents", "RMSE", "standard error", "to our `hdmm`", "printed"]
    head += ["*independent*", "*uniform*"]
    lines = [_network(row, own) for row in networks for own in row["tables"]]
    columns = ["workload", "histogram", "records", "buckets", "RMSE", "standard error", "to our `hdmm`"]
    rows = [_histogram(row, own) for row in histograms for own in row["tables"]]
    return [
        "## PrivBayes and DAWA on made-up tables",
        "",
        "Why other figures of Table 3 for these two have none of ours beside them:",
        "",
        *[f"- {name}: {why}" for name, why in _NO_FIGURE.items()],
        "",
        _HOW,
        "",
        f"### PrivBayes, {runs} runs",
        "",
        _TABLES.format(**records),
        "",
        *table(head, lines),
        "",
        _FOUND,
        "",
        f"### DAWA, {runs} runs",
        "",
        _HISTOGRAMS,
        "",
        *table([*columns, "printed"], rows, left=2),
        "",
        f"{machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread.",
        "",
    ]


def _network(row: dict[str, Any], own: dict[str, Any]) -> list[str]:
    error = plain(own["rmse"]), plain(own["rmse_standard_error"], 2)
    ratios = [
        plain(guess / row["hdmm"], 3) for guess in (own["guesses"][n] for n in ("independent", "uniform"))
    ]
    about = f"{own['strength']:g}", plain(own["parents"], 2)
    return [row["name"], *about, *error, plain(own["rmse"] / row["hdmm"], 3), row["printed"], *ratios]


def _histogram(row: dict[str, Any], own: dict[str, Any]) -> list[str]:
    error = plain(own["rmse"]), plain(own["rmse_standard_error"], 2)
    table_of = own["kind"], f"{own['records']:,}", plain(own["buckets"], 3)
    return [row["name"], *table_of, *error, plain(own["rmse"] / row["hdmm"], 3), row["printed"]]


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
