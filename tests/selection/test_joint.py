"""Tables that are designed together: workloads with pairs of attributes that do not factor."""

import math
from typing import Literal

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Joint
from matrixdp.selection.auto import select
from matrixdp.selection.compose.decomposition import select_by_decomposition
from matrixdp.selection.compose.joint_tables import DesignTable, Role, design_jointly, select_jointly
from matrixdp.selection.compose.whole_table import select_table
from matrixdp.storage.formats import load_measurement, save_measurement
from matrixdp.testing import check_plan, dense_error, dense_gram, dense_measurement


def pairs(kind: Literal["affine", "abs"], size: int, attributes: int) -> mdp.Workload:
    domain = mdp.Domain({f"a{i}": range(size) for i in range(attributes)})
    return mdp.Workload(domain, mdp.kway(1, "prefix"), mdp.pairwise(kind))


@pytest.mark.parametrize(
    ("kind", "size", "attributes", "most"),
    [("affine", 10, 2, 1.001), ("affine", 6, 3, 1.005), ("abs", 6, 3, 1.01), ("abs", 4, 4, 1.01)],
)
def test_pairs_are_close_to_the_optimum_on_the_whole_table(kind, size, attributes, most):
    workload = pairs(kind, size, attributes)
    plan, certificate = select_jointly(workload, 1e-6)
    assert isinstance(plan, Joint)
    optimum = select_table(workload, GAUSSIAN, gap=1e-5)[1].lower_bound
    assert optimum <= certificate.loss <= optimum * most**2
    rows = [dense_measurement(own, workload.domain) / math.sqrt(own.variance) for own in plan.parts]
    assert certificate.loss == pytest.approx(dense_error(dense_gram(workload), np.vstack(rows)), rel=1e-6)


def test_forty_attributes():
    workload = pairs("affine", 10, 40)
    selection = select(workload, noise=GAUSSIAN)
    assert selection.mechanism == "residual"
    assert math.sqrt(selection.total_squared_error / workload.queries) < 26.0


def test_attributes_that_can_be_exchanged_are_solved_as_if_they_could_not():
    size, count = 4, 4
    domain = mdp.Domain({f"a{i}": range(size) for i in range(2)})
    [group] = mdp.pairwise("abs").expand(domain)
    gram = np.tri(size).T @ np.tri(size)
    places = [(i, j) for i in range(count) for j in range(i)]
    one = design_jointly([Role(size, count, gram)], [DesignTable((4, 4), group.rows(), [((0, 0), 6)])])
    each = design_jointly(
        [Role(size, 1, gram) for _ in range(count)],
        [DesignTable((4, 4), group.rows(), [(place, 1) for place in places])],
    )
    assert one.loss == pytest.approx(each.loss, rel=1e-9)
    assert one.shares == pytest.approx([1 / 6]) == each.shares


DOMAIN = mdp.Domain({"a": range(3), "b": range(2), "c": range(4), "d": range(2)})


@pytest.mark.parametrize(
    "entries",
    [
        (mdp.pairwise("abs"),),
        (mdp.kway([0, 1], "range"), mdp.pairwise("abs", attributes=["a", "c"]), mdp.kway(2, "identity")),
        (
            mdp.kway(1, "range"),
            mdp.pairwise("affine"),
            mdp.product(a="prefix", b="prefix", c="prefix", weight=0.1),
        ),
        (
            mdp.dense(np.arange(18.0).reshape(3, 6) % 7, ["a", "b"], weights=[1, 2, 3]),
            mdp.product(a="prefix", b="identity", weights=np.arange(1.0, 7.0)),
            mdp.dense([[1, 0, 2, 0]], ["c"]),
            mdp.dense([[1, 0, 2]], ["a"]),
            mdp.dense([np.arange(24) % 2], ["a", "b", "c"]),
        ),
    ],
)
def test_pairs_of_different_attributes_and_mixed_with_products(entries):
    workload = mdp.Workload(DOMAIN, *entries)
    plan, certificate = select_jointly(workload, 1e-6)
    check_plan(plan, workload)
    optimum = select_table(workload, GAUSSIAN)[1].lower_bound
    assert optimum <= certificate.loss * (1 + 1e-6) <= optimum * 1.12
    assert certificate.loss <= select_by_decomposition(workload, GAUSSIAN, "residual", 1e-6)[1].loss


def test_a_release_of_tables_is_measured_and_read_back(tmp_path):
    workload = pairs("affine", 4, 3)
    selected = mdp.select(workload, mechanism="residual")
    measured = selected.measure({f"a{i}": [0, 1, 3, 3, 2] for i in range(3)}, mdp.Budget(mu=400))
    assert measured.measurement.plan.kind == "joint"
    save_measurement(tmp_path / "m.mdp", measured.measurement, workload)
    again, _ = load_measurement(tmp_path / "m.mdp")
    answers = mdp.Release(again, workload).answers
    assert answers.equals(mdp.Release(measured.measurement, workload).answers)
    np.testing.assert_allclose(answers.column("estimate")[:4], [1, 2, 3, 5], atol=0.3)
