"""Large attributes whose values may trade places within groups: pairs stand for the groups' values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact import MergedMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.queries import Entry, Identity, Matrix, Permuted, Prefix, Sets, Stacked, Workload
from matrixdp.selection.auto import select
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.reduce import reduce
from matrixdp.testing import check_plan, dense_gram
from tests.limits import Override
from tests.selection.oracle import check, error_of

#: As if attributes of 41 values were large: no strategy is joint over two attributes.
SMALL = {
    "most_unpaired": 20,
    "joint_cells": 60,
    "max_compared_cells": 0,
    "search_joint_cells": 60,
}


def _area(sizes: list[int], *levels: list[int]) -> dict[str, object]:
    """Return an attribute of areas of some sizes, its values in no order, with coarser levels."""
    area = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    places = [f"p{place:02}" for place in range(len(area))]
    found = {}
    for number, level in enumerate([list(range(len(sizes))), *levels]):
        own = np.asarray(level)[area]
        found[f"level{number}"] = {
            f"L{number}.{one}": [places[i] for i in np.flatnonzero(own == one)] for one in {*level}
        }
    return {"categories": places, "levels": found}


BALANCED = _area([10] * 4, [0, 0, 1, 1])
UNEVEN = _area([1, 2, 3, 15, 20], [0, 0, 0, 1, 1])
DEEP = _area([1, 1, 4, 5, 6, 7, 8, 9], [0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 0, 0, 1, 1, 1])


def _level(number: int) -> dict[str, str]:
    return {"level": f"level{number}"}


CASES: dict[str, tuple[dict[str, object], list[Entry]]] = {
    "alone": (
        BALANCED,
        [mdp.product(place="identity"), mdp.product(place=_level(0)), mdp.product(place=_level(1))],
    ),
    "weights": (
        UNEVEN,
        [
            mdp.product(place="identity", weight=0.3),
            mdp.product(place=_level(0), weight=7),
            mdp.marginals([0]),
        ],
    ),
    "crossed": (UNEVEN, [mdp.product(place=p, sex="identity") for p in ("identity", _level(0), _level(1))]),
    "mixed": (
        DEEP,
        [
            mdp.product(place="identity", sex="identity"),
            mdp.product(place=_level(0), sex="identity", age="prefix"),
            mdp.product(place=_level(1), age="identity"),
            mdp.product(place=_level(2), weight=3),
            mdp.marginals([0]),
        ],
    ),
    "mixed, even": (
        BALANCED,
        [
            mdp.product(place="identity", age="prefix"),
            mdp.product(place=_level(0), sex="identity", age="identity"),
            mdp.marginals([0]),
        ],
    ),
    "some places alone": (
        UNEVEN,
        [
            mdp.product(place={"sets": [["p03"], ["p05"]]}, sex="identity"),
            mdp.product(place=_level(0), age="prefix"),
        ],
    ),
}


def _workload(area: Mapping[str, object], entries: list[Entry]) -> Workload:
    return Workload(mdp.Domain({"place": area, "sex": ["f", "m"], "age": range(4)}), *entries)


@pytest.mark.parametrize(("area", "entries"), CASES.values(), ids=CASES)
def test_the_error_is_that_of_all_values(
    area: Mapping[str, object], entries: list[Entry], limits: Override, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after rounding; the bound is one on the optimum of the whole table."""
    # trees take an attribute as it is
    monkeypatch.setattr("matrixdp.selection.rules.tree_for", lambda *_: None)
    workload = _workload(area, entries)
    limits(**SMALL)
    assert reduce(workload, pairs=True).maps
    found = select(workload, noise=GAUSSIAN)
    error = check(found)
    check_plan(found.plan, workload)
    limits(**{**SMALL, "most_unpaired": 10**6})
    whole = select(workload, noise=GAUSSIAN)
    assert found.mechanism == whole.mechanism
    assert found.certificate.loss == pytest.approx(whole.certificate.loss, rel=1e-3)
    assert error < error_of(whole) * 1.001
    optimum = solve_gram(dense_gram(workload), gap=1e-6)
    assert optimum.bound is not None
    assert found.certificate.lower_bound is not None
    assert 0.8 * optimum.loss < found.certificate.lower_bound <= optimum.loss * (1 + 1e-9)


@pytest.mark.parametrize("mechanism", ["dense", "opt-kron"])
def test_one_product_is_measured_so_too(mechanism: str, limits: Override) -> None:
    """An attribute that factors out is solved on its own by either."""
    limits(most_unpaired=20)
    stacked = mdp.product(place=["identity", _level(0), _level(1)], sex="identity")
    found = select(_workload(UNEVEN, [stacked]), noise=GAUSSIAN, mechanism=mechanism)
    check(found)
    assert any(isinstance(block.matrix, MergedMatrix) for part in found.plan.parts for block in part.blocks)


