"""Integers that add up down a tree of areas: each step against greedy, the whole against its own sums."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.model import IntegerTable, Model
from matrixdp.model.integers import children
from tests.model.builders import measured

#: Tracts in a mixed order, each with its county and its state; one is in no county.
AREAS = {
    "tract": ["t1", "t7", "t2", "t5", "t3", "city", "t4", "t6", "t8"],
    "county": ["c1", "c3", "c1", "c2", "c2", "", "c2", "c3", "c4"],
    "state": ["x", "y", "x", "x", "x", "y", "x", "y", "y"],
}
LEVELS = ("total", "state", "county", "tract")
FULL: dict[str, Any] = {"sex": "identity", "age": "identity"}


def greedy(estimates: Any, variances: Any, total: int) -> Any:
    """Give one after the other to the child whose cost grows least, which is exact for convex costs."""
    found = np.zeros(len(estimates), dtype=np.int64)
    for _ in range(total):
        found[np.argmin((2 * (found - estimates) + 1) / variances)] += 1
    return found


def cost(found: Any, estimates: Any, variances: Any) -> float:
    return float(((found - estimates) ** 2 / variances).sum())


@pytest.mark.parametrize("alike", [True, False])
def test_children_are_as_near_as_greedy_finds_all_parents_at_once(alike: bool):
    random = np.random.default_rng(4)
    sizes = random.integers(1, 9, 60)
    starts, shape = np.cumsum(sizes) - sizes, (int(sizes.sum()), 5)
    estimates = random.normal(2.0, 4.0, shape)
    variances = np.ones(shape) if alike else random.uniform(0.3, 5.0, shape)
    totals = random.integers(0, 60, (60, 5))
    totals[:5] = 0
    found = children(estimates, variances, totals, starts)
    assert found.dtype == np.int64
    assert (found >= 0).all()
    assert (np.add.reduceat(found, starts, axis=0) == totals).all()
    for parent, (first, size) in enumerate(zip(starts, sizes, strict=True)):
        own = slice(first, first + size)
        for cell in range(5):
            one = estimates[own, cell], variances[own, cell]
            expected = greedy(*one, int(totals[parent, cell]))
            assert cost(found[own, cell], *one) == pytest.approx(cost(expected, *one), abs=1e-6)


def test_ties_go_to_the_first_children():
    estimates = np.array([[0.25], [3.25 + 1e-13], [0.25 + 1e-13], [-9.0]])
    found = children(np.tile(estimates, (2, 1)), np.ones((8, 1)), np.array([[5], [5]]), np.array([0, 4]))
    assert found.ravel().tolist() == [1, 4, 0, 0] * 2


def test_large_counts_are_moved_by_no_more_than_they_must():
    estimates = np.array([[3e8 + 0.4], [2e8 - 0.3], [-40.0]])
    found = children(estimates, np.array([[1.0], [4.0], [1.0]]), np.array([[500_000_010]]), np.array([0]))
    assert found.ravel().tolist() == [300_000_002, 200_000_008, 0]


def nation(**options: Any) -> tuple[Any, Any]:
    """Return a release of a small nation, and its true table: tract, sex, age."""
    random = np.random.default_rng(1)
    truth = random.poisson(random.gamma(0.4, 20.0, (9, 2, 4)))
    codes = np.repeat(np.arange(truth.size), truth.ravel())
    tract, sex, age = np.unravel_index(codes, truth.shape)
    levels: dict[str, dict[str, list[str]]] = {"state": {}, "county": {}}
    for level, own in levels.items():
        for area, one in zip(AREAS[level], AREAS["tract"], strict=True):
            own.setdefault(area, []).append(one)
    domain = {"sex": 2, "tract": {"categories": AREAS["tract"], "levels": levels}, "age": 4}
    entries = [
        mdp.product(**FULL, at={"tract": LEVELS}),
        mdp.product(age="prefix", at={"tract": "county"}),
        mdp.marginals([0, 1]),
    ]
    table = {"tract": np.array(AREAS["tract"])[tract], "sex": sex, "age": age}
    given = {"budget": mdp.Budget(rho=0.05), "seed": 5, **options}
    return measured(domain, table, *entries, **given).reconstruct(), truth


@pytest.fixture(scope="module")
def release() -> Any:
    return nation()[0]


@pytest.fixture(scope="module")
def model(release: Any) -> Any:
    return release.model("integers")


def summed(table: Any, level: str) -> Any:
    """Return a table of tracts, summed to the areas of a level in the order of their first tracts."""
    if level in ("total", "tract"):
        return table if level == "tract" else table.sum(axis=0, keepdims=True)
    areas = dict.fromkeys(area for area in AREAS[level] if area)
    return np.array([table[[own == area for own in AREAS[level]]].sum(axis=0) for area in areas])


def by_level(model: Any, column: str) -> dict[str, Any]:
    """Return a column of the answers to the full table at every level, shape (areas, sex, age)."""
    found = {}
    for level in LEVELS:
        table = model.answer(mdp.product(**FULL, at={"tract": level}))
        figures = np.array(table[column].to_pylist())
        shape = (2, 1, 4) if level == "total" else (2, -1, 4)
        found[level] = np.moveaxis(figures.reshape(shape), 1, 0)
    return found


def test_integers_add_up_at_every_level_and_cell(model: Any):
    integers = by_level(model, "modelled")
    tracts = integers["tract"]
    assert (tracts >= 0).all()
    assert (tracts == np.rint(tracts)).all()
    assert any((by_level(model, "estimate")["tract"] < -1).ravel())
    for level in LEVELS:
        assert (integers[level] == summed(tracts, level)).all()
    estimated = model.answer(mdp.marginals(0))
    assert estimated["modelled"].to_pylist() == [round(estimated["estimate"].to_pylist()[0])]
    assert (model.method, model.size, model.accepted) == ("integers", int(tracts.sum()), True)
    # what follows from the table is answered from it
    prefixes = model.answer(mdp.product(age="prefix", at={"tract": "county"}))["modelled"].to_numpy()
    expected = np.cumsum(integers["county"].sum(axis=1), axis=1)
    assert prefixes.reshape(4, 4).tolist() == expected.tolist()


def test_each_area_has_the_integers_nearest_to_its_estimates(model: Any):
    """Within the integers of the larger area, from what is published; cells of the total within their sum."""
    integers, estimates, deviations = (by_level(model, name) for name in ("modelled", "estimate", "stddev"))

    def check(level: str, places: Any) -> None:
        found, own = integers[level][places].ravel(), estimates[level][places].ravel()
        variances = deviations[level][places].ravel() ** 2
        expected = greedy(own, variances, int(found.sum()))
        assert cost(found, own, variances) == pytest.approx(cost(expected, own, variances), abs=1e-6)

    check("total", 0)
    for cell in np.ndindex(2, 4):
        check("state", (slice(None), *cell))
        check("county", ([0, 2], *cell))  # c1 and c2, all of state x
        for county in ("c1", "c2", "c3", "c4"):
            check("tract", ([place for place, own in enumerate(AREAS["county"]) if own == county], *cell))


def test_unbiased_answers_stay_and_what_lies_outside_is_marked(release: Any, model: Any):
    answers = model.answers
    names = [name for name in release.answers.column_names if name != "group"]
    own = release.answers.select(names).to_pylist()
    assert answers.select(names).to_pylist() == own
    rows = answers.to_pylist()
    outside = [not row["lower"] <= row["modelled"] <= row["upper"] for row in rows]
    assert [row["outside"] for row in rows] == outside
    assert any(outside)
    assert not any(row["extrapolated"] for row in rows)


def test_drift_is_told_by_size_and_level_beside_that_of_clipping(model: Any):
    integers, estimates = by_level(model, "modelled"), by_level(model, "estimate")
    clipped = np.maximum(np.rint(estimates["tract"]), 0)
    assert [one["level"] for one in model.made["levels"]] == list(LEVELS)
    for one in model.made["levels"]:
        level, own = one["level"], estimates[one["level"]]
        if level == "county":
            continue  # the tract without a county is an area of its own there
        off = integers[level] - own
        for place, name in enumerate(("below 0", "0 to 5", "6 to 50", "above 50")):
            cells = np.digitize(own, [0.0, 5.5, 50.5]) == place
            assert one["drift"].get(name, {"cells": 0})["cells"] == cells.sum()
            if cells.any():
                assert one["drift"][name]["mean"] == pytest.approx(off[cells].mean(), abs=1e-4)
        repaired = (summed(clipped, level) - own).mean()
        assert one["clipped"] == pytest.approx(repaired, abs=1e-4)
        assert repaired > 0.1
    assert [one["areas"] for one in model.made["levels"]] == [1, 2, 5, 9]


def test_the_tree_mechanism_serves_as_well():
    model = nation(mechanism="tree")[0].model("integers")
    integers = by_level(model, "modelled")
    assert all((integers[level] == summed(integers["tract"], level)).all() for level in LEVELS)


def test_counties_are_far_nearer_than_by_clipping_and_tracts_nearer_than_estimates():
    random = np.random.default_rng(2)
    county = np.repeat(np.arange(12), random.integers(5, 40, 12))
    truth = random.poisson(random.gamma(0.35, 10.0, (len(county), 6)))
    areas, sets = len(county), [np.flatnonzero(county == own).tolist() for own in range(12)]
    entries = [mdp.product(age="identity", tract=own) for own in ("identity", {"sets": sets})]
    codes = np.repeat(np.arange(truth.size), truth.ravel())
    table = {"tract": codes // 6, "age": codes % 6}
    budget = mdp.Budget(rho=0.03)
    entries.append(mdp.product(age="identity"))
    held = measured({"tract": areas, "age": 6}, table, *entries, budget=budget, mechanism="tree")
    model = held.reconstruct().model("integers")
    rows = [model.answer(entries[0])[name].to_numpy().reshape(areas, 6) for name in ("estimate", "modelled")]
    estimates, integers = rows
    clipped = np.maximum(np.rint(estimates), 0)

    def off(found: Any, level: Any = None) -> float:
        own = found - truth
        own = own if level is None else np.add.reduceat(own, np.unique(level, return_index=True)[1], axis=0)
        return float(np.sqrt((own**2).mean()))

    assert off(integers) < off(clipped) < off(estimates)
    assert off(integers, county) < 1.02 * off(estimates, county) < 0.4 * off(clipped, county)
    assert abs((integers - truth).mean()) < 0.1 < 1 < (clipped - truth).mean()


def test_a_table_that_is_too_large_is_refused(release: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("matrixdp.model.integers.MAX_CELLS", 71)
    with pytest.raises(TooLargeError, match="72 cells"):
        release.model("integers")


def test_marginals_are_in_the_order_that_is_asked(model: Any):
    table = model.tables
    turned = table.marginal(["age", "sex", "tract"])
    assert turned.tolist() == np.moveaxis(table.counts, table.attributes.index("age"), 0).tolist()
    adult = {"of": ["age"], "map": {0: "no", 1: "no", 2: "yes"}}
    domain = mdp.Domain({"age": {"min": 0, "max": 2}, "adult": adult})
    assert IntegerTable(domain, ("age",), np.array([1, 2, 4])).marginal(["adult"]).tolist() == [3, 4]


def altered(model: Any, folder: Path, counts: Any, **made: Any) -> list[str]:
    tables = IntegerTable(model.domain, model.tables.attributes, counts)
    other = Model(model.measurement, model.workload, tables, {**model.made, **made}, model.confidence)
    return [one.words for one in mdp.verify_model(other.save(folder)).failed]


def test_integers_are_read_back_and_follow_from_the_measurement(model: Any, tmp_path: Path):
    again = Model.load(model.save(tmp_path / "model"))
    assert again.answers.equals(model.answers)
    assert (again.method, dict(again.made)) == ("integers", dict(model.made))
    assert mdp.verify_model(tmp_path / "model").holds
    counts = model.tables.counts.copy()
    assert altered(model, tmp_path / "same", counts.copy()) == []
    levels = [dict(one) for one in model.made["levels"]]
    levels[2]["clipped"] = 0.0
    [words] = altered(model, tmp_path / "drift", counts.copy(), levels=levels)
    assert "clipped says 0.0" in words
    counts[0, 0, 0] += 1
    counts[0, 1, 0] += 1
    [words] = altered(model, tmp_path / "other", counts)
    assert "2 of its integers do not follow" in words
    # a table in another order, and a workload that does not ask for it
    turned = IntegerTable(model.domain, ("age", "tract", "sex"), np.transpose(counts, (2, 1, 0)))
    less = mdp.Workload(model.domain, mdp.marginals(1))
    for name, workload in (("turned", model.workload), ("less", less)):
        other = Model(model.measurement, workload, turned, dict(model.made))
        assert [one.subject for one in mdp.verify_model(other.save(tmp_path / name)).failed] == ["model"]
