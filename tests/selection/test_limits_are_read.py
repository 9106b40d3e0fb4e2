"""Limits of selection are read when they are used: a change holds in every choice that asks for one."""

import ast
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp import selection
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from matrixdp.selection.compose.decomposition import sub_solver_for
from matrixdp.selection.compose.weight_vectors import Objective, uniform_weights
from matrixdp.selection.limits import Limits
from matrixdp.selection.problem.residuals import Pieces, split_workload
from matrixdp.selection.registry import MECHANISMS, Mechanism
from matrixdp.selection.rules import RULES
from tests.limits import Override

ROOT = Path(next(iter(selection.__path__))).parent
CROSSED = mdp.product(a="prefix", b="identity"), mdp.product(a="identity", b="prefix")


def _at_import(node: ast.AST) -> list[int]:
    """Return the lines that read a limit as a module is imported: bodies of functions are not."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "LIMITS":
        return [node.lineno]
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        arguments = node.args
        parts = [*arguments.defaults, *(one for one in arguments.kw_defaults if one)]
    return [line for part in parts for line in _at_import(part)]


def test_no_module_reads_a_limit_as_it_is_imported():
    found = {
        str(path.relative_to(ROOT)): lines
        for path in sorted(ROOT.rglob("*.py"))
        if (lines := _at_import(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found == {}
    assert _at_import(ast.parse("def f(gap=LIMITS.gap): LIMITS.gain\nMOST = {'table': LIMITS.rows}")) == [
        1,
        2,
    ]


def test_the_limits_of_rules_and_mechanisms_are_named():
    ours = [one.limits for one in MECHANISMS.values() if isinstance(one, Mechanism)]
    rules = [rule for norm in RULES.values() for rule in norm]
    limits = [limit for own in (*ours, *(rule.limits for rule in rules)) for limit in own.values()]
    names = [limit for limit in limits if isinstance(limit, str)] + [rule.gap for rule in rules if rule.gap]
    assert {"max_compared_cells", "max_dense_cells", "rules_worthwhile"} <= set(names) <= set(vars(Limits()))


def test_the_rules_follow_a_lower_limit(limits: Override):
    workload = mdp.Workload(mdp.Domain({"a": 12, "b": 12}), *CROSSED)
    usual = {one.mechanism: one.status for one in select(workload, noise=GAUSSIAN).candidates}
    limits(max_compared_cells=100)
    found = {one.mechanism: one for one in select(workload, noise=GAUSSIAN).candidates}
    assert usual["dense"] == "chosen"
    assert found["dense"].status == "skipped"
    assert "dense" not in found["weighted-product"].reason
    limits(max_dense_cells=100)
    with pytest.raises(TooLargeError):
        select(workload, mechanism="dense", noise=GAUSSIAN)


@pytest.mark.parametrize("solver_of", ["gaussian", "laplace", "weights"])
def test_the_decomposition_keeps_the_other_limits(solver_of: str, limits: Override):
    limits(rows=7)
    split = split_workload(mdp.Workload(mdp.Domain({"a": 4, "b": 3}), *CROSSED))
    pieces = Pieces(split, uniform_weights(split))
    if solver_of == "weights":
        solver = Objective(split).solver(pieces, 1e-6)
    else:
        solver = sub_solver_for(pieces, LAPLACE if solver_of == "laplace" else GAUSSIAN, 1e-6)
    assert solver.limits.rows == 7
