"""Pure differential privacy beyond independent Laplace noise, as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from beyond_laplace import DELTAS, KINDS, LARGE, PUBLISHED, SECTIONS, gaussian_noise
from pictures import draw_errors
from values import plain, share, table

__all__ = ["beyond_laplace_page"]

Rows = list[dict[str, Any]]

_ORDERED = {
    "auto": "auto",
    "walk": "one walk",
    "opt-0": "opt-0, Laplace noise",
    "hb": "hb",
    "wavelet": "wavelet",
    "identity": "identity",
    "from below": "tree, from below",
    "binary tree": "binary tree",
}


def beyond_laplace_page(part: dict[str, Any], large: dict[str, Any] | None, out: Path) -> list[str]:
    """Draw the pictures into a folder and return the page.

    ``large`` is the part of HDMM's Table 4 that has the errors of others for the largest size.
    """
    rows, machine = part["figures"]["rows"].values(), part["machine"]
    figures = {section: [row for row in rows if row["section"] == section] for section in SECTIONS}
    _fill(figures["ordered"], large)
    _draw(figures, out)
    return [
        "# Beyond Laplace noise",
        "",
        "Under pure differential privacy the usual noise is Laplace noise, drawn for each measured number by "
        "itself. Three other kinds have less error at the same epsilon. Single counts get noise on the "
        "integers. Prefixes and ranges of an ordered attribute get a walk. Many small tables get one radius. "
        "`select` takes each of them where it has less error. Users set nothing for it.",
        "",
        "Errors are RMSE over all queries of a workload, at epsilon = 1 for adding or removing one record, "
        "unless a column says otherwise. They follow from the strategy alone, without data. *Laplace* is the "
        "best strategy with independent Laplace noise that we find.",
        "",
        *table(
            ["what is claimed", "proof", "checked by"],
            [
                [
                    "noise on the integers costs what Laplace noise costs",
                    "[privacy](../privacy.md#noise-on-integers)",
                    "`tests/noise/test_integers.py`",
                ],
                [
                    "a walk costs 1 / b, whatever its widths",
                    "[privacy](../privacy.md#walks)",
                    "`tests/noise/test_walks.py`",
                ],
                [
                    "one radius costs 1 / b, whatever its widths",
                    "[privacy](../privacy.md#one-radius)",
                    "`tests/noise/test_radius.py`",
                ],
                [
                    "ranges of a person's values cost what her records in one value do",
                    "[privacy](../privacy.md#ranges-of-a-persons-values)",
                    "`tests/noise/test_radius.py`, `tests/measure/test_ranges.py`",
                ],
                [
                    "samples of all of them are exact",
                    "[noise](../noise.md#noise-on-the-integers)",
                    "the same",
                ],
                [
                    "the widths of one walk are the best ones",
                    "[mathematics](../mathematics.md#7-laplace-noise-p-identity-strategies-and-products)",
                    "`tests/measure/test_walks.py`",
                ],
            ],
            left=3,
        ),
        "",
        *_single(figures["single"]),
        *_walks(figures["ordered"]),
        *_radius(figures["questions"], figures["small"]),
        *_persons(figures["persons"]),
        *_mixed(figures["mixed"]),
        *_optimum(figures["programs"], figures["ridges"][0]),
        *_LITERATURE,
        f"{machine['date']}, {machine['cores']} cores, {machine['processor']}, one thread. All figures are "
        "in "
        "[results.json](results.json); `python benchmarks/run.py --only beyond-laplace` measures them again.",
    ]


def _fill(rows: Rows, large: dict[str, Any] | None) -> None:
    """Write the errors of others into the rows of the largest size."""
    names = {"prefixes": "prefix", "all ranges": "all ranges"}
    known = {} if large is None else {row["name"]: row["cells"] for row in large["figures"]["rows"]}
    for row in (own for own in rows if own["values"] == LARGE):
        cells = known.get(f"{names[row['kind']]}, n = {LARGE:,}", {})
        row.update({mechanism: cells.get(mechanism, {}).get("error") for mechanism in PUBLISHED})


def _draw(figures: dict[str, Rows], out: Path) -> None:
    ordered = figures["ordered"]
    panels = {
        kind: {
            title: [(row["values"], row[key]) for row in ordered if row["kind"] == kind and row.get(key)]
            for key, title in _ORDERED.items()
            if key != "binary tree" and (key != "from below" or kind == "prefixes")
        }
        for kind in KINDS
    }
    draw_errors(panels, ("auto", "one walk"), "values of the attribute", out / "beyond-laplace-ordered.png")
    questions = figures["questions"]
    curves = {
        "one radius": [row["radius"] for row in questions],
        "K-norm noise": [row["k-norm"] for row in questions],
        "Laplace noise": [row["laplace"] for row in questions],
        **{gaussian_noise(delta): [row[gaussian_noise(delta)] for row in questions] for delta in DELTAS},
    }
    places = [int(row["name"]) for row in questions]
    points = {title: list(zip(places, errors, strict=True)) for title, errors in curves.items()}
    one = {"all one-way counts of yes/no questions": points}
    draw_errors(one, ("one radius",), "questions", out / "beyond-laplace-questions.png")


def _less(error: float | None, other: float | None) -> str:
    """Return by what share an error is less than another."""
    if error is None or other is None:
        return "-"
    return share(1 - error / other) if error < 0.9999 * other else "0%"


def _single(rows: Rows) -> list[str]:
    lines = [
        [
            f"{row['epsilon']:g}",
            *[f"{row[key]:.4f}" for key in ("integers", "staircase", "laplace")],
            _less(row["integers"], row["laplace"]),
        ]
        for row in rows
    ]
    return [
        "## Single counts: noise on the integers",
        "",
        "Let a = exp(-epsilon). The noise is K with",
        "",
        "    P(K = k) = (1 - a) / (1 + a) a^|k|,    variance 2 a / (1 - a)^2.",
        "",
        "A record moves a count by one, and the probability of each result by a factor of at most 1 / a "
        "([proof](../privacy.md#noise-on-integers)). No noise on one integer has less variance at this cost "
        "(Ghosh, Roughgarden and Sundararajan). A sample is the integer part of a stretched Laplace "
        "variable, and both of its paths decide from the same random bits "
        "([exactness](../noise.md#noise-on-the-integers)). The staircase is the least noise on a real number "
        "that moves by up to 1 (Geng and Viswanath): integers need less, as they move by 0 or 1.",
        "",
        "Standard errors of the counts of a histogram:",
        "",
        *table(["epsilon", "matrixdp", "staircase", "Laplace noise", "less by"], lines),
        "",
        "The gain grows with the epsilon of a part. matrixdp draws integers for parts with an epsilon from "
        "1/2 to 32 for "
        "each unit of their answers.",
        "",
    ]


def _walks(rows: Rows) -> list[str]:
    lines = []
    for kind in KINDS:
        for row in (own for own in rows if own["kind"] == kind):
            errors = [plain(row[key]) for key in ("walk", "auto")]
            errors += [plain(row[key]) for key in ("opt-0", "hb", "wavelet", "identity")]
            less = _less(row["auto"], row["opt-0"])
            lines.append([kind, f"{row['values']:,}", *errors, row["printed"] or "-", less])
    streams = [
        [
            f"{row['values']:,}",
            *[plain(row[key]) for key in ("binary tree", "from below", "hierarchical", "walk")],
        ]
        for row in rows
        if row["kind"] == "prefixes"
    ]
    return [
        "## Ordered attributes: walks",
        "",
        "Let P_1, .., P_n be the prefix sums of n values. With widths w_k >= 0, scale b, and soft(p, w) = "
        "sign(p) max(|p| - w, 0), publish",
        "",
        "    y_k = P_k + u_(k-1) + p_k,    u_k = u_(k-1) + soft(p_k, w_k),    u_0 = 0,",
        "    density of p_k proportional to exp(-max(0, |p_k| - w_k) / b), independently.",
        "",
        "*Theorem.* One record changes the probability of what is published by a factor of at most "
        "exp(1 / b), whatever the widths ([proof](../privacy.md#walks)). So widths are free. Noise that "
        "stays "
        "within a width is forgotten, and only what exceeds it is carried on. In units of b, with s = 1 + w, "
        "a step that is carried on has the variance 2 / s. A prefix of k values has the variance",
        "",
        "    sum over j < k of 2 / s_j  +  s_k^2 / 3 + 1 + 2 / (3 s_k).",
        "",
        "The best widths have a closed form: s_k^3 = 1 + 3 (n - k) for prefixes, and two diagonals of the "
        "workload's Gram matrix for any other queries "
        "([derivation](../mathematics.md#7-laplace-noise-p-identity-strategies-and-products)). On the "
        "lattice "
        "of a release, p_k is uniform on its flat part or geometric beyond it. Which of the two is decided "
        "by "
        "as many random bits as it takes ([exactness](../noise.md#walks)). Intervals come from the exact "
        "characteristic function.",
        "",
        "![RMSE of prefixes and of all ranges against the number of values](beyond-laplace-ordered.png)",
        "",
        "*One walk* has the widths above. `auto` is what `select` chooses. HDMM is OPT_0 as its journal "
        "version prints it. The last column compares `auto` with `opt-0`.",
        "",
        *table(
            [
                "workload", "values", "one walk", "`auto`", "`opt-0`", "`hb`", "`wavelet`", "`identity`",
                "HDMM, printed", "less by",
            ],
            lines,
        ),
        "",
        "The error of one walk grows with the cube root of n. So long attributes have walks on two levels: "
        "one inside each block of "
        "values, all at the cost of one, as a record is in one block; and one over the totals of the "
        "blocks. The levels share epsilon, and "
        "least squares combine them ([proof](../privacy.md#walks), "
        "[derivation](../mathematics.md#7-laplace-noise-p-identity-strategies-and-products)). They have "
        "less error from about 120 values on for "
        "prefixes, and from 300 for all ranges.",
        "",
        "K-norm noise in the body of what a record can change, which is a cross-polytope of the n values, "
        "is Laplace noise "
        "on every value: `identity`.",
        "",
        "**Stream counters.** A counter that publishes every prefix when its last value is known cannot use "
        "later measurements. A walk never does: y_k depends on the values up to k. The binary tree of Chan, "
        "Shi and Song, and of Dwork, Naor, Pitassi and Rothblum, sums as many nodes as the length has ones. "
        "Each node has Laplace noise of the scale log2(n) + 1. So its mean squared error is",
        "",
        "    2 (log2(n) + 1)^2 (log2(n) / 2 + 1 / n).",
        "",
        "Honaker's estimates from below replace a node's count by the best mean of itself and of the nodes "
        "below it: its variance is v_0 = 1, v_h = 1 / (1 + 1 / (2 v_(h-1))) in the place of 1. Least squares "
        "over all nodes use later ones as well: these are no counter any more, but a table published at "
        "once.",
        "",
        *table(["values", "binary tree", "from below", "all nodes, least squares", "one walk"], streams),
        "",
        "matrixdp uses walks for tables that are measured at once. "
        "[Series](../howto/publish-every-month.md) reject "
        "them, because u would have to be kept in secret between publications.",
        "",
    ]  # fmt: skip


def _tables(rows: Rows, first: str) -> list[str]:
    noises, lines = [gaussian_noise(delta) for delta in DELTAS], []
    for row in rows:
        errors = [plain(row[key]) for key in ("radius", "k-norm", "laplace", *noises)]
        lines.append([row["name"], f"{row['queries']:,}", *errors, plain(row["laplace"] / row["radius"], 3)])
    head = [first, "queries", "one radius", "K-norm", "Laplace", *noises, "Laplace / radius"]
    return table(head, lines)


def _radius(questions: Rows, small: Rows) -> list[str]:
    ahead = [int(row["name"]) for row in questions if row["radius"] < row[gaussian_noise(DELTAS[0])]]
    return [
        "## Many small tables: one radius",
        "",
        "One record moves every table by one unit at the same time. Under composition each table pays for "
        "its own share of epsilon all the same. Let z_k be the noise of the centred table k, and |z| = min "
        "over t of the sum of |z_i - t|. With widths w_k >= 0 the noise of all tables together has a density "
        "proportional to",
        "",
        "    exp(-h / b),    h = max(0, max over k of |z_k| - w_k).",
        "",
        "*Theorem.* One record changes the probability of what is published by a factor of at most "
        "exp(1 / b), once for all tables together, whatever the widths ([proof](../privacy.md#one-radius)). "
        "The noise is a mixture. A radius r is drawn with a density proportional to",
        "",
        "    exp(-r / b) times the product over k of (w_k + r)^(n_k - 1),    n_k cells in table k.",
        "",
        "Given r, the tables are independent, and z_k is uniform where |z_k| <= w_k + r. On the lattice all "
        "of that is arithmetic with integers: numbers of points, subsets and signs "
        "([exactness](../noise.md#one-radius)). Different tables are uncorrelated, so that least squares and "
        "variances stay simple. The widths minimize a smooth function of a few numbers. With all widths 0 "
        "it is K-norm noise.",
        "",
        "![RMSE of one-way counts against the number of yes/no questions](beyond-laplace-questions.png)",
        "",
        "All one-way counts of yes/no questions. Gaussian noise has epsilon = 1 with a delta above 0, which "
        "is a weaker guarantee:",
        "",
        *_tables(questions, "questions"),
        "",
        f"Up to {max(ahead)} questions, of the numbers shown, the pure guarantee has less error than "
        f"*{gaussian_noise(DELTAS[0])}*.",
        "",
        *_tables(small, "other tables"),
        "",
        "Beside many others, a table of n cells has about n^2 / ((n + 1) (n + 2)) of the variance that a "
        "share of "
        "its own would give it. For many cells that is little. So tables of more than 60 cells keep Laplace "
        "noise "
        "and a share of epsilon.",
        "",
    ]


def _persons(rows: Rows) -> list[str]:
    gaussian = gaussian_noise(DELTAS[0])
    lines = [
        [row["name"], f"{row['queries']:,}", plain(row["auto"]), plain(row["laplace"]), plain(row[gaussian])]
        for row in rows
    ]
    return [
        "## Persons with a record in each month: ranges",
        "",
        "A unit with `per` bounds the records of a person in each of T values, such as months, by m. Laplace "
        "noise is charged for all of her records. But these are of one sign: she is added, or removed. So "
        "one radius can measure the values by their range, |z| = max z - min z over the noise of the T "
        "values and a 0, which all her records together move by m at most "
        "([proof](../privacy.md#ranges-of-a-persons-values)). It is K-norm noise in the hull of what she can "
        "add and what she can take away. Values by themselves have the error sqrt((T + 2) (T + 3) / 6) m / "
        "epsilon. The range costs the same however few of the values she has. Cells of constant attributes "
        "have such noise each, at no further cost, as she is in one of them; constant attributes of two "
        "values can be signs in other tables under the same radius.",
        "",
        "One record a month; other attributes are constant. *Laplace* is the best strategy of marginals:",
        "",
        *table(["counts", "queries", "`auto`", "Laplace", gaussian], lines),
        "",
    ]


def _mixed(rows: Rows) -> list[str]:
    lines = [
        [
            row["name"],
            f"{row['queries']:,}",
            row["printed"] or "-",
            plain(row["laplace"]),
            plain(row["auto"]),
            f"`{row['chosen']}`",
            _less(row["auto"], row["laplace"]),
        ]
        for row in rows
    ]
    return [
        "## Several attributes",
        "",
        "A walk can be one factor of a product: every row of the strategy on the other attributes then has a "
        "walk of its own, and the cost is the L1 norm of that strategy's columns (`walk`). Weighted "
        "marginals can each have a walk along one "
        "of their attributes (`walk-marginals`): the noise of different marginals is independent, so their "
        "costs add up. None has two, as that would be the rule on a grid, which is not private (below). "
        "*Printed* is the best figure of HDMM's journal version.",
        "",
        *table(["workload", "queries", "printed", "Laplace", "`auto`", "by", "less by"], lines),
        "",
    ]


def _optimum(rows: Rows, ridges: dict[str, Any]) -> list[str]:
    lines = [
        [
            row["case"],
            f"{row['epsilon']:g}",
            *[f"{row[key]:.5f}" for key in ("least", "ours", "plain")],
        ]
        for row in rows
    ]
    most = max(row["ours"] / row["least"] - 1 for row in rows)
    (first, beside), (_, last) = ridges["gram"]
    levels = ", ".join(map(str, ridges["levels"]))
    return [
        "## How near the optimum",
        "",
        "**No lower bound of any size is known** for walks and for one radius. The bounds that certificates "
        "state are about strategies with independent Laplace noise, and these kinds of noise can be below "
        "them. What is known is this.",
        "",
        "*Small cases.* The least error of all mechanisms is a linear program: additive noise suffices for "
        "the worst table, and its probabilities f satisfy f(z + m) >= exp(-epsilon) f(z) for every move m of "
        "a record. We solve it on boxes of integers. Total squared errors on the same box:",
        "",
        *table(
            [
                "workload", "epsilon", "all noise (program)", "best widths, whole numbers",
                "widths 0",
            ],
            lines,
        ),
        "",
        f"So no noise has less error than walks and one radius in these cases, up to a share of {most:.0e} "
        "of the "
        "squared error, which is of the order of what the solver leaves. *Widths 0* is independent noise on "
        "each value for prefixes, "
        "and K-norm noise for questions. `tests/noise/test_walks.py` and `tests/noise/test_radius.py` solve "
        "such "
        "programs. The lattice of a release is finer than records, so its errors are those of continuous "
        "noise: a little larger at these epsilons.",
        "",
        "*Larger cases.* One walk is not the optimum for long attributes, since two levels have less error. "
        "Where that begins is open.",
        "",
        "*No general principle.* Both kinds of noise have a density exp(-epsilon d(z)), where d is the "
        "number of "
        "records that lead from z into a convex symmetric set: a box for walks, a product of balls for one "
        "radius, "
        "a point for Laplace noise. It is tempting to think that some noise of this form is always the "
        "best. Here is a case that "
        f"speaks against it: two cells, queries with the Gram matrix ({first}, {beside}; {beside}, {last}), "
        "and "
        f"epsilon = {ridges['epsilon']:g}. The program ends at exp(-epsilon h) with whole numbers h, to "
        f"{ridges['off_integers']:.0e}, and h has local minima at the levels {levels}. A distance from a "
        "set has "
        "none above 0. The noise has a ridge there, along which it falls by less than one step for a record.",
        "",
        "*Not private, although it looks alike.* A walk whose prediction comes from several neighbours, as "
        "on "
        "a grid of two ordered attributes, costs more than 1 / b. `tests/noise/test_walks.py` holds that "
        "case.",
        "",
    ]  # fmt: skip


_LITERATURE = [
    "## Literature",
    "",
    "- T.-H. H. Chan, E. Shi and D. Song. Private and continual release of statistics. ACM Transactions on "
    "Information and System Security 14, 2011. C. Dwork, M. Naor, T. Pitassi and G. N. Rothblum. "
    "Differential privacy under continual observation. STOC 2010. (The binary tree.)",
    "- J. Honaker. Efficient use of differentially private binary trees. TPDP 2015. (Estimates from below "
    "and above.)",
    "- A. Ghosh, T. Roughgarden and M. Sundararajan. Universally utility-maximizing privacy mechanisms. STOC "
    "2009. (Geometric noise.)",
    "- Q. Geng and P. Viswanath. The optimal noise-adding mechanism in differential privacy. IEEE "
    "Transactions on Information Theory 62, 2016. (The staircase.)",
    "- M. Hardt and K. Talwar. On the geometry of differential privacy. STOC 2010. (K-norm noise: the case "
    "of "
    "one radius with widths 0.)",
    "- M. Joseph and A. Yu. Some constructions of private, efficient, and optimal K-norm and elliptic "
    "Gaussian noise. COLT 2024. (Samplers for K-norms of sums, counts and votes; no widths.)",
    "- J. Melbourne, M. Diaz and S. Asoodeh. arXiv 2601.14597, 2026. (Where the error is monotone in the "
    "norm "
    "of what a record moves, a staircase in that norm is optimal among additive mechanisms. A workload "
    "weighs directions differently, which is what widths are for.)",
    "- R. McKenna, G. Miklau, M. Hay and A. Machanavajjhala. Optimizing error of high-dimensional "
    "statistical "
    "queries under differential privacy. Journal of Privacy and Confidentiality, 2023. (HDMM.)",
    "",
    "We know of no earlier description of walks or of one radius with widths. That rests on a search of the "
    "literature, which can miss something.",
    "",
]
