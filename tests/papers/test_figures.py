"""The baselines against published figures."""

import math

import numpy as np
import pytest
from losses import identity_error, unreconstructed_error

import matrixdp as mdp
from matrixdp.exact import GridTree
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.selection.mechanisms.trials import Trials
from matrixdp.selection.selection import Certificate
from matrixdp.testing import dense_queries

MU = {LAPLACE: 1.0, GAUSSIAN: 0.236704}  # epsilon = 1; (epsilon, delta) = (1, 1e-6)
FIXED = ("identity", "hierarchical", "wavelet", "hb", "greedy-h")
#: McKenna et al. 2018, journal version, Tables 4 and 5.
PRINTED = {
    (LAPLACE, "range", 64): (6.63, 11.28, 10.11, 6.63, 6.34),
    (LAPLACE, "range", 256): (13.11, 16.27, 14.87, 8.90, 9.72),
    (LAPLACE, "range", 1024): (26.15, 21.83, 20.26, 12.82, 14.70),
    (LAPLACE, "prefix", 64): (8.06, 9.42, 9.37, 8.06, 6.04),
    (LAPLACE, "prefix", 256): (16.03, 13.16, 13.09, 8.97, 9.13),
    (LAPLACE, "prefix", 1024): (32.02, 17.29, 17.20, 12.87, 14.32),
    (GAUSSIAN, "range", 64): (19.82, 12.74, 11.42, 19.82, 14.64),
    (GAUSSIAN, "range", 256): (39.18, 16.20, 14.81, 18.80, 23.34),
    (GAUSSIAN, "prefix", 64): (24.08, 10.64, 10.58, 24.08, 14.04),
    (GAUSSIAN, "prefix", 256): (47.89, 13.11, 13.03, 18.95, 22.11),
}
COA = {("range", 64): 9.73, ("range", 256): 12.26, ("prefix", 64): 8.87, ("prefix", 256): 10.70}
#: As published it leaves columns short; completed it is near the optimum.
AUGMENTED = {"singular-value": {"augment": "yes"}}
CPS = mdp.Domain({"income": range(100), "age": range(50), "marital": 7, "race": 4, "sex": 2})
ALL_MARGINALS = mdp.Workload(CPS, mdp.marginals([0, 1, 2, 3, 4, 5]))


def one_attribute(kind: str, size: int) -> mdp.Workload:
    return mdp.Workload(mdp.Domain({"a": range(size)}), mdp.product(a=kind))


def certificate(name: str, workload: mdp.Workload, noise: Noise, **options: str) -> Certificate:
    return Trials(workload, noise, options).choose(name)[1]


def rmse(loss: float, workload: mdp.Workload, noise: Noise) -> float:
    return (loss / workload.queries) ** 0.5 / MU[noise]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] if case[2] == 1024 else []) for case in PRINTED],
    ids=str,
)
def test_fixed_strategies_have_the_printed_digits(case):
    noise, kind, size = case
    workload = one_attribute(kind, size)
    # 13.115 is printed as 13.11
    for name, printed in zip(FIXED, PRINTED[case], strict=True):
        assert abs(rmse(certificate(name, workload, noise).loss, workload, noise) - printed) < 0.0051, name


@pytest.mark.parametrize("case", COA, ids=str)
def test_coa_is_no_worse_than_printed(case):
    workload = one_attribute(*case)
    assert rmse(certificate("coa", workload, GAUSSIAN).loss, workload, GAUSSIAN) < COA[case] + 0.005


@pytest.mark.parametrize("kind", ["range", "prefix"])
def test_searches_in_the_l2_norm_come_near_the_optimum(kind):
    workload = one_attribute(kind, 32)
    optimum = certificate("l2-approximation", workload, GAUSSIAN)
    assert optimum.loss < optimum.lower_bound * (1 + 1e-5)
    for name, ratio in (
        ("coa", 1.001),
        ("exponential-smoothing", 1.01),
        ("low-rank", 1.01),
        ("singular-value", 1.2),
        ("eigen-query", 1.5),
    ):
        loss = certificate(name, workload, GAUSSIAN, **AUGMENTED.get(name, {})).loss
        assert optimum.lower_bound * (1 - 1e-9) <= loss <= optimum.lower_bound * ratio, name


def test_rotation_lowers_the_l1_norm():
    workload = one_attribute("prefix", 8)
    rotated, plain = (certificate(name, workload, LAPLACE).loss for name in ("rotation", "l2-approximation"))
    assert rotated < plain


def test_a_quadtree_has_its_levels():
    workload = mdp.Workload(mdp.Domain({"a": 4, "b": 4}), mdp.product(a="range", b="range"))
    alike = Trials(workload, LAPLACE, {"budgets": "uniform"}).choose("quadtree")[0]
    assert alike.parts[0].sensitivity == 3
    tree = Trials(workload, LAPLACE, {}).choose("quadtree")[0].parts[0].blocks[0].matrix
    assert isinstance(tree, GridTree)
    assert [share / tree.weights[0] for share in tree.weights] == pytest.approx(
        [1, 2 ** (1 / 3), 2 ** (2 / 3)], rel=1e-4
    )


