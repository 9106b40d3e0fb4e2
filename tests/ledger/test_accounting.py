"""What a ledger adds up, beside sums that are made independently of it."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import example, given, settings
from hypothesis import strategies as st

from matrixdp.errors import PrivacyError
from matrixdp.ledger import Account
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost, Noise
from matrixdp.privacy import Budget, Unit, delta_of
from matrixdp.privacy.conversions import gdp_of_epsilon

TOTALS = [Budget(rho=1), Budget(mu=1), Budget(epsilon=1), Budget(epsilon=1, delta=1e-6)]
MIXED = [(GAUSSIAN, Budget(mu=0.3)), (LAPLACE, Budget(epsilon=0.5))]
costs = st.tuples(
    st.sampled_from([GAUSSIAN, LAPLACE]),
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(1, 4), max_denominator=10**6),
)


def budget_of(noise: Noise, value: Fraction) -> Budget:
    """A budget that allows a cost, and no more."""
    return Budget(rho=value / 2) if noise.norm == 2 else Budget(epsilon=value)


def account_of(total: Budget, spent: list[tuple[Noise, Fraction]]) -> Account:
    return Account.of(total, [(Cost(value, noise), budget_of(noise, value)) for noise, value in spent])


@settings(deadline=None, max_examples=60)
@given(st.lists(costs, max_size=8))
def test_sums_are_those_of_the_definitions(spent):
    squared = [value for noise, value in spent if noise.norm == 2]
    pure = [value for noise, value in spent if noise.norm == 1]
    rho = account_of(Budget(rho=1), spent)
    assert rho.sums == (sum(squared, Fraction(0)) / 2 + sum((e * e for e in pure), Fraction(0)) / 2,)
    assert rho.within == (rho.sums[0] <= 1)
    through_mu = sum(squared, Fraction(0)) + sum((gdp_of_epsilon(e) ** 2 for e in pure), Fraction(0))
    mu = account_of(Budget(mu=1), spent)
    assert mu.sums == (through_mu,)
    assert mu.within == (through_mu <= 1)
    sums = account_of(Budget(epsilon=1), spent).sums
    assert sums == ((None,) if squared else (sum(pure, Fraction(0)),))
    both = account_of(Budget(epsilon=1, delta=1e-6), spent)
    assert both.sums == (through_mu, *sums)
    fits = delta_of(math.sqrt(through_mu), 1) <= 1e-6 if through_mu else True
    if abs(float(through_mu) - float(both.limits[0])) > 1e-9:
        assert both.within == (fits or (not squared and sum(pure) <= 1))


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(TOTALS), st.lists(costs, max_size=5))
def test_what_is_left_can_be_spent_and_no_more(total, spent):
    account = account_of(total, spent)
    left = account.left
    noises = [noise for noise in (GAUSSIAN, LAPLACE) if noise.honours(total)]
    name = total.kind if total.kind in ("rho", "mu") else "epsilon"
    more: Any = total.given | {name: Fraction(1, 10**4)}  # above what roundings leave
    if left is not None:
        assert any(account.plus(noise.cost(left), left).within for noise in noises)
        more = left.given | {name: left.given[name] * (1 + Fraction(1, 10**12))}
    larger = Budget(**more)
    assert not any(account.plus(noise.cost(larger), larger).within for noise in noises)


@pytest.mark.parametrize("spent", [Fraction(1, 5), Fraction(1, 50)])
@pytest.mark.parametrize(
    "total", [Budget(epsilon=0.7571527286141989, delta=0.3), Budget(epsilon=1, delta=0.5)]
)
def test_what_is_left_for_laplace_noise_can_be_spent_where_delta_is_large(total, spent):
    """There pure epsilon is what a squared mu allows most; what is left fits, and little more does."""
    account = Account.empty(total).plus(GAUSSIAN.cost(Budget(mu=spent)), Budget(mu=spent))
    left = account.left
    assert account.plus(LAPLACE.cost(left), left).within
    assert gdp_of_epsilon(left.epsilon * (1 + Fraction(1, 10**12))) ** 2 + spent**2 > account.limits[0]


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(TOTALS), st.lists(costs, min_size=1, max_size=5))
@example(Budget(epsilon=1), [(GAUSSIAN, Fraction(1, 4))])
def test_what_was_spent_is_no_less_than_the_sums(total, spent):
    account = account_of(total, spent)
    if account.sums == (None,):
        with pytest.raises(PrivacyError, match="an entry that its total does not bound"):
            _ = account.spent
        return
    told = account.spent
    assert (told.neighbours, told.unit, told.delta) == (total.neighbours, total.unit, total.delta)
    if told.kind == "mu":
        assert 0 <= told.mu**2 - account.sums[0] <= told.mu**2 / 2**70
    if told.kind == "approx" and account.sums[1] is None:
        most = told.delta * (1 + Fraction(1, 10**9))
        assert delta_of(math.sqrt(account.sums[0] or 0), told.epsilon) <= most
    one_more = account_of(total, [*spent, (LAPLACE, Fraction(1, 10))]).spent
    assert (one_more.epsilon or one_more.rho or one_more.mu) >= (told.epsilon or told.rho or told.mu)


@pytest.mark.parametrize("total", [*TOTALS, *(Budget(mu=mu) for mu in (0.3, 0.7, 3.3))], ids=str)
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("unit", [Unit(), Unit(records=3)])
def test_one_release_may_spend_the_whole_total_and_not_a_hair_more(total, noise, neighbours, unit):
    total = Budget(**total.given, neighbours=neighbours, unit=unit)
    if not noise.honours(total):
        noise = LAPLACE
    account = Account.empty(total).plus(noise.cost(total), total)
    assert account.within
    tiny = Budget(rho=1e-300, neighbours=neighbours, unit=unit)
    more = account.plus(noise.cost(tiny), tiny)
    # the square root that Laplace noise may cost under rho, and mu through epsilon, are rounded down
    slack = noise.norm == 1 and total.kind in ("rho", "mu")
    assert slack or not more.within


def test_gaussian_noise_adds_in_squares_beside_dp_accounting():
    budgets = [Budget(mu=mu) for mu in (0.3, 0.2, 0.1)]
    account = Account.of(TOTALS[-1], [(GAUSSIAN.cost(budget), budget) for budget in budgets])
    mechanism = partial(privacy_loss_distribution.from_gaussian_mechanism, value_discretization_interval=1e-4)
    first, second, third = (mechanism(1 / float(budget.mu)) for budget in budgets)
    composed = first.compose(second).compose(third)
    assert float(account.spent.epsilon) == pytest.approx(composed.get_epsilon_for_delta(1e-6), rel=1e-3)


def test_a_mixed_account_is_no_smaller_than_its_exact_curve():
    spent = [(noise.cost(budget), budget) for noise, budget in MIXED]
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(1 / 0.3)
    composed = gaussian.compose(privacy_loss_distribution.from_laplace_mechanism(2))
    account = Account.of(Budget(epsilon=3, delta=1e-6), spent)
    assert float(account.spent.epsilon) > composed.get_epsilon_for_delta(1e-6)


def test_once_gaussian_a_pure_sum_is_gone():
    """A pure total of Laplace noise alone does not come back after Gaussian noise."""
    total = Budget(epsilon=1, delta=1e-6)
    whole = Account.of(total, [(Cost(Fraction(1, 10), LAPLACE), Budget(epsilon=0.1))] * 10)
    assert whole.within
    assert whole.sums[0] > whole.limits[0]
    little = Budget(rho=1e-9)
    assert not whole.plus(GAUSSIAN.cost(little), little).within
    assert whole.left is None


@pytest.mark.parametrize("total", TOTALS)
def test_what_roundings_leave_is_nothing(total: Budget):
    noise = LAPLACE if total.kind == "pure" else GAUSSIAN
    for hair, nothing in ((10**11, True), (10**7, False)):
        cost = Cost(noise.cost(total).value * (1 - Fraction(1, hair)), noise)
        assert (Account.of(total, [(cost, total)]).left is None) == nothing


@pytest.mark.parametrize(
    ("total", "debits"),
    [
        (Budget(rho=0.3), [Budget(rho=0.1), Budget(rho=0.2)]),
        (Budget(epsilon=0.3), [Budget(epsilon=0.1), Budget(epsilon=0.2)]),
        (Budget(mu=math.sqrt(0.27)), [Budget(mu=0.3)] * 3),
        (Budget(rho=0.1 + 0.2), [Budget(rho=0.1), Budget(rho=0.2)]),
    ],
)
def test_floats_add_up_as_they_are_written(total: Budget, debits: list[Budget]):
    noise = LAPLACE if total.kind == "pure" else GAUSSIAN
    assert Account.of(total, [(noise.cost(one), one) for one in debits]).within
    little: Any = {name: value / 10**6 for name, value in total.given.items()}
    debits = [*debits, Budget(**little)]
    assert not Account.of(total, [(noise.cost(one), one) for one in debits]).within
