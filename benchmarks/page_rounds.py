"""Whether a second round would pay, as Markdown."""

from __future__ import annotations

from typing import Any

from values import table

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
    "named. *Known* is one round planned from the true table, which no private method can do.",
)
_FOLLOWS = (
    "For relative errors a second round is not worth its machinery: weights that need no data do as well, to "
    "0.6%. For the share of cells that can be published it gains up to 10% where the share is above 2%, and "
    "loses where half of the budget tells too little; root mean squared errors rise by 4% to 33%. So "
    "matrixdp measures once, and `weight` in a workload is the way to favour small cells. A release that is "
    "planned from an earlier one stays possible: both are debited to one ledger."
)


def rounds_page(part: dict[str, Any]) -> list[str]:
    """Return the figures of one and two rounds beside one another."""
    machine = part["machine"]
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
        f"{machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread.",
    ]


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
