"""What all records of a person cost: dense, over all persons of small cases."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numpy.typing import NDArray

import matrixdp as mdp
from matrixdp.domain import Domain
from matrixdp.exact import CenteredMatrix, DeficientMatrix, IdentityMatrix
from matrixdp.exact.structured import over_groups
from matrixdp.plans import Block, Part, persons
from matrixdp.plans.persons import Histories
from matrixdp.selection.gram.persons import prove_charge


def dense(domain: Domain, parts: list[Part]) -> list[NDArray[np.int64]]:
    """Return the rows of each part over all cells of the domain."""
    cells = list(product(*(range(size) for size in domain.shape)))
    found = []
    for part in parts:
        columns = []
        for cell in cells:
            table = np.zeros([domain[name].size for name in part.attributes], dtype=np.int64)
            table[tuple(cell[domain.names.index(name)] for name in part.attributes)] = 1
            columns.append(np.array(part.answers(table, 1).values(), dtype=np.int64))
        found.append(np.stack(columns, axis=1))
    return found


def histories(domain: Domain, unit: mdp.Unit) -> NDArray[np.int64]:
    """Return the counts of every person that a unit allows, shape (persons, cells)."""
    cells = list(product(*(range(size) for size in domain.shape)))
    per, constant = ([domain.names.index(name) for name in few] for few in (unit.per, unit.constant))
    found = []
    for records in range(1, unit.records + 1):
        for chosen in combinations_with_replacement(range(len(cells)), records):
            values = [tuple(cells[j][i] for i in per) for j in chosen]
            same = {tuple(cells[j][i] for i in constant) for j in chosen}
            most = max(values.count(value) for value in values)
            if len(set(values)) <= unit.max_values and most <= unit.max_records_each and len(same) == 1:
                found.append(np.bincount(chosen, minlength=len(cells)))
    return np.array(found)


def largest(domain: Domain, parts: list[Part], unit: mdp.Unit, weights: list[int]) -> int:
    """Return the largest weighted sum of squares by which a person moves the answers."""
    whole = histories(domain, unit)
    moved = np.zeros(len(whole), dtype=np.int64)
    for weight, rows in zip(weights, dense(domain, parts), strict=True):
        moved += weight * ((whole @ rows.T) ** 2).sum(axis=1)
    return int(moved.max())


def matrices(rng: np.random.Generator, names: tuple[str, ...], sizes: list[int], signed: bool) -> Block:
    size = math.prod(sizes)
    kind = rng.integers(5)
    if kind == 0:
        return Block(names, IdentityMatrix(size))
    if kind == 1 and signed:
        return Block(names, CenteredMatrix(size))
    low = -3 if signed else 0
    entries = rng.integers(low, 4, size=(int(rng.integers(1, 4)), size))
    entries[0, 0] = 1
    if kind == 2 and len(names) == 1 and size > 2:
        return Block(names, over_groups(IdentityMatrix(2), [np.array([0, 1, 1, 0][:size])]))
    try:
        return Block(names, DeficientMatrix(entries))
    except mdp.MatrixDPError:
        return Block(names, IdentityMatrix(size))


def random_parts(rng: np.random.Generator, domain: Domain, signed: bool) -> list[Part]:
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        names = tuple(name for name in domain.names if rng.random() < 0.6)
        blocks: list[Block] = []
        rest = list(names)
        while rest:
            own = tuple(rest[: int(rng.integers(1, 3))])
            rest = rest[len(own) :]
            blocks.append(matrices(rng, own, [domain[name].size for name in own], signed))
        multipliers = None
        if blocks and rng.random() < 0.2:
            multipliers = rng.integers(1, 4, size=[block.matrix.rows for block in blocks])
        parts.append(Part(names, tuple(blocks), 1.0, multipliers))
    return parts


CASES = [
    ({"t": 3, "a": 2}, {"per": "t", "max_values": 2}),
    ({"t": 3, "a": 2}, {"per": "t", "max_values": 3, "constant": ["a"]}),
    ({"t": 3, "a": 2}, {"per": "t", "max_values": 2, "max_records_each": 2, "records": 3}),
    ({"t": 4}, {"per": "t", "max_values": 2, "max_records_each": 3, "records": 4}),
    ({"t": 3, "a": 2, "b": 2}, {"per": "t", "max_values": 3, "constant": ["b"]}),
    ({"s": 2, "t": 2, "a": 2}, {"per": ["s", "t"], "max_values": 3}),
    ({"a": 3, "t": 3}, {"per": "t", "max_values": 2, "max_records_each": 2, "constant": ["a"]}),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("signed", [False, True])
def test_charge_of_all_persons(case: int, signed: bool) -> None:
    sizes, bounds = CASES[case]
    domain, unit = Domain(dict(sizes)), mdp.Unit(id="person", **bounds)  # type: ignore[arg-type]
    rng = np.random.default_rng(100 * case + signed)
    for _ in range(12):
        parts = random_parts(rng, domain, signed)
        weights = [int(own) for own in rng.integers(1, 6, size=len(parts))]
        found = Histories(domain, parts, unit).charge([(own, own) for own in weights])
        assert found >= largest(domain, parts, unit, weights)


@pytest.mark.parametrize("limit", ["MOST_SETS", "MOST_VALUES", "MOST_PATTERNS"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_bounds_beyond_limits_hold(case: int, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persons, limit, 0)
    sizes, bounds = CASES[case]
    domain, unit = Domain(dict(sizes)), mdp.Unit(id="person", **bounds)  # type: ignore[arg-type]
    rng = np.random.default_rng(case)
    for _ in range(4):
        parts = random_parts(rng, domain, signed=True)
        weights = [int(own) for own in rng.integers(1, 6, size=len(parts))]
        found = Histories(domain, parts, unit).charge([(own, own) for own in weights])
        assert found >= largest(domain, parts, unit, weights)


def test_weights_are_rounded_to_the_safe_side() -> None:
    domain, unit = Domain({"t": 3}), mdp.Unit(id="person", per="t", max_values=3)
    one, other = Part((), (), 1.0), Part(("t",), (Block(("t",), CenteredMatrix(3)),), 1.0)
    found = Histories(domain, [one, other], unit)
    # the second part adds 6 for each record, and takes 6 * 3 away, as far as its weight is sure
    assert found.charge([(5, 5), (10, 10)]) == largest(domain, [one, other], unit, [5, 10])
    assert found.charge([(5, 5), (9, 10)]) > found.charge([(5, 5), (10, 10)])
    domain = Domain({"t": 3, "a": 3})
    both = Part(("t", "a"), (*other.blocks, Block(("a",), CenteredMatrix(3))), 1.0)
    found = Histories(domain, [both], unit)
    assert found.charge([(9, 10)]) == found.charge([(10, 10)])


@pytest.mark.parametrize("case", range(6))
def test_proofs_bound_all_sets(case: int) -> None:
    rng = np.random.default_rng(case)
    size, most = 9, (3, 5, 9)[case % 3]
    factor = rng.integers(-9, 10, size=(size, size)) if case < 3 else np.tri(size, dtype=int)
    table = (factor.T @ factor).astype(object) * 2**40
    sets = np.array(list(product((0, 1), repeat=size)), dtype=object)
    sets = sets[sets.sum(axis=1) <= most]
    true = ((sets @ table) * sets).sum(axis=1).max()
    proof = prove_charge(table.astype(float), most)
    found = persons.proved_form(table, most, proof)
    assert true <= found < 1.05 * true
    # whatever a proof says, it proves nothing false
    for _ in range(40):
        wrong = proof.copy()
        wrong[tuple(rng.integers(own) for own in wrong.shape)] += int(rng.integers(-(2**26), 2**26))
        less = persons.proved_form(table, most, wrong)
        assert less is None or less >= true
    assert persons.proved_form(table, most, proof[:-1]) is None


def test_many_values_that_are_alike_are_exact_at_once() -> None:
    days = Domain({"day": 100_000})
    part = Part(("day",), (Block(("day",), IdentityMatrix(100_000)),), 1.0)
    unit = mdp.Unit(id="person", per="day", max_values=1_000, max_records_each=3, records=2_000)
    assert Histories(days, [part], unit).charge([(1, 1)]) == 666 * 9 + 4


@pytest.mark.parametrize("case", range(len(CASES)))
def test_charge_is_exact_without_negative_overlaps(case: int) -> None:
    sizes, bounds = CASES[case]
    domain, unit = Domain(dict(sizes)), mdp.Unit(id="person", **bounds)  # type: ignore[arg-type]
    rng = np.random.default_rng(case)
    per = domain.sort(unit.per)
    for _ in range(8):
        parts = []
        for names in ((), *((name,) for name in domain.names if name not in per)):
            kinds = IdentityMatrix, CenteredMatrix
            others = [Block((name,), kinds[rng.integers(2)](domain[name].size)) for name in names]
            entries = rng.integers(0, 4, size=(3, domain.cells(per)))
            entries[0, 0] = 1
            over = Block(
                per, DeficientMatrix(entries) if rng.random() < 0.8 else IdentityMatrix(domain.cells(per))
            )
            blocks = [over, *others] if rng.random() < 0.8 or not others else others
            own = domain.sort([name for block in blocks for name in block.attributes])
            parts.append(Part(own, tuple(blocks), 1.0))
        weights = [int(own) for own in rng.integers(1, 6, size=len(parts))]
        found = Histories(domain, parts, unit).charge([(own, own) for own in weights])
        assert found == largest(domain, parts, unit, weights)
