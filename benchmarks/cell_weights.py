"""Two more uses of a first round, in small: a weight for every cell, and nearly empty categories merged.

    python benchmarks/cell_weights.py

Weights of cells: the least sum of variances over max(count, floor)^2, once with the best strategy of all for
these weights, by a semidefinite program, and once with the best for one weight a marginal, the mean of those
of its cells. Merged categories: the noise of the cells that remain, before and after. Nothing is drawn.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from harness import emit
from model import ADULT, COARSE
from numpy.typing import NDArray
from rounds import Marginals

from matrixdp.papers.semidefinite import NONE, Program

Array = NDArray[np.float64]
Names = tuple[str, ...]

#: Sizes of the tables, and the power of the rank that the shares of their values fall with.
SHAPES, SKEWS, RECORDS = ((6, 5), (4, 3, 3), (3, 3, 2, 2)), (0.5, 1.3, 2.0), 10_000
FLOOR = 10.0
#: Eigenvalues below this share of the largest are rounding errors.
_ROUNDING = 1e-10
#: Categories that remain of attributes of Adult.
MERGED = {"native-country": 8, "occupation": 10, "workclass": 6, "education-num": 12}


def _skewed(shape: tuple[int, ...], skew: float) -> Array:
    """Return independent counts whose shares fall with their rank."""
    joint = np.array(float(RECORDS))
    for size in shape:
        shares = np.arange(1, size + 1) ** -skew
        joint = np.multiply.outer(joint, shares / shares.sum())
    return joint


def _marginals(joint: Array, ways: int) -> dict[Names, Array]:
    names = [f"a{i}" for i in range(joint.ndim)]
    chosen = [own for k in range(1, ways + 1) for own in itertools.combinations(range(joint.ndim), k)]
    others = {own: tuple(i for i in range(joint.ndim) if i not in own) for own in chosen}
    return {tuple(names[i] for i in own): joint.sum(axis=others[own]) for own in chosen}


def _queries(shape: tuple[int, ...], names: Names) -> Array:
    rows: Array = np.ones((1, 1))
    for i, size in enumerate(shape):
        own = np.eye(size) if f"a{i}" in names else np.ones((1, size))
        rows = np.asarray(np.kron(rows, own), dtype=np.float64)
    return rows


def per_cell(shape: tuple[int, ...], skew: float) -> dict[str, object]:
    """Return the least weighted error with one weight a marginal, and with one a cell."""
    tables = _marginals(_skewed(shape, skew), min(len(shape), 2))
    weights = {names: np.maximum(own, FLOOR) ** -2.0 for names, own in tables.items()}
    own = Marginals({f"a{i}": size for i, size in enumerate(shape)}, tables)
    precisions = own.plan(np.array([weights[names].sum() for names in tables]), 1.0)
    together = float(own.errors(precisions) ** 2 @ [weights[names].sum() for names in tables])
    gram = np.zeros((math.prod(shape), math.prod(shape)))
    for names in tables:
        rows = _queries(shape, names) * np.sqrt(weights[names].ravel())[:, None]
        gram += rows.T @ rows
    return {"shape": list(shape), "skew": skew, "ratio": math.sqrt(least_error(gram / together))}


def least_error(gram: Array) -> float:
    """Return the least tr(X^-1 W'W) over X with a diagonal of at most 1: the best strategy's error."""
    values, vectors = np.linalg.eigh(gram)
    held = values > _ROUNDING * values.max()
    root = (vectors[:, held] * np.sqrt(values[held])).T
    rank, cells = root.shape
    program = Program()
    matrix, errors = program.symmetric(cells), program.symmetric(rank)
    program.at_most(np.diag(matrix)[:, None], np.ones(1), np.ones(1))
    # [[X, R'], [R, Z]] is positive semidefinite where Z is at least R X^-1 R'
    constant = np.block([[np.zeros((cells, cells)), root.T], [root, np.zeros((rank, rank))]])
    none = np.full((cells, rank), NONE)
    program.positive(constant, np.block([[matrix, none], [none.T, errors]]))
    costs = np.zeros(program.size)
    costs[np.diag(errors)] = 1
    return float(costs @ program.minimize(costs))


def merged(ways: int) -> list[dict[str, object]]:
    """Return by how much the noise of the cells that remain falls where categories are merged."""
    sizes = {name: COARSE.get(name, size) for name, size in ADULT.items()}
    asked = [own for k in range(1, ways + 1) for own in itertools.combinations(sizes, k)]
    rows: list[dict[str, object]] = []
    for names in (*((own,) for own in MERGED), tuple(MERGED)):
        fewer = sizes | {name: MERGED[name] for name in names}
        before, after = _noise_alone(sizes, asked), _noise_alone(fewer, asked)
        # the cells that remain: one category of those merged is the rest
        remain = np.array([math.prod(fewer[n] - (n in names) for n in own) for own in asked], dtype=float)
        all_cells = np.array([math.prod(sizes[n] for n in own) for own in asked], dtype=float)

        def rmse(own: Marginals, weights: Array, remain: Array = remain) -> float:
            return math.sqrt(float(own.errors(own.plan(weights, 1.0)) ** 2 @ remain / remain.sum()))

        rows.append(
            {
                "ways": ways,
                "merged": {name: [sizes[name], MERGED[name]] for name in names},
                "one weight a cell": rmse(before, all_cells),
                "weighted": rmse(before, remain),
                "after": rmse(after, remain),
            }
        )
    return rows


def _noise_alone(sizes: dict[str, int], asked: list[Names]) -> Marginals:
    return Marginals(sizes, {own: np.empty([sizes[n] for n in own]) for own in asked})


def main() -> None:
    cells = [per_cell(shape, skew) for shape in SHAPES for skew in SKEWS]
    emit({"cells": cells, "merged": [row for ways in (2, 3) for row in merged(ways)]})


if __name__ == "__main__":
    main()
