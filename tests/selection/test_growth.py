"""How the work of selection grows, and that what is skipped changes nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import Entry, Total, Workload
from matrixdp.selection.compose.spread_solver import solved_together
from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.compose.weight_vectors import uniform_weights
from matrixdp.selection.gram import ConvexSolver, solve_dual
from matrixdp.selection.gram.optimum import solve_gram, solve_stacked
from matrixdp.selection.view.gram_terms import Question, gram_terms
from matrixdp.selection.view.pieces import Pieces
from matrixdp.selection.view.sub_workloads import split_workload
from matrixdp.selection.view.table_shape import TableShape, table_shape
from tests.counting import calls

SIZES = {"a": 4, "b": 3, "c": 2, "d": 1, "e": 2}


def test_work_grows_with_the_marginals_and_not_with_their_attributes_too() -> None:
    def work(attributes: int) -> int:
        domain = mdp.Domain({f"x{i}": 3 for i in range(attributes)})
        workload = mdp.Workload(domain, mdp.marginals([0, 1, 2]))
        return calls(lambda: mdp.select(workload))

    work(3)  # what is imported is not counted
    groups = [1 + n + n * (n - 1) // 2 for n in (20, 60)]
    assert work(60) / work(20) < 1.1 * groups[1] / groups[0]


def _some_workload(seed: int) -> Workload:
    random = np.random.default_rng(seed)
    entries: list[Entry] = []
    asked: tuple[object, ...] = ("identity", "prefix", "total", {"ranges": [[0, 0]]})
    for _ in range(random.integers(1, 5)):
        names = random.choice(list(SIZES), random.integers(1, 4), replace=False)
        sets: dict[str, object] = {
            str(name): asked[random.integers(len(asked) if seed % 3 else 2)] for name in names
        }
        weight = float(random.integers(1, 4))
        if len(names) == 2 and random.random() < 0.3:
            rows = random.integers(0, 2, (2, SIZES[names[0]] * SIZES[names[1]]))
            entries.append(mdp.dense(rows + 1, [str(name) for name in names], weight=weight))
        elif len(names) > 1 and random.random() < 0.3:
            entries.append(mdp.disjunction(sets, weight=weight))
        else:
            entries.append(mdp.product(sets, weight=weight))
    return Workload(mdp.Domain(SIZES), *entries)


def _shape_by_definition(workload: Workload) -> TableShape:
    """Look at every attribute of the domain in every term."""
    factored: dict[str, Question] = {}
    joint = []
    terms = [(group, gram_terms(group)) for group in workload]
    weight = sum(group.weight * c for group, own in terms for c, _ in own or ())
    for name in workload.domain.names:
        size = workload.domain[name].size
        column: list[Question | None] = []
        for group, own in terms:
            if own is None:
                column += [None if name in group.attributes else Total()]
            for _, questions in own or ():
                column += [dict(zip(group.attributes, questions, strict=True)).get(name, Total())]
        keys = {None if question is None else question.key(size) for question in column}
        if keys == {Total().key(size)}:
            continue
        if len(keys) == 1 and None not in keys:
            [factored[name]] = {one.key(size): one for one in column if one is not None}.values()
        else:
            joint.append(name)
    return TableShape(factored, tuple(joint), workload.domain.cells(tuple(joint)), weight)


@pytest.mark.parametrize("start", range(4))
def test_the_shape_is_that_of_looking_at_everything(start: int) -> None:
    for seed in itertools.islice(itertools.count(start, 4), 30):
        workload = _some_workload(seed)
        found, expected = table_shape(workload), _shape_by_definition(workload)
        assert (found.joint, found.cells) == (expected.joint, expected.cells)
        assert found.weight == pytest.approx(expected.weight)
        assert {name: one.key(SIZES[name]) for name, one in found.factored.items()} == {
            name: one.key(SIZES[name]) for name, one in expected.factored.items() if one is not None
        }


def _grams(size: int, count: int) -> np.ndarray:
    """Return Gram matrices of random ranges, their weighted mean removed: of every rank."""
    random, found = np.random.default_rng(size), []
    for number in range(count):
        ends = np.sort(random.integers(0, size, (1 + number % (size + 3), 2)), axis=1)
        rows = (ends[:, :1] <= np.arange(size)) & (np.arange(size) <= ends[:, 1:])
        weights = random.dirichlet(np.ones(size))
        pieces = rows - (rows @ weights)[:, None]
        if np.abs(pieces).max() > 1e-6:
            found.append(pieces.T @ pieces)
    return np.stack(found)


@pytest.mark.parametrize("size", [2, 3, 9])
@pytest.mark.parametrize("gap", [1e-4, 1e-8])
def test_a_stack_of_matrices_is_solved_as_each_of_them(size: int, gap: float) -> None:
    grams = _grams(size, 40)
    found = solve_stacked(grams, gap, [None] * len(grams))
    again = solve_stacked(grams * 1.001, gap, found)
    for gram, one, later in zip(grams, found, again, strict=True):
        alone = solve_gram(gram, (size,), gap)
        assert one.loss == pytest.approx(alone.loss, rel=2 * gap)
        assert one.bound is not None
        assert one.bound <= one.loss <= one.bound * (1 + gap)
        assert later.loss == pytest.approx(1.001 * alone.loss, rel=2 * gap)
        # the strategy has the loss that is stated, at sensitivity 1
        covariance = np.linalg.pinv(one.rows.T @ one.rows, rcond=1e-9, hermitian=True)
        assert np.vdot(gram, covariance) == pytest.approx(one.loss, rel=1e-6)
        assert (one.rows**2).sum(axis=0).max() == pytest.approx(1.0)


def test_sub_workloads_of_few_values_take_one_search_together(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    domain = mdp.Domain({f"x{i}": 6 for i in range(6)})
    entries = []
    for left, right in itertools.combinations(domain.names, 2):
        ranges = [np.sort(random.integers(0, 6, (4, 2)), axis=1).tolist() for _ in range(2)]
        entries.append(mdp.product({left: {"ranges": ranges[0]}, right: {"ranges": ranges[1]}}))
    split = split_workload(Workload(domain, *entries))
    alone = SubSolver(Pieces(split, uniform_weights(split)), GAUSSIAN, ConvexSolver(1e-8))
    expected = [solution and solution.loss for solution in map(alone.solve, split.classes)]
    together = SubSolver(Pieces(split, uniform_weights(split)), GAUSSIAN, ConvexSolver(1e-8))
    with monkeypatch.context() as watched:
        searches = []

        def search(*given: Any) -> Any:
            searches.append(given)
            return solve_dual(*given)

        watched.setattr("matrixdp.selection.gram.optimum.solve_dual", search)
        together = solved_together(together, split.classes)
        found = [solution and solution.loss for solution in map(together.solve, split.classes)]
    assert not searches
    assert found == pytest.approx(expected, rel=1e-6)
