"""Values that no query tells apart change nothing: a workload, and the same with every value split."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.queries import Workload
from matrixdp.selection.auto import select
from matrixdp.selection.compose.whole_table import select_table
from matrixdp.selection.reduce import reduce
from matrixdp.selection.rules import Facts
from matrixdp.selection.selection import Selection
from matrixdp.selection.series import select_series
from tests.limits import Override

NOISES = pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)


class Values:
    """The values of an attribute, each split into some; all are stated in ends of whole values."""

    def __init__(self, counts: np.ndarray) -> None:
        self.ends = np.concatenate([[0], np.cumsum(counts)]).tolist()
        self.size = self.ends[-1]

    def range(self, first: int, last: int) -> list[int]:
        return [self.ends[first], self.ends[last + 1] - 1]

    def set(self, values: list[int]) -> list[int]:
        return [code for value in values for code in range(self.ends[value], self.ends[value + 1])]

    def rows(self, matrix: np.ndarray) -> list[list[float]]:
        return np.repeat(matrix, np.diff(self.ends), axis=1).tolist()


def asked(seed: int, a: Values, b: Values) -> Workload:
    """Return a random workload over 7 and 5 values, a third attribute beside them."""
    random = np.random.default_rng(seed)

    def ranges(values: Values, most: int, count: int) -> dict[str, object]:
        ends = np.sort(random.integers(0, most, (count, 2)), axis=1).tolist()
        return {"ranges": [values.range(*own) for own in ends]}

    def sets(values: Values, most: int, count: int) -> dict[str, object]:
        own = [random.permutation(most)[: random.integers(1, most)].tolist() for _ in range(count)]
        return {"sets": [values.set(one) for one in own]}

    entries = [
        mdp.product(a=ranges(a, 7, 3), c="identity"),
        mdp.product(a=sets(a, 7, 2), b=ranges(b, 5, 2)),
        mdp.product(b={"matrix": b.rows(random.integers(-2, 3, (2, 5)).astype(float))}, c="prefix"),
        mdp.disjunction(a=ranges(a, 7, 2), b=sets(b, 5, 2)),
        mdp.dense(
            np.repeat(random.integers(0, 2, (3, 7, 3)), np.diff(a.ends), axis=1).reshape(3, -1), ["a", "c"]
        ),
        mdp.marginals([["c"], []]),
    ]
    chosen = random.permutation(len(entries))[: random.integers(2, 5)]
    domain = mdp.Domain({"a": a.size, "b": b.size, "c": 3})
    return mdp.Workload(domain, *[entries[place] for place in chosen])


def figures(selection: Selection) -> list[float]:
    errors = [selection.analysis.group(group) for group in selection.workload]
    bound = selection.certificate.lower_bound
    return [*(e.total for e in errors), *(e.largest for e in errors), bound or 0.0]


def splits(random: np.random.Generator) -> Iterator[tuple[Values, Values]]:
    yield Values(np.ones(7, dtype=int)), Values(np.ones(5, dtype=int))
    yield Values(random.integers(1, 51, 7)), Values(random.integers(1, 4, 5))


@NOISES
@pytest.mark.parametrize("seed", range(6))
def test_split_values_change_nothing(seed: int, noise: Noise) -> None:
    found = [select(asked(seed, *own), noise=noise) for own in splits(np.random.default_rng(1000 + seed))]
    assert found[0].mechanism == found[1].mechanism
    np.testing.assert_allclose(figures(found[0]), figures(found[1]), rtol=1e-6)
    assert max(own.plan.cost for own in found) <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [
        ("residual", GAUSSIAN),
        *itertools.product(["opt-kron", "opt-m", "generalized-marginals", "opt-plus"], [GAUSSIAN, LAPLACE]),
    ],
    ids=str,
)
def test_every_mechanism_is_asked_of_groups(mechanism: str, noise: Noise) -> None:
    whole, split = (
        select(
            mdp.Workload(
                mdp.Domain({"a": a.size, "b": b.size, "c": 3}),
                mdp.product(
                    a={"ranges": [a.range(0, 2), a.range(0, 5), a.range(4, 6)]}, b={"sets": [b.set([0, 3])]}
                ),
                mdp.product(b={"ranges": [b.range(1, 4)]}, c="identity"),
            ),
            noise=noise,
            mechanism=mechanism,
        )
        for a, b in splits(np.random.default_rng(5))
    )
    np.testing.assert_allclose(figures(whole), figures(split), rtol=1e-6)


@NOISES
def test_a_million_values_take_three_ranges(noise: Noise) -> None:
    found = []
    for size in (10, 1_000_000):
        ends = [0, size // 10, size // 2, size]
        ranges = [[low, high - 1] for low, high in itertools.pairwise(ends)]
        workload = mdp.Workload(
            mdp.Domain({"income": size, "sex": 2}), mdp.product(income={"ranges": ranges}, sex="identity")
        )
        found.append(select(workload, noise=noise))
    np.testing.assert_allclose(figures(found[0]), figures(found[1]), rtol=1e-6)


@NOISES
def test_tables_are_counted_value_by_value(noise: Noise) -> None:
    """Few groups on each of three attributes are no reason to count a table of all of their values."""
    size = 100_000
    halves = {"ranges": [[0, size // 10 - 1], [size // 10, size - 1]]}
    domain = mdp.Domain(dict.fromkeys("abc", size))
    workload = mdp.Workload(domain, *(mdp.product({name: halves}) for name in "abc"))
    selection = select(workload, noise=noise)
    assert max(len(part.attributes) for part in selection.plan.parts) == 1
    assert (selection.weighted_squared_error / workload.queries) ** 0.5 < 4.5


@NOISES
def test_targets_and_the_largest_variance_are_those_of_groups(noise: Noise) -> None:
    for options in ({"objective": "max"}, {"targets": {"all": 3.0}}, {"neighbours": "replace"}):
        found = []
        for size in (6, 24):
            step = size // 6
            workload = mdp.Workload(
                mdp.Domain({"a": size, "c": 2}),
                mdp.product(
                    a={"ranges": [[0, 3 * step - 1], [0, 4 * step - 1], [step, size - 1]]}, c="identity"
                ),
            )
            found.append(figures(select(workload, noise=noise, **options)))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def places(random: np.random.Generator, area: np.ndarray) -> Workload:
    """Return a random workload over places that may trade places within their areas."""
    sets = [np.flatnonzero(area == one).tolist() for one in range(area.max() + 1)]
    wider = [sets[0] + sets[1], [place for own in sets[2:] for place in own]]
    entries = [
        mdp.product(place="identity", weight=0.5),
        mdp.product(place={"sets": sets}, sex="identity"),
        mdp.product(place={"sets": wider}, sex="prefix"),
        mdp.product(place=["identity", {"sets": sets[1:]}], weight=2),
        mdp.marginals([["sex"], []]),
        mdp.product(place={"matrix": np.add.outer([0.0, 2.0], area).tolist()}, sex="prefix"),
    ]
    chosen = random.permutation(len(entries))[:3]
    domain = mdp.Domain({"place": len(area), "sex": 2})
    return mdp.Workload(domain, mdp.product(place="identity", sex="identity"), *[entries[i] for i in chosen])


def areas(random: np.random.Generator) -> np.ndarray:
    return random.permutation(np.repeat(np.arange(4), random.integers(4, 14, 4)))


@pytest.mark.parametrize("seed", range(3))
def test_pairs_change_nothing(seed: int, limits: Override) -> None:
    """Whatever the areas' sizes: two values stand for all places of one, and the error is that of all."""
    random = np.random.default_rng(2000 + seed)
    workload = places(random, areas(random))
    found = []
    for most in (10, 10**6):
        limits(most_unpaired=most)
        found.append(select(workload, noise=GAUSSIAN, mechanism="dense"))
        assert (len(reduce(workload, pairs=True).maps) == 1) == (most == 10)
    assert max(own.plan.cost for own in found) <= 1.0 + 1e-9
    np.testing.assert_allclose(figures(found[0]), figures(found[1]), rtol=3e-3)
    assert found[0].certificate.loss == pytest.approx(found[1].certificate.loss, rel=1e-5)


