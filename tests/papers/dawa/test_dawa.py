"""DAWA: what it spends, what it promises, and how it errs."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import SeededSource
from matrixdp.papers.dawa import dawa, simulate
from matrixdp.papers.dawa.dawa import cost_change, prepared
from matrixdp.papers.dawa.partition import COST_SENSITIVITY, Partition
from matrixdp.papers.dawa.tree import greedy_tree
from matrixdp.papers.door import MOST_RECORDS, Asked, lattice_scale, noisy_quotients
from matrixdp.sources.base import INFERRED
from tests.papers.neighbours import promise_kept

ONE = mdp.Budget(epsilon=1)


def about(cells: int, kind: str = "range") -> mdp.Workload:
    return mdp.Workload(mdp.Domain({"a": range(cells)}), mdp.product(a=kind))


def table(counts) -> dict[str, np.ndarray]:
    return {"a": np.repeat(np.arange(len(counts)), counts)}


def test_both_stages_spend_the_budget_exactly():
    ready = prepared(about(8), mdp.Budget(epsilon=Fraction(3, 10)))
    assert ready.first == Fraction(3, 40)
    assert ready.first + ready.second == Fraction(3, 10)
    halved = prepared(about(8), mdp.Budget(epsilon=1, neighbours="replace"), share=0.5)
    assert halved.first == halved.second == Fraction(1, 4)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 4), Fraction(7, 3), Fraction(5000)])
def test_scales_are_rounded_up_and_changes_of_costs_are_whole_steps(epsilon: Fraction):
    power = lattice_scale(2, epsilon, -14, -2).power
    for change in (2, 3, Fraction(7, 2), Fraction(15, 4), 4):
        scale = lattice_scale(change, epsilon, power, power)
        assert change / scale.exact <= epsilon
        assert float(change / scale.exact / epsilon) > 1 - 1e-6
        assert (change / Fraction(2) ** scale.power).denominator == 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1), Fraction(5000)])
def test_one_step_of_noise_divides_what_one_record_changes(epsilon: Fraction):
    """The proof needs it of D_m for every length m, and of D."""
    scales = prepared(about(64), mdp.Budget(epsilon=epsilon)).interval_scales()
    assert list(scales) == [1, 2, 4, 8, 16, 32, 64]
    assert len({scale.power for scale in scales.values()}) == 1
    for length, scale in scales.items():
        for change in (cost_change(length), Fraction(COST_SENSITIVITY)):
            assert 2 - Fraction(2, length) <= cost_change(length) <= COST_SENSITIVITY == 2
            assert (change / Fraction(2) ** scale.power).denominator == 1


@pytest.mark.parametrize("shift", [0, 3, 12])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(3000)])
def test_noise_is_laplace_around_the_exact_value(shift: int, epsilon: Fraction):
    scale = lattice_scale(2, epsilon, -14, -2)
    values = np.random.default_rng(1).integers(0, 2**40, 20_000)
    found = np.ldexp(noisy_quotients(values, shift, scale, SeededSource(1)).astype(float), scale.power)
    errors = (found - np.ldexp(values.astype(float), -shift)) / float(scale.exact)
    assert abs(errors.mean()) < 0.05
    assert np.abs(errors).mean() == pytest.approx(1.0, abs=0.05)
    assert errors.var() == pytest.approx(2.0, abs=0.2)


#: All partitions of four cells into buckets of 1, 2 and 4.
FOUR = [(0, 1, 2, 3, 4), (0, 2, 3, 4), (0, 1, 3, 4), (0, 1, 2, 4), (0, 2, 4), (0, 4)]


class Model:
    """Stage 1 on four cells by brute force, with noise that is shared by all tables."""

    def __init__(self, first: float, charges: dict[int, float], runs: int = 100_000):
        random = np.random.default_rng(5)
        self.noise = {}
        for length in (1, 2, 4):
            scale = float(cost_change(length) + COST_SENSITIVITY) / first
            for start in range(5 - length):
                drawn = charges[length] + scale * random.laplace(size=runs).astype(np.float32)
                self.noise[start, start + length] = drawn

    def frequencies(self, table) -> np.ndarray:
        totals = []
        for edges in FOUR:
            buckets = list(itertools.pairwise(edges))
            exact = sum(np.abs(np.subtract(table[a:b], np.mean(table[a:b]))).sum() for a, b in buckets)
            totals.append(exact + sum(self.noise[bucket] for bucket in buckets))
        return np.bincount(np.argmin(totals, axis=0), minlength=len(FOUR)) / len(totals[0])


def test_partitions_keep_the_promise_on_all_neighbours_of_small_tables():
    first = 2.0
    model = Model(first, {1: 0.0, 2: 2.0, 4: 6.0})
    known: dict[tuple[int, ...], np.ndarray] = {}

    def frequencies(table: tuple[int, ...]) -> np.ndarray:
        if table not in known:
            known[table] = model.frequencies(table)
        return known[table]

    largest = 0.0
    for table in itertools.product((0, 6), (0, 3), (0, 3), (0, 6)):
        for cell in range(4):
            more = tuple(count + (place == cell) for place, count in enumerate(table))
            pair = np.stack([frequencies(table), frequencies(more)])
            often = pair.min(axis=0) > 0.005
            largest = max(largest, float(np.abs(np.diff(np.log(pair[:, often]), axis=0)).max()))
    assert first / 4 < largest < first


def test_partitions_are_drawn_as_the_model_says():
    ready = prepared(about(4, "identity"), mdp.Budget(epsilon=4), share=0.5)
    charges = {m: 0.5 + 3.5 * float(cost_change(m) + COST_SENSITIVITY) / 2.0 for m in (1, 2, 4)}
    expected = Model(2.0, charges).frequencies((0, 4, 8, 9))
    random, runs = SeededSource(2), 1_000
    drawn = [FOUR.index(tuple(ready.partition(np.array([0, 4, 8, 9]), random).edges)) for _ in range(runs)]
    found = np.bincount(drawn, minlength=len(FOUR)) / runs
    assert found == pytest.approx(expected, abs=4 * 0.5 / math.sqrt(runs))
    assert (expected > 0.05).sum() >= 3


@pytest.mark.parametrize("overspent", [None, "first", "second"])
def test_neighbours_are_told_apart_no_better_than_the_budget_allows(overspent: str | None):
    """Whole runs on two tables that differ by one record.

    Events are the number of buckets, with what the answer of the cell with that record is at most, or above.
    Noise of either stage for a larger epsilon than was paid for is found.
    """
    epsilon, runs = 2.0, 3_000
    ready = prepared(about(2, "identity"), mdp.Budget(epsilon=epsilon))
    if overspent == "first":
        ready = replace(ready, first=Fraction(14))
    elif overspent == "second":
        ready = replace(ready, second=Fraction(7))

    def events(record: int, seed: int) -> np.ndarray:
        source, counts = SeededSource(seed), np.array([record, 0])
        drawn = [ready.run(counts, source) for _ in range(runs)]
        buckets = np.array([partition.buckets for partition, _, _ in drawn])
        below = np.array([cells[0] for _, _, cells in drawn])[:, None] <= np.arange(-2, 5) / 4
        split = (buckets == 2)[:, None]
        return np.concatenate(
            [(own & side).sum(axis=0) for own in (split, ~split) for side in (below, ~below)]
        )

    assert promise_kept(events(0, 1), events(1, 2), runs, epsilon) == (overspent is None)


def test_a_release_says_what_it_costs_and_holds_the_answers():
    workload = about(32)
    counts = np.repeat([100, 5], 16)
    release = dawa(workload, table(counts), mdp.Budget(epsilon=200), seed_not_private=3)
    assert not release.private
    assert "NOT PRIVATE" in release.privacy.text
    assert release.authorization.cost.value == 200
    assert release.partition.edges.tolist() == [0, 16, 32]
    assert release.cells == pytest.approx(counts, abs=0.1)
    starts, stops = np.triu_indices(32)
    sums = np.concatenate([[0], np.cumsum(release.cells)])
    assert sorted(release.estimates) == pytest.approx(sorted(sums[stops + 1] - sums[starts]))
    again = dawa(workload, table(counts), mdp.Budget(epsilon=200), seed_not_private=3)
    assert (again.estimates == release.estimates).all()
    private = dawa(workload, table(counts), mdp.Budget(rho=0.5))
    assert private.private
    assert private.privacy.pure_epsilon == 1.0
    assert any("partition" in text for text in private.privacy.assumed)
    assert private.privacy.assumed_of_table == (INFERRED,)


def test_counts_are_cut_to_a_public_bound(monkeypatch: pytest.MonkeyPatch):
    assert MOST_RECORDS == 2**33
    monkeypatch.setattr("matrixdp.papers.door.MOST_RECORDS", 5)
    opened = Asked("dawa", about(3).domain, ("a",), ONE).open(table([3, 9, 5]))
    assert opened.counts([("a",)])["a",].tolist() == [3, 5, 5]


def test_the_largest_tables_do_not_overflow():
    ready = prepared(about(4096, "prefix"), mdp.Budget(epsilon=1000))
    counts = np.zeros(4096, dtype=np.int64)
    counts[::2] = MOST_RECORDS
    partition = ready.partition(counts, SeededSource(0))
    assert partition.buckets == 4096
    wide = Partition(np.arange(0, 4097, 64))
    tree, sums = greedy_tree(ready.gram, wide.lengths), wide.sums(np.full(4096, MOST_RECORDS))
    estimated = ready.sums(tree, sums, SeededSource(1))
    assert estimated == pytest.approx(64 * MOST_RECORDS, abs=1.0)


def test_uniform_tables_give_few_buckets_and_the_error_of_their_sums():
    """With one bucket of n cells, measured by itself, a range of m cells errs by m / n times its noise."""
    workload = about(256)
    for epsilon in (1, 20):
        result = simulate(workload, table(np.full(256, 40)), mdp.Budget(epsilon=epsilon), simulations=30)
        assert result.buckets < 8
    one = simulate(workload, table(np.full(256, 40)), mdp.Budget(epsilon=20), simulations=30)
    ranges = np.array([stop - start for start in range(256) for stop in range(start + 1, 257)]) / 256
    alone = math.sqrt(2) / (0.75 * 20) * math.sqrt((ranges**2).mean())
    assert 0.5 * alone < one.rmse < 6 * alone


def test_single_cells_have_the_error_of_laplace_noise():
    """Where neighbours differ greatly every cell is a bucket, and identity queries have the second share."""
    counts = np.tile([0, 4000], 16)
    result = simulate(about(32, "identity"), table(counts), ONE, simulations=60)
    assert result.buckets == 32
    theory = math.sqrt(2) / 0.75
    assert result.rmse == pytest.approx(theory, abs=4 * result.rmse_standard_error)
    assert result.rmse_standard_error < 0.06 * theory
    assert result.rmse == result.weighted_rmse < result.max_rmse


def test_weights_and_totals_count():
    domain = mdp.Domain({"a": range(16), "b": 2})
    heavy = mdp.Workload(domain, mdp.product(a="identity", weight=4), mdp.marginals(0))
    counts = np.tile([0, 900], 8)
    data = {"a": np.repeat(np.arange(16), counts), "b": np.zeros(counts.sum(), dtype=int)}
    steps: list[tuple[int, int]] = []
    result = simulate(
        heavy, data, ONE, simulations=5, progress=lambda done, total: steps.append((done, total))
    )
    assert steps[-1] == (5, 5)
    assert 1.3 * result.rmse < result.weighted_rmse < 2 * result.rmse
    gram = prepared(heavy, ONE).gram
    assert (gram == 4 * np.eye(16) + 1).all()


def test_records_of_one_person_beyond_the_bound_are_not_counted():
    workload = about(3)
    people = {"a": [0, 0, 0, 1, 2], "person": ["ann", "ann", "ann", "ben", "cy"]}
    for unit, expected in ((mdp.Unit(records=2), [3, 1, 1]), (mdp.Unit(2, "person"), [2, 1, 1])):
        asked = Asked("dawa", workload.domain, ("a",), mdp.Budget(epsilon=1, unit=unit))
        assert asked.open(people).counts([("a",)])["a",].tolist() == expected
    budget = mdp.Budget(epsilon=2000, unit=mdp.Unit(records=2, id="person"))
    release = dawa(workload, people, budget)
    np.testing.assert_allclose(release.cells, [2, 1, 1], atol=0.5)
    assert release.privacy.unit == budget.unit
    assert release.privacy.cost <= 1000
    with pytest.raises(mdp.SourceError, match="no column 'person'"):
        dawa(workload, {"a": [0]}, budget)
