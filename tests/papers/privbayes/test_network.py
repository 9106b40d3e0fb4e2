"""Networks: possible families, greedy choices and answers, against brute force."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import matrixdp as mdp
from matrixdp.noise import SeededSource
from matrixdp.papers.door import MOST_RECORDS
from matrixdp.papers.privbayes import network as networks
from matrixdp.papers.privbayes.network import Network, PrivateCounts, greedy_families, maximal_sets
from matrixdp.papers.privbayes.scores import SCORES, STEPS
from tests.noise.exact import FALSE_ALARM


def held(names: str, joint: np.ndarray) -> PrivateCounts:
    def read(asked):
        axes = {own: tuple(i for i, name in enumerate(names) if name not in own) for own in asked}
        return {own: joint.sum(axis=axes[own]) for own in asked}

    counts = PrivateCounts(read)
    counts.fetch([tuple(names)])
    return counts


@settings(max_examples=80)
@given(st.lists(st.integers(1, 5), max_size=5), st.integers(0, 60))
def test_maximal_sets_are_all_that_cannot_grow(sizes: list[int], limit: int):
    known = dict(zip("abcde", sizes, strict=False))
    found = list(maximal_sets(known, limit))

    def cells(chosen) -> int:
        return math.prod(known[name] for name in chosen)

    fitting = [set(own) for r in range(len(known) + 1) for own in itertools.combinations(known, r)]
    fitting = [own for own in fitting if cells(own) <= limit]
    expected = [own for own in fitting if not any(own < other for other in fitting)] or [set()]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


def random_network(seed: int) -> tuple[Network, np.ndarray]:
    """A network over a to e and its joint distribution."""
    random = np.random.default_rng(seed)
    sizes = dict(zip("abcde", random.integers(1, 4, 5).tolist(), strict=True))
    order = random.permutation(list("abcde")).tolist()
    families, tables = [], []
    joint = np.ones(tuple(sizes.values()))
    for place, child in enumerate(order):
        parents = tuple(sorted(random.permutation(order[:place])[: int(random.integers(0, 4))].tolist()))
        shape = [*(sizes[name] for name in parents), sizes[child]]
        table = random.dirichlet(np.ones(shape[-1]), shape[:-1])
        families.append((child, parents))
        tables.append(table)
        axes = ["abcde".index(name) for name in (*parents, child)]
        spread = table.transpose(np.argsort(axes)).reshape(
            [n if i in axes else 1 for i, n in enumerate(sizes.values())]
        )
        joint = joint * spread
    return Network(tuple(families), tuple(tables), 100.0), joint


@pytest.mark.parametrize("seed", range(12))
def test_marginals_are_those_of_the_joint_distribution(seed: int):
    own, joint = random_network(seed)
    for r in range(6):
        for attributes in itertools.combinations("abcde", r):
            axes = tuple(i for i, name in enumerate("abcde") if name not in attributes)
            assert own.marginal(attributes) == pytest.approx(joint.sum(axis=axes), abs=1e-12)


def test_answers_are_drawn_where_elimination_takes_too_much(monkeypatch: pytest.MonkeyPatch):
    own, joint = random_network(3)
    domain = mdp.Domain(dict(zip("abcde", joint.shape, strict=True)))
    workload = mdp.Workload(domain, mdp.marginals(2), mdp.product(a="prefix"))
    exact, sampled = own.answers(workload, SeededSource(1))
    assert not sampled
    tables = [
        joint.sum(axis=tuple(i for i, n in enumerate("abcde") if n not in g.attributes)) for g in workload
    ]
    expected = [100 * group.answers(table).ravel() for group, table in zip(workload, tables, strict=True)]
    assert exact == pytest.approx(np.concatenate(expected))
    many = Network(own.families, own.conditionals, 50_000.0)
    monkeypatch.setattr(networks, "MOST_CELLS", 1)
    drawn, sampled = many.answers(workload, SeededSource(1))
    assert sampled
    # six standard deviations of a count of 50,000 records
    assert np.abs(drawn - 500 * exact).max() < 6 * math.sqrt(50_000) / 2


def test_sums_of_counts_are_cut_and_each_score_is_kept_apart():
    joint = np.full((2, 3, 4), MOST_RECORDS)
    joint[1, 2] = 7
    counts = held("abc", joint)
    assert counts.of(("b", "a")).tolist() == [[MOST_RECORDS] * 2] * 2 + [[MOST_RECORDS, 28]]
    assert counts.of(()) == MOST_RECORDS
    counts = held("ab", np.array([[9, 1], [2, 5]]))
    family = ("a", ("b",))
    scores = {name: counts.score(family, SCORES[name]) for name in SCORES}
    assert len(set(scores.values())) == 3
    assert all(counts.score(family, SCORES[name]) == score for name, score in scores.items())


def test_the_best_families_are_found_where_epsilon_is_large():
    """c copies b, which is near to a; d is independent of all."""
    random = np.random.default_rng(0)
    a = random.integers(0, 3, 3000)
    b = np.where(random.random(3000) < 0.8, a, random.integers(0, 3, 3000))
    joint = np.zeros((3, 3, 3, 2), dtype=np.int64)
    np.add.at(joint, (a, b, b, random.integers(0, 2, 3000)), 1)
    counts = held("abcd", joint)
    sizes = dict(zip("abcd", joint.shape, strict=True))
    found = greedy_families(counts, sizes, 9, SCORES["R"], Fraction(10**6), SeededSource(0))
    links = {frozenset((child, *parents)) for child, parents in found if child != "d"}
    assert {frozenset("ab"), frozenset("bc")} <= links
    assert len(found) == 4


def test_families_are_chosen_with_the_probabilities_of_the_exponential_mechanism():
    """A chi-square test over whole networks, whose false-alarm rate is `FALSE_ALARM`."""
    joint = np.array([[[9, 2], [3, 4]], [[1, 6], [2, 5]]])
    sizes, epsilon, runs = {"a": 2, "b": 2, "c": 2}, Fraction(3), 6_000
    expected = network_probabilities(joint, "R", 4, float(epsilon))
    counts, source = held("abc", joint), SeededSource(4)
    drawn = Counter(
        tuple(greedy_families(counts, sizes, 4, SCORES["R"], epsilon, source)) for _ in range(runs)
    )
    assert drawn.keys() <= expected.keys()
    found = [drawn[own] for own in expected]
    assert stats.chisquare(found, [runs * share for share in expected.values()]).pvalue > FALSE_ALARM


def network_probabilities(joint: np.ndarray, name: str, limit: int, epsilon: float) -> dict[tuple, float]:
    """The probability of every network over a, b, c of two values each, by enumeration."""
    score, rate = SCORES[name], epsilon / 2 / (2 * {"R": 2, "F": 1}[name] * STEPS)
    parents_of = {4: 1, 8: 2}[limit]

    def weight(child: str, parents: tuple[str, ...]) -> float:
        axes = ["abc".index(own) for own in (child, *parents)]
        others = tuple(i for i in range(3) if i not in axes)
        kept = sorted(axes)
        table = joint.sum(axis=others).transpose([kept.index(axis) for axis in axes])
        return math.exp(rate * score.of(table.reshape(2, -1)))

    found: dict[tuple, float] = {}
    for first in "abc":
        for second, third in itertools.permutations(set("abc") - {first}):
            rest = sorted(set("abc") - {first})
            one = {child: weight(child, (first,)) for child in rest}
            pair = tuple(sorted((first, second)))
            options = [pair] if parents_of == 2 else [(own,) for own in pair]
            last = {own: weight(third, own) for own in options}
            for own in options:
                network = ((first, ()), (second, (first,)), (third, own))
                found[network] = one[second] / sum(one.values()) * last[own] / sum(last.values()) / 3
    assert sum(found.values()) == pytest.approx(1)
    return found


@pytest.mark.parametrize(("name", "limit"), [("R", 4), ("R", 8), ("F", 4), ("F", 8)])
def test_networks_keep_the_promise_on_all_neighbours_of_small_tables(name: str, limit: int):
    epsilon = 2.0
    known: dict[tuple[int, ...], np.ndarray] = {}

    def log(table: tuple[int, ...]) -> np.ndarray:
        if table not in known:
            own = network_probabilities(np.array(table).reshape(2, 2, 2), name, limit, epsilon)
            known[table] = np.log([own[network] for network in sorted(own)])
        return known[table]

    largest = 0.0
    for table in itertools.product((0, 1), (0, 3), (0, 1), (0, 2), (0, 1), (0, 1), (0, 4), (0, 1)):
        for cell in range(8):
            more = tuple(count + (place == cell) for place, count in enumerate(table))
            largest = max(largest, float(np.abs(log(more) - log(table)).max()))
    assert epsilon / 8 < largest <= epsilon