def test_every_query_has_the_variance_of_one_on_pairs(limits: Override) -> None:
    """So the largest variance of a group may be sought on pairs."""
    limits(most_unpaired=10)
    random = np.random.default_rng(3000)
    workload = places(random, areas(random))
    reduced = reduce(workload, pairs=True, each=True)
    plan, _ = select_table(reduced.workload, GAUSSIAN)
    spread = reduced.over_values(plan)
    assert spread.cost == pytest.approx(plan.cost)
    for group, own in zip(workload, reduced.workload, strict=True):
        variances, few = spread.analysis.variances(group), plan.analysis.variances(own)
        assert (np.abs(variances[:, None] / few - 1.0).min(axis=1) < 2e-3).all()
        assert (np.abs(few[:, None] / variances - 1.0).min(axis=1) < 2e-3).all()


def test_places_by_the_thousand_are_solved_as_pairs() -> None:
    """Every limit is about the 80 values that are left of 3,200, and so are candidates."""
    area = np.arange(3_200) % 40
    sets = [np.flatnonzero(area == one).tolist() for one in range(40)]
    domain = mdp.Domain({"place": 3_200, "sex": 2})
    workload = mdp.Workload(
        domain, mdp.product(place="identity"), mdp.product(place={"sets": sets}, sex="prefix")
    )
    facts = Facts(reduce(workload, pairs=True).workload, GAUSSIAN)
    assert [facts.size(name) for name in ("attribute", "cells", "joint", "table")] == [80, 160, 6_400, 6_400]
    found = select(workload, noise=GAUSSIAN)
    assert found.certificate.loss == pytest.approx(found.weighted_squared_error, rel=1e-3)


