"""A decomposition is called optimal only where its parts' dual points are one of the whole."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.auto import select

#: A triangle beside a square: every value is in two pairs, but those of one are not those of the other.
PAIRS = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6), (6, 3)]
ASKED = np.array([[value in pair for value in range(7)] for pair in PAIRS], dtype=float)


@pytest.mark.parametrize("others", [{}, {"b": "identity"}], ids=["alone", "with another attribute"])
def test_no_bound_exceeds_the_optimum_where_the_uniform_distribution_is_not_optimal(others: dict[str, str]):
    entry = mdp.product({"a": {"matrix": ASKED}, **others})
    workload = mdp.Workload(mdp.Domain({"a": 7, "b": 3}), entry)
    optimum = select(workload, mechanism="dense", noise=GAUSSIAN).certificate
    uniform = select(workload, mechanism="querysmasher", noise=GAUSSIAN).certificate
    assert uniform.lower_bound <= optimum.loss < uniform.loss * (1 - 1e-3)
    assert "orthogonal" not in uniform.scope


def test_parts_that_are_orthogonal_and_uniform_are_the_optimum():
    circle = np.array([[value in (start, (start + 1) % 7) for value in range(7)] for start in range(7)])
    workload = mdp.Workload(mdp.Domain({"a": 7}), mdp.product({"a": {"matrix": circle.astype(float)}}))
    found = select(workload, mechanism="querysmasher", noise=GAUSSIAN).certificate
    assert "orthogonal" in found.scope
    assert found.lower_bound == pytest.approx(found.loss, rel=1e-5)
