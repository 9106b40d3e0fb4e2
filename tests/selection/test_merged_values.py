"""Few explicit queries over many cells: values that none of them tells apart are solved for as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact import IntegerMatrix, MergedMatrix
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import DenseGroup, Entry, Workload
from matrixdp.selection.compose.decomposition import select_by_decomposition
from matrixdp.selection.compose.rounding import measured_matrix
from matrixdp.selection.compose.weight_vectors import Objective
from matrixdp.selection.gram import solve_rows
from matrixdp.selection.problem.gather_groups import gather_groups
from matrixdp.selection.problem.residuals import Pieces, Split, split_workload
from matrixdp.testing import check_plan, dense_gram
from tests.limits import Override

SIZES = {"a": 10, "b": 7, "c": 4}
DOMAIN = mdp.Domain(SIZES)


def _ranges(seed: int, count: int, *names: str) -> list[Entry]:
    random = np.random.default_rng(seed)
    found: list[Entry] = []
    for _ in range(count):
        asked: dict[str, Any] = {}
        for name in names:
            asked[name] = {"ranges": [sorted(int(end) for end in random.integers(0, SIZES[name], 2))]}
        found.append(mdp.product(**asked))
    return found


@pytest.fixture(scope="module")
def workload() -> Workload:
    """Three attribute sets of single questions, one of them of fewer than are gathered."""
    return Workload(DOMAIN, *_ranges(0, 9, "a", "b"), *_ranges(1, 8, "a", "b", "c"), *_ranges(2, 3, "b", "c"))


@pytest.fixture(scope="module")
def split(workload: Workload) -> Split:
    return split_workload(gather_groups(workload))


def test_few_products_beside_explicit_queries_are_written_out(workload: Workload) -> None:
    """They ask the same, and no class has Kronecker terms beside rows."""
    found = gather_groups(workload)
    assert all(isinstance(group, DenseGroup) for group in found)
    np.testing.assert_allclose(dense_gram(found), dense_gram(workload), atol=1e-12)


def test_pieces_over_groups_are_those_of_all_values(split: Split) -> None:
    """Every value's piece is that of its group, and some values share one."""
    random = np.random.default_rng(3)
    weights = [random.dirichlet(np.ones(size)) for size in split.sizes]
    pieces, shared = Pieces(split, weights), 0
    for sub in split.classes:
        assert sub.groups is not None
        for item in sub.rows:
            counts = [int(group.max()) + 1 for group in sub.groups]
            merged = pieces.explicit_rows(item.explicit, item.kept, sub.groups).reshape(-1, *counts)
            spread = merged
            for axis, group in enumerate(sub.groups, 1):
                spread = np.take(spread, group, axis=axis)
            whole = pieces.explicit_rows(item.explicit, item.kept)
            np.testing.assert_allclose(spread.reshape(whole.shape), whole, atol=1e-12)
            shared += sum(sub.sizes) - sum(counts)
    assert shared > 0


def test_the_gradient_is_the_change_of_the_objective(split: Split) -> None:
    """Along directions that keep the weights' sums."""
    random = np.random.default_rng(4)
    objective = Objective(split, gap=1e-9, joint_gap=1e-9)
    weights = [random.dirichlet(np.full(size, 5.0)) for size in split.sizes]
    slopes = objective(weights)[1]
    for type_, size in enumerate(split.sizes):
        step = random.standard_normal(size)
        step = 1e-5 * (step - step.mean())
        ends = [[*weights[:type_], weights[type_] + sign * step, *weights[type_ + 1 :]] for sign in (1, -1)]
        change = objective(ends[0])[0] - objective(ends[1])[0]
        assert change / 2 == pytest.approx(float(slopes[type_] @ step), rel=1e-3, abs=1e-9)


