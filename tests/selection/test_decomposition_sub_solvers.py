"""Sub-solvers for sub-workloads that do not factor."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN
from matrixdp.papers.fourier import Characters
from matrixdp.papers.residual_planner import GivenBases, own_bases
from matrixdp.selection.compose import sub_solver as subproblem
from matrixdp.selection.compose.decomposition import (
    select_by_decomposition,
    solve_classes,
    sub_solver_for,
)
from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.gram import dual, solve_gram
from matrixdp.selection.problem.residuals import Pieces, split_workload
from tests.limits import Override

PAIR = mdp.Domain({"a": 9, "b": 6})
MIXED = mdp.Workload(PAIR, mdp.kway(2, "prefix"), mdp.marginals(2), mdp.pairwise("affine"))


def constructed(workload, sub_solver):
    """The arguments for a sub-solver, or for the construction of a paper by that name."""
    constructions = {
        "fourier": Characters,
        "fixed": lambda: GivenBases(own_bases(split_workload(workload), 1e-6)),
    }
    if sub_solver in constructions:
        return {"construction": constructions[sub_solver]()}
    return {"sub_solver": sub_solver}


def _weighted(plan, workload):
    analysis = plan.analysis
    return math.fsum(analysis.group(group).weighted for group in workload)


@pytest.mark.parametrize("sub_solver", [*subproblem.SUB_SOLVERS, "fourier", "fixed"])
def test_every_sub_solver_does_what_it_says(sub_solver):
    own = constructed(MIXED, sub_solver)
    plan, certificate = select_by_decomposition(MIXED, GAUSSIAN, "querysmasher", 1e-6, **own)
    assert plan.cost == pytest.approx(1.0, rel=1e-9)
    assert _weighted(plan, MIXED) == pytest.approx(certificate.loss, rel=2e-3)
    best = select_by_decomposition(MIXED, GAUSSIAN, "querysmasher", 1e-6, sub_solver="optimum")[1].loss
    assert certificate.loss >= best * (1 - 1e-5)
    if sub_solver == "fast":
        assert certificate.loss <= best * 1.01
    if sub_solver in ("auto", "optimum", "fast"):
        assert "instead" not in certificate.scope
        return
    assert f"{sub_solver} instead of the optimum on" in certificate.scope
    # what is said to be lost covers what is lost
    said = float(certificate.scope.split("at most ")[1].split("%")[0])
    assert math.sqrt(certificate.loss / best) - 1 <= said / 100 * 1.06 + 1e-9


@pytest.mark.parametrize("sub_solver", ["optimum", "product", "fourier"])
def test_the_same_queries_about_other_attributes_are_solved_once(monkeypatch, sub_solver):
    """With whatever weights: the strategies are the same, and the losses those of each alone."""
    domain = mdp.Domain({"a": 3, "b": 3, "c": 3, "d": 3})
    rows = np.random.default_rng(0).integers(0, 2, (20, 9)).astype(float)
    weights = {("a", "b"): 1.0, ("b", "c"): 2.0, ("c", "d"): 5.0}
    workload = mdp.Workload(domain, *(mdp.dense(rows, names, weight=w) for names, w in weights.items()))
    split = split_workload(workload)
    assert len({id(item.content) for item in split.explicit}) == 1
    uniform = [np.full(size, 1.0 / size) for size in split.sizes]
    own = constructed(workload, sub_solver)
    solver = sub_solver_for(Pieces(split, uniform), GAUSSIAN, 1e-9, **own)
    asked = []
    jointly = SubSolver._jointly
    monkeypatch.setattr(
        SubSolver, "_jointly", lambda self, sub, *rest: asked.append(sub.sizes) or jointly(self, sub, *rest)
    )
    solved = [(sub, solution) for sub, solution in solve_classes(split, solver) if len(sub.types) == 2]
    assert asked.count((3, 3)) == 1
    found = {sub.marginals[0]: solution.loss for sub, solution in solved}
    assert found == pytest.approx({names: weight * found["a", "b"] for names, weight in weights.items()})
    centred = rows @ np.kron(np.eye(3) - 1 / 3, np.eye(3) - 1 / 3)
    best = solve_gram(centred.T @ centred, gap=1e-9).loss
    if sub_solver == "optimum":
        assert found["a", "b"] == pytest.approx(best, rel=1e-8)
    else:
        assert found["a", "b"] > best
    plan, certificate = select_by_decomposition(workload, GAUSSIAN, "querysmasher", 1e-9, **own)
    assert _weighted(plan, workload) == pytest.approx(certificate.loss, rel=2e-3)
    assert certificate.loss == pytest.approx(
        GAUSSIAN.total_loss([s.loss for _, s in solve_classes(split, solver)], [1] * 8)
    )


def test_too_large_for_the_optimum(limits: Override):
    limits(joint_cells=40)
    with pytest.raises(TooLargeError, match="54 cells"):
        select_by_decomposition(MIXED, GAUSSIAN, "querysmasher", 1e-6, sub_solver="optimum")
    losses = {
        name: select_by_decomposition(MIXED, GAUSSIAN, "querysmasher", 1e-6, sub_solver=name)[1].loss
        for name in ("auto", "product")
    }
    assert losses["auto"] == pytest.approx(losses["product"], rel=1e-9)


CROSSED = mdp.Workload(mdp.Domain({"a": 12, "b": 9}), mdp.kway(2, "prefix"), mdp.marginals(2))


def test_joint_problems_start_from_the_product_of_their_axes(monkeypatch: pytest.MonkeyPatch):
    first: list[float] = []
    look = dual._Search.look

    def looking(search, point):
        found = look(search, point)
        if len(point) == 108 and search.looks == 1:
            first.append(search.ratio)
        return found

    monkeypatch.setattr(dual._Search, "look", looking)
    select_by_decomposition(CROSSED, GAUSSIAN, "residual", 1e-6)
    assert first[0] < 1.2  # from the uniform distribution 1.95


def test_large_joint_problems_are_solved_no_nearer_than_their_bound_is(limits: Override):
    """Where values have equal weights, the bound is that of the parts: these stay as they are."""
    first, second = (
        {"matrix": [[float((j - i) % size < 3) for j in range(size)] for i in range(size)]}
        for size in (12, 9)
    )
    entries = mdp.product(a=first, b="identity"), mdp.product(a="identity", b=second)
    asked = CROSSED, mdp.Workload(CROSSED.domain, *entries)
    near = [select_by_decomposition(one, GAUSSIAN, "residual", 1e-6)[1] for one in asked]
    limits(loose_cells=100)
    far = [select_by_decomposition(one, GAUSSIAN, "residual", 1e-6)[1] for one in asked]
    assert near[0].loss < far[0].loss < near[0].loss * (1 + 1e-4)
    assert far[1].loss == pytest.approx(near[1].loss, rel=1e-9)
