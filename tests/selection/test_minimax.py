"""The objective ``max``: certified on small tables, and never worse than the sum."""

from collections.abc import Hashable

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from matrixdp.selection.compose.weight_vectors import FEW_EVALUATIONS, Objective, optimized_weights
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.problem.residuals import split_workload
from tests.limits import Override


def largest(workload, selection):
    values = []
    for group in workload:
        variances = selection.analysis.variances(group) * group.weight
        values.append(variances if group.query_weights is None else variances * group.query_weights)
    return float(np.concatenate(values).max())


@pytest.mark.parametrize(
    "entries",
    [
        [mdp.product(a="prefix")],
        [mdp.product(a="range", b="prefix")],
        [mdp.kway([1, 2], "prefix")],
        [mdp.product(a="prefix", weight=4.0), mdp.marginals(1)],
        [mdp.dense(np.tri(24)[::3], ["a", "b"], weights=np.arange(1.0, 9.0))],
    ],
)
def test_the_largest_variance_is_certified(entries):
    workload = mdp.Workload(mdp.Domain({"a": 8, "b": 3}), *entries)
    selection = select(workload, mechanism="dense", objective="max", noise=GAUSSIAN)
    assert selection.objective == "max"
    assert selection.certificate.gap < 0.02
    assert largest(workload, selection) == pytest.approx(selection.certificate.loss, rel=1e-9)
    by_sum = select(workload, mechanism="dense", noise=GAUSSIAN)
    assert largest(workload, selection) <= largest(workload, by_sum) * (1 + 1e-9)
    # the bound is one: the strategy for the sum is not below it either
    assert largest(workload, by_sum) >= selection.certificate.lower_bound * (1 - 1e-9)


def test_prefixes_of_two_values():
    """Two prefixes of two cells: measured directly, each with variance 2; no strategy does better."""
    workload = mdp.Workload(mdp.Domain({"a": 2}), mdp.product(a="identity"))
    selection = select(workload, objective="max", noise=GAUSSIAN)
    assert selection.max_variance == pytest.approx(1.0)
    assert selection.certificate.lower_bound == pytest.approx(1.0)


@pytest.mark.parametrize(("mechanism", "noise"), [("residual", GAUSSIAN), ("opt-plus", LAPLACE)])
def test_other_mechanisms_are_balanced_too(mechanism, noise):
    domain = mdp.Domain({"a": 8, "c": ["x", "y", "z"]})
    workload = mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix"}))
    by_sum = select(workload, mechanism=mechanism, noise=noise)
    balanced = select(workload, mechanism=mechanism, noise=noise, objective="max")
    # searches under Laplace noise are few and start where the sum ends
    assert balanced.max_variance <= by_sum.max_variance * (0.97 if noise == GAUSSIAN else 1 + 1e-9)
    assert balanced.plan.cost == pytest.approx(1.0)


def test_the_objective_is_saved(tmp_path):
    workload = mdp.Workload(mdp.Domain({"a": 6}), mdp.product(a="prefix"))
    strategy = mdp.select(workload, objective="max")
    strategy.save(tmp_path / "s.mdp")
    assert mdp.Strategy.load(tmp_path / "s.mdp").selection.objective == "max"


def test_disjunctions_of_many_cells_are_weighted_by_products(
    monkeypatch: pytest.MonkeyPatch, limits: Override
) -> None:
    limits(written_entries=100)
    monkeypatch.setattr("matrixdp.queries.predicates.MAX_EXPLICIT_ENTRIES", 150)  # never written out
    domain = mdp.Domain({"a": 5, "b": 3, "c": 2})
    asked = mdp.disjunction(c="identity", a="prefix", by={"b": "identity"}, weights=np.repeat([1.0, 2.0], 15))
    workload = mdp.Workload(domain, asked)
    largest = {}
    for objective in ("sum", "max"):
        selection = select(workload, noise=GAUSSIAN, mechanism="opt-kron", objective=objective)
        [group] = workload.groups
        assert group.query_weights is not None
        variances = selection.plan.analysis.variances(group) * group.query_weights
        largest[objective] = float(variances.max())
    assert selection.certificate.loss == pytest.approx(largest["max"])
    assert largest["max"] < 0.99 * largest["sum"]


def test_few_reweightings_balance_queries_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variances that fall with the roots of weights are even after as many steps as it takes to see it."""
    monkeypatch.setattr("matrixdp.selection.auto._BALANCING_STEPS", {2: 6})
    workload = mdp.Workload(mdp.Domain({"a": 8, "b": 3, "c": 5}), mdp.marginals([0, 1, 2]))
    assert select(workload, mechanism="residual", objective="max", noise=GAUSSIAN).certificate.gap < 1e-3


def test_the_optimum_starts_from_the_dual_point_of_the_last_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def counted(gram, sizes, gap, start):
        starts.append(start is not None)
        return solve_gram(gram, sizes, gap, start)

    monkeypatch.setattr("matrixdp.selection.compose.whole_table.solve_gram", counted)
    workload = mdp.Workload(mdp.Domain({"a": 8}), mdp.product(a="prefix"))
    select(workload, mechanism="dense", objective="max", noise=GAUSSIAN)
    assert starts == [False] + [True] * (len(starts) - 1)
    assert len(starts) > 2


def test_a_search_for_other_weights_starts_where_the_last_one_ended():
    """It ends as low in fewer evaluations, and only for queries of the same form."""
    domain = mdp.Domain({"a": 12, "b": 2})
    splits = [
        split_workload(mdp.Workload(domain, mdp.product(a="prefix", weight=weight), mdp.marginals([1, 2])))
        for weight in (1.0, 1.5)
    ]
    known: dict[Hashable, list[np.ndarray]] = {}
    counts: list[int] = []
    optimized_weights(splits[0], known=known)
    assert len(known) == 1
    again = optimized_weights(splits[1], lambda evaluations, _: counts.append(evaluations), known=known)
    assert counts[-1] <= FEW_EVALUATIONS + 2
    ours, cold = (Objective(splits[1])(w)[0] for w in (again, optimized_weights(splits[1])))
    assert ours <= cold * (1 + 1e-5)
    other = split_workload(mdp.Workload(domain, mdp.product(a="prefix", b="identity")))
    optimized_weights(other, known=known)
    assert len(known) == 2


def test_no_search_starts_at_uniform_weights():
    """They may be a kink."""
    known: dict[Hashable, list[np.ndarray]] = {}
    rows = np.vstack([np.eye(6), np.eye(6)[[1, 2, 3, 4, 5, 0]] + np.eye(6)])  # alike for every value
    split = split_workload(mdp.Workload(mdp.Domain({"a": 6}), mdp.product(a={"matrix": rows})))
    found = optimized_weights(split, known=known)
    assert np.allclose(found[0], 1 / 6)
    assert not known
