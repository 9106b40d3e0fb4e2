"""What is publicly known stays as it is in every table of a model, and in every component of a mixture."""

from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import SpecificationError, TooLargeError, UnsupportedQueryError
from matrixdp.model import Mixture, constraints, pair_fit
from matrixdp.model.constraints import Constraints, factors_for, with_published
from matrixdp.model.likelihood import Evidence
from matrixdp.model.mixture_fit import fit
from matrixdp.model.pair_fit import linked_tables
from tests.model.builders import local, measured

DOMAIN = mdp.Domain(
    {
        "age": {"min": 0, "max": 7},
        "married": 2,
        "works": 2,
        "region": 3,
        "child": {"of": ["age"], "map": {code: "yes" if code < 2 else "no" for code in range(8)}},
        "household": {
            "of": ["married", "works"],
            "cases": [{"when": {"married": 1, "works": 0}, "then": "supported"}],
            "otherwise": "other",
        },
    }
)
FREE = ["age", "married", "works", "region"]
RULES: list[Any] = [{"child": "yes", "married": 1}, {"age": {"range": [0, 1]}, "works": 1}]
NUMBER = 900


def people():
    random = np.random.default_rng(4)
    age = random.integers(0, 8, NUMBER)
    married, works = (((age >= 2) & (random.random(NUMBER) < share)).astype(int) for share in (0.5, 0.7))
    return {
        "age": age,
        "married": married,
        "works": works,
        "region": random.choice(3, NUMBER, p=[0.6, 0.3, 0.1]),
    }


PEOPLE = people()
REGIONS = np.bincount(PEOPLE["region"]).tolist()
TOTALS: list[Any] = [
    {"product": {"region": "identity"}, "counts": REGIONS},
    {"marginals": 0, "counts": NUMBER},
]
BOTH = np.bincount(3 * PEOPLE["works"] + PEOPLE["region"]).reshape(2, 3).tolist()
PAIR: Any = {"product": {"works": "identity", "region": "identity"}, "counts": BOTH}


@pytest.fixture(scope="module")
def measurement():
    asked = mdp.marginals([0, 1, 2], attributes=FREE)
    return measured(DOMAIN, PEOPLE, asked, budget=mdp.Budget(mu=0.2), seed=5).measurement


@pytest.fixture(scope="module")
def known():
    return Constraints.of(DOMAIN, TOTALS, RULES)


def mixed(measurement, known):
    return fit(Evidence.of(measurement, known), seed=1, components=30, steps=150).mixture


@pytest.fixture(scope="module", params=["local", "mixture"])
def tables(request, measurement, known):
    return local(measurement, known) if request.param == "local" else mixed(measurement, known)


def test_published_counts_are_kept_exactly_and_impossible_combinations_empty(tables):
    np.testing.assert_allclose(tables.marginal(["region"]), REGIONS, atol=1e-4)
    assert tables.total == NUMBER
    np.testing.assert_allclose(tables.marginal(["region", "age"]).sum(axis=1), REGIONS, atol=1e-4)
    # nobody is in an impossible combination
    assert (tables.marginal(["age", "married"])[:2, 1] == 0).all()
    assert (tables.marginal(["age", "works"])[:2, 1] == 0).all()
    assert tables.marginal(["child", "married"])[DOMAIN["child"].code_of("yes"), 1] == 0
    # what is possible is not lost
    assert tables.marginal(["age", "married"])[2:].min() > 0
    assert tables.marginal(["age"])[:2].sum() > 0.1 * NUMBER


def test_rules_make_the_tables_better(measurement, known):
    truth = np.zeros((8, 2))
    np.add.at(truth, (PEOPLE["age"], PEOPLE["married"]), 1)

    def error(tables):
        return float(((tables.marginal(["age", "married"]) - truth) ** 2).sum())

    unbiased = float(((measurement.estimates.marginal(("age", "married")) - truth) ** 2).sum())
    assert error(local(measurement, known)) < 0.8 * unbiased


def test_a_mixture_keeps_published_tables_of_two_attributes(measurement):
    known = Constraints.of(DOMAIN, [PAIR], RULES)
    assert known.total == NUMBER
    made = mixed(measurement, known)
    np.testing.assert_allclose(made.marginal(["works", "region"]), BOTH, atol=1e-3)
    assert (made.marginal(["age", "works"])[:2, 1] == 0).all()
    assert made.total == NUMBER
    with pytest.raises(UnsupportedQueryError, match=r"works, region were published together.*'mixture'"):
        local(measurement, known)


def test_an_impossible_pair_of_which_nothing_was_measured_stays_empty():
    held = measured(DOMAIN, PEOPLE, mdp.marginals([0, 1], attributes=FREE), seed=2)
    made = local(held.measurement, Constraints.of(DOMAIN, None, RULES))
    pair = made.marginal(["age", "married"])
    assert (pair[:2, 1] == 0).all()
    np.testing.assert_allclose(pair.sum(axis=1), made.marginal(["age"]), rtol=1e-6)


