"""What ball arithmetic cannot prove is not claimed."""

from fractions import Fraction

import pytest

from matrixdp.errors import NumericalError
from matrixdp.privacy import conversions

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
