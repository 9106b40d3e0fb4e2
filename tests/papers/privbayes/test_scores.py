"""The scores against their definitions, and their sensitivities on all neighbours of small tables."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.papers.door import MOST_RECORDS
from matrixdp.papers.privbayes.scores import SCORES, STEPS

SMALL = st.lists(st.lists(st.integers(0, 40), min_size=4, max_size=4), min_size=2, max_size=2).map(np.array)


def independence(table: np.ndarray) -> Fraction:
    n = int(table.sum())
    if not n:
        return Fraction(0)
    return (
        sum(
            (
                abs(int(table[x, p]) - Fraction(int(table[x].sum()) * int(table[:, p].sum()), n))
                for x, p in itertools.product(*map(range, table.shape))
            ),
            Fraction(0),
        )
        / 2
    )


def dominance(table: np.ndarray) -> Fraction:
    half = Fraction(int(table.sum()), 2)

    def lacking(given: tuple[int, ...], x: int) -> Fraction:
        return max(half - sum(int(table[x, p]) for p, own in enumerate(given) if own == x), Fraction(0))

    return max(
        -lacking(given, 0) - lacking(given, 1) for given in itertools.product((0, 1), repeat=table.shape[1])
    )


def information(table: np.ndarray) -> float:
    n, total = int(table.sum()), 0.0
    for x, p in itertools.product(*map(range, table.shape)):
        c = int(table[x, p])
        if c:
            total += c * math.log(c * n / (int(table[x].sum()) * int(table[:, p].sum())))
    return total


@settings(max_examples=60)
@given(SMALL)
def test_scores_are_what_the_paper_says(table: np.ndarray):
    assert SCORES["R"].of(table) == math.floor(independence(table) * STEPS)
    assert SCORES["F"].of(table) == dominance(table) * STEPS
    assert SCORES["I"].of(table) / STEPS == pytest.approx(information(table), abs=1.01 / STEPS)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("name", ["F", "R", "I"])
def test_sensitivities_hold_on_all_neighbours(name: str, shape: tuple[int, int]):
    if name == "F" and shape[0] != 2:
        return
    score, cells = SCORES[name], math.prod(shape)
    most = 4 if cells == 4 else 2
    known: dict[tuple[int, ...], int] = {}

    def of(table: tuple[int, ...]) -> int:
        if table not in known:
            known[table] = score.of(np.array(table).reshape(shape))
        return known[table]

    largest = 0
    for table in itertools.product(range(most + 1), repeat=cells):
        for cell in range(cells):
            more = tuple(count + (place == cell) for place, count in enumerate(table))
            largest = max(largest, abs(of(more) - of(table)))
    assert largest <= score.sensitivity(cells)
    if name == "F":
        assert largest == score.sensitivity(cells)  # attained


def test_the_sensitivity_of_r_is_no_smaller_than_it_is_said():
    """A further record of new values, beside independent ones, comes near to 2."""
    table = np.zeros((2, 2), dtype=np.int64)
    table[0, 0] = 10_000
    more = table.copy()
    more[1, 1] += 1
    change = (SCORES["R"].of(more) - SCORES["R"].of(table)) / SCORES["R"].sensitivity(4)
    assert 0.99 < change <= 1


def test_a_change_of_mutual_information_grows_with_the_table():
    """Twice as many records, of which the last has new values: more than a bound for few records allows."""
    for n in (10, 10**4, 10**9):
        table = np.array([[n, 0], [0, 0]])
        more = table + np.array([[0, 0], [0, 1]])
        change = SCORES["I"].of(more) - SCORES["I"].of(table)
        assert change / STEPS == pytest.approx(math.log(n) + 1, abs=0.1)
        assert change <= SCORES["I"].sensitivity(4)


@pytest.mark.parametrize("shape", [(2, 2), (15, 17), (31, 33)])
def test_the_largest_tables_change_by_no_more_than_they_are_said_to(shape: tuple[int, int]):
    """The further record has new values, and all other cells as many records as are counted.

    With 2^m - 1 cells nothing of the bound is to spare: it has a bit for each factor 2 of the records.
    """
    table = np.full(shape, MOST_RECORDS)
    table[0], table[:, 0] = 0, 0
    more = table.copy()
    more[0, 0] = 1
    for name in ("R", "I"):
        change = abs(SCORES[name].of(more) - SCORES[name].of(table))
        assert change <= SCORES[name].sensitivity(table.size)
        if name == "I" and table.size > 4:
            assert change > 0.99 * SCORES["I"].sensitivity(table.size)


def test_the_largest_tables_do_not_overflow():
    table = np.array([[2**33, 0, 5], [1, 2**33, 2**33]])
    assert SCORES["R"].of(table) == math.floor(independence(table) * STEPS)
    assert SCORES["I"].of(table) / STEPS == pytest.approx(information(table), rel=1e-12)


def test_empty_tables_have_scores():
    assert [score.of(np.zeros((2, 2), dtype=np.int64)) for score in SCORES.values()] == [0, 0, 0]


@pytest.mark.parametrize("shape", [(2, 2), (2, 3)])
def test_the_published_sensitivities_of_a_replaced_record_hold(shape: tuple[int, int]):
    """Zhang et al., TODS 2017: 1/n for F, 3/n + 2/n^2 for R, and for I the bound of more than two values."""
    cells = math.prod(shape)
    largest = {"F": -math.inf, "R": -math.inf, "I": -math.inf}
    for table in itertools.product(range(3), repeat=cells):
        n = sum(table)
        if n < 2:
            continue
        of_n = 2 * math.log((n + 1) / 2) + (n - 1) * math.log((n + 1) / (n - 1))
        published = {"F": 1.0, "R": 3 + 2 / n, "I": of_n}
        for lost, won in itertools.permutations(range(cells), 2):
            if table[lost]:
                other = [count - (place == lost) + (place == won) for place, count in enumerate(table)]
                for name, bound in published.items():
                    of = SCORES[name].of
                    change = abs(of(np.array(other).reshape(shape)) - of(np.array(table).reshape(shape)))
                    largest[name] = max(largest[name], change / STEPS - bound)
    assert largest["F"] == 0
    assert max(largest["R"], largest["I"]) <= 2 / STEPS
