# mypy: disable-error-code="arg-type,list-item"
"""What predicate sets, groups and weights refuse."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from matrixdp import queries as q
from tests.refusals import numbered


def made(cls: Any, *arguments: Any) -> Callable[[], Any]:
    return lambda: cls(*arguments)


#: What is made, by the code of the error and its place.
MADE: dict[tuple[str, str], list[Callable[[], Any]]] = {
    ("out-of-range", ""): [*(made(q.Sliding, width) for width in (0, -1, True, 1.5, "2")),
        made(q.ProductGroup, "g", ("a", "b"), (q.Identity(), q.Sliding(5)), (2, 3))],
    ("empty", ""): [made(q.Ranges, ()), made(q.Sets, ()), made(q.Stacked, ()), made(q.Changes, ()),
        made(q.Chosen, q.Prefix(), ())],
    ("wrong-size", "matrix"): [
        made(q.Matrix, own) for own in (np.ones(3), np.ones((0, 3)), np.ones((3, 0)))],
    ("out-of-range", "matrix"): [made(q.Matrix, [[own]]) for own in (math.nan, math.inf, 1e-60)],
    ("wrong-size", "dense"): [made(q.MatrixRows, np.ones(3))],
    ("out-of-range", "dense"): [made(q.MatrixRows, [[own]]) for own in (math.inf, -1e60)],
    ("workload", ""): [
        made(q.DenseGroup, "g", ("a", "b"), q.MatrixRows(np.eye(3)), (2, 2))],
    ("wrong-type", "matrix"): [
        made(q.Matrix, own) for own in ([[1, 2], [3]], [["a"]], [[1j]], [[None]], None)],
    ("wrong-type", "dense"): [made(q.MatrixRows, own) for own in ([["x"]], [[1, 2], [3]])],
    ("out-of-range", "g.weight"): [made(q.ProductGroup, "g", ("a",), (q.Identity(),), (2,), 0)],
    ("wrong-size", "g.weights"): [made(q.ProductGroup, "g", ("a",), (q.Identity(),), (2,), 1.0, [1.0])],
}  # fmt: skip
#: Sets that do not fit an attribute of three values.
UNFIT: dict[tuple[str, str], list[q.Predicates]] = {
    ("out-of-range", ""): [q.Sliding(4), q.Sets(((0, 3),)), q.Sets(((-1,),)),
        q.Labelled(q.Sliding(4), ("wide",)), q.Stacked((q.Total(), q.Sliding(4))),
        q.Permuted(q.Sliding(4), (0, 1, 2))],
    ("workload", ""): [q.Changes(((1, 0),)), q.Changes(((0, 3),)), q.Changes(((-1, 0),)),
        q.Chosen(q.Prefix(), (0, 3)), q.Chosen(q.Prefix(), (1, 1)), q.Chosen(q.Prefix(), (-1, 0)),
        q.Ranges(((0, 1), (0, 3))), q.Ranges(((2, 1),)), q.Ranges(((-1, 1),)),
        q.Matrix(np.eye(2))],
    ("duplicate", ""): [q.Sets(((1, 1),))],
    ("wrong-size", ""): [q.Labelled(q.Total(), ("a", "b")), q.Permuted(q.Prefix(), (0, 1)),
        q.Permuted(q.Prefix(), (0, 1, 1))],
}  # fmt: skip
#: The weight of a group, and those of its two queries.
WEIGHTS: dict[tuple[str, str], list[tuple[Any, Any]]] = {
    ("out-of-range", "weight"): [(weight, None) for weight in (0, -1, math.nan, math.inf, 10**400, True, "1",
        None, [1])],
    ("wrong-size", "weights"): [(1.0, [1.0]), (1.0, [1.0, 2.0, 3.0])],
    ("out-of-range", "weights"): [*((1.0, [weight, 1.0]) for weight in (0.0, -1.0, math.nan, math.inf)),
        (1e300, [1e300, 1.0]), (1e-300, [1e-300, 1.0])],
    ("wrong-type", "weights"): [(1.0, ["a", "b"]), (1.0, [[1], [2, 3]])],
}  # fmt: skip
REFUSALS = numbered(
    "queries",
    [
        *((*key, attempt) for key, attempts in MADE.items() for attempt in attempts),
        *((*key, made(own.check, 3)) for key, sets in UNFIT.items() for own in sets),
        *((*key, made(q.check_weights, *own, 2)) for key, all_ in WEIGHTS.items() for own in all_),
    ],
)
