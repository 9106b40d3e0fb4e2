"""Whether a second round would pay, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from values import plain, table

__all__ = ["rounds_page"]

_TOLD = (
    "A second round of measurements may be planned from the noisy answers of the first: that costs nothing "
    "beyond the two budgets, which add up. `python benchmarks/rounds.py` asks whether it would pay, before "
    "any of it is built. The error of marginals under Gaussian noise is a closed form of how precisely each "
    "residual is measured, so the best second round after a given first one can be computed. The first round "
    "spends half of the budget; least squares over both rounds adds up their precisions.",
    "The relative error is the mean of |error| over max(count, floor), with a floor of a thousandth of the "
    "records. The share is that of non-empty cells whose standard error is below a third of their count. "
    "Changes are against one round with equal weights. *Sized* is one round that gives each marginal the "
    "weight of the root of its number of cells, without data. *Two rounds* plans the second for the figure "
    "named. *Known* is one round planned from the true table, which no private method can do. Tables: "
    "Adult with its numbers in bins, the bundled example, and `fair` of the package statsmodels: the survey "
    "of R. C. Fair (1978), 6,366 records, nine attributes of four to seven values.",
)
_FOLLOWS = (
    "For relative errors a second round is not worth its machinery: weights that need no data do as "
    "well, to 1.8%. For the share of cells that can be published it gains up to 10% where the share "
    "is above 2%, and may gain or lose much where it is smaller, since half of the budget then tells "
    "little; root mean squared errors rise by 3% to 33%. So one round is the default, and `weight` in "
    "a workload is the way to favour small cells."
)
_MODEL = (
    "A second round may also be planned for the model (the [mixture](../model.md)): what the model of "
    "the first round misses of a residual, beyond what noise explains, the second can mend, and the "
    "rest it can leave alone. The table has the RMSE of the mixture after one round, after two of "
    "half the budget each, and after two of which the second is planned from what the model truly "
    "misses of the *known* table. A model follows the noise that it is fitted to, so that noisy "
    "answers tell little of what it misses: it is taken to be at least the variance of the noise. "
    "Figures are means of squares over seeds, one for Adult with up to two attributes (more take too "
    "long), two for the others. Two rounds lose nearly everywhere. Even from known misses they gain "
    "only where epsilon is small or many marginals are asked for, up to 16%."
)
_PEERS = (
    (
        "AIM (R. McKenna et al., 2022) and MWEM+PGM choose marginals one after another where their model "
        "is furthest off, and answer from it. They run with private-pgm's own code, from the folder "
        "`mechanisms` of its repository (`--mechanisms`), on the same tables, domains, marginals and "
        "budgets: epsilon as shown, delta 1e-6, neighbours by one record more or less. All answers are "
        "compared with the true tables on every cell: root mean squared and mean absolute error (L1), the "
        "mean of |error| over max(count, floor) as above, and the share of non-empty cells whose error is "
        "below a third of their count. One round is the default of `select`, with every marginal alike; "
        "its mixture is fitted to the same measurement. **Answers of models are biased**, and have no "
        "standard errors; answers of one round are unbiased, and have them."
    ),
    (
        "Time limits AIM, to its disadvantage: its rounds are 3 for each attribute (its default is 16), "
        "its fits 250 steps (1,000), its models 2 MB (80). With 16 rounds, 1,000 steps and 8 MB, one run "
        "apart on the bundled table (2-way, epsilon 10) took five times as long and came to an RMSE of "
        "8.2 in place of 10.2. MWEM+PGM has its default rounds and steps, and 2 MB (25). Seconds are of "
        "the processor, on a machine with other work. One run each; even with a seed AIM differs from run "
        "to run (15% in one case), for its code goes through sets. Four things are adapted: `potentials` "
        "is named `warm_start` in mbi 2.0; callbacks that only print are left out; marginals outside of a "
        "model's cliques are eliminated in NumPy rather than compiled, with equal results; and compiled "
        "programs are forgotten now and then, lest memory runs out. For MWEM+PGM the marginals of its "
        "last model are used, which its synthetic records round. Both turn epsilon and delta into zero- "
        "concentrated privacy by a bound that is a little loose: their noise at the same budget is 9%, 7% "
        "and 5% larger for epsilon 0.1, 1 and 10 than that of an exact conversion."
    ),
    (
        "AIM wins where the budget is small: at epsilon 0.1 its RMSE is 21% to 53% below that of the "
        "mixture of one round with up to 3-way marginals, since it spends on few marginals and leaves the "
        "rest to its model, and at epsilon 1 it still has the smaller relative errors there. MWEM+PGM "
        "beats the mixture on `fair` at epsilon 0.1 alone. At epsilon 10 both lose by far: the RMSE of "
        "the mixture is 2 to 24 times smaller, and that of the unbiased answers is smaller than theirs, "
        "too. What is never measured stays as wrong as the model is."
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
        "table", "marginals", "epsilon", "relative: sized", "two rounds", "known",
        "share: one round", "sized", "two rounds", "known", "RMSE, two rounds for the share",
    ]  # fmt: skip
    return [
        "# One round or two",
        "",
        *[line for text in _TOLD for line in (text, "")],
        *table(head, [_line(row) for row in part["figures"]["rows"]], left=2),
        "",
        _FOLLOWS,
        "",
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
