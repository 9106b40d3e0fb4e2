"""What selection refuses: losses that nothing attains, nothing to measure, what is too large."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import NumericalError, TooLargeError, WorkloadError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from matrixdp.selection.compose import rounding
from matrixdp.selection.compose.decomposition import solve_classes
from matrixdp.selection.compose.whole_table import select_directly
from matrixdp.selection.gram import dual
from matrixdp.selection.mechanisms.explicit import spectrum_of
from matrixdp.selection.mechanisms.trials import Trials
from matrixdp.selection.mechanisms.workload import uniform_marginals
from matrixdp.selection.minimax import select_minimax

WORKLOAD = mdp.Workload(mdp.Domain({"a": 3, "b": 4}), mdp.marginals(2))


@pytest.mark.parametrize("gram", [np.zeros((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
def test_nothing_has_no_spectrum(gram):
    with pytest.raises(NumericalError, match="zero or not finite"):
        spectrum_of(gram)


def test_marginals_that_determine_too_little_are_refused():
    with pytest.raises(WorkloadError, match="do not determine every query; add others"):
        uniform_marginals(WORKLOAD, GAUSSIAN, [("a",), ("b",)], "none")


def test_no_iteration_gives_no_strategy():
    with pytest.raises(TooLargeError, match="no iteration was allowed"):
        select_minimax(WORKLOAD, lambda asked: select_directly(asked, GAUSSIAN, 1e-3), iterations=0)


def test_sub_workloads_that_ask_nothing_are_refused():
    split: Any = SimpleNamespace(classes=["one", "two"])
    silent: Any = SimpleNamespace(solve=lambda sub: None, starts={})
    with pytest.raises(WorkloadError, match="there is nothing to measure"):
        solve_classes(split, silent)


def test_an_iterate_that_is_not_finite_stops_the_search(monkeypatch):
    lost = SimpleNamespace(diagonal=np.array([np.nan]), trace=1.0)
    monkeypatch.setattr(dual, "_evaluate", lambda blocks, y: lost)
    with pytest.raises(NumericalError, match="an iterate is not finite"):
        dual._Search([np.eye(1)], 1e-6).look(np.ones(1))


def test_parts_of_too_many_cells_have_no_matrix(monkeypatch):
    monkeypatch.setattr(rounding, "MAX_MEASURED_CELLS", 7)
    with pytest.raises(TooLargeError, match="8 cells would be measured by a matrix of 8 x 8; the limit is 7"):
        select(mdp.Workload(mdp.Domain({"a": 8}), mdp.product(a="prefix")), noise=GAUSSIAN, mechanism="dense")


def test_the_first_refusal_is_told_where_nothing_fits(monkeypatch):
    def refuse(trials, name):
        raise TooLargeError(f"{name} does not fit")

    monkeypatch.setattr(Trials, "choose", refuse)
    with pytest.raises(TooLargeError, match="residual does not fit"):
        select(WORKLOAD, noise=LAPLACE)


def test_queries_on_too_many_cells_are_refused_before_their_gram_matrix_is_made(monkeypatch):
    module = import_module("matrixdp.selection.mechanisms.workload")
    monkeypatch.setattr(module, "joint_gram", lambda *given: pytest.fail("it was made"))
    line = mdp.Domain({"a": 100, "b": 100})
    workload = mdp.Workload(line, mdp.product(a="prefix"), mdp.product(b="prefix"))
    with pytest.raises(TooLargeError, match="10000 cells would be measured"):
        select(workload, noise=LAPLACE, mechanism="workload")