def test_sums_that_need_an_impossible_combination_give_way():
    """The estimates may say that everybody is a child and that somebody is married."""
    singles = {
        "age": np.array([50.0, 50, 0, 0, 0, 0, 0, 0]),
        "married": np.array([40.0, 60]),
        "works": np.array([50.0, 50]),
        "region": np.array([100.0, 0, 0]),
    }
    known = Constraints.of(DOMAIN, None, RULES)
    assert known.linked() == [("age", "married", "works")]
    found = linked_tables(singles, known)
    assert (found[("age", "married")][:2, 1] == 0).all()
    for pair in (("age", "married"), ("age", "works")):
        np.testing.assert_allclose(found[pair].sum(axis=1), found[("age",)], rtol=1e-9)
        np.testing.assert_allclose(found[pair].sum(axis=0), found[(pair[1],)], rtol=1e-9)
    married = {"product": {"married": "identity"}, "counts": [40, 60]}
    kept = linked_tables(singles, Constraints.of(DOMAIN, [married], RULES))
    np.testing.assert_allclose(kept[("married",)], [40, 60], rtol=1e-9)
    ages = {"product": {"age": "identity"}, "counts": [50, 50, 0, 0, 0, 0, 0, 0]}
    with pytest.raises(SpecificationError, match="invariants: found counts of age"):
        linked_tables(singles, Constraints.of(DOMAIN, [ages, married], RULES))


@pytest.mark.parametrize("seed", [0, 1])
def test_rules_that_the_table_breaks_leave_tables_that_agree(seed):
    domain = mdp.Domain({"sex": ["female", "male"], "age": 8})
    table = {"sex": (["female"] * 8 + ["male"] * 8) * 250, "age": [*range(8)] * 500}
    held = measured(domain, table, mdp.marginals([0, 1, 2]), budget=mdp.Budget(rho=0.05), seed=seed)
    known = Constraints.of(domain, None, [{"sex": ["male"], "age": {"range": [0, 3]}}])
    tables = local(held.measurement, known)
    pair = tables.marginal(["sex", "age"])
    assert pair[1, :4].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(pair.sum(axis=0), tables.marginal(["age"]), rtol=1e-4)


def test_totals_are_written_in_several_ways():
    pairs = [(mdp.product(region="identity"), np.array(REGIONS))]
    prefix = [(mdp.product(region="prefix"), [500, 800, 900])]
    assert {Constraints.of(DOMAIN, counts).total for counts in (900, pairs, prefix)} == {900}
    assert Constraints.of(DOMAIN, [(mdp.product(age={"ranges": [[0, 1]]}), 150)]).total is None


def test_rules_of_derived_attributes_are_those_of_their_parents():
    known = Constraints.of(DOMAIN, None, [{"household": "supported", "age": [0, 1], "child": "yes"}])
    expected = np.zeros((8, 2, 2), dtype=bool)
    expected[:2, 1, 0] = True
    np.testing.assert_array_equal(~known.allowed(("age", "married", "works")), expected)
    assert known.allowed(("age", "married")).all()
    nothing = Constraints.of(DOMAIN, None, [{"child": "yes", "age": [5]}])
    assert nothing.boxes == ()


def test_too_much_is_refused(monkeypatch, measurement):
    monkeypatch.setattr(constraints, "MAX_BOXES", 0)
    with pytest.raises(TooLargeError, match=r"structural_zeros\[0\]: found 1 combinations"):
        Constraints.of(DOMAIN, None, [{"age": [0]}])
    with pytest.raises(TooLargeError, match="1 combinations of age; expected at most 0"):
        Constraints.of(DOMAIN, None, [{"child": ["yes"]}])
    monkeypatch.undo()
    monkeypatch.setattr(pair_fit, "MAX_LINKED", 5)
    with pytest.raises(TooLargeError, match="link age, married, works, whose table has 32 cells"):
        local(measurement, Constraints.of(DOMAIN, None, RULES))
    monkeypatch.setattr(constraints, "MAX_COMPONENTS", 1)
    even = {name: np.full((1, DOMAIN[name].size), 1 / DOMAIN[name].size) for name in FREE}
    with pytest.raises(TooLargeError, match="published tables of several attributes need 2 components"):
        with_published(Mixture(DOMAIN, NUMBER, np.ones(1), even), Constraints.of(DOMAIN, [PAIR]).tables)


def test_if_everything_is_impossible_that_is_said(measurement, monkeypatch):
    known = Constraints.of(DOMAIN, None, [{"married": [0, 1]}])
    with pytest.raises(SpecificationError, match="structural_zeros: found no possible combination"):
        local(measurement, known)
    monkeypatch.setattr(constraints, "_DRAWS", 5)
    with pytest.raises(SpecificationError, match="structural_zeros: found no possible combination"):
        known.masks(Evidence.of(measurement).starts, 3, np.random.default_rng(1))


def test_counts_that_no_table_has_are_refused(monkeypatch):
    # a count of 0 empties its cells; counts that disagree are among the refusals
    rows = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    np.testing.assert_allclose(factors_for(np.ones(3), rows, np.array([0.0, 3.0])), [0, 0, 3])
    domain = mdp.Domain({"a": 2, "b": 2})
    diagonal = {name: np.eye(2) for name in ("a", "b")}
    made = Mixture(domain, 10.0, np.array([0.5, 0.5]), diagonal)  # a and b are equal
    counts = [(mdp.product(a="identity"), [9, 1]), (mdp.product(b="identity"), [1, 9])]
    tables = Constraints.of(domain, counts).tables
    monkeypatch.setattr(constraints, "_SWEEPS", 3)
    with pytest.raises(SpecificationError, match="invariants: found counts that no table has"):
        with_published(made, tables)
