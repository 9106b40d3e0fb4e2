import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from matrixdp.errors import NumericalError
from matrixdp.privacy import conversions, delta_of, epsilon_of, mu_of_rho, rho_of_mu
from matrixdp.privacy.conversions import exact_positive, float_above, float_below, largest_mu

MUS = st.fractions(Fraction(1, 1000), 50, max_denominator=1000)
EPSILONS = st.fractions(Fraction(1, 1000), 100, max_denominator=1000)
DELTAS = st.integers(1, 60).map(lambda k: Fraction(1, 2**k)) | st.fractions(
    Fraction(1, 10**9), Fraction(999, 1000), max_denominator=10**9
)
SMALL = 1 + Fraction(1, 2**50)


def curve(mu: float, epsilon: float) -> float:
    return float(norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2))


@given(MUS, EPSILONS)
@settings(deadline=None)
def test_delta_agrees_with_the_curve_in_floating_point(mu, epsilon):
    assert abs(float(delta_of(mu, epsilon)) - curve(float(mu), float(epsilon))) < 1e-9


def test_known_figures():
    # Noise of 4.2247 per unit of sensitivity; the classical formula needs sqrt(2 log(1.25e6)) = 5.2988.
    assert float(1 / largest_mu(Fraction(1), Fraction(1, 10**6))) == pytest.approx(4.22468, abs=1e-5)
    assert float(delta_of(1, 1)) == pytest.approx(norm.cdf(-0.5) - math.e * norm.cdf(-1.5), abs=1e-14)
    assert float(delta_of(2, 0)) == pytest.approx(2 * norm.cdf(1) - 1, abs=1e-14)


@given(EPSILONS, DELTAS)
@settings(deadline=None, max_examples=60)
def test_the_largest_mu_keeps_to_the_budget_and_a_larger_one_does_not(epsilon, delta):
    mu = largest_mu(epsilon, delta)
    assert delta_of(mu, epsilon) <= delta * SMALL
    assert epsilon_of(mu, delta) <= epsilon * SMALL
    assert delta_of(mu * SMALL, epsilon) > delta


@given(MUS, DELTAS)
@settings(deadline=None, max_examples=60)
def test_epsilon_and_back_returns_within_the_rounding(mu, delta):
    epsilon = epsilon_of(mu, delta)
    if epsilon > 0:
        assert largest_mu(epsilon, delta) * SMALL >= mu
        assert largest_mu(epsilon / SMALL**4, delta) < mu * SMALL**4
    else:
        assert delta_of(mu, 0) <= delta * SMALL


@given(MUS, MUS, EPSILONS, EPSILONS, DELTAS, DELTAS)
@settings(deadline=None, max_examples=60)
def test_everything_is_monotone(mu1, mu2, epsilon1, epsilon2, delta1, delta2):
    pairs = ((mu1, mu2), (epsilon1, epsilon2), (delta1, delta2))
    (mu1, mu2), (epsilon1, epsilon2), (delta1, delta2) = map(sorted, pairs)
    assert delta_of(mu1, epsilon1) <= delta_of(mu2, epsilon1)
    assert delta_of(mu1, epsilon2) <= delta_of(mu1, epsilon1)
    assert epsilon_of(mu1, delta1) <= epsilon_of(mu2, delta1)
    assert epsilon_of(mu1, delta2) <= epsilon_of(mu1, delta1)
    assert largest_mu(epsilon1, delta1) <= largest_mu(epsilon2, delta1)
    assert largest_mu(epsilon1, delta1) <= largest_mu(epsilon1, delta2)


@given(st.fractions(Fraction(1, 10**12), 10**12))
def test_rho_and_mu(rho):
    mu = mu_of_rho(rho)
    assert rho <= rho_of_mu(mu) <= rho * (1 + Fraction(1, 2**70))


def test_floats_spent_are_read_as_the_larger():
    assert rho_of_mu(0.1) == Fraction(0.1) ** 2 / 2
    assert mu_of_rho(0.3) ** 2 >= Fraction(6, 10)