def test_the_plan_is_over_all_values(workload: Workload, limits: Override) -> None:
    """Its error is what was told, but for rounding; cells that are measured weakly are not to be asked."""
    limits(_MANY_MISSING=1)
    plan, certificate = select_by_decomposition(gather_groups(workload), GAUSSIAN, "residual", 1e-6)
    error = sum(plan.analysis.group(group).weighted for group in workload)
    assert error == pytest.approx(certificate.loss, rel=5e-3)
    assert any(isinstance(block.matrix, MergedMatrix) for part in plan.parts for block in part.blocks)
    check_plan(plan, workload)


def test_what_tells_merged_values_apart_is_refused() -> None:
    """Whether it is asked as a product or as explicit queries, though all groups may be asked about."""
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2]), np.array([0, 0, 1, 1, 1, 2, 2])
    rows = np.random.default_rng(7).integers(0, 2, (12, 3, 3))[:, groups[0]][:, :, groups[1]]
    asked = mdp.dense(rows.reshape(12, -1), ["a", "b"]), mdp.marginals([["a"], ["b"]])
    plan, _ = select_by_decomposition(Workload(DOMAIN, *asked), GAUSSIAN, "residual", 1e-6)
    for supported, ends in ((True, [[3, 9], [0, 4]]), (False, [[3, 8], [0, 4]]), (False, [[3, 9], [0, 3]])):
        entry = mdp.product(a={"ranges": ends[:1]}, b={"ranges": ends[1:]})
        [product] = Workload(DOMAIN, entry).groups
        [dense] = Workload(DOMAIN, mdp.dense(product.rows(), ["a", "b"])).groups
        for group in (product, dense):
            if supported:
                assert plan.analysis.variances(group)[0] > 0
            else:
                with pytest.raises(UnsupportedQueryError, match="asks more of a, b"):
                    plan.analysis.check_support(group)


@pytest.fixture(scope="module")
def few() -> IntegerMatrix:
    """Five rows over forty cells, each measured weakly."""
    rows = np.random.default_rng(5).integers(-900, 900, (5, 40))
    return IntegerMatrix(np.vstack([rows, 37 * np.eye(40, dtype=np.int64)]))


def test_few_rows_over_weighted_cells_are_solved_without_their_size(few: IntegerMatrix) -> None:
    """The pseudo-inverse and its covariance are those of the entries."""
    inverse = np.linalg.pinv(few.entries.astype(float))
    np.testing.assert_allclose(few.solve(np.eye(45)), inverse, atol=1e-12)
    np.testing.assert_allclose(few.covariance(), inverse @ inverse.T, rtol=1e-9, atol=1e-12)
    asked = few.entries[:5].astype(float)
    ours, theirs = asked @ few.solve(np.eye(45)), asked @ inverse
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_other_matrices_are_factored(few: IntegerMatrix) -> None:
    """Where cells weigh differently, or one is missing, the factorization serves."""
    entries = few.entries.copy()
    entries[5, 0] = 38
    changed = IntegerMatrix(entries)
    np.testing.assert_allclose(changed.solve(np.eye(45)), np.linalg.pinv(entries.astype(float)), atol=1e-12)


def test_rounding_measures_every_cell_weakly(limits: Override) -> None:
    """The error stays within rounding, and what the rows do not ask is refused as before."""
    limits(_MANY_MISSING=50)
    rows = np.random.default_rng(6).integers(0, 2, (6, 80)).astype(float)
    factor = solve_rows(rows)
    matrix = measured_matrix(factor, GAUSSIAN)
    assert isinstance(matrix, IntegerMatrix)
    assert matrix.rows == len(factor.rows) + 80
    error = float(np.einsum("qi,qi->", rows @ matrix.covariance(), rows)) * matrix.squared_sensitivity
    assert factor.loss * (1 - 1e-6) < error < factor.loss * (1 + 2e-3)
    outside = matrix.unsupported
    assert outside is not None
    np.testing.assert_allclose(outside @ rows.T, 0.0, atol=1e-9)
