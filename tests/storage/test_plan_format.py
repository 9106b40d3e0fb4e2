"""Matrices that cannot be saved, saved ones that do not fit, and plans that are not of their kind."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import StorageError
from matrixdp.exact import IdentityMatrix, IntegerMatrix, MergedMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plan import Block, Direct, Part, Plan
from matrixdp.selection.compose.pooled_products import pooled_products
from matrixdp.storage import formats as plan_format
from matrixdp.storage.archive import ArchiveReader, ArchiveWriter

KIND = "matrixdp thing"


def read_back(tmp_path: Path, matrix: IntegerMatrix) -> IntegerMatrix:
    with ArchiveWriter(tmp_path / "x.mdp") as archive:
        form = plan_format._write_matrix(matrix, archive)
        archive.close({"format": KIND, "format_version": 1, "form": form})
    with ArchiveReader(tmp_path / "x.mdp", KIND, 1) as archive:
        again = plan_format._read_matrix(archive.header["form"], archive)
    assert isinstance(again, IntegerMatrix)
    return again


def test_what_is_measured_too_weakly_is_kept_with_a_matrix(tmp_path: Path):
    outside = np.array([[0.6, 0.8]])
    again = read_back(tmp_path, IntegerMatrix(np.array([[3, 1], [0, 2]]), outside))
    np.testing.assert_array_equal(again.unsupported, outside)
    np.testing.assert_array_equal(again.entries, [[3, 1], [0, 2]])


@pytest.mark.parametrize("outside", [np.ones((1, 3)), np.ones(2)])
def test_directions_that_do_not_fit_their_matrix_are_refused(tmp_path: Path, outside: np.ndarray):
    with pytest.raises(StorageError, match="the unsupported directions of a matrix do not fit it"):
        read_back(tmp_path, IntegerMatrix(np.array([[3, 1], [0, 2]]), outside))


MERGED = MergedMatrix(
    IntegerMatrix(np.array([[3, 1], [0, 2]]), np.array([[0.6, 0.8]])), (np.array([0, 1, 0]),)
)


def merged_plan() -> Plan:
    domain = mdp.Domain({"a": 3})
    part = Part(("a",), (Block(("a",), MERGED),), 20.0)
    return Direct(domain, (part,), GAUSSIAN)


def test_a_matrix_over_groups_is_kept_with_them(tmp_path: Path):
    [block] = reread(merged_plan(), tmp_path / "x.mdp", lambda form: None).parts[0].blocks
    assert isinstance(block.matrix, MergedMatrix)
    np.testing.assert_array_equal(block.matrix.written(), MERGED.written())
    np.testing.assert_array_equal(block.matrix.matrix.outside, MERGED.matrix.outside)
    assert block.matrix.digest() == MERGED.digest()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda form: form["matrix"].update(kind="deficient"), "groups of values does not hold integers"),
        (lambda form: form.update(groups=[form["matrix"].pop("unsupported")]), "does not hold integers"),
        (lambda form: form.update(groups=[]), "does not fit|make 1"),
    ],
)
def test_groups_that_are_none_are_refused(tmp_path: Path, change, says: str):
    with pytest.raises(StorageError, match=says):
        reread(merged_plan(), tmp_path / "x.mdp", lambda form: change(form["matrices"][0]))


HIGHER = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1]])


@pytest.fixture(scope="module")
def pooled() -> Plan:
    domain = mdp.Domain({"a": 3, "b": 3, "c": 2})
    bases: dict[str, np.ndarray | None] = {"a": HIGHER / 3.0, "b": HIGHER[::-1] / 3.0, "c": None}
    precisions: dict[tuple[str, ...], float] = {("a", "b"): 0.25, ("a", "c"): 0.25}
    return pooled_products(domain, bases, precisions, LAPLACE)


TREE = mdp.Workload(mdp.Domain({"a": range(5), "b": range(3)}), mdp.product(a="prefix", b="range"))


def test_a_tree_over_a_grid_comes_back(tmp_path: Path):
    plan = mdp.select(TREE, mechanism="quadtree", noise="laplace").selection.plan
    again = reread(plan, tmp_path / "x.mdp", lambda form: None)
    assert again.parts[0].blocks[0].matrix == plan.parts[0].blocks[0].matrix


@pytest.mark.parametrize("change", [{"sizes": [15]}, {"weights": [1, 1, 1, 1.5]}, {"branching": True}])
def test_a_tree_that_is_none_is_refused(tmp_path: Path, change: dict[str, Any]):
    plan = mdp.select(TREE, mechanism="quadtree", noise="laplace").selection.plan
    with pytest.raises(StorageError, match="a tree over a grid does not consist of integers"):
        reread(plan, tmp_path / "x.mdp", lambda form: form["matrices"][0].update(change))


@pytest.mark.parametrize("change", [{"sizes": [3, 5]}, {"sizes": [1, 15], "weights": [1, 1, 1, 1, 1]}])
def test_a_tree_over_another_grid_is_refused(tmp_path: Path, change: dict[str, Any]):
    plan = mdp.select(TREE, mechanism="quadtree", noise="laplace").selection.plan
    with pytest.raises(StorageError, match="a matrix does not fit the attributes a, b"):
        reread(plan, tmp_path / "x.mdp", lambda form: form["matrices"][0].update(change))


def reread(plan: Plan, path: Path, change: Callable[[dict[str, Any]], None]) -> Plan:
    with ArchiveWriter(path) as archive:
        form = plan_format.write_plan(plan, archive)
        change(form)
        archive.close({"format": KIND, "format_version": 1, "plan": form})
    with ArchiveReader(path, KIND, 1) as archive:
        return plan_format.read_plan(archive.header["plan"], plan.domain, archive)


def test_pooled_plans_keep_one_matrix_for_each_attribute(pooled: Plan, tmp_path: Path):
    again = reread(pooled, tmp_path / "x.mdp", lambda form: None)
    workload = mdp.Workload(pooled.domain, mdp.product(a="range", b="prefix"), mdp.marginals([0, 1]))
    for group in workload:
        np.testing.assert_array_equal(again.analysis.variances(group), pooled.analysis.variances(group))
    assert again.cost == pooled.cost


def another_matrix(form: dict[str, Any]) -> None:
    blocks = form["parts"][1]["blocks"]
    [place] = [i for i, matrix in enumerate(form["matrices"]) if "entries" in matrix and i != blocks[0][1]]
    blocks[0][1] = place


def no_total(form: dict[str, Any]) -> None:
    identity = next(i for i, matrix in enumerate(form["matrices"]) if matrix["kind"] == "identity")
    form["matrices"][identity] = {"kind": "centered", "size": 2}
    form["parts"][1]["variance"] *= 100  # of greater sensitivity


def twice(form: dict[str, Any]) -> None:
    form["parts"].append(form["parts"][0])
    for part in form["parts"]:
        part["variance"] *= 100


@pytest.mark.parametrize(
    ("change", "says"),
    [(another_matrix, "one matrix for each"), (no_total, "measures no total"), (twice, "one part for each")],
)
def test_archives_of_pooled_plans_that_are_none_are_refused(pooled: Plan, tmp_path: Path, change, says: str):
    with pytest.raises(StorageError, match=says):
        reread(pooled, tmp_path / "x.mdp", change)


def test_an_identity_with_multipliers_is_never_written_out(tmp_path: Path):
    """A file of 32 kB would take gigabytes when it is read."""
    size = 1024
    domain = mdp.Domain({"a": size})
    weights = np.ones(size, dtype=np.int64)
    weights[7] = 3
    part = Part(("a",), (Block(("a",), IdentityMatrix(size)),), 20.0, weights)
    plan = Direct(domain, (part.at_cost(GAUSSIAN),), GAUSSIAN)
    tracemalloc.start()
    [again] = reread(plan, tmp_path / "x.mdp", lambda form: None).parts
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (again.squared_sensitivity, again.sensitivity) == (9, 3)
    assert peak < 3_000_000