def test_the_smallest_delta_is_still_an_upper_bound():
    assert delta_of(1, 10**6) == Fraction(1, 2**10000)
    assert 0 < delta_of(1, 100) < Fraction(1, 10**2000)
    assert delta_of(10**6, 1) <= 1
    assert epsilon_of(Fraction(1, 10**9), Fraction(1, 2)) == 0


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (10**300, Fraction(1, 2)),
        (Fraction(1, 10**300), Fraction(1, 10**320)),
        (1, Fraction(5e-324)),
        (10**9, Fraction(1, 10**6)),
        (Fraction(1, 10**12), 1 - Fraction(1, 10**12)),
    ],
)
def test_extreme_parameters_keep_to_the_budget(epsilon, delta):
    mu = largest_mu(Fraction(epsilon), delta)
    assert mu > 0
    assert delta_of(mu, epsilon) <= delta * SMALL


def test_a_float_is_its_shortest_text_and_no_less_where_it_was_spent():
    assert exact_positive("x", 0.1) == Fraction(1, 10)
    assert exact_positive("x", 0.1, larger=True) == Fraction(0.1) > Fraction(1, 10)
    assert exact_positive("x", 0.3) == Fraction(3, 10)
    assert exact_positive("x", 0.3, larger=True) == Fraction(3, 10)


@pytest.mark.parametrize("one", [1, 1.0, Fraction(1), Decimal(1), np.int64(1), np.float64(1), np.float32(1)])
def test_every_kind_of_number_is_read(one):
    assert exact_positive("x", one) == 1


@given(st.fractions())
def test_floats_are_rounded_to_the_stated_side(value):
    above, below = float_above(value), float_below(value)
    assert Fraction(below) <= value <= Fraction(above)
    assert above == below or math.nextafter(below, math.inf) == above


def test_what_no_float_can_hold_keeps_its_side():
    assert float_above(Fraction(10) ** 400) == math.inf
    assert float_below(Fraction(10) ** 400) == math.nextafter(math.inf, 0)
    assert float_above(Fraction(1, 10**400)) > 0
    assert float_below(Fraction(1, 10**400)) == 0


@given(st.fractions(min_value=0) | st.fractions(0, 1).map(lambda f: f**40))
def test_roots_are_rounded_to_the_stated_side(value):
    low, high = conversions.root_below(value), conversions.root_above(value)
    assert low**2 <= value <= high**2
    assert high - low <= high / 2**78
    if low**2 == value:
        assert low == high


# What ball arithmetic cannot prove is not claimed.

ONE, TINY = Fraction(1), Fraction(1, 10**6)


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch):
    """No precision is tried, so every question stays open."""
    monkeypatch.setattr(conversions, "_PRECISIONS", ())
    caches = (conversions._at_most, conversions.largest_mu, conversions.epsilon_of_gdp)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def test_an_undecided_ball_proves_nothing(undecided: None):
    assert conversions._at_most(ONE, ONE, Fraction(1, 2)) is False
    assert conversions._pure_is_gdp(Fraction(1, 100), Fraction(100)) is False


@pytest.mark.parametrize(
    ("convert", "given"),
    [
        (conversions.largest_mu, (ONE, TINY)),
        (conversions.delta_of, (ONE, ONE)),
        (conversions.epsilon_of, (ONE, TINY)),
        (conversions.epsilon_of_gdp, (ONE,)),
    ],
)
def test_what_cannot_be_proved_is_refused(undecided: None, convert, given):
    with pytest.raises(NumericalError):
        convert(*given)


def test_a_noise_level_that_every_bound_admits_is_refused(monkeypatch: pytest.MonkeyPatch):
    """A curve below any delta however large mu is: no largest mu could be certified."""
    monkeypatch.setattr(conversions, "_at_most", lambda _mu, _epsilon, _delta: True)
    with pytest.raises(NumericalError, match="no noise level could be certified"):
        conversions.largest_mu.__wrapped__(ONE, TINY)
