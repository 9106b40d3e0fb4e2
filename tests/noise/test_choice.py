"""The exponential mechanism: probabilities bounded exactly over all random bits, and frequencies."""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

import matrixdp as mdp
from matrixdp.noise import SeededSource, choose, uniform
from matrixdp.noise.choice import happens
from tests.noise.exact import FALSE_ALARM


class NeedsBits(Exception):  # noqa: N818 - no error
    pass


class Script:
    """Bits that are given beforehand; it asks for more by raising how many it wants."""

    private = False

    def __init__(self, given: tuple[int, ...]):
        self.given = list(given)

    def bits64(self, count: int) -> np.ndarray:
        raise NotImplementedError

    def more_bits(self, count: int) -> int:
        if count == 0:
            return 0
        if not self.given:
            raise NeedsBits(count)
        return self.given.pop(0)


def probabilities(
    run: Callable[[Script], object], least: Fraction
) -> tuple[dict[object, Fraction], Fraction]:
    """Exact probabilities of outcomes that are certain after some bits, and of what is still open.

    Every string of bits is followed until an outcome stands or its probability is below the least.
    """
    found: dict[object, Fraction] = {}
    still = Fraction(0)
    stack: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while stack:
        given, weight = stack.pop()
        if weight < least:
            still += weight
            continue
        try:
            outcome = run(Script(given))
            found[outcome] = found.get(outcome, Fraction(0)) + weight
        except NeedsBits as asked:
            branches = 1 << int(asked.args[0])
            stack += [((*given, value), weight / branches) for value in range(branches)]
    assert sum(found.values()) + still == 1
    return found, still


def test_integers_are_uniform():
    for count in (1, 2, 3, 5, 8):
        found, still = probabilities(partial(uniform, count), Fraction(1, 2**12))
        assert found.keys() == set(range(count))
        assert len(set(found.values())) == 1
        assert still < Fraction(1, 40)


@pytest.mark.parametrize("exponent", ["0", "1/4", "1/2", "2/3", "1", "3/2", "2"])
def test_coins_fall_with_the_probability_of_an_exponential(exponent: str):
    found, still = probabilities(lambda source: happens(Fraction(exponent), source), Fraction(1, 2**15))
    expected = math.exp(-Fraction(exponent))
    assert still < Fraction(1, 10)
    assert found[True] - Fraction(1, 10**12) <= expected <= found[True] + still + Fraction(1, 10**12)


def test_choices_have_the_exact_probabilities():
    """exp(epsilon s / (2 D)) with epsilon = 2 and D = 2: weights 1, e^(-1/2) and e^-1."""
    found, still = probabilities(lambda source: choose([4, 3, 2], 2, Fraction(2), source), Fraction(1, 2**15))
    weights = [math.exp(-lost / 2) for lost in range(3)]
    assert still < Fraction(1, 5)
    for place, weight in enumerate(weights):
        expected = weight / sum(weights)
        assert found[place] < expected < found[place] + still


def test_frequencies_are_those_of_the_exponential_mechanism():
    """A chi-square test, whose false-alarm rate is `FALSE_ALARM`."""
    scores, sensitivity, epsilon, runs = [7, 0, 10, 10, -4], 3, Fraction(9, 10), 40_000
    source = SeededSource(5)
    drawn = Counter(choose(scores, sensitivity, epsilon, source) for _ in range(runs))
    weights = np.exp([float(epsilon) * own / (2 * sensitivity) for own in scores])
    found = [drawn[place] for place in range(len(scores))]
    assert stats.chisquare(found, runs * weights / weights.sum()).pvalue > FALSE_ALARM


def test_far_scores_and_any_number_of_candidates_are_fast():
    source = SeededSource(1)
    assert choose([0] * 500 + [10**30], 1, Fraction(10**9), source) == 500
    assert choose([5], 1, Fraction(1), source) == 0


class Stuck(Script):
    """Returns the same bits for ever: its only one, or all ones for -1."""

    def more_bits(self, count: int) -> int:
        return self.given[0] if self.given[0] >= 0 else (1 << count) - 1


@pytest.mark.parametrize(
    ("bits", "attempt"),
    [
        (-1, lambda source: uniform(3, source)),
        (0, lambda source: happens(Fraction(1, 2), source)),
        (1, lambda source: choose([10, 0], 1, Fraction(10), source)),
    ],
)
def test_a_source_that_is_stuck_is_found(bits: int, attempt: Callable[[Stuck], object]):
    with pytest.raises(mdp.PrivacyError, match="does not deliver random bits"):
        attempt(Stuck((bits,)))
