"""The unit of privacy, and that every figure of a budget follows from it."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.privacy import LeastBudget, Unit
from matrixdp.strategy.strategy import meet_targets

WORKLOAD = mdp.Workload(mdp.Domain({"sex": ["female", "male"], "age": 6}), mdp.marginals([1, 2]))
UNITS = [Unit(), Unit(records=3), Unit(records=2, id="person"), Unit(id="a person's 'name'")]


@pytest.mark.parametrize("unit", UNITS)
def test_a_budget_carries_its_unit(unit):
    budget = mdp.Budget(rho=0.5, unit=unit)
    assert budget.unit == unit == Unit.of(unit.as_dict())
    assert mdp.Budget(**budget.as_dict()) == budget
    assert pickle.loads(pickle.dumps(budget)) == budget  # noqa: S301
    assert eval(repr(budget), {"Budget": mdp.Budget, "Unit": mdp.Unit}) == budget  # noqa: S307
    assert (budget == mdp.Budget(rho=0.5)) == (unit == Unit())
    with pytest.raises(FrozenInstanceError):
        unit.records = 2


def test_one_record_is_not_worth_a_word():
    assert repr(mdp.Budget(rho=0.5)) == "Budget(rho=0.5, neighbours='add_remove')"
    assert mdp.Budget(rho=0.5, unit=None).unit == Unit()
    assert mdp.Budget(rho=0.5).as_dict()["unit"] == {"records": 1}


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@given(
    st.integers(1, 2**53 - 1), st.sampled_from(["add_remove", "replace"]), st.sampled_from([None, "person"])
)
def test_costs_are_divided_by_the_records_that_move(noise, records, neighbours, name):
    budget = mdp.Budget(mu=1, neighbours=neighbours, unit=Unit(records, name))
    moved = records * (2 if neighbours == "replace" else 1)
    assert noise.cost(budget) == Cost(noise.cost(mdp.Budget(mu=1)).value / moved**noise.norm, noise)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_standard_errors_follow_the_unit(noise):
    strategy = mdp.select(WORKLOAD, noise=noise)
    one, three = mdp.Budget(rho=0.5), mdp.Budget(rho=0.5, unit=Unit(records=3))
    assert strategy.rmse(three) == pytest.approx(3 * strategy.rmse(one), rel=1e-12)
    assert strategy.max_stddev(three) == pytest.approx(3 * strategy.max_stddev(one), rel=1e-12)
    table = {"sex": ["male"] * 5, "age": [1, 2, 3, 4, 5]}
    released = [strategy.measure(table, budget).reconstruct() for budget in (one, three)]
    errors = [release.answers["stddev"].to_numpy() for release in released]
    np.testing.assert_allclose(errors[1], 3 * errors[0], rtol=1e-6)


@pytest.mark.parametrize("kind", ["rho", "mu"])
def test_targets_take_more_from_a_larger_unit(kind):
    strategy = mdp.select(WORKLOAD, targets={"all": 4.0})
    unit = Unit(records=3)
    budget = strategy.least_budget(kind, unit=unit)
    assert budget.unit == unit
    assert strategy.max_stddev(budget) <= 4.0
    least = strategy.least_budget(kind)
    ratio = float(getattr(budget, kind) / getattr(least, kind))
    assert ratio == pytest.approx(9 if kind == "rho" else 3, rel=1e-4)
    met = meet_targets(strategy, {"all": 4.0}, LeastBudget(kind, unit=unit))
    assert met == budget
    limit = mdp.Budget(rho=100, unit=unit)
    assert LeastBudget.within(limit).reference().unit == unit
    assert meet_targets(strategy, {"all": 4.0}, LeastBudget.within(limit)).unit == unit
    with pytest.raises(mdp.PrivacyError, match=r"more than privacy allows: .*unit=Unit\(records=3\)"):
        meet_targets(
            strategy,
            {"all": 4.0},
            LeastBudget.within(mdp.Budget(**{kind: getattr(least, kind)}, unit=unit)),
        )


@pytest.mark.parametrize("unit", UNITS)
def test_a_measurement_keeps_its_unit(unit, tmp_path):
    table = {"sex": ["male"] * 5, "age": [1, 2, 3, 4, 5], unit.id or "other": [1, 1, 1, 2, 3]}
    strategy = mdp.select(WORKLOAD)
    budget = mdp.Budget(rho=0.5, unit=unit)
    release = strategy.measure(table, budget).reconstruct()
    mdp.save_release(release, tmp_path / "release")
    again = mdp.load_release(tmp_path / "release")
    assert again.measurement.authorization.budget == budget
    assert again.statement.unit == unit