@pytest.mark.parametrize(
    ("kinds", "identity", "hb", "quadtree"),
    [
        ([("prefix", "identity"), ("identity", "prefix")], 1.44, 4.05, 4.71),
        ([("prefix", "prefix")], 4.75, 2.03, 1.95),
    ],
)
def test_trees_over_a_grid(kinds, identity, hb, quadtree):
    """McKenna et al. 2018 (PVLDB), Table 3, relative to HDMM; trees were simulated there."""
    domain = mdp.Domain({"a": range(256), "b": range(256)})
    workload = mdp.Workload(domain, *[mdp.product(a=one, b=other) for one, other in kinds])
    unit = math.sqrt(certificate("identity", workload, LAPLACE).loss) / identity
    for name, printed in (("hb", hb), ("quadtree", quadtree)):
        found = math.sqrt(certificate(name, workload, LAPLACE).loss) / unit
        assert found == pytest.approx(printed, rel=0.015)


def test_noise_on_two_way_marginals():
    """McKenna et al. 2018, Table 3."""
    domain = mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100})
    assert round(certificate("workload", mdp.Workload(domain, mdp.marginals(2)), LAPLACE).loss / 2) == 206964


def test_noise_on_the_queries_themselves():
    for noise, printed in ((LAPLACE, 45.25), (GAUSSIAN, 23.90)):
        assert abs(rmse(unreconstructed_error(ALL_MARGINALS, noise), ALL_MARGINALS, noise) - printed) < 0.005
        assert certificate("workload", ALL_MARGINALS, noise).loss < unreconstructed_error(
            ALL_MARGINALS, noise
        )


def test_noise_on_prefix_marginals():
    entries = [
        mdp.product(
            {"income": "prefix", "age": "prefix"}
            | {name: "identity" for place, name in enumerate(("marital", "race", "sex")) if mask >> place & 1}
        )
        for mask in range(8)
    ]
    workload = mdp.Workload(CPS, *entries)
    for noise, printed in ((LAPLACE, 56568.54), (GAUSSIAN, 844.94)):
        found = rmse(unreconstructed_error(workload, noise), workload, noise)
        assert abs(found / printed - 1) < 1e-5
    assert abs(rmse(certificate("identity", workload, LAPLACE).loss, workload, LAPLACE) - 98.06) < 0.005
    assert abs(rmse(certificate("identity", workload, GAUSSIAN).loss, workload, GAUSSIAN) - 292.93) < 0.01


def marginals_of(numeric: list[int], categorical: list[int], how: str, ways: list[int]) -> mdp.Workload:
    forms: dict[str, object] = {f"c{i}": [str(v) for v in range(n)] for i, n in enumerate(categorical)}
    domain = mdp.Domain(forms | {f"x{i}": range(n) for i, n in enumerate(numeric)})
    return mdp.Workload(domain, mdp.kway(ways, {"categorical": "identity", "numeric": how}))


@pytest.mark.parametrize(
    ("how", "ways", "laplace", "gaussian"),
    [
        ("identity", [0, 1, 2, 3], (5352117.26, 664.68), (15988375.02, 91.59)),
        ("prefix", [2], (475602516.60, 138602.83), (1420766966.19, 1322.58)),
    ],
)
def test_baselines_on_tables_too_large_to_be_counted(how, ways, laplace, gaussian):
    """McKenna et al., journal version, Tables 6 and 7: Adult, 14 attributes."""
    workload = marginals_of([100, 100, 100, 99, 85], [42, 16, 15, 9, 7, 6, 5, 2, 2], how, ways)
    for noise, (cells, queries) in ((LAPLACE, laplace), (GAUSSIAN, gaussian)):
        assert rmse(identity_error(workload, noise), workload, noise) == pytest.approx(cells, rel=5e-6)
        assert rmse(unreconstructed_error(workload, noise), workload, noise) == pytest.approx(
            queries, rel=1e-4
        )


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_the_sensitivity_of_queries_is_the_largest_of_all_cells(noise):
    domain = mdp.Domain({"a": range(5), "b": range(4), "c": range(3)})
    entries = [
        mdp.product(a="prefix", b="range"),
        mdp.product(a={"permuted": "prefix", "seed": 1}),
        mdp.product(b={"permuted": "prefix", "seed": 2}, c="identity"),
        mdp.dense(np.array([[0.0, -3.0, 1.0]]), ["c"]),
    ]
    for some in (entries, entries[:3]):
        workload = mdp.Workload(domain, *some)
        rows = np.vstack([dense_queries(group, domain) for group in workload])
        expected = noise.variance_factor * len(rows) * float(noise.column_norms(rows).max()) ** 2
        assert unreconstructed_error(workload, noise) == pytest.approx(expected)
