"""Persons with several records, and discovery, as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from persons import MOVES, SECTIONS, SEEDS, WIDE
from pictures import draw_errors
from values import plain, share, table

__all__ = ["persons_page"]

Rows = list[dict[str, Any]]

_WAYS = {"matrixdp": "matrixdp", "counts": "counts of each period", "records": "each record alone"}
_FOUND = {"matrixdp": "matrixdp", "gaussian": "Gaussian threshold", "laplace": "Laplace threshold"}
_WORDS = {
    "periods": "each",
    "to date": "to date",
    "periods, total": "each, total",
    "periods, to date": "each, to date",
    "periods, changes": "each, changes",
    "periods, to date, total": "each, to date, total",
}
_PERIODS = {12: "12 months", 52: "52 weeks"}
#: Of these the table has rows; the picture has all.
_SHOWN = {12: (4, 12), 52: (4, 12, 52)}
_TRUNCATION = "https://docs.opendp.org/en/stable/getting-started/tabular-data/identifier-truncation.html"
_THRESHOLDS = (
    "https://docs.opendp.org/en/stable/api/user-guide/measurements/thresholded-noise-mechanisms.html"
)
_TUMULT = "https://docs.tmlt.dev/analytics/latest/reference/"
_CONSTRAINTS = f"{_TUMULT}tmlt/analytics/constraints/index.html"
_GROUPS = f"{_TUMULT}api/tmlt.analytics.AddMaxRowsInMaxGroups.html"


def persons_page(part: dict[str, Any], out: Path) -> list[str]:
    """Draw the pictures into a folder and return the page."""
    rows, machine = part["figures"]["rows"].values(), part["machine"]
    figures = {section: [row for row in rows if row["section"] == section] for section in SECTIONS}
    _draw(figures, out)
    return [
        "# Persons with several records, and discovery",
        "",
        "A person may have a record in each of several months, and a column may have values that nobody can "
        "list. This page compares what matrixdp does in both cases with what OpenDP and Tumult Analytics "
        "document, with lower bounds, and with simple baselines. It ends with "
        "[where others are ahead](#where-others-are-ahead).",
        "",
        *_several(figures["periods"]),
        *_attributes(figures["attributes"]),
        *_values(figures["values"]),
        *_bounds(figures["bounds"]),
        *_behind(figures),
        f"{machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread, "
        f"{plain(part['cpu_seconds'], 2)} processor seconds for the whole page. All figures are in "
        "[results.json](results.json); `python benchmarks/run.py --only persons` measures them again.",
    ]


def _draw(figures: dict[str, Rows], out: Path) -> None:
    panels = {
        title: {
            words: [
                (row["most"], row[key] / row["bound"]) for row in _asked(figures["periods"], periods, asked)
            ]
            for key, words in _WAYS.items()
        }
        for title, periods, asked in (
            ("counts of 12 months", 12, "periods"),
            ("sums to date over 52 weeks", 52, "to date"),
        )
    }
    across = "periods in which a person has a record, K"
    along = "RMSE over its lower bound"
    draw_errors(panels, ("matrixdp",), across, out / "persons-errors.png", along)
    curves = {words: [(row["most"], row[key]) for row in figures["values"]] for key, words in _FOUND.items()}
    across = "values of each person that count, K"
    panel = {"epsilon 1, delta 1e-6 in all": curves}
    draw_errors(panel, ("matrixdp",), across, out / "persons-values.png", "words found")


def _asked(rows: Rows, periods: int, asked: str) -> Rows:
    return [row for row in rows if row["periods"] == periods and row["asked"] == asked]


def _less(error: float, other: float) -> str:
    """Return by what share an error is less than another."""
    return share(1 - error / other) if error < 0.9995 * other else "0%"


def _several(rows: Rows) -> list[str]:
    lines = [
        [
            _PERIODS[row["periods"]],
            _WORDS[row["asked"]],
            str(row["most"]),
            *[plain(row[key]) for key in ("records", "counts", "matrixdp", "bound")],
            _less(row["matrixdp"], row["counts"]),
        ]
        for row in rows
        if row["most"] in _SHOWN[row["periods"]]
    ]
    several = [row for row in rows if row["most"] > 1]
    gap = max(row["matrixdp"] / row["bound"] - 1 for row in several)
    nothing = max(several, key=lambda row: row["matrixdp"] / row["counts"])
    return [
        "## Persons with a record in each of K periods",
        "",
        "RMSE over all queries of a workload at mu = 1, Gaussian noise. Neighbours are tables with one "
        "person more or less, who has at most one record in each of K periods. The errors follow from the "
        "strategy alone, without data.",
        "",
        "- *Each record alone*: the best strategy for one record, with K times the noise. A unit of K "
        "records without `per` pays this.",
        "- *Counts of each period*: noise of standard deviation √K on the count of each period, and sums "
        f"over periods added up. [OpenDP]({_TRUNCATION}) keeps one record of a person in each group and K "
        "groups (`truncate_per_group`, `truncate_num_groups`), and "
        f"[Tumult Analytics]({_CONSTRAINTS}) does so by `MaxRowsPerGroupPerID` and `MaxGroupsPerID`. "
        "The L2 sensitivity of the counts is then √K, and both use it for Gaussian noise under zCDP "
        f"([OpenDP on sensitivities]({_THRESHOLDS}), [Tumult on groups]({_GROUPS})). We computed the errors "
        "from these documents and ran neither program.",
        "- *matrixdp*: `select` with `unit: {id: person, per: month, max_values: K}` "
        "([proof](../privacy.md#records-in-several-values)).",
        "- *Lower bound*: no strategy with Gaussian noise has less error "
        "([derivation](../mathematics.md#1-one-explicit-domain)).",
        "",
        "![RMSE over its lower bound against the number of periods in which a person has a record: "
        "matrixdp lies at the bound](persons-errors.png)",
        "",
        "*Each* asks for the count of each period, *to date* for sums from the first period on, *total* for "
        "the sum of all, and *changes* for differences of neighbouring periods. *Less by* compares matrixdp "
        "with counts of each period.",
        "",
        *table(
            [
                "periods", "asked", "K", "each record alone", "counts of each period", "matrixdp",
                "lower bound", "less by",
            ],
            lines, left=2,
        ),
        "",
        "Two things gain. Where sums over periods are asked and K is small, a plan for them has less error, "
        "as for one record. Where K is most of the periods, all records of a person raise the total "
        "together: the total gets more noise, and everything else less. In between, little is left to gain: "
        f"with the total of {_PERIODS[nothing['periods']]} and K = {nothing['most']}, noise on each period "
        f"has an RMSE of {nothing['counts']:.4f}, matrixdp {nothing['matrixdp']:.4f}, and the bound is "
        f"{nothing['bound']:.4f}.",
        "",
        f"Over all {len(several)} combinations with K above 1 that we measured, matrixdp is at most "
        f"{share(gap)} above the lower bound.",
        "",
    ]  # fmt: skip


def _attributes(rows: Rows) -> list[str]:
    lines = [
        [
            _WORDS[row["asked"]],
            str(row["most"]),
            *[plain(row[key]) for key in ("records", "equal", "counts", "planned", *MOVES, "bound")],
            _less(row["none changes"], row["counts"]),
        ]
        for row in rows
    ]
    return [
        "## Beside other attributes",
        "",
        "Tables by month (12) and by up to two of region (51), sex (2) and age (18), seven tables in all. "
        "Persons may have another region in another month, or may not: `constant: [sex, age]` declares what "
        "does not change, and is enforced.",
        "",
        "- *Counts, equal parts*: a query for each table by month, with noise of √K, each with a seventh of "
        "the squared mu; months added up.",
        "- *Counts, best parts*: the same with the parts that err least in all, in proportion to the square "
        "root of the number of cells. OpenDP and Tumult leave the parts to the user.",
        "- *Our tables*: noise of √K on each month, the other attributes as `select` measures them. It shows "
        "what planning gains and what `per` gains.",
        "- *Lower bound*: for persons who do not change. It holds for the others, too, but may be far "
        "from what is possible.",
        "",
        *table(
            [
                "asked", "K", "each record alone", "counts, equal parts", "counts, best parts", "our tables",
                *MOVES, "lower bound", "less by",
            ],
            lines,
        ),
        "",
        "*Less by* compares persons of whom none of these changes with counts at their best parts. Where all "
        "may change and months alone are asked, `per` gains nothing beyond √K: all of the difference comes "
        "from planning the tables together.",
        "",
    ]  # fmt: skip


def _values(rows: Rows) -> list[str]:
    lines = [
        [str(row["most"]), *[f"{row[key]:.0f}" for key in ("laplace", "gaussian", "matrixdp")]]
        for row in rows
    ]
    first = rows[0]
    deviation = max(row["deviation"] for row in rows)
    return [
        "## Values of a private column",
        "",
        f"A made-up log: 20,000 persons, words by Zipf's law from 100,000, of which {first['present']:,} "
        f"occur; {first['median']:.0f} different words a person (median). Of each person K words count, in "
        "an order of her own. "
        f"Words found at epsilon 1 and delta 1e-6 in all, means of {SEEDS} draws of the noise (standard "
        f"deviation of one draw: at most {deviation:.1f}):",
        "",
        "![Words found against the number of values of each person that count](persons-values.png)",
        "",
        *table(["K", "Laplace threshold", "Gaussian threshold", "matrixdp"], lines),
        "",
        f"- *Laplace threshold*, as [OpenDP documents it]({_THRESHOLDS}): noise of scale K / epsilon on the "
        "number of persons of each word, and words at or above the threshold t with "
        "1 - (1 - P(noise >= t - 1))^K = delta.",
        "- *Gaussian threshold*, the same with Gaussian noise of scale √K / mu. Half of the delta is for the "
        "threshold, the other half for mu, by the exact curve of Gaussian noise. OpenDP's zCDP would be a "
        "little worse. Every word of a person has the weight 1.",
        "- *matrixdp*: for K = 1 the largest chances that are (epsilon, delta)-private, else weights in "
        "three rounds ([proof](../privacy.md#theorem-9-discoveries)).",
        "",
        "With one value a person the gain is small: a Laplace threshold is nearly the best there. With "
        "many it comes from the weights (a person with few words gives each of them more) and from the "
        "rounds (words that were found leave the lists).",
        "",
    ]


def _bounds(rows: Rows) -> list[str]:
    lines = [
        [
            f"{row['records']:,}",
            f"{row['share']:g}",
            *[f"{100 * row[key]:.3f}" for key in ("wide", "quantile", "matrixdp", "best")],
        ]
        for row in rows
    ]
    most = max(row["matrixdp"] / row["best"] for row in rows)
    return [
        "## Bounds of a private column",
        "",
        "A noisy sum of incomes (lognormal, median 36,316, sigma 0.8), mu = 1 in all. Numbers beyond the "
        "bounds count as the bounds, and the noise is in proportion to the upper one. *matrixdp* "
        "finds both by `discover: bounds`, with a share of the squared mu, and has the rest for the sum. The "
        "others spend nothing on bounds:",
        "",
        f"- *Public*: an upper bound of {WIDE:,} is known.",
        "- *0.99 quantile* and *best bound* look at the data, which is **not private**. The best bound is "
        "the one, of two in each doubling, with the least error on average over the noise.",
        "",
        f"Relative error of the sum in percent, root mean square over {SEEDS} tables:",
        "",
        *table(["records", "share", "public", "0.99 quantile", "matrixdp", "best bound"], lines),
        "",
        "A fixed quantile has a bias that no number of records removes. With few records the found bounds "
        f"are far from the best: at most {plain(most, 2)} times its error here.",
        "",
    ]


def _behind(figures: dict[str, Rows]) -> list[str]:
    one = figures["values"][0]
    fewer = 1 - one["laplace"] / one["matrixdp"]
    return [
        "## Where others are ahead",
        "",
        "- *Noisy counts of found values.* A threshold publishes each value with its noisy count. `discover` "
        "publishes the values alone, and their counts are measured again, with a budget of their own. Where "
        "only the counts of one column are wanted and K is small, one query with a threshold is the better "
        f"way: at K = 1 it finds {share(fewer)} fewer words and has their counts as well.",
        "- *Persons who change in part.* Where some attributes may change and others not, our strategies are "
        "not the best ones. If the region may change, tables by age and sex alone are measured as for "
        "persons who stay, and tables by region as for persons who move; no search is made for the best of "
        "both together.",
        "- *What has no strategy for persons.* With two attributes in `per`, or more than 400 values, the "
        "strategy is that for one record, charged by the proof. Two rounds and counts of records out of "
        "domain reject `per`. In a [series](../howto/publish-every-month.md) records may come late, and "
        "counts of months cost as with peers.",
        "- *Pure differential privacy.* Persons with a record in each of all values have noise of "
        "[their own](beyond-laplace.md#persons-with-a-record-in-each-month-ranges). Where they have records "
        "in fewer values, or move, Laplace noise is charged for K records, as in OpenDP and Tumult.",
        "- *Which records count.* matrixdp keeps the first ones in the order of the table. OpenDP can also "
        "keep a random choice, the last ones, or the first ones in the order of a column.",
        "- *Not measured here*: the policy Gaussian mechanism and later ones for discovery, and the bounds "
        "that Tumult finds (`get_bounds`).",
        "",
    ]
