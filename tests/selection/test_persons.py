"""Strategies for persons with records in several values of an attribute: closed forms and known optima."""

import itertools
import math
from typing import Any, cast

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.selection.gram.persons import best_for_persons
from tests import independent

MONTHS = np.eye(12)
TO_DATE = np.tri(12)
TOTAL = np.ones((1, 12))
CHANGES = np.diff(MONTHS, axis=0)


def forms(gram: np.ndarray, values: int) -> float:
    """The largest z'X z over all sets of values, one by one."""
    sets = (s for k in range(1, values + 1) for s in itertools.combinations(range(len(gram)), k))
    return max(float(gram[np.ix_(s, s)].sum()) for s in map(list, sets))


@pytest.mark.parametrize(("size", "values"), [(12, 4), (12, 12), (52, 12), (52, 52)])
def test_values_by_themselves_have_the_error_of_the_closed_form(size: int, values: int):
    """K/n + sqrt(K/n (1 - K/n) (n - 1)) where that is attained, (1 + sqrt n) / 2 for all values."""
    found = best_for_persons(np.eye(size), values)
    share = values / size
    expected = share + math.sqrt(share * (1.0 - share) * (size - 1))
    if values == size:
        expected = (1.0 + math.sqrt(size)) / 2.0
    assert math.sqrt(found.loss / size) == pytest.approx(expected, rel=2e-3)
    assert found.bound <= found.loss <= found.bound * 1.05


KNOWN = {
    "months": (MONTHS, 1.8968, 2.2301),
    "to date": (TO_DATE, 4.6217, 7.8460),
    "both": (np.vstack([MONTHS, TO_DATE]), 3.6595, 5.8493),
    "months and total": (np.vstack([MONTHS, TOTAL]), 2.6568, 4.0810),
    "changes": (CHANGES, 2.2927, 2.4248),
}


@pytest.mark.parametrize("name", KNOWN)
def test_optima_of_twelve_months_are_proved(name: str):
    rows, few, every = KNOWN[name]
    for values, expected in ((4, few), (12, every)):
        found = best_for_persons(rows.T @ rows, values)
        assert math.sqrt(found.loss / len(rows)) == pytest.approx(expected, rel=1e-3)
        assert found.loss <= found.bound * 1.001
        assert forms(found.gram, values) <= 1.0 + 1e-6
        error = float(np.einsum("ij,ji->", rows.T @ rows, np.linalg.pinv(found.gram, rcond=1e-9)))
        assert error == pytest.approx(found.loss, rel=1e-3)


def test_what_multipliers_prove_is_no_less_than_the_truth():
    """Of more values than are listed; against every set."""
    rows = np.vstack([np.eye(15), np.tri(15)])
    for values in (5, 7):
        found = best_for_persons(rows.T @ rows, values)
        assert found.bound <= found.loss <= found.bound * 1.05
        assert 0.98 <= forms(found.gram, values) <= 1.0 + 1e-9


def unit(values: int, constant: tuple[str, ...] = (), each: int = 1) -> mdp.Unit:
    return mdp.Unit(id="person", per="month", max_values=values, max_records_each=each, constant=constant)


def error(workload: mdp.Workload, own: mdp.Unit) -> float:
    budget = mdp.Budget(mu=1, unit=own)
    strategy = mdp.select(workload, budget=budget)
    for group in workload:
        strategy.selection.analysis.check_support(group)
    return strategy.rmse(budget)


def test_selections_reach_the_optimum_of_months():
    year = mdp.Domain({"month": 12})
    both = [mdp.marginals(1), mdp.product(month="prefix")]
    for asked, values, expected in (
        ([mdp.marginals(1)], 12, 2.2301),
        ([mdp.product(month="prefix")], 12, 7.8460),
        (both, 12, 5.8493),
        (both, 4, 3.6595),
    ):
        assert error(mdp.Workload(year, *asked), unit(values)) == pytest.approx(expected, rel=3e-3)
    # two records a month are twice as far
    twice = error(mdp.Workload(year, mdp.marginals(1)), unit(12, each=2))
    assert twice == pytest.approx(2 * 2.2301, rel=3e-3)


def test_several_attributes_of_persons_who_stay_and_who_move():
    domain = mdp.Domain({"month": 12, "region": 51, "sex": 2, "age": 18})
    names = ("region", "sex", "age")
    tables = [few for k in range(3) for few in itertools.combinations(names, k)]
    asked = [
        mdp.product(**cast("dict[str, Any]", {"month": own} | dict.fromkeys(few, "identity")))
        for few in tables
        for own in ("identity", "prefix", "total")
    ]
    workload = mdp.Workload(domain, *asked)
    assert error(workload, unit(12, names)) == pytest.approx(9.547, rel=3e-3)
    assert error(workload, unit(12)) == pytest.approx(10.48, rel=3e-3)
    assert error(workload, unit(4)) == pytest.approx(5.784, rel=1e-2)


def test_releases_for_persons_are_verified(tmp_path):
    workload = mdp.Workload(mdp.Domain({"month": 12, "sex": 2}), mdp.kway([1, 2], "identity"))
    table = {"month": [0, 0, 5, 11, 5], "sex": [0, 1, 1, 1, 0], "person": ["a", "b", "b", "b", "c"]}
    for own in (unit(12, ("sex",)), unit(3)):
        budget = mdp.Budget(mu=1, unit=own)
        strategy = mdp.select(workload, budget=budget)
        assert strategy.mechanism == "persons"
        release = strategy.measure(table, budget).reconstruct()
        folder = mdp.save_release(release, tmp_path / f"{own.max_values}")
        assert mdp.verify_release(folder).failed == ()


def test_persons_who_move_in_part_cost_less_than_those_who_move() -> None:
    # months by each pair of the others; findings from sets of histories: 4.687, where √K has 5.315
    domain = mdp.Domain({"month": 12, "region": 51, "sex": 2, "age": 18})
    others = [[], ["region"], ["sex"], ["age"], ["region", "sex"], ["region", "age"], ["sex", "age"]]
    workload = mdp.Workload(domain, mdp.marginals([["month", *names] for names in others]))
    found = {}
    for constant in ((), ("age", "sex"), ("age", "region", "sex")):
        unit = mdp.Unit(id="person", per="month", max_values=12, constant=constant)
        budget = mdp.Budget(mu=1, unit=unit)
        found[constant] = mdp.select(workload, budget=budget).rmse(budget)
    assert 4.683 < found["age", "sex"] < 4.9
    assert found["age", "region", "sex"] < 3.43 < found["age", "sex"] < found[()] < 5.3


def test_proofs_hold_for_more_values_than_can_be_eliminated(tmp_path) -> None:
    budget = mdp.Budget(mu=1, unit=mdp.Unit(id="person", per="day", max_values=150))
    workload = mdp.Workload(mdp.Domain({"day": 150}), mdp.marginals(1))
    strategy = mdp.select(workload, budget=budget)
    assert strategy.rmse(budget) < 1.01 * (1 + 150**0.5) / 2
    release = strategy.measure({"person": [1, 2], "day": [3, 4]}, budget).reconstruct()
    folder = mdp.save_release(release, tmp_path / "out")
    assert mdp.verify_release(folder).failed == ()
    holds, fails = independent.found(folder)
    assert not fails
    assert any("cost" in words for words in holds)
