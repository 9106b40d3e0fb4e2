"""What measured matrices and exact products refuse: wrong entries, and ranks that are not proved."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact import (
    DeficientMatrix,
    GridTree,
    IntegerMatrix,
    MergedMatrix,
    RowTrees,
    TreeMatrix,
    apply_kronecker,
)
from tests.refusals import calling, numbered

_ONE = np.array(1)
_EYE = IntegerMatrix(np.eye(2, dtype=np.int64))
#: The third row is a combination of the others, yet rounding errors leave no pivot zero.
_NEARLY = [
    [[39, -68, -64], [-25, 14, -5], [-36, -26, -79]],
    [[-46, -22, -38], [33, -44, -22], [53, -154, -104]],
    [[188, -84, 195], [-99, -103, 27], [-109, -393, 276]],
]
_SINGULAR = [
    *([[1, 2], [2, 4]], [[0]], [[1, 0, 0], [0, 1, 0], [1, 1, 0]]),
    *([*entries, *entries[:extra]] for entries in _NEARLY for extra in (0, 1)),
]
#: Levels and their weights that make no tree.
_NO_TREES: list[tuple[list[list[float]], list[list[float]]]] = [
    ([], []),
    ([[0, 1]], [[1, 1], [1, 1]]),
    ([[]], [[]]),
    ([[0, 1], [0, 1, 2]], [[1, 1], [1, 1, 1]]),
    ([[0.0, 1.0]], [[1, 1]]),
    ([[0, 1]], [[1.0, 1.0]]),
    ([[1, 0]], [[1, 1]]),
    ([[0, 2]], [[1, 1, 1]]),
    ([[0, -1]], [[1]]),
    ([[0, 1], [0, 0]], [[1, 1], [1]]),
    ([[0, 1]], [[1]]),
    ([[0, 0], [0, 1]], [[-1], [1, 1]]),
    ([[0, 0], [0, 1]], [[1], [1, 0]]),
    ([[0, 1]], [[2**30, 1]]),
    ([[0, 0]] * 5, [[2**30 - 1]] * 5),
]
_HALVES = np.array([0, 0, 1])
#: Areas beside two halves, and their weights, that are none.
_NOT_BESIDE: list[tuple[list[list[int]], list[NDArray[Any]]]] = [
    ([[0, 1, 0]], [np.array([1, 1])]),  # across a node
    ([[0, 0, 0]], []),
    ([[0, 0, 0]], [np.array([-1])]),
    ([[0, 0, 0]], [np.array([2**16])]),
    ([[0, 0]], [np.array([1])]),
    ([[0, 0, 0]], [np.array([1, 1])]),
]
#: Levels, weights and entries of trees of queries that are none.
_NO_ROW_TREES: list[tuple[list[list[int]], list[Any], Any]] = [
    ([], [], [[1]]),
    ([[0, 1]], [[[1], [1]]], 1),
    ([[0, 1]], [[[1], [1]]], [[1.0]]),
    ([[0, 1]], [[[1, 1], [1, 1]]], [[1, 2]]),
    ([[0, 1]], [[[1, 1], [1, 1]]], [[1, 2], [2, 4]]),
    ([[0, 1]], [[[1, 0], [1, 0]]], [[1, 0], [0, 1]]),
    ([[0, 1]], [[[1], [0]]], [[1, 2]]),
    ([[1, 0]], [[[1], [1]]], [[1, 2]]),
    ([[0, 1]], [[[2**29], [1]]], [[4, 1]]),
]
_ROWS: list[tuple[str, str, Callable[[], Any]]] = [
    *(("not-converged", "", calling(IntegerMatrix, np.array(rows))) for rows in _SINGULAR),
    ("not-converged", "", lambda: IntegerMatrix(np.eye(2, dtype=np.int32))),
    ("not-converged", "", lambda: IntegerMatrix(np.array([[1, 0, 0], [0, 1, 0]]))),
    ("not-converged", "", lambda: IntegerMatrix(np.array([[1, 0], [1, 0]]))),
    ("not-converged", "", lambda: IntegerMatrix(np.array([[1, 0], [1, 0], [0, 0]]))),
    ("not-converged", "", lambda: DeficientMatrix(np.zeros((2, 2), dtype=np.int64))),
    ("not-converged", "", lambda: DeficientMatrix(np.diag([2**30, 1]))),
    ("too-large", "", lambda: apply_kronecker([], _ONE, 1, multipliers=np.array(2**48))),
    ("not-converged", "", lambda: MergedMatrix(_EYE, (np.array([0, 2]),))),
    ("not-converged", "", lambda: MergedMatrix(_EYE, (np.array([0, 9]),))),
    ("not-converged", "", lambda: MergedMatrix(_EYE, (np.array([0, -1]),))),
    ("not-converged", "", lambda: MergedMatrix(_EYE, (np.array([0.0, 1.0]),))),
    ("not-converged", "", lambda: MergedMatrix(_EYE, (np.array([0, 1, 2]),))),
    *(
        ("not-converged", "", calling(MergedMatrix, _EYE, (np.array([0, 1, 1]),), np.array(within)))
        for within in ([0, -1], [0.0, 1.0], [1], [0, 2**30])
    ),
    ("not-converged", "", lambda: MergedMatrix(_EYE, (np.array([0, 0]), np.array([0, 1])), np.array([1, 0]))),
    ("not-converged", "", lambda: GridTree((0, 3), 2, (1, 1, 1))),
    ("not-converged", "", lambda: GridTree((4, 4), 1, (1, 1))),
    ("not-converged", "", lambda: GridTree((4, 5), 2, (1, 1, 1))),
    ("not-converged", "", lambda: GridTree((4, 5), 2**40, (1, 1, 1))),
    ("not-converged", "", lambda: GridTree((2, 2), 2, (1, 0))),
    ("not-converged", "", lambda: GridTree((2, 2), 2, (-1, 1))),
    ("too-large", "", lambda: GridTree((100, 100), 10, (0, 1, 1)).covariance()),
    ("too-large", "", lambda: GridTree((1, 9_001), 10_000, (0, 1))),
    *(
        (
            "not-converged",
            "",
            calling(TreeMatrix, tuple(map(np.array, levels)), tuple(map(np.array, weights))),
        )
        for levels, weights in _NO_TREES
    ),
    *(
        (
            "not-converged",
            "",
            calling(TreeMatrix, (_HALVES,), (np.array([1, 1]),), tuple(map(np.array, areas)), tuple(own)),
        )
        for areas, own in _NOT_BESIDE
    ),
    *(
        (
            "not-converged",
            "",
            calling(RowTrees, tuple(map(np.array, levels)), tuple(map(np.array, own)), np.array(entries)),
        )
        for levels, own, entries in _NO_ROW_TREES
    ),
]
REFUSALS = numbered("exact", _ROWS)
