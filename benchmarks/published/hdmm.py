"""HDMM, the journal version: Tables 3 to 7."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from cells import APART, AS_ASKED, ONE_COVER
from schemas import adult, cps, loans, small_products, two_way_kinds
from workload_families import all_marginals, permuted_ranges, width_ranges

import matrixdp as mdp
from matrixdp.language import ProductEntry
from published.tables import BOUND, NOT_RUN, Column, Omitted, Paper, Row, Table, figures

__all__ = ["PAPER", "sf1", "sf1_plus"]

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


#: What is asked of one attribute, and what it is called.
_KINDS: dict[str, tuple[str, Callable[[], ProductEntry]]] = {
    "range": ("all ranges", lambda: mdp.product(a="range")),
    "prefix": ("prefix", lambda: mdp.product(a="prefix")),
    "width": ("ranges of width 32", lambda: width_ranges("a", 32)),
    "permuted": ("permuted ranges", lambda: permuted_ranges("a", 0)),
}


def _one(kind: str, size: int) -> Callable[[], mdp.Workload]:
    return lambda: mdp.Workload(mdp.Domain({"a": range(size)}), _KINDS[kind][1]())


def _one_rows(printed: dict[tuple[str, int], str]) -> tuple[Row, ...]:
    return tuple(
        Row(
            f"{_KINDS[kind][0]}, n = {size:,}",
            _one(kind, size),
            figures(text),
            tuple(column.title for column in _TREES[1:]) if kind == "permuted" else (),
        )
        for (kind, size), text in printed.items()
    )


def _cps(numeric: Literal["identity", "prefix"]) -> mdp.Workload:
    return mdp.Workload(cps(), all_marginals(cps(), numeric))


def _all() -> mdp.Workload:
    return _cps("identity")


def _prefixes() -> mdp.Workload:
    return _cps("prefix")


def sf1() -> mdp.Workload:
    """Return SF1."""
    return mdp.load_specification(EXAMPLES / "sf1.yaml").workload


def sf1_plus() -> mdp.Workload:
    """Return SF1+."""
    return mdp.load_specification(EXAMPLES / "sf1plus.yaml").workload


def _adult() -> mdp.Workload:
    return mdp.Workload(adult(), mdp.marginals([0, 1, 2, 3]))


def _adult_prefixes() -> mdp.Workload:
    return two_way_kinds(adult(), "prefix")


def _loans() -> mdp.Workload:
    return small_products(loans(), "identity")


def _loans_prefixes() -> mdp.Workload:
    return small_products(loans(), "prefix")


def _two_way() -> mdp.Workload:
    return mdp.Workload(mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100}), mdp.marginals(2))


def _cross() -> mdp.Workload:
    domain = mdp.Domain({"a": range(100), "b": range(100)})
    return mdp.Workload(domain, mdp.product(a="prefix"), mdp.product(b="prefix"))


def _several_rows(*printed: str) -> tuple[Row, ...]:
    return tuple(Row(*own, figures(text)) for own, text in zip(_WORKLOADS, printed, strict=True))


_TREES = (
    Column("Identity", "identity"),
    Column("H2", "hierarchical"),
    Column("Wavelet", "wavelet"),
    Column("HB", "hb"),
    Column("GreedyH", "greedy-h"),
)
_SEVERAL = (
    Column("Identity", "identity"),
    Column("Workload", AS_ASKED),
    Column("OPT_kron", "opt-kron"),
    Column("OPT_plus", APART),
    Column("OPT_M", "opt-m"),
    Column("DataCube", ONE_COVER),
    Column(BOUND, BOUND),
)
#: The rows of tables 6 and 7.
_WORKLOADS: tuple[tuple[str, Callable[[], mdp.Workload]], ...] = (
    ("SF1", sf1),
    ("SF1+", sf1_plus),
    ("CPS, all marginals", _all),
    ("CPS, all prefix-marginals", _prefixes),
    ("Adult, up to 3-way marginals", _adult),
    ("Adult, 2-way prefix-marginals", _adult_prefixes),
    ("Loans, small marginals", _loans),
    ("Loans, small prefix-marginals", _loans_prefixes),
)
_SF1_NOTE = (
    "*Workload* is noise on the queries as they are, without least squares. On SF1 the published figure "
    "adds up the sensitivities of all 33 products (50); one person is in at most 41 of the queries: ours. "
    "*DataCube* is one greedy cover of the asked marginals by sums of at most as many cells as marginals are "
    "asked, which is what these figures are; `datacube` bounds the largest variance, as published by its "
    "authors. *OPT_plus* is a product for each group, answered from it alone, as published; `opt-plus` "
    "merges groups and takes least squares. On Adult and Loans the errors of noise on cells and of OPT_kron "
    "are computed: their tables of over 10^15 cells cannot be measured."
)
_PLUS_NOTE = (
    " The printed figures of OPT_plus on Loans, and on Adult's prefix-marginals, are below what definition "
    "19 admits, and that on Adult's marginals above it. Of marginals the optimum of each product is noise "
    "on its cells, so that the best split has a closed form: 300.95 on Adult and 211.36 on Loans, which "
    "are ours and those behind Table 7's 899.04 and 631.40; printed are 306.33 and 204.17. With answers "
    "averaged where several products determine a query they would be 290.06 and 183.92. The 484.07 and "
    "485.67 of prefix-marginals would need prefixes of 100 values with errors of 5.73 and 5.67, where "
    "ours have 5.90 and Table 4, between its n = 64 and 256, has 5.97. OPT_kron's 1119.16 is not "
    "explained: 40 random starts of the alternation end between 1,202 and 1,236, 12 with p = n / 16 "
    "between 1,215 and 1,296."
)
_SPLIT_NOTE = (
    " The printed figures of OPT_plus under Gaussian noise are those of the split of the privacy cost for "
    "L1 norms: on Adult's marginals our error under Laplace noise, 300.95, over the square root of 2 and "
    "times the standard deviation of Gaussian noise, 4.2247, is the printed 899.04, and on Loans' 631.41 for "
    "631.40. With products of ours for the other rows of several products that split comes to 69.68 (SF1), "
    "77.41 (SF1+), 628.63 and 985.81 (prefix-marginals), 1% to 8% below what is printed. Ours has the split "
    "of definition 19."
)
_PERMUTED_NOTE = (
    "Permuted ranges have an order of their own in ours, so that trees over the values have other errors "
    "than those that are printed for one random order, and are counted nowhere; noise on cells, OPT_0 and "
    "the bound do not depend on it."
)
_LARGE_NOTE = (
    "Ours are errors of the strategies before rounding, without a plan: of trees by the inverse of their "
    "Gram matrix. " + _PERMUTED_NOTE
)
_LARGE_COA_NOTE = (
    " `opt-0` is the certified optimum, to a gap of 10^-6 in the squared error; the bound is that of the "
    "singular values alone. Permuted ranges have the optimum of all ranges, for which 17.46 is printed and "
    "certified; 17.45, printed for them, is below what any strategy can have. "
    "COA is not run: its time grows with the cube of n, to 64 times what it takes "
    "for n = 1,024; a step of it is timed on [COA's own page](coa.md)."
)
_LARGE_OPT_0_NOTE = (
    " OPT_0 starts from trees over the values with about n / 16 and n / 32 nodes, follows the better one "
    "and takes its products with the workload by sums along the order of the values."
)
_HDMM_COLUMN = Omitted(
    "the column HDMM", "the least of OPT_kron, OPT_plus and OPT_M, beside which ours stand"
)
_PURE, _APPROXIMATE = mdp.Budget(epsilon=1), mdp.Budget(epsilon=1, delta=1e-6)

_TABLES: tuple[Table, ...] = (
    Table(
        "table-4",
        "Table 4: one attribute, Laplace noise, epsilon = 1",
        "laplace",
        _PURE,
        (*_TREES, Column("LRM", "low-rank"), Column("OPT_0", "opt-0"), Column(BOUND, BOUND)),
        _one_rows(
            {
                ("range", 64): "6.63 11.28 10.11 6.63 6.34 7.02 5.55 3.22",
                ("range", 256): "13.11 16.27 14.87 8.90 9.72 15.73 8.07 4.07",
                ("range", 1024): "26.15 21.83 20.26 12.82 14.70 - 11.08 4.94",
                ("prefix", 64): "8.06 9.42 9.37 8.06 6.04 7.67 5.32 2.89",
                ("prefix", 256): "16.03 13.16 13.09 8.97 9.13 12.64 7.35 3.50",
                ("prefix", 1024): "32.02 17.29 17.20 12.87 14.32 15.43 9.58 4.11",
                ("width", 64): "8.00 12.02 11.09 8.00 7.32 9.44 5.88 2.75",
                ("width", 256): "8.00 15.50 13.57 7.41 8.00 25.81 6.34 3.26",
                ("width", 1024): "8.00 18.98 16.56 9.50 8.00 16.98 6.41 3.36",
                ("permuted", 64): "6.63 25.02 18.97 6.63 6.83 7.02 5.55 3.22",
                ("permuted", 256): "13.11 66.25 49.09 18.48 13.02 15.73 8.06 4.07",
                ("permuted", 1024): "26.15 157.50 117.06 37.07 23.94 - 11.08 4.94",
            }
        ),
        reference="opt-0",
        more=("walk", "auto"),
        limit=60,
        limits={"low-rank": 25},
        note=_PERMUTED_NOTE,
    ),
    Table(
        "table-4-large",
        "Table 4, n = 4,096: one attribute, Laplace noise, epsilon = 1",
        "laplace",
        _PURE,
        (*_TREES, Column("OPT_0", "opt-0"), Column(BOUND, BOUND)),
        _one_rows(
            {
                ("range", 4096): "52.27 27.90 26.18 16.19 22.21 14.38 5.82",
                ("prefix", 4096): "64.01 21.77 21.67 14.91 22.40 12.20 4.74",
                ("width", 4096): "8.00 22.45 19.58 10.96 8.00 6.46 3.38",
                ("permuted", 4096): "52.27 374.29 277.42 107.83 45.77 14.37 5.82",
            }
        ),
        reference="opt-0",
        more=("walk",),
        plans=False,
        limit=200,
        note=_LARGE_NOTE + _LARGE_OPT_0_NOTE,
    ),
    Table(
        "table-5",
        "Table 5: one attribute, Gaussian noise, (epsilon, delta) = (1, 1e-6)",
        "gaussian",
        _APPROXIMATE,
        (*_TREES, Column("COA", "coa"), Column("OPT_0", "opt-0"), Column(BOUND, BOUND)),
        _one_rows(
            {
                ("range", 64): "19.82 12.74 11.42 19.82 14.64 9.73 9.73 9.62",
                ("range", 256): "39.18 16.20 14.81 18.80 23.34 12.26 12.26 12.15",
                ("range", 1024): "78.13 19.66 18.24 27.07 36.20 14.89 14.85 14.75",
                ("prefix", 64): "24.08 10.64 10.58 24.08 14.04 8.87 8.87 8.62",
                ("prefix", 256): "47.89 13.11 13.03 18.95 22.11 10.70 10.66 10.44",
                ("prefix", 1024): "95.64 15.57 15.49 27.18 35.59 16.29 12.49 12.29",
                ("width", 64): "23.90 13.57 12.52 23.90 17.30 8.79 8.74 8.23",
                ("width", 256): "23.90 15.44 13.52 15.65 23.90 12.24 9.93 9.73",
                ("width", 1024): "23.90 17.10 14.92 20.08 23.90 16.00 10.08 10.02",
                ("permuted", 64): "19.82 28.26 21.42 19.82 16.13 9.73 9.73 9.62",
                ("permuted", 256): "39.18 65.97 48.88 39.04 35.22 12.26 12.26 12.15",
                ("permuted", 1024): "78.13 141.86 105.44 78.30 60.60 14.89 14.85 14.75",
            }
        ),
        reference="dense",
        more=("dense",),
        limit=60,
        note="`dense` is the certified optimum over all Gaussian strategies, `opt-0` the same problem. "
        + _PERMUTED_NOTE,
        limits={"coa": 30},
    ),
    Table(
        "table-5-large",
        "Table 5, n = 4,096: one attribute, Gaussian noise, (epsilon, delta) = (1, 1e-6)",
        "gaussian",
        _APPROXIMATE,
        (*_TREES, Column("COA", NOT_RUN), Column("OPT_0", "opt-0"), Column(BOUND, BOUND)),
        _one_rows(
            {
                ("range", 4096): "156.14 23.12 21.69 27.92 56.21 17.92 17.46 17.38",
                ("prefix", 4096): "191.21 18.03 17.95 25.72 56.70 26.50 14.32 14.15",
                ("width", 4096): "23.90 18.60 16.22 18.90 23.90 18.38 10.11 10.09",
                ("permuted", 4096): "156.14 310.11 229.85 185.98 118.03 17.92 17.45 17.38",
            }
        ),
        reference="opt-0",
        plans=False,
        limit=400,
        note=_LARGE_NOTE + _LARGE_COA_NOTE,
    ),
    Table(
        "table-6",
        "Table 6: several attributes, Laplace noise, epsilon = 1",
        "laplace",
        _PURE,
        _SEVERAL,
        _several_rows(
            "23.20 70.71 7.30 30.55 9.56 - -",
            "32.50 141.42 10.23 42.31 12.88 - -",
            "5.38 45.25 4.85 4.85 4.84 18.49 2.63",
            "98.06 56568.54 40.59 40.59 69.38 - 9.32",
            "5352117.26 664.68 872.58 306.33 225.35 494.06 15.08",
            "475602516.60 138602.83 1119.16 484.07 553.56 - -",
            "3330650.46 265.87 654.35 204.17 100.92 113.98 11.61",
            "15340082.96 11013.90 1707.67 485.67 288.29 - -",
        ),
        reference="opt-kron",
        more=("datacube", "opt-plus", "generalized-marginals", "walk", "walk-marginals", "radius", "auto"),
        limit=30,
        note=_SF1_NOTE + _PLUS_NOTE,
        omitted=(_HDMM_COLUMN,),
    ),
    Table(
        "table-7",
        "Table 7: several attributes, Gaussian noise, (epsilon, delta) = (1, 1e-6)",
        "gaussian",
        _APPROXIMATE,
        _SEVERAL,
        _several_rows(
            "69.33 29.87 9.80 75.66 14.31 - -",
            "97.08 42.25 10.90 84.16 15.88 - -",
            "16.08 23.90 7.85 7.85 7.86 19.53 7.85",
            "292.93 844.94 29.48 29.49 104.09 - 27.85",
            "15988375.02 91.59 82.42 899.04 46.44 77.36 45.06",
            "1420766966.19 1322.58 126.17 639.43 296.12 - -",
            "9949649.11 57.92 81.51 631.40 34.91 37.37 34.67",
            "45825415.90 372.83 132.43 994.04 99.72 - -",
        ),
        reference="opt-kron",
        more=("datacube", "opt-plus", "residual"),
        limit=30,
        note=_SF1_NOTE + _SPLIT_NOTE,
        omitted=(_HDMM_COLUMN,),
    ),
    Table(
        "table-3",
        "Table 3 and example 13: total squared error with Laplace noise of scale 1",
        "laplace",
        _PURE,
        (
            Column("Identity", "identity"),
            Column("Workload", "workload"),
            Column("OPT_kron", "opt-kron"),
            Column("OPT_plus", APART),
            Column("OPT_M", "opt-m"),
        ),
        (
            Row(
                "all 2-way marginals on (2, 5, 50, 100)",
                _two_way,
                figures("300,000 206,964 213,270 85,070 62,886"),
            ),
            Row("prefix x total and total x prefix on 100 x 100", _cross, figures("- - 33385 14252 -")),
        ),
        reference="opt-kron",
        more=("opt-plus", "walk", "walk-marginals", "radius", "auto"),
        total=True,
        note="Here noise on the workload is with least squares.",
    ),
)

PAPER = Paper(
    "hdmm",
    "HDMM, the journal version",
    "R. McKenna, G. Miklau, M. Hay and A. Machanavajjhala. Optimizing error of high-dimensional statistical "
    "queries under differential privacy. Journal of Privacy and Confidentiality, 2023.",
    _TABLES,
    (
        Omitted("Tables 1 and 2", "notation and complexities; no figures"),
        Omitted("Figure 1", "a picture of three strategies; `select --picture` draws one"),
        Omitted("Figures 2 and 3", "curves of seconds, without figures in the text; see scaling"),
    ),
)
