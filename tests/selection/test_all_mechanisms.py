"""Every mechanism keeps its contract; those of other papers are least squares of their dense matrices."""

import math
from typing import Any, cast

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE, NOISES
from matrixdp.papers import matrix_mechanism, matrix_programs
from matrixdp.selection.auto import select
from matrixdp.selection.mechanisms.table import MECHANISMS, OF_OTHERS, Mechanism
from matrixdp.testing import check_mechanism, dense_measurement, dense_queries

DOMAIN = mdp.Domain({"a": range(7), "b": range(4), "unasked": 2})
#: One product whose factors are not symmetric, and a workload that does not factor.
PRODUCT = mdp.Workload(DOMAIN, mdp.product(a="prefix", b="range", weight=2.0))
MIXED = mdp.Workload(
    DOMAIN, mdp.product(a="prefix", b="identity"), mdp.product(b="range"), mdp.product(a="range", weight=3.0)
)
#: Fewer dimensions than cells.
LOW_RANK = mdp.Workload(DOMAIN, mdp.product(a={"ranges": [[0, 6], [0, 2]]}, b="prefix"))
MARGINALS = mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2]))
WORKLOADS = {"product": PRODUCT, "mixed": MIXED, "low rank": LOW_RANK, "marginals": MARGINALS}
MARGINALS_ALONE = ("datacube", "residualplanner")
CASES = [
    (name, noise, kind)
    for name in OF_OTHERS
    for noise in (GAUSSIAN, LAPLACE)
    if noise.norm in cast("Mechanism[Any]", MECHANISMS[name]).norms
    for kind in WORKLOADS
    if name != "residualplanner-plus"  # its parts are reconstructed one by one, not by least squares
    if not (name in MARGINALS_ALONE and kind != "marginals")
    if not (name == "fourier-thresholds" and kind in ("mixed", "marginals"))  # unions of products
    if not (name in ("hb", "quadtree") and kind == "marginals")  # it asks about three attributes
    if not (name.startswith("min-") and kind in ("mixed", "marginals"))  # more cells than the programs take
    if not (name == "min-sensitivity" and kind == "low rank")  # no error profile
]


@pytest.fixture(autouse=True)
def _short_searches(monkeypatch):
    """What a strategy costs and how it errs is the same after a few steps of a search as after many."""
    monkeypatch.setattr(matrix_programs, "_PROGRAMS", 2)
    monkeypatch.setattr(matrix_mechanism, "_ROTATIONS", 200)


@pytest.mark.parametrize(("name", "noise", "kind"), CASES)
def test_error_and_cost_are_those_of_the_dense_matrix(name, noise, kind):
    workload = WORKLOADS[kind]
    selection = select(workload, mechanism=name, noise=noise)
    plan, certificate = selection.plan, selection.certificate
    rows = np.vstack([dense_measurement(part, DOMAIN) / math.sqrt(part.variance) for part in plan.parts])
    queries = np.vstack([math.sqrt(group.weight) * dense_queries(group, DOMAIN) for group in workload])
    lift = queries @ np.linalg.pinv(rows, rcond=1e-11)
    assert np.allclose(lift @ rows, queries, atol=1e-7 * np.abs(queries).max())
    analysis = plan.analysis
    found = sum(analysis.group(group).weighted for group in workload)
    assert found == pytest.approx(float((lift**2).sum()), rel=1e-7)
    # measured matrices are integers near the strategy
    assert certificate.loss == pytest.approx(found, rel=5e-3)
    assert certificate.lower_bound is None or certificate.lower_bound <= found * (1 + 1e-9)
    cost = (rows**2).sum(axis=0).max() if noise == GAUSSIAN else math.sqrt(2) * np.abs(rows).sum(axis=0).max()
    assert plan.cost == pytest.approx(1.0)
    assert cost == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_keep_their_contract(name, noise):
    check_mechanism(name, noise)