@pytest.mark.parametrize("mechanism", ["residual", "opt-kron"])
def test_attributes_with_groups_of_equal_sizes_are_told_apart(mechanism: str, limits: Override) -> None:
    """Places by work and by home: alike, but for which of them are in the same area."""
    limits(**SMALL)
    orders = [*range(24)], [0, 21, 22, 23, *range(1, 21)]
    areas = [{"sets": [order[:4], order[4:12], order[12:]]} for order in orders]
    domain = mdp.Domain({"home": 24, "work": 24})
    crossed = mdp.product(home="identity", work=areas[1]), mdp.product(home=areas[0], work="identity")
    workload = Workload(domain, *crossed, mdp.product(home=areas[0]), mdp.product(work=areas[1]))
    check(select(workload, noise=GAUSSIAN, mechanism=mechanism))


def test_the_optimum_is_that_of_the_pairs(limits: Override) -> None:
    """Of V with random classes: the error and the dual distribution, group by group."""
    random = np.random.default_rng(3)
    groups = random.permutation(np.repeat(np.arange(5), [1, 2, 9, 12, 16]))
    sets = tuple(tuple(np.flatnonzero(groups == group).tolist()) for group in range(5))
    levels = sets, (sets[0] + sets[3], sets[1] + sets[2])
    asked = Stacked((Identity(), *map(Sets, levels)))
    assert len(np.unique(asked.alike(40))) == 5
    limits(most_unpaired=20)
    entries = mdp.product(place="identity"), *(mdp.product(place={"sets": [*own]}) for own in levels)
    workload = reduce(Workload(mdp.Domain({"place": 40}), *entries), pairs=True).workload
    pairs, whole = solve_gram(dense_gram(workload)), solve_gram(asked.gram(40))
    assert pairs.loss == pytest.approx(whole.loss, rel=1e-5)
    assert pairs.dual is not None
    assert whole.dual is not None
    both = pairs.dual[:5] + pairs.dual[:4:-1]
    (step,) = reduce(Workload(mdp.Domain({"place": 40}), *entries), pairs=True).maps
    np.testing.assert_allclose(both, np.bincount(step.groups["place"], whole.dual), rtol=1e-3)


def test_values_that_may_trade_places_are_told_by_the_queries() -> None:
    """In whatever order the values are; those of prefixes may not."""
    sets = Sets(((0, 1), (2, 3)))
    assert sets.alike(5).tolist() == [0, 0, 1, 1, 2]
    assert Stacked((sets, Identity(), Sets(((0, 1, 2),)))).alike(5).tolist() == [0, 0, 1, 2, 3]
    assert len({*Prefix().alike(5).tolist()}) == 5
    moved = Permuted(sets, (4, 0, 2, 1, 3))
    for one in (sets, moved, Matrix(sets.rows(5))):
        columns, alike = one.rows(5).T, one.alike(5)
        np.testing.assert_array_equal(alike[:, None] == alike, (columns[:, None] == columns).all(axis=2))
        np.testing.assert_allclose(one.weighted_squares(np.arange(5.0)), (one.rows(5) ** 2) @ np.arange(5.0))


def test_values_that_nothing_tells_apart_are_not_asked_alone(limits: Override) -> None:
    """States alone by age, places by sex: their product was not measured."""
    limits(**SMALL)
    workload = _workload(
        UNEVEN, [mdp.product(place="identity", sex="identity"), mdp.product(place=_level(0), age="prefix")]
    )
    plan = select(workload, noise=GAUSSIAN, mechanism="residual").plan
    [states, places] = Workload(
        workload.domain,
        mdp.product(place=_level(0), age="identity"),
        mdp.product(place="identity", age="identity"),
    ).groups
    assert plan.analysis.variances(states).min() > 0
    with pytest.raises(UnsupportedQueryError, match="asks more of place"):
        plan.analysis.check_support(places)


def test_laplace_noise_and_small_attributes_see_every_value() -> None:
    """L1 norms depend on the contrasts themselves; joint strategies fit small attributes."""
    area, entries = CASES["crossed"]
    workload = _workload(area, entries)
    assert len(workload.domain["place"].codebook.levels) == 2
    assert not reduce(workload, pairs=True).maps
    check(select(workload, noise=LAPLACE, mechanism="opt-kron"))


def test_thousands_of_communes_take_no_matrix_over_them() -> None:
    """30,000 places would be beyond the limit of 9,000; their matrix would take 7 gigabytes."""
    area = np.arange(30_000) % 97
    sets = [np.flatnonzero(area == one).tolist() for one in range(97)]
    domain = mdp.Domain({"place": 30_000, "sex": 2})
    workload = Workload(
        domain, mdp.kway(2, "identity"), mdp.product(place={"sets": sets}), mdp.marginals([0])
    )
    found = select(workload, noise=GAUSSIAN, mechanism="residual")
    assert found.certificate.gap is not None
    assert 0 <= found.certificate.gap < 0.05
