"""PrivBayes: what it spends, what it promises, and how it errs."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import matrixdp as mdp
from matrixdp.noise import LAPLACE, SeededSource, choose
from matrixdp.papers.door import lattice_scale, noisy_quotients
from matrixdp.papers.privbayes import network as networks
from matrixdp.papers.privbayes import privbayes, simulate
from matrixdp.papers.privbayes.mechanism import prepared
from matrixdp.papers.privbayes.network import PrivateCounts
from matrixdp.sources.base import INFERRED
from tests.noise.exact import FALSE_ALARM
from tests.papers.neighbours import promise_kept

ONE = mdp.Budget(epsilon=1)
MIXED = mdp.Workload(
    mdp.Domain({"a": 3, "b": 4, "c": 2, "unasked": 2}), mdp.marginals([1, 2], ["a", "b", "c"])
)
BINARY = mdp.Workload(mdp.Domain(dict.fromkeys("abcd", 2)), mdp.marginals(2))


def chain(records: int, sizes: tuple[int, ...], seed: int = 0) -> dict[str, np.ndarray]:
    """Records whose values follow one another along a chain."""
    random = np.random.default_rng(seed)
    columns = [random.integers(0, sizes[0], records)]
    for size in sizes[1:]:
        copied = random.random(records) < 0.8
        columns.append(np.where(copied, columns[-1] % size, random.integers(0, size, records)))
    return dict(zip("abcd", columns, strict=False))


@pytest.mark.parametrize("budget", [ONE, mdp.Budget(rho=2), mdp.Budget(epsilon=1, neighbours="replace")])
@pytest.mark.parametrize("workload", [MIXED, BINARY], ids=["mixed", "binary"])
def test_what_was_drawn_costs_the_budget(
    workload: mdp.Workload, budget: mdp.Budget, monkeypatch: pytest.MonkeyPatch
):
    """The cost is added up from every scale of noise and every choice, and not from the shares."""
    spent: list[Fraction] = []

    def scaled(sensitivity, epsilon, *powers):
        scale = lattice_scale(sensitivity, epsilon, *powers)
        spent.append(sensitivity / scale.exact)
        return scale

    def chosen(scores, sensitivity, epsilon, source):
        spent.append(epsilon)
        return choose(scores, sensitivity, epsilon, source)

    drawn: list[int] = []

    def noisy(values, shift, scale, random):
        drawn.append(len(values))
        return quotients(values, shift, scale, random)

    module, quotients = "matrixdp.papers.privbayes.mechanism", noisy_quotients
    monkeypatch.setattr(f"{module}.lattice_scale", scaled)
    monkeypatch.setattr(f"{module}.noisy_quotients", noisy)
    monkeypatch.setattr(networks, "choose", chosen)
    release = privbayes(
        workload, chain(500, tuple(workload.domain.shape)[:4]) | {"unasked": [0] * 500}, budget
    )
    attributes = len(release.network.families)
    assert len(spent) == 1 + (attributes - 1) + 1
    # the sensitivity of the tables together is how many were drawn with one scale
    sets = [{child, *parents} for child, parents in release.network.families]
    outermost = [own for own in sets if not any(own < other for other in sets)]
    assert len(drawn) == 1 + len({frozenset(own) for own in outermost})
    total, allowed = sum(spent, Fraction(0)), LAPLACE.cost(budget).value
    assert total <= release.authorization.cost.value == allowed
    assert float(total / allowed) > 1 - 1e-6


def test_a_release_says_what_it_costs_and_holds_the_answers():
    table = chain(5000, (3, 4, 2)) | {"unasked": np.ones(5000, dtype=int)}
    release = privbayes(MIXED, table, mdp.Budget(epsilon=10_000), seed_not_private=1)
    assert not release.private
    assert "NOT PRIVATE" in release.privacy.text
    assert release.authorization.cost.value == 10_000
    assert release.network.records == pytest.approx(5000, abs=0.3)
    assert not release.sampled
    joint = np.zeros((3, 4, 2))
    np.add.at(joint, tuple(np.array(table[name]) for name in "abc"), 1)
    exact = [
        joint.sum(axis=tuple(i for i, name in enumerate("abc") if name not in group.attributes)).ravel()
        for group in MIXED
    ]
    # one family holds all attributes: nothing is lost but noise
    assert release.estimates == pytest.approx(np.concatenate(exact), abs=1.0)
    private = privbayes(MIXED, table, mdp.Budget(rho=0.5))
    assert private.private
    assert private.privacy.pure_epsilon == 1.0
    assert any("the network was chosen from the data" in text for text in private.privacy.assumed)
    assert private.privacy.assumed_of_table == (INFERRED,)


def test_one_attribute_needs_no_network():
    workload = mdp.Workload(mdp.Domain({"a": range(16)}), mdp.product(a="prefix"))
    ready = prepared(workload, ONE)
    assert ready.network == 0
    assert ready.count + ready.marginals == 1
    result = simulate(workload, {"a": np.repeat(np.arange(16), 500)}, ONE, simulations=10)
    assert (result.parents, result.sampled) == (0, 0)
    assert result.rmse < 200


@pytest.mark.parametrize(
    ("records", "cells"), [(1, 2), (12, 2), (80, 4), (95, 4), (100, 16), (2000, 16), (10**6, 16)]
)
def test_the_degree_is_theta_useful(records: int, cells: int):
    """With two values each: the largest k with n epsilon_2 / ((d - k) 2^(k + 1)) >= 4, 0 if there is none."""
    ready = prepared(BINARY, ONE)
    usable = [k for k in range(4) if records * float(ready.marginals) / ((4 - k) * 2 ** (k + 1)) >= 4]
    assert 2 ** (max(usable, default=0) + 1) == cells == ready.most_cells(records)
    general = prepared(MIXED, ONE)
    assert general.most_cells(records) == math.floor(records * general.marginals / (4 * 3))


def test_many_sets_lower_the_limit(monkeypatch: pytest.MonkeyPatch):
    domain = mdp.Domain({f"x{i}": 2 + i % 3 for i in range(12)})
    ready = prepared(mdp.Workload(domain, mdp.marginals(1)), ONE)
    before = ready.most_cells(10_000)
    monkeypatch.setattr("matrixdp.papers.privbayes.mechanism._MOST_SETS", 12)
    assert ready.most_cells(10_000) < before


def test_a_network_beats_independence_and_scores_differ_little():
    sizes = (2, 2, 2, 2)
    table = chain(20_000, sizes, 1)
    found = {score: simulate(BINARY, table, ONE, simulations=5, score=score) for score in ("F", "R", "I")}
    joint = np.zeros(sizes)
    np.add.at(joint, tuple(table[name] for name in "abcd"), 1)
    errors = []
    for group in BINARY:
        axes = tuple(i for i, name in enumerate("abcd") if name not in group.attributes)
        pair = joint.sum(axis=axes)
        errors.append(pair - np.outer(pair.sum(axis=1), pair.sum(axis=0)) / 20_000)
    independent = math.sqrt(np.mean(np.square(errors)))
    for result in found.values():
        assert result.rmse < independent / 10


def test_large_binary_tables_are_scored_by_r(monkeypatch: pytest.MonkeyPatch):
    table = chain(400, (2, 2, 2, 2), 1)

    def families(score: str | None) -> tuple:
        release = privbayes(BINARY, table, mdp.Budget(epsilon=20), score=score, seed_not_private=3)
        return release.network.families, release.estimates.tolist()

    assert families(None) == families("F")
    monkeypatch.setattr("matrixdp.papers.privbayes.mechanism._MOST_DOMINANCE", 100)
    assert families(None) == families("R")


@pytest.mark.parametrize(("marginals", "kept"), [(None, True), (Fraction(14), False)])
def test_neighbours_are_told_apart_no_better_than_the_budget_allows(marginals: Fraction | None, kept: bool):
    """Whole runs on two tables that differ by one record: no event is more than e^epsilon times as likely.

    Events are what the answer of the cell with that record is at most, or above. Noise for a larger epsilon
    than was paid for is found.
    """
    epsilon, runs = 3.0, 2_000
    workload = mdp.Workload(mdp.Domain({"a": 2, "b": 2}), mdp.marginals(2))
    ready = prepared(workload, mdp.Budget(epsilon=3))
    ready = ready if marginals is None else replace(ready, marginals=marginals)

    def events(record: int, seed: int) -> np.ndarray:
        tables = {(): np.array(6 + record), ("a", "b"): np.array([[6, 0], [0, record]])}
        tables |= {("a",): np.array([6, record]), ("b",): np.array([6, record])}
        counts, source = PrivateCounts(lambda asked: {own: tables[own] for own in asked}), SeededSource(seed)
        cells = np.array([ready.run(counts, source).answers(workload, source)[0] for _ in range(runs)])
        below = (cells[:, 3:] <= np.arange(8) / 8).sum(axis=0)
        return np.concatenate([below, runs - below])

    assert promise_kept(events(0, 1), events(1, 2), runs, epsilon) == kept


def test_the_noise_is_that_of_the_proof():
    """Of both steps that add noise; the false-alarm rate of each comparison is `FALSE_ALARM`.

    Many records: nothing is cut off at 0, so that the noise of a cell follows from its share.
    """
    sizes, records = {"a": 3000, "b": 2, "c": 5}, 2**33
    workload = mdp.Workload(mdp.Domain({name: range(size) for name, size in sizes.items()}), mdp.marginals(1))
    ready, source = prepared(workload, ONE), SeededSource(7)
    tables: dict[tuple[str, ...], np.ndarray] = {(): np.array(1000)}
    tables |= {(name,): np.full(size, records // size) for name, size in sizes.items()}
    counts = PrivateCounts(lambda asked: {own: tables[own] for own in asked})
    found = np.array([ready.noisy_records(counts, source) for _ in range(3000)]) - 1000
    assert stats.kstest(found, stats.laplace(scale=20).cdf).pvalue > FALSE_ALARM
    shares = ready.measured(counts, [("a", ()), ("b", ()), ("c", ())], source)[0]
    errors = (shares - shares.mean()) / shares.mean() * (records // 3000)
    scale = 3 / float(ready.marginals)  # three tables
    assert stats.kstest(errors - np.median(errors), stats.laplace(scale=scale).cdf).pvalue > FALSE_ALARM


def test_records_of_one_person_beyond_the_bound_are_not_counted():
    workload = mdp.Workload(mdp.Domain({"a": 3}), mdp.marginals(1))
    people = {"a": [0, 0, 0, 1, 2], "person": ["ann", "ann", "ann", "ben", "cy"]}
    budget = mdp.Budget(epsilon=2000, unit=mdp.Unit(records=2, id="person"))
    release = privbayes(workload, people, budget)
    np.testing.assert_allclose(release.estimates, [2, 1, 1], atol=0.5)
    assert release.privacy.unit == budget.unit
    assert release.authorization.cost.value == 1000
