"""What any person costs over a whole series, from the rows of the saved file and what the reader keeps.

Whatever the tables are at the periods, the reader keeps of a person some records that her unit allows. So the
rows that end at a period move by what such records move them by, chosen anew at each period.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.domain import OutOfDomain
from matrixdp.sources import open_source
from tests.audit.reading import read, spread
from tests.audit.test_series import MONTHS, SHAPE, WORKLOADS
from tests.independent import verifier
from tests.plans.test_persons import histories

UNITS: list[dict[str, Any]] = [
    {"max_values": 1},
    {"max_values": 2, "constant": ["a"]},
    {"max_values": 3, "constant": ["a", "b"]},
    {"max_values": 3},
    {"max_values": 2, "max_records_each": 2, "max_records": 3},
]
DOMAIN: dict[str, Any] = {
    "month": {"from": "2025-01-01", "to": "2025-03-31", "by": "month"},
    **{name: {"min": 0, "max": 1} for name in "ab"},
}


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_sequence_of_tables_costs_a_person_more(tmp_path: Path, workload: str, unit: dict[str, Any]):
    specification = {
        "domain": DOMAIN,
        "workload": WORKLOADS[workload],
        "series": "month",
        "unit": {"id": "person", "per": "month", **unit},
        "privacy": {"mu": 1},
    }
    series = mdp.Series.start(specification, tmp_path / "series")
    found, own = read(series.folder / "series.mdp"), series.begun.authorization.budget.unit
    persons = histories(series.workload.domain, own).astype(object)
    moved = np.zeros((len(persons), SHAPE[0]), dtype=object)
    for part, scale in zip(found.parts, found.scales, strict=True):
        rows = spread(part.dense(), part.order, SHAPE)
        ends = SHAPE[0] - 1 - np.argmax((rows != 0).any(axis=(2, 3))[:, ::-1], axis=1)
        for row, end in zip(rows.reshape(len(rows), -1).astype(object), ends, strict=True):
            moved[:, end] += (persons @ row) ** 2 / Fraction(scale) ** 2
    worst, stays = moved.max(axis=0).sum(), moved.sum(axis=1).max()
    allowed = series.begun.authorization.cost.value * own.records**2
    assert stays <= worst <= allowed <= 1
    if unit["max_values"] == 1:
        assert stays < Fraction(9, 10) * worst  # what one table costs would not be enough
    if set(unit.get("constant", ())) == {"a", "b"} or unit["max_values"] == 1:
        assert worst >= Fraction(99, 100) * allowed
    series.publish({"month": ["2025-01-04"], "a": [0], "b": [1], "person": ["p"]}, MONTHS[0])
    assert verifier.main([str(series.folder)]) == 0


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_whatever_the_tables_are_the_reader_keeps_what_the_unit_allows(unit: dict[str, Any]):
    domain = mdp.Domain(DOMAIN)
    own = mdp.Unit(unit.get("max_records"), "person", "month", unit["max_values"],
                   unit.get("max_records_each"), unit.get("constant", ()))  # fmt: skip
    allowed = {tuple(person) for person in histories(domain, own)} | {(0,) * 12}
    rng, kept = np.random.default_rng(4), set()

    def counts(rows: list[tuple[str, Any, Any, str]]) -> Any:
        columns = dict(zip(("month", "a", "b", "person"), map(list, zip(*rows, strict=True)), strict=True))
        table = open_source(columns).marginals(domain, [domain.names], OutOfDomain.drop(), own)
        return next(iter(table))[1].ravel()

    for _ in range(60):
        rows = [
            (f"2025-{rng.integers(1, 5):02}-05", *map(int, rng.integers(0, 2 + (rng.random(2) < 0.1))), who)
            for who in rng.permutation(list("ppppppqqqr"))
        ]
        moved = counts(rows) - counts([row for row in rows if row[-1] != "p"])
        kept.add(tuple(moved))
    assert kept <= allowed
    assert len(kept) > 10  # tables of one person differ much
