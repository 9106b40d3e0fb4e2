"""Many groups over the same attributes are selected for as few that ask the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import DenseGroup, Entry, Identity, ProductGroup, Workload
from matrixdp.selection.auto import Trials, select
from matrixdp.selection.problem.gather_groups import LEAST_GATHERED, gather_groups
from matrixdp.testing import dense_gram

DOMAIN = mdp.Domain({"a": 6, "b": 5, "c": 3})


def _ranges(seed: int, count: int, **more: Any) -> list[Entry]:
    """Return products of one range on each of a and b."""
    random = np.random.default_rng(seed)
    found: list[Entry] = []
    for _ in range(count):
        a, b = (sorted(int(end) for end in random.integers(0, size, 2)) for size in (6, 5))
        found.append(mdp.product(a={"ranges": [a]}, b={"ranges": [b]}, **more))
    return found


def _cells(count: int, **more: Any) -> list[Entry]:
    """Return a product of one value of a and one of b for every cell, some of c, each an entry."""
    places = np.ndindex(6, 5, count)
    return [
        mdp.product(a={"sets": [[int(a)]]}, b={"sets": [[int(b)]]}, c={"sets": [[int(c)]]}, **more)
        for a, b, c in places
    ]


WORKLOADS: dict[str, Sequence[Entry]] = {
    "few": _ranges(0, LEAST_GATHERED - 1),
    "many": _ranges(1, 30),
    "weighted": [*_ranges(2, 10, weight=3.0), *_ranges(3, 10)],
    "a factor": _ranges(4, 20, c="identity"),
    "a factor of two": [*_ranges(5, 10, c="identity"), *_ranges(6, 10, c="prefix")],
    "cells": _cells(3),
    "some cells": _cells(2),
    "cells twice": [*_cells(3), *_cells(1)],
    "marginals": [*[mdp.marginals([1], weight=weight) for weight in (1, 2, 3)] * 4, mdp.product(a="prefix")],
    "totals": [mdp.marginals(0)] * 9,
    "weights for each query": [
        *_ranges(7, 10),
        *[mdp.product(a={"ranges": [[0, 2], [1, 3]]}, b="total", weights=[1, k]) for k in range(1, 9)],
    ],
    "explicit": [
        *_ranges(8, 10),
        *[mdp.cells([{"a": k % 6, "b": k % 5}, [{"a": 0}, {"b": k % 5}]]) for k in range(9)],
    ],
    "totals of an attribute": [*_ranges(9, 9, c="total"), *_ranges(10, 9, c={"sets": [[0]]})],
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_gram_matrix_stays_the_same(name: str) -> None:
    """What is asked, with its weights, is what selection sees: every query, no more and no less."""
    workload = Workload(DOMAIN, *WORKLOADS[name])
    found = gather_groups(workload)
    np.testing.assert_allclose(dense_gram(found), dense_gram(workload), atol=1e-12)
    assert len(found) <= len(workload)


@pytest.mark.parametrize(("name", "groups"), [("few", 7), ("many", 1), ("a factor", 11), ("cells", 1)])
def test_how_many_groups_are_left(name: str, groups: int) -> None:
    """Many become one, but for a few, and for those of which an attribute factors out."""
    assert len(gather_groups(Workload(DOMAIN, *WORKLOADS[name]))) == groups


def test_every_cell_asked_by_itself_is_the_marginal() -> None:
    """A marginal in as many questions as it has cells is selected for as the marginal: without a matrix."""
    [group] = gather_groups(Workload(DOMAIN, *_cells(3)))
    assert isinstance(group, ProductGroup)
    assert group.predicates == (Identity(), Identity(), Identity())


def test_groups_of_many_queries_stay_products() -> None:
    """Rows are written out only where there are few for each group: ranges of ranges stay a product."""
    asked = [
        mdp.product(
            a="range", b={"matrix": np.random.default_rng(k).integers(0, 2, (3, 5)) + 1.0}, weight=k + 1
        )
        for k in range(9)
    ]
    assert not any(isinstance(group, DenseGroup) for group in gather_groups(Workload(DOMAIN, *asked)))


def test_the_selection_answers_the_workload_as_written() -> None:
    """The groups of a selection are those of the user: gathering is for selection's eyes alone."""
    workload = Workload(DOMAIN, *_ranges(1, 12))
    selection = select(workload, noise=GAUSSIAN, mechanism="dense", objective="max")
    assert selection.workload is workload
    assert len(Trials(workload, GAUSSIAN, {}).facts.asked) == 1
    assert selection.certificate.gap is not None
    assert selection.certificate.gap < 1e-2
