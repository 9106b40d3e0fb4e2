"""Whether a second round pays, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from values import plain, table

__all__ = ["rounds_page"]

_TOLD = (
    (
        "A second round of measurements can be planned from the noisy answers to the first. That costs "
        "nothing beyond the two budgets, which add up. `rounds: 2` in a "
        "[specification](../specification.md#rounds) does so to publish more counts. This page shows "
        "where that pays, and what was measured and not built."
    ),
    (
        "The error of marginals under Gaussian noise is a closed form of how precisely each residual is "
        "measured. The first round spends half of the budget, with the same weight for every cell. The "
        "share is that of non-empty cells whose standard error is below a third of their count; *two "
        "rounds* is what releases with `rounds: 2` reach, a mean over five seeds. The relative error is "
        "the mean of |error| over max(count, floor), with a floor of a thousandth of the records; here "
        "*two rounds* plans the second for it. Changes are against one round with equal weights. *Sized* "
        "is one round that gives each marginal the weight of the root of its number of cells, without "
        "data. *Known* is one round planned from the true table by the same search, which no private "
        "method can do. Tables: Adult with its numbers in bins; the bundled example; `fair` of the "
        "package statsmodels, the survey of R. C. Fair (1978) with 6,366 records and nine attributes of "
        "four to seven values; and a made-up table of 20,000 records with three attributes of eight "
        "values and 500 places, which are too fine for most budgets."
    ),
)
_FOLLOWS = (
    (
        "**Where two rounds pay.** The share of publishable cells grows most where a workload mixes "
        "tables that the budget can serve with tables that it cannot: up to 3.6 times on the made-up "
        "table, by 3% to 10% on Adult at most budgets. Where all tables are of one kind, as in the "
        "bundled example and `fair`, the gain is below 6% (or of a share below 1%), often none. Where "
        "less than 2% of the cells can be published, half of the budget tells little, and the share may "
        "fall: by 2% in one row."
    ),
    (
        "**What they cost.** Root mean squared errors rise by 2% to 34%. So one round is the default. If "
        "you know beforehand which tables are too fine, leave them out: that does better."
    ),
    (
        "**Relative errors** do not need a second round: weights that need no data do as well, to 1.8%. "
        "It is not built."
    ),
)
_MODEL = (
    "A second round could also be planned for the model (the [mixture](../model.md)): what the model "
    "of the first round misses of a residual, beyond what noise explains, the second can mend, and "
    "the rest it can leave alone. The table has the RMSE of the mixture after one round, after two of "
    "half the budget each, and after two of which the second is planned from what the model truly "
    "misses of the *known* table. A model follows the noise that it is fitted to, so noisy answers "
    "tell little of what it misses; it is taken to be at least the variance of the noise. Figures are "
    "root means of squares over seeds: one for Adult, with up to two attributes, and two for the "
    "others. Two rounds of this kind lose nearly everywhere (by up to 11%). Planned from known "
    "misses, which no private method has, they would gain up to 20%, most at small epsilon with many "
    "marginals. This is not built. The rounds for publishable counts help the model at small epsilon: "
    "see the next section."
)
_PEERS = (
    (
        "AIM (R. McKenna et al., 2022) and MWEM+PGM choose marginals one after another where their model "
        "is furthest off, and answer from it. They run with private-pgm's own code, from the folder "
        "`mechanisms` of its repository (`--mechanisms`), on the same tables, domains, marginals and "
        "budgets: epsilon as shown, delta 1e-6, neighbours by one record more or less. All answers are "
        "compared with the true tables on every cell: root mean squared and mean absolute error (L1), the "
        "mean of |error| over max(count, floor) as above, and the share of non-empty cells whose error is "
        "below a third of their count. *CV below a third* is the share whose standard error is. One round "
        "is the default of `select`, with the same weight for every marginal; two rounds are `rounds: 2`; "
        "each mixture is fitted to the measurement above it. **Answers of models are biased**, and have "
        "no standard errors."
    ),
    (
        "**Errors.** In RMSE AIM is ahead of the mixture of one round at epsilon 0.1 on the bundled table "
        "and `fair`, by 8% to 39%, and level with it at epsilon 1 on `fair` with 3-way marginals. In "
        "relative error it is also ahead on the bundled table at epsilon 1, and on Adult at epsilon 0.1 "
        "with 3-way marginals, by 8% to 17%. Elsewhere the mixture is ahead, on Adult by 1.2 to 11 times "
        "in RMSE. MWEM+PGM beats the mixture on `fair` at epsilon 0.1 alone. At epsilon 10 both have "
        "larger RMSE than even the unbiased answers: what is never measured stays as wrong as the model "
        "is."
    ),
    (
        "**Two rounds** move the RMSE of the mixture by -22% to +25%: down at epsilon 0.1 where many "
        "marginals are asked for (`fair` -22%, bundled -16%) or the table is large (Adult, 2-way, -6%), "
        "up at epsilon 10. So for a model they pay at small budgets, if at all."
    ),
    (
        "**Settings.** AIM has its default rounds (16 for each attribute), but 250 steps a fit (its "
        "default is 1,000) and models of 8 MB (80), to its disadvantage: in a run apart on Adult (3-way, "
        "epsilon 1) with 3 rounds for each attribute, 1,000 steps halved its RMSE, and 8 MB instead of 2 "
        "changed nothing. MWEM+PGM has its default rounds and steps, and models of 8 MB (25). There is "
        "one run each; even with a seed AIM differs from run to run, because its code iterates over sets. "
        "Seconds are of the processor, on a machine with other work. Four things are adapted: "
        "`potentials` is named `warm_start` in mbi 2.0; callbacks that only print are left out; marginals "
        "outside a model's cliques are eliminated in NumPy rather than compiled, with equal results; and "
        "compiled programs are dropped now and then, or memory runs out. For MWEM+PGM the marginals of "
        "its last model are used, which its synthetic records round. Both convert epsilon and delta to "
        "zero-concentrated privacy by a bound that is a little loose: their noise at the same budget is "
        "9%, 7% and 5% larger for epsilon 0.1, 1 and 10 than with an exact conversion."
    ),
)
_CELLS = (
    "Could a first round give a weight to every cell, and not only to every marginal? For a single "
    "marginal nothing can be gained: a record is in one cell, so that all cells can have the whole "
    "precision at once, and no weight makes one better than that. For several marginals the best "
    "strategy under weights 1 / max(count, floor)^2 is a convex problem. The table has its weighted "
    "error (root of the sum of weighted variances) against the best with one weight a marginal, the "
    "mean of those of its cells, for all 1- and 2-way marginals of small domains with 10,000 records, "
    "independent, with shares that fall with this power of their rank, and a floor of 10. The gain is "
    "at most 3%, from counts that are known exactly, so this is not offered."
)
_MERGED = (
    "Could nearly empty categories be merged after a first round, so that others are answered better? "
    "The noise of a cell hardly depends on how many categories there are: the cost of a residual is "
    "the product of 1 - 1/n over its attributes, and 1 - 1/42 is not far from 1 - 1/8. Changes are of "
    "the RMSE of the cells of Adult that remain (categories that are not merged), at the same budget: "
    "with *weights alone*, which ask less of the marginals of which fewer cells are wanted, without "
    "merging; by what merging adds to that; and both together. Merging itself gains 0.3% to 4%. "
    "Weights gain most of the rest, and need no first round."
)
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
        "table", "marginals", "epsilon",
        "relative error: sized", "relative error: two rounds", "relative error: known",
        "share: one round", "share: sized", "share: two rounds", "share: known",
        "RMSE: two rounds for the share",
    ]  # fmt: skip
    return [
        "# One round or two",
        "",
        *[line for text in _TOLD for line in (text, "")],
        *table(head, [_line(row) for row in part["figures"]["rows"]], left=2),
        "",
        *[line for text in _FOLLOWS for line in (text, "")],
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
    lines = ["## Beside AIM and MWEM+PGM", "", *[line for text in _PEERS for line in (text, "")]]
    head = [
        "marginals", "epsilon", "answers", "RMSE", "L1", "relative", "within a third", "CV below a third",
        "seconds",
    ]  # fmt: skip
    for part in parts:
        rows = [cells for row in part["figures"]["rows"] for cells in _methods(row)]
        lines += [f"### {part['figures']['table']}", "", *table(head, rows, left=3), ""]
    return lines


def _methods(row: dict[str, Any]) -> Iterator[list[str]]:
    for name, title in _METHODS.items():
        if name in row["methods"]:
            own = row["methods"][name]
            figures = [plain(own[key], 3) for key in ("rmse", "l1", "relative")]
            share = f"{100 * own['share']:.1f}%" if "share" in own else ""
            within = f"{100 * own['within']:.1f}%"
            yield [*_asked(row), title, *figures, within, share, plain(own["seconds"], 2)]


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