def test_a_series_keeps_its_periods() -> None:
    domain = mdp.Domain({"month": 6, "age": 100})
    workload = mdp.Workload(
        domain, mdp.product(month={"ranges": [[0, 2], [3, 5]]}, age={"ranges": [[0, 17], [18, 99]]})
    )
    selection = select_series(workload, "month", GAUSSIAN)
    assert {block.matrix.columns for part in selection.plan.parts for block in part.blocks} == {6, 100}


def test_what_is_told_apart_stays() -> None:
    domain = mdp.Domain({"a": 9, "b": 4})
    for entry in (mdp.product(a="prefix"), mdp.marginals([["a"]]), mdp.product(a="suffix", b="prefix")):
        workload = mdp.Workload(domain, entry)
        assert reduce(workload).workload is workload


@NOISES
def test_a_release_over_groups_answers_for_all_values(noise: Noise, tmp_path) -> None:
    domain = mdp.Domain({"a": 60, "b": 3})
    workload = mdp.Workload(
        domain,
        mdp.product(a={"ranges": [[0, 9], [10, 39], [0, 59]]}, b="identity"),
        mdp.product(a={"sets": [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50]]}),
    )
    random = np.random.default_rng(0)
    table = {"a": random.integers(0, 60, 500).tolist(), "b": random.integers(0, 3, 500).tolist()}
    budget = mdp.Budget(mu=3e3) if noise == GAUSSIAN else mdp.Budget(epsilon=3e3)
    strategy = mdp.select(workload, noise=noise.name)
    strategy.save(tmp_path / "s.mdp")
    release = mdp.Strategy.load(tmp_path / "s.mdp").measure(table, budget).reconstruct()
    marginal = np.zeros((60, 3))
    np.add.at(marginal, (table["a"], table["b"]), 1)
    exact = []
    for group in workload:
        axes = tuple(axis for axis, name in enumerate(domain.names) if name not in group.attributes)
        exact += np.ravel(group.answers(marginal.sum(axis=axes))).tolist()
    np.testing.assert_allclose(release.answers["estimate"].to_pylist(), exact, atol=0.1)
