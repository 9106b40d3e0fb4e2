"""What all records of a person cost in a series: dense, over all sequences of tables of small cases."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import matrixdp as mdp
from matrixdp.domain import Domain
from matrixdp.exact import CenteredMatrix, DeficientMatrix, IdentityMatrix, IntegerMatrix
from matrixdp.plans import Block, Part
from matrixdp.plans.persons import Histories, Steps
from tests.plans.test_persons import dense, histories


def staircase(rng: np.random.Generator, size: int, low: int) -> IdentityMatrix | IntegerMatrix:
    if rng.random() < 0.2:
        return IdentityMatrix(size)
    entries = np.tril(rng.integers(low, 4, size=(size, size)))
    np.fill_diagonal(entries, rng.integers(1, 4, size=size))
    return IntegerMatrix(entries)


def beside(rng: np.random.Generator, size: int) -> Block:
    kind = int(rng.integers(3))
    if kind == 0:
        return Block(("a",), IdentityMatrix(size))
    if kind == 1:
        return Block(("a",), CenteredMatrix(size))
    entries = rng.integers(-2, 4, size=(2, size))
    entries[0, 0] = 1
    return Block(("a",), DeficientMatrix(entries))


def random_parts(rng: np.random.Generator, domain: Domain, low: int, shared: bool) -> list[Part]:
    size, found = domain["t"].size, []
    once = staircase(rng, size, low)
    for _ in range(int(rng.integers(1, 4))):
        blocks = [Block(("t",), once if shared else staircase(rng, size, low))]
        if rng.random() < 0.6:
            blocks.append(beside(rng, domain["a"].size))
        if rng.random() < 0.5:
            blocks.append(Block(("b",), IdentityMatrix(domain["b"].size)))
        blocks = [blocks[place] for place in rng.permutation(len(blocks))]
        multipliers = None
        if rng.random() < 0.3:
            rows = [1 if block.attributes == ("t",) else block.matrix.rows for block in blocks]
            weights = rng.integers(1, 3, size=rows)
            multipliers = np.ascontiguousarray(
                np.broadcast_to(weights, [block.matrix.rows for block in blocks])
            ).astype(np.int64)
        names = domain.sort([name for block in blocks for name in block.attributes])
        found.append(Part(names, tuple(blocks), 1.0, multipliers))
    return found


def by_period(domain: Domain, part: Part) -> list[NDArray[np.int64]]:
    """Return the rows of a part over all cells, by the period at which they end."""
    axis = [block.attributes for block in part.blocks].index(("t",))
    rows = dense(domain, [part])[0]
    ends = np.indices(part.shape)[axis].ravel()
    return [rows[ends == period] for period in range(domain["t"].size)]


def largest(domain: Domain, parts: list[Part], unit: mdp.Unit, weights: list[int]) -> int:
    """Return the largest sum of squares over all sequences of what a person has, one a period."""
    whole = histories(domain, unit)
    rows = [by_period(domain, part) for part in parts]
    steps = range(domain["t"].size)
    squares = np.zeros((len(whole), len(steps)), dtype=np.int64)
    for weight, own in zip(weights, rows, strict=True):
        for period in steps:
            squares[:, period] += weight * ((whole @ own[period].T) ** 2).sum(axis=1)
    # any sequence of persons: the best of each period
    return int(squares.max(axis=0).sum())


UNITS = [
    mdp.Unit(id="p", per="t", max_values=1),
    mdp.Unit(id="p", per="t", max_values=2),
    mdp.Unit(id="p", per="t", max_values=3),
    mdp.Unit(id="p", per="t", max_values=3, constant=["a", "b"]),
    mdp.Unit(id="p", per="t", max_values=2, constant="a"),
    mdp.Unit(records=3, id="p", per="t", max_values=2, max_records_each=2),
    mdp.Unit(records=4, id="p", per="t", max_values=3, max_records_each=3, constant=["a", "b"]),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_no_sequence_of_tables_costs_more(unit: mdp.Unit, seed: int) -> None:
    rng = np.random.default_rng([seed, 7])
    domain = Domain({"t": 3, "a": 2, "b": 2})
    for low in (0, -3):
        for shared in (False, True):
            parts = random_parts(rng, domain, low, shared)
            weights = [int(own) for own in rng.integers(1, 9, size=len(parts))]
            charge = Steps(domain, parts, unit).charge([(own, own) for own in weights])
            assert charge >= largest(domain, parts, unit, weights)
            # a table that never changes is a sequence of tables
            plain = Histories(domain, parts, unit).charge([(own, own) for own in weights])
            assert charge >= max(plain if low == 0 and shared else 0, 0)


@pytest.mark.parametrize("unit", [UNITS[place] for place in (0, 2, 3, 5, 6)], ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_the_charge_is_exact_for_one_matrix_over_time(unit: mdp.Unit, seed: int) -> None:
    rng = np.random.default_rng([seed, 8])
    domain = Domain({"t": 4, "a": 2})
    matrix = staircase(rng, 4, -3)
    kinds = {"constant": (IdentityMatrix(2), CenteredMatrix(2)), "": (IdentityMatrix(2),)}
    for block in kinds["constant"]:
        parts = [
            Part(("t",), (Block(("t",), matrix),), 1.0),
            Part(("t", "a"), (Block(("t",), matrix), Block(("a",), block)), 1.0),
        ]
        own = mdp.Unit(
            unit.records, "p", "t", unit.max_values, unit.max_records_each, ["a"] if unit.constant else ()
        )
        charge = Steps(domain, parts, own).charge([(3, 3), (2, 2)])
        assert charge == largest(domain, parts, own, [3, 2])


@pytest.mark.parametrize(("constant", "second"), [("a", 72 - 12), ("", 72 + 36)])
def test_weights_are_rounded_to_the_safe_side(constant: str, second: int) -> None:
    """Columns n I - 11' of 3 values have 6 in common with themselves and -3 with others."""
    domain = Domain({"t": 2, "a": 3})
    matrix = IntegerMatrix(np.array([[1, 0], [-1, 1]]))
    parts = [Part(("t", "a"), (Block(("t",), matrix), Block(("a",), CenteredMatrix(3))), 1.0)]
    unit = mdp.Unit(id="p", per="t", max_values=2, constant=[constant] if constant else ())
    assert Steps(domain, parts, unit).charge([(1, 6)]) == 36 + second


@pytest.mark.parametrize("kind", ["uneven", "joint", "none"])
def test_parts_of_another_form_are_rejected(kind: str) -> None:
    domain = Domain({"t": 2, "a": 2})
    time, other = Block(("t",), IdentityMatrix(2)), Block(("a",), IdentityMatrix(2))
    part = {
        "uneven": Part(("t", "a"), (time, other), 1.0, np.array([[1, 1], [2, 1]], dtype=np.int64)),
        "joint": Part(("t", "a"), (Block(("t", "a"), IdentityMatrix(4)),), 1.0),
        "none": Part(("a",), (other,), 1.0),
    }[kind]
    with pytest.raises(mdp.MatrixDPError):
        Steps(domain, [part], mdp.Unit(id="p", per="t", max_values=2)).charge([(1, 1)])
