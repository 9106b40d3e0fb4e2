"""Trees of areas in slices: sums over areas are measured and solved as they are all at once."""

from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp import mapped
from matrixdp.domain import OutOfDomain
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact import TreeMatrix
from matrixdp.measure.measurement import measure
from matrixdp.plans import Block, SlicedEstimates, Slices, Split
from matrixdp.plans import slices as sliced
from matrixdp.queries.predicates import AllRanges, Prefix, Ranges, Sliding, Suffix
from matrixdp.sources import open_source
from tests.measure.test_slices import AREAS, DOMAIN, TABLE, WORKLOAD
from tests.measure.test_slices import plan as identities

LEVELS = [
    np.zeros(AREAS, dtype=np.int64),
    np.repeat([0, 1, 2], [9, 6, 8]),
    np.repeat(range(8), [3, 2, 4, 3, 3, 1, 3, 4]),
    np.arange(AREAS),
]


def tree(levels: range, weights: list[list[int]]) -> TreeMatrix:
    groups = tuple(LEVELS[level].astype(np.int64) for level in levels)
    known = (np.resize(own, int(group.max()) + 1) for own, group in zip(weights, groups, strict=True))
    return TreeMatrix(groups, tuple(own.astype(np.int64) for own in known))


WHOLE = [
    tree(range(4), [[2], [1, 0, 3], [0, 2, 1], [3, 1, 2, 1]]),
    tree(range(4), [[0], [0], [0], [1, 2]]),
    tree(range(1, 4), [[1], [0], [2, 1]]),
    tree(range(3, 4), [[2, 1, 1]]),
]
COUNTIES = [tree(range(3), [[1], [0, 1], [2, 1, 1]]), tree(range(2, 3), [[1, 3]])]


def plan(matrices) -> Split:
    own = identities()
    parts = tuple(
        replace(part, blocks=(Block(("geo",), matrices[place % len(matrices)]), *part.blocks[1:])).at_cost(
            own.noise, 1 / len(own.parts)
        )
        for place, part in enumerate(own.parts)
    )
    return replace(own, parts=parts)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(sliced, "LEAST_CUT", 10)
    monkeypatch.setattr(sliced, "_CELLS", 4 * 72)
    monkeypatch.setattr(mapped, "LARGEST_HELD", 16)


@pytest.mark.parametrize("matrices", [WHOLE, [*WHOLE, *COUNTIES], COUNTIES])
def test_sums_over_nodes_are_measured_and_solved_in_slices(few, matrices):
    asked = plan(matrices)
    found = Slices.of(asked)
    assert found is not None
    assert len(found) == 6
    calls: list[tuple[int, int]] = []
    measured = measure(asked, open_source(TABLE), mdp.Budget(mu=50), progress=lambda *own: calls.append(own))
    assert calls == [(done + 1, len(calls)) for done in range(len(calls))]
    counts = dict(open_source(TABLE).marginals(asked.domain, list(asked.positions), OutOfDomain()))
    held = [np.asarray(own) for own in measured.values]
    for part, values, scale in zip(asked.parts, held, measured.scales, strict=True):
        true = part.answers(counts[part.attributes], 1000).values()
        assert np.abs(values - np.array(true, float)).max() < 7 * np.sqrt(scale.variance)
    whole, own = measured.analysis.estimates(held), measured.estimates
    assert isinstance(own, SlicedEstimates)
    unsupported, groups = 0, list(WORKLOAD)
    # states and counties, as sets of areas and otherwise
    nodes = [[*range(9)], [*range(9, 15)], [9, 10, 11]]
    ranges = [[own[0], own[-1]] for own in nodes]
    for known in ({"sets": nodes}, {"ranges": ranges}):
        groups += mdp.product(geo=known, sex="identity").expand(DOMAIN)
    for group in groups:
        try:
            expected = whole.answers(group)
        except UnsupportedQueryError:
            unsupported += 1
            with pytest.raises(UnsupportedQueryError):
                own.answers(group)
            continue
        assert own.answers(group) == pytest.approx(expected, abs=1e-9)
        pieces = [measured.analysis.variances(one) for *_, one, _ in own.batches((group,))]
        assert np.concatenate(pieces) == pytest.approx(measured.analysis.variances(group), rel=1e-9)
    assert unsupported == 0 or matrices != WHOLE


def test_areas_beside_a_tree_are_not_cut(few):
    across, weights = np.arange(AREAS) // 5, np.array([1, 0, 2, 1, 3])
    beside = replace(WHOLE[0], beside=(across,), beside_weights=(weights,))
    asked = plan([beside, *WHOLE[1:]])
    assert Slices.of(plan(WHOLE)) is not None
    assert Slices.of(asked) is None


@pytest.mark.parametrize(
    "predicates", [Ranges(((0, 0), (2, 5), (5, 5), (1, 6))), Prefix(), Suffix(), Sliding(3), AllRanges()]
)
def test_entries_of_intervals(predicates):
    query, value, entry = predicates.entries(7)
    rows = np.zeros((predicates.count(7), 7))
    rows[query, value] = entry
    assert np.array_equal(rows, predicates.rows(7))
