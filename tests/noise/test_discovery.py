"""Mechanisms that tell values: their inequalities, and their privacy by brute force on small tables."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product
from statistics import NormalDist

import numpy as np
import pytest

from matrixdp.errors import PrivacyError
from matrixdp.noise import GAUSSIAN, LAPLACE, Chances, Cost, Mechanism, Round, SeededSource, WeightedRounds
from matrixdp.noise.discovery import (
    CHANCE_BITS,
    chances,
    exponential_below,
    is_threshold,
    least_threshold,
    person_weights,
    weight,
)
from matrixdp.privacy import Budget

ONE = 1 << CHANCE_BITS
BUDGETS = [
    ("1", "1e-6"),
    ("0.1", "1e-9"),
    ("3", "1e-6"),
    ("500", "1e-6"),
    ("12", "0.3"),
    ("0.01", "1e-12"),
    ("0.37", "0.01"),
]


def exact(one: str, other: str) -> tuple[Fraction, Fraction]:
    return Fraction(one), Fraction(other)


@pytest.mark.parametrize("text", ["1", "0.001", "12.5", "60"])
def test_the_exponential_is_bounded_from_below(text):
    with localcontext() as context:
        context.prec = 80
        true = Fraction(Decimal(text).exp())
    found = exponential_below(Fraction(text))
    assert found <= true
    assert true - found < Fraction(1, 2**100) * math.ceil(true) * 100


@pytest.mark.parametrize("budget", BUDGETS)
def test_chances_keep_both_inequalities_for_every_number_of_persons(budget):
    epsilon, delta = exact(*budget)
    factor = exponential_below(min(epsilon, Fraction(70)))
    table = [Fraction(p, ONE) for p in chances(epsilon, delta)]
    table += [Fraction(1)] * 2  # all larger numbers
    assert table[0] == 0
    for p, q in pairwise(table):
        for one, other in ((p, q), (q, p)):
            assert one <= factor * other + delta
            assert 1 - one <= factor * (1 - other) + delta


@pytest.mark.parametrize("budget", BUDGETS)
def test_chances_are_the_largest_to_within_rounding(budget):
    epsilon, delta = map(float, budget)
    expected = 0.0
    for found in chances(*exact(*budget)):
        assert found / ONE == pytest.approx(expected, rel=1e-4, abs=1e-12)
        grown = math.exp(min(epsilon, 64)) * expected + delta
        expected = min(grown, 1 - math.exp(-min(epsilon, 64)) * (1 - expected - delta), 1.0)
    assert expected == 1


class Words:
    """A source of given words of 64 bits."""

    private = False

    def __init__(self, *words: int) -> None:
        self._words = np.array(words, dtype=np.uint64)

    def bits64(self, count: int):
        assert count == len(self._words)
        return self._words

    def more_bits(self, count: int) -> int:
        raise AssertionError(count)


def test_a_value_is_told_where_its_word_is_below_its_chance():
    rule = Chances(*exact("1", "1e-6"))
    persons, values = np.arange(5), np.array([0, 1, 1, 2, 2])
    table = rule.table
    assert rule.found(persons, values, 4, Words(table[1] - 1, table[2], table[2] - 1, 0)).tolist() == [0, 2]
    # of a person with several values the first counts, and what is sure needs no bits
    many = np.zeros(len(table), dtype=np.int64)
    assert rule.found(np.arange(len(many)), many, 1, Words(ONE - 1)).tolist() == [0]
    assert rule.found(many, many, 1, Words(table[1])).tolist() == []


def outcomes(table: list[int], counts: tuple[int, ...]) -> dict[tuple[bool, ...], Fraction]:
    """The probability of every set of told values."""
    each = [Fraction(table[min(count, len(table) - 1)], ONE) for count in counts]
    return {
        told: math.prod((p if yes else 1 - p for p, yes in zip(each, told, strict=True)), start=Fraction(1))
        for told in product((False, True), repeat=len(counts))
    }


@pytest.mark.parametrize("budget", [("1", "1e-6"), ("0.5", "0.1"), ("2", "0.01")])
def test_sets_of_told_values_are_private_by_brute_force(budget):
    epsilon, delta = exact(*budget)
    table, factor = chances(epsilon, delta), exponential_below(epsilon)
    worst = Fraction(0)
    for counts in product(range(4), repeat=3):
        before = outcomes(table, counts)
        for value in range(3):
            more = tuple(count + (place == value) for place, count in enumerate(counts))
            after = outcomes(table, more)
            for one, other in ((before, after), (after, before)):
                lost = sum((max(Fraction(0), one[told] - factor * other[told]) for told in one), Fraction(0))
                assert lost <= delta
                worst = max(worst, lost)
    assert worst > delta * Fraction(99, 100)  # none is wasted


def sums(lists: list[list[int]], told: np.ndarray, bits: int, most: int) -> np.ndarray:
    persons = np.repeat(np.arange(len(lists)), [len(own) for own in lists])
    values = np.array([value for own in lists for value in own], dtype=np.int64)
    found = np.zeros(len(told), dtype=np.int64)
    np.add.at(found, values, person_weights(persons, values, told, bits, most))
    return found


def test_a_person_moves_weights_by_at_most_a_unit_in_squares():
    rng = np.random.default_rng(3)
    reached = 0.0
    for _ in range(400):
        number, bits, most = int(rng.integers(1, 9)), int(rng.integers(6, 12)), int(rng.integers(1, 6))
        lists = [
            rng.permutation(number)[: rng.integers(0, number + 1)].tolist() for _ in range(rng.integers(1, 5))
        ]
        told = rng.random(number) < 0.3
        for leaves in range(len(lists)):
            rest = lists[:leaves] + lists[leaves + 1 :]
            moved = sums(lists, told, bits, most) - sums(rest, told, bits, most)
            squares = sum(int(own) ** 2 for own in moved)
            assert squares <= 4**bits
            assert not moved[told].any()
            assert np.count_nonzero(moved) <= most
            reached = max(reached, squares / 4**bits)
    assert reached == 1


def test_weights_follow_the_order_of_a_persons_values():
    assert sums([[3, 1, 0, 2]], np.array([False, True, False, False]), 10, 2).tolist() == [724, 0, 0, 724]


@pytest.mark.parametrize(("bits", "sigma", "delta", "most"), [
    (15, "48311.7", "1e-7", 40), (8, "300", "0.01", 3), (24, "900000.25", "1e-12", 100),
    (10, "77", "1e-6", 1),
])  # fmt: skip
def test_thresholds_are_the_least_that_the_union_bound_needs(bits, sigma, delta, most):
    scale, loss = exact(sigma, delta)
    found = least_threshold(bits, scale, loss, most)
    normal = NormalDist()
    passes = {k: normal.cdf(-(found - math.isqrt(4**bits // k)) / float(scale)) for k in range(1, most + 1)}
    assert max(k * p for k, p in passes.items()) <= float(loss) * (1 + 1e-9)
    assert max(1 - (1 - p) ** k for k, p in passes.items()) <= float(loss)
    assert not is_threshold(found - math.ceil(float(scale) / 500) - 1, bits, scale, loss, most)


@pytest.mark.parametrize("most", [1, 2, 60])
@pytest.mark.parametrize(("squared", "delta"), [("1/20", "1e-6"), ("1/900", "1e-9"), ("4", "1e-3")])
def test_rounds_cost_what_they_may_and_hardly_less(squared, delta, most):
    squared_mu, loss = exact(squared, delta)
    rule = WeightedRounds.within(squared_mu, loss, most)
    assert len(rule.rounds) == (1 if most == 1 else 3)
    for moved in (1, 7):
        cost = rule.cost(moved)
        assert 0.9999 * squared_mu < cost.value * moved**2 <= squared_mu + Fraction(1, 2**150)
        assert 0.9999 * loss < cost.delta <= loss
        spent = sum(Fraction(weight(rule.bits, 1) ** 2) / own.scale**2 for own in rule.rounds)
        assert cost.value * moved**2 >= spent
    assert all(own.scale <= 2**20 for own in rule.rounds)


def test_found_values_leave_the_lists_and_give_their_weight_to_others():
    # each of 40 persons has both values: together neither passes, one alone does
    persons, values = np.repeat(np.arange(40), 2), np.tile([0, 1], 40)
    small = Round(Fraction(64), Fraction(1, 100), 40 * 724 - 2000)
    alone = Round(Fraction(64), Fraction(1, 100), 40 * 1000)
    for rounds, expected in (((alone,), []), ((small,), [0, 1]), ((small, alone), [0, 1])):
        rule = WeightedRounds(2, 10, rounds)
        assert rule.found(persons, values, 2, SeededSource(5)).tolist() == expected
    more = (
        np.concatenate([persons, np.arange(40, 60)]),
        np.concatenate([values, np.zeros(20, dtype=np.int64)]),
    )
    first = Round(Fraction(64), Fraction(1, 100), 40 * 724 + 8000)
    assert WeightedRounds(2, 10, (first,)).found(*more, 2, SeededSource(5)).tolist() == [0]
    assert WeightedRounds(2, 10, (first, first)).found(*more, 2, SeededSource(5)).tolist() == [0, 1]


def test_values_of_one_person_hardly_ever_show():
    rule = WeightedRounds.within(Fraction(1), Fraction(1, 20), 4)
    persons = np.concatenate([np.repeat(0, 4), np.arange(1, 60)])
    values = np.concatenate([np.arange(1, 5), np.zeros(59, dtype=np.int64)])
    found = [rule.found(persons, values, 5, SeededSource(seed)).tolist() for seed in range(400)]
    assert all(told[:1] == [0] for told in found)
    # 20 of 400 are expected at most; 38 has a probability below 1e-4
    assert 0 < sum(len(told) > 1 for told in found) < 38


def test_nothing_is_found_of_nobody():
    none = np.zeros(0, dtype=np.int64)
    for rule in (Chances(*exact("1", "1e-6")), WeightedRounds.within(*exact("1", "1e-6"), most=3)):
        assert rule.found(none, none, 0, SeededSource(1)).tolist() == []


@pytest.mark.parametrize("attempt", [
    lambda: chances(*exact("1", "1e-15")),
    lambda: chances(*exact("0.000001", "1e-9")),
    lambda: WeightedRounds.within(*exact("1/1000000000000", "1e-6"), most=3),
    lambda: WeightedRounds.within(*exact("1", "1e-15"), most=3),
])  # fmt: skip
def test_budgets_that_find_nothing_are_rejected(attempt):
    with pytest.raises(PrivacyError) as caught:
        attempt()
    assert caught.value.code == "out-of-range"


def test_costs_with_delta_add_up_and_compare():
    one, other = Cost(Fraction(1), LAPLACE, Fraction(1, 4)), Cost(Fraction(2), LAPLACE)
    assert one + other == Cost(Fraction(3), LAPLACE, Fraction(1, 4))
    assert not one <= other
    assert Cost(Fraction(1), LAPLACE) <= other
    assert Cost(Fraction(1), GAUSSIAN).delta == 0


@pytest.mark.slow
def test_figures_of_a_log_by_zipfs_law():
    """20,000 persons with 26 words each (median) of 100,000, at epsilon 1 and delta 1e-6."""
    rng, number = np.random.default_rng(7), 100_000
    law = 1 / np.arange(1, number + 1)
    below = np.cumsum(law / law.sum())
    sizes = np.minimum(np.maximum(1, rng.lognormal(math.log(30), 1.0, 20_000).astype(int)), 2000)
    drawn = [np.unique(np.searchsorted(below, rng.random(size))) for size in sizes]
    lists = [rng.permutation(np.unique(np.minimum(own, number - 1))) for own in drawn]
    persons, values = np.repeat(np.arange(len(lists)), list(map(len, lists))), np.concatenate(lists)
    budget = Budget(epsilon=1, delta=1e-6)
    half = budget.less(Fraction(1, 2 * 10**6))
    assert half is not None
    rules: list[tuple[Mechanism, int]] = [(Chances(*exact("1", "1e-6")), 150)]
    for most, least in ((10, 330), (100, 490)):
        rules.append((WeightedRounds.within(half.mu**2, Fraction(1, 2 * 10**6), most), least))
    for rule, least in rules:
        found = [len(rule.found(persons, values, number, SeededSource(seed))) for seed in range(20)]
        assert np.mean(found) >= least
