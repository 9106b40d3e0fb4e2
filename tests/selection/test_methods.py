"""The choice of a method: by sizes alone, and the one that the solver then takes."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.compose.methods import METHODS, ProblemShape, method_for
from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.compose.weight_vectors import uniform_weights
from matrixdp.selection.explain import part_methods
from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.gram.optimum import gram_method
from matrixdp.selection.limits import Limits
from matrixdp.selection.problem.residuals import Pieces, split_workload
from tests.limits import Override

SMALL = Limits(joint_cells=40, rows=5, row_cells=60)


@pytest.mark.parametrize(
    ("shape", "name", "passed"),
    [
        (ProblemShape((5, 8), 2), "dual", {}),
        (ProblemShape((6, 8), 2), "product", {"dual": "48 cells; the limit is 40"}),
        (ProblemShape((6, 8), 0, 5), "dual by queries", {}),
        (ProblemShape((6, 8), 1, 5), "product", {"dual": "48 cells; the limit is 40"}),
        (ProblemShape((5, 8), 0, 6), "dual", {"dual by queries": "6 queries; the limit is 5"}),
        (ProblemShape((2, 2), 0, 4), "dual", {}),
        (
            ProblemShape((8, 8), 0, 5),
            "product",
            {"dual by queries": "64 cells; the limit is 60", "dual": "64 cells; the limit is 40"},
        ),
        (
            ProblemShape((5, 8), 0, 5, values=9_000),
            "product",
            dict.fromkeys(("dual by queries", "dual"), "9,000 cells of all values; the limit is 8,000"),
        ),
    ],
)
def test_the_first_method_that_fits_is_taken(shape, name, passed):
    choice = method_for(shape, SMALL)
    assert choice is not None
    assert (choice.method.name, choice.passed) == (name, passed)
    fitting = [method.name for method in METHODS if method.fits(shape, SMALL)]
    assert fitting[0] == name
    assert method_for(shape, SMALL, list(passed)) is None


@pytest.mark.parametrize("cells", [10, 2_000])
def test_what_is_told_is_what_is_done(cells):
    domain = mdp.Domain({"a": 6, "b": 5, "c": 3, "d": 4})
    few = mdp.dense(np.random.default_rng(0).integers(0, 2, (4, 30)).astype(float), ["a", "b"])
    crossed = mdp.product(a="prefix", c="identity"), mdp.product(a="identity", c="prefix")
    split = split_workload(mdp.Workload(domain, *crossed, few, mdp.product(d="identity")))
    solver = SubSolver(
        Pieces(split, uniform_weights(split)), GAUSSIAN, ConvexSolver(), limits=Limits(joint_cells=cells)
    )
    kinds = set()
    for sub in split.classes:
        told = solver.methods(sub)
        solution = solver.solve(sub)
        if solution is None or not sub.types:
            continue
        assert [axes for axes, _, _ in told] == [block.axes for block in solution.blocks]
        for (_, method, passed), block in zip(told, solution.blocks, strict=True):
            kinds.add(method)
            assert (method == "product") == (block.method == "product") == ("dual" in passed)
    assert {"closed form", "dual by queries", "product" if cells == 10 else "dual"} <= kinds


def test_the_decomposition_tells_its_methods():
    domain = mdp.Domain({"a": 60, "b": 50})
    crossed = mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")
    _, *uses = part_methods(mdp.Workload(domain, *crossed))  # the first is the total
    assert [(use.attributes, use.marginals, use.method) for use in uses] == [
        (("a",), 1, "dual"),
        (("b",), 1, "dual"),
        (("a", "b"), 1, "product"),
    ]
    assert uses[-1].reason == "not dual: 3,000 cells; the limit is 2,000"


def test_the_method_of_one_attribute(limits: Override):
    prefix = np.tri(20).T @ np.tri(20)
    assert gram_method(np.ones((3, 3)) + np.eye(3)) == "closed form"
    assert gram_method(prefix) == "dual"
    limits(min_chain_cells=10)
    limits(chains_large_cells=10)
    assert gram_method(prefix) == "chain"
    assert gram_method(prefix + np.diag(np.arange(20.0))) == "fixed point"
