"""False alarms and power of the audit, computed from the constants that it runs with."""

from __future__ import annotations

import math

from scipy import stats

from tests.audit import exact_tests as exact
from tests.audit.cases import CASES

#: The probability that a sound engine fails anything in a run of the audit is at most this.
ALARM = 1e-6
#: Each negative control is caught with at least this probability.
POWER = 0.99
#: So many tests are made of each case.
TESTS = 11
#: What one of them may fail with: a case's share, and one share more for noise after fork.
LEVEL = ALARM / (len(CASES) + 1) / TESTS


def small_noise_seen(noise: str, number: int, factor: float) -> float:
    """Return the power of "noise too small" if scales are a factor of what they should be."""
    if noise == "gaussian":
        return float(stats.chi2.cdf(stats.chi2.ppf(LEVEL, number) / factor**2, number))
    return float(stats.gamma.cdf(stats.gamma.ppf(LEVEL, number) / factor, number))


def shift_seen(copies: int, claimed: float, distance: float) -> float:
    """Return the power of "shift" if a person moves answers further than is claimed."""
    return float(stats.norm.sf(stats.norm.isf(LEVEL) - (distance - claimed) * math.sqrt(copies / 2)))


def advantage_seen(copies: int, claimed: float, distance: float) -> float:
    """Return the power of "advantage" if neighbours are at a distance above what is claimed."""
    number = 2 * copies
    most = stats.binom.ppf(LEVEL, number, stats.norm.sf(claimed / 2)) - 1
    return float(stats.binom.cdf(most, number, stats.norm.sf(distance / 2)))


def ratio_seen(copies: int, rows: int, claimed: float, epsilon: float) -> float:
    """Return the power of "ratio", or a bound below it, if probabilities differ by more than is claimed.

    A person moves so many rows; the event is that the noise of each is beyond its shift.
    """
    number, often = 2 * copies, 2.0**-rows
    rare = often * math.exp(-epsilon)

    def seen(missed: float) -> bool:
        most, least = stats.binom.isf(missed / 2, number, rare), stats.binom.ppf(missed / 2, number, often)
        return exact.ratio_exceeded(int(most), int(least), number, claimed, LEVEL)

    return 1 - exact.least(seen, -12.0, 30)


def same_signs_seen(number: int) -> bool:
    """Return whether this many signs are seen if they agree where the noise is the same.

    One in a thousand at most may not: where noise is less than half a step, the audit's own number decides.
    """
    return exact.counted(number - number // 1000, number, 0.5) < LEVEL


def hits_seen(noise: str, number: int, without_noise: int, steps: float) -> bool:
    """Return whether this many answers without noise, of a number, are always seen."""
    peak = float(exact.DISTRIBUTIONS[noise].pdf(0.0))
    return float(stats.binom.sf(without_noise - 1, number, peak / steps)) < LEVEL
