import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from matrixdp.errors import PrivacyError
from matrixdp.measure.statement import statement
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.privacy import Budget, Unit, delta_of, epsilon_of


def test_words_round_the_exact_figure_and_not_its_float():
    """The float nearest to this budget is written 0.1, which is less."""
    budget = Budget(epsilon=Fraction(1, 10) + Fraction(1, 10**18))
    promise = statement(LAPLACE.cost(budget), budget, private=True)
    assert "0.1001-differential privacy (pure" in promise.text


@given(st.fractions(Fraction(1, 1000), 4), st.sampled_from(["add_remove", "replace"]))
@settings(deadline=None, max_examples=50)
def test_every_figure_is_an_upper_bound(cost, neighbours):
    promise = statement(Cost(cost, GAUSSIAN), Budget(mu=10, neighbours=neighbours), private=True)
    between = cost * (4 if neighbours == "replace" else 1)
    assert Fraction(promise.mu) ** 2 >= between
    assert Fraction(promise.rho) >= between / 2
    least = epsilon_of(Fraction(promise.mu), 1e-6) * (1 - Fraction(1, 2**40))
    assert Fraction(promise.epsilon_at_reference_delta) >= least
    rounded = promise.text.split("by no more than ")[1].split("-GDP")[0]
    assert Fraction(rounded) >= Fraction(repr(promise.mu))


@given(st.fractions(Fraction(1, 100), 3), st.fractions(Fraction(1, 10**9), Fraction(1, 2)))
@settings(deadline=None, max_examples=30)
def test_the_claimed_epsilon_and_delta_are_not_below_the_budget(epsilon, delta):
    budget = Budget(epsilon=epsilon, delta=delta)
    promise = statement(GAUSSIAN.cost(budget), budget, private=True)
    assert Fraction(promise.epsilon) >= epsilon
    assert Fraction(promise.delta) >= delta
    most = Fraction(promise.delta) * (1 + Fraction(1, 2**50))
    assert delta_of(budget.mu, Fraction(promise.epsilon)) <= most


def test_the_record_is_json():
    budget = Budget(epsilon=1, delta=1e-6, neighbours="replace")
    record = statement(Cost(GAUSSIAN.cost(budget).value / 2, GAUSSIAN), budget, private=True).as_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["ledger"] is None
    assert record["neighbours"] == "replace"
    reference = record["guarantees"][2]
    assert reference["exact"]["delta"] == "1/1000000"
    assert reference["parameters"]["epsilon"] >= Fraction(reference["exact"]["epsilon"])
    assert record["budget"]["exact"] == {"epsilon": "1", "delta": str(budget.delta)}
    assert Fraction(record["cost"]) == GAUSSIAN.cost(budget).value / 2
    assert all(record[name] for name in ("covered", "assumed", "not_covered"))


@pytest.mark.parametrize(("neighbours", "factor"), [("add_remove", 1), ("replace", 2)])
def test_the_figures_of_laplace_noise(neighbours, factor):
    promise = statement(Cost(Fraction(1, 2), LAPLACE), Budget(epsilon=2, neighbours=neighbours), private=True)
    epsilon = factor / 2
    assert (promise.pure_epsilon, promise.epsilon_at_reference_delta) == (epsilon, epsilon)
    assert promise.rho == epsilon**2 / 2
    # the trade-off curves touch: (1 + e^epsilon) Phi(-mu / 2) = 1
    assert (1 + math.exp(epsilon)) * norm.cdf(-promise.mu / 2) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("unit", [Unit(records=3), Unit(records=3, id="person")])
def test_the_figures_hold_for_all_records_of_a_person(neighbours, noise, unit):
    moved = 6 if neighbours == "replace" else 3
    budget = Budget(mu=1, neighbours=neighbours, unit=unit)
    alone = noise.cost(Budget(mu=1)).value
    promise = statement(noise.cost(budget), budget, private=True)
    assert promise.cost == alone / moved**noise.norm
    assert promise.mu == 1.0
    assert statement(Cost(promise.cost / 2, noise), budget, private=True).mu < 0.8
    assert promise.as_dict()["unit"] == promise.as_dict()["budget"]["unit"] == unit.as_dict()
    with pytest.raises(PrivacyError, match="privacy cost"):
        statement(Cost(alone / moved**noise.norm * (1 + Fraction(1, 2**80)), noise), budget, private=True)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("name", [None, "person"])
@pytest.mark.parametrize("records", [1, 3])
def test_the_words_say_who_is_protected(neighbours, name, records, snapshot):
    budget = Budget(mu=1, unit=Unit(records, name), neighbours=neighbours)
    promise = statement(GAUSSIAN.cost(budget), budget, private=True)
    assert [promise.text, promise.as_dict()["assumed"][0]["text"]] == snapshot


def test_the_words_of_each_definition(snapshot):
    both = Budget(epsilon=1, delta=1e-6)
    pairs = (GAUSSIAN, Budget(rho=0.5)), (GAUSSIAN, both), (LAPLACE, Budget(epsilon=1)), (LAPLACE, both)
    told = [statement(noise.cost(budget), budget, private=True).text for noise, budget in pairs]
    seeded = statement(Cost(Fraction(1), GAUSSIAN), Budget(rho=0.5), private=False)
    assert [*told, seeded.text] == snapshot
    assert seeded.as_dict()["private"] is False


@pytest.mark.parametrize(
    ("budget", "noise", "definitions"),
    [
        (Budget(rho=0.5), GAUSSIAN, "Gaussian zero-concentrated approximate"),
        (Budget(epsilon=1, delta=1e-6), GAUSSIAN, "Gaussian zero-concentrated approximate approximate"),
        (Budget(epsilon=1), LAPLACE, "pure Gaussian zero-concentrated approximate"),
    ],
)
def test_every_guarantee_is_exact_as_text_and_rounded_up_as_a_number(budget, noise, definitions):
    promise = statement(noise.cost(budget), budget, private=True)
    record = promise.as_dict()
    assert [row["definition"] for row in record["guarantees"]] == [f"{one} DP" for one in definitions.split()]
    for row in record["guarantees"]:
        for name, value in row["parameters"].items():
            exact = Fraction(row["exact"][name])
            assert exact <= Fraction(value) <= exact * (1 + Fraction(1, 2**51))
    figures = {name: value for row in record["guarantees"][:-1] for name, value in row["parameters"].items()}
    assert (figures["mu"], figures["rho"]) == (promise.mu, promise.rho)


def test_sentences_have_identifiers_that_stay():
    other = "Every record of this register is one person."
    promise = statement(Cost(Fraction(1), GAUSSIAN), Budget(rho=0.5), private=True, assumptions=(other,))
    record = promise.as_dict()
    covered = [row["id"] for row in record["covered"]]
    assert covered == ["post-processing", "out-of-domain", "exact-arithmetic"]
    assumed = {row["id"]: row["text"] for row in record["assumed"]}
    assert {"records-per-person", "chosen-without-data", "randomness", "bits-per-sample"} <= set(assumed)
    assert assumed["other"] == other
    not_covered = [row["id"] for row in record["not_covered"]]
    assert not_covered == ["side-channels", "other-releases", "population"]
