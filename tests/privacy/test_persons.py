"""Counts of persons: what the unit makes exact counts distinct persons, and the rest is rejected."""

from itertools import product

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import EntryError
from matrixdp.privacy.persons import check_persons
from matrixdp.queries import Group

DOMAIN = mdp.Domain({"month": 3, "region": 2})
UNITS = [
    mdp.Unit(id="person", records=1),
    mdp.Unit(id="person", records=2),
    mdp.Unit(id="person", per="month", max_values=2),
    mdp.Unit(id="person", per="month", max_values=3, max_records_each=2),
    mdp.Unit(id="person", per=["month", "region"], max_values=3),
]
ENTRIES = [
    mdp.marginals(0, count="persons"),
    mdp.marginals([["month"]], count="persons"),
    mdp.marginals([["region"]], count="persons"),
    mdp.marginals([["month", "region"]], count="persons"),
    mdp.product(month={"sets": [[1]]}, count="persons"),
    mdp.product(month="prefix", count="persons"),
    mdp.cells([{"month": 0}, [{"month": 2, "region": 1}, {"month": 2, "region": 0}]], count="persons"),
    mdp.cells([[{"month": 0}, {"month": 2}]], count="persons"),
    mdp.disjunction(month={"sets": [[1]]}, region={"sets": [[0]]}, count="persons"),
    mdp.sql("SELECT region, COUNT(*) FROM t WHERE month = 1 GROUP BY region", count="persons"),
]


def most_of_one_person(workload: mdp.Workload, unit: mdp.Unit) -> float:
    """Return the most records of one person that a query counts, by all that she can have."""
    cells = list(product(range(3), range(2)))
    columns = [np.concatenate([counted(group, cell) for group in workload]) for cell in cells]
    most = 0.0
    for history in product(range(unit.records + 1), repeat=len(cells)):
        values: dict[object, int] = {}
        for cell, records in zip(cells, history, strict=True):
            key = tuple(cell[["month", "region"].index(name)] for name in unit.per)
            values[key] = values.get(key, 0) + records
        used = [records for records in values.values() if records]
        allowed = sum(used) <= unit.records and len(used) <= unit.max_values
        if allowed and max(used, default=0) <= unit.max_records_each:
            most = max(most, float((np.array(columns).T @ np.array(history)).max()))
    return most


def counted(group: Group, cell: tuple[int, int]) -> np.ndarray:
    """Return which queries count a record."""
    table = np.zeros((3, 2))
    table[cell] = 1.0
    unasked = tuple(axis for axis, name in enumerate(("month", "region")) if name not in group.attributes)
    return np.asarray(group.answers(table.sum(axis=unasked))).ravel()


@pytest.mark.parametrize("unit", UNITS, ids=repr)
@pytest.mark.parametrize("place", range(len(ENTRIES)))
def test_exactly_the_counts_of_one_record_a_person_are_counts_of_persons(place: int, unit: mdp.Unit) -> None:
    workload = mdp.Workload(DOMAIN, ENTRIES[place])
    if most_of_one_person(workload, unit) <= 1.0:
        check_persons(workload, unit)
        return
    with pytest.raises(EntryError) as caught:
        check_persons(workload, unit)
    named = "sql" if place == len(ENTRIES) - 1 else "count"
    assert (caught.value.code, caught.value.problem.path) == ("conflict", ("workload", 0, named))


def test_published_counts_are_of_distinct_persons() -> None:
    random = np.random.default_rng(1)
    columns = {"person": random.integers(0, 300, 2000), "month": random.integers(0, 3, 2000)}
    unit = mdp.Unit(id="person", per="month", max_values=3)
    domain = mdp.Domain({"month": 3})
    budget = mdp.Budget(mu=1000, unit=unit)
    workload = mdp.Workload(domain, mdp.marginals(1, count="persons"))
    release = mdp.select(workload, budget=budget).measure(columns, budget, seed_not_private=1).reconstruct()
    true = [len(set(columns["person"][columns["month"] == month])) for month in range(3)]
    assert np.abs(release.table("month")["estimate"].to_numpy() - true).max() < 0.1
    [table] = release.tables
    assert table.unit == "persons"
    found = release.sql("SELECT month, COUNT(DISTINCT person) AS n FROM t GROUP BY month")
    assert np.allclose(found["n"].to_numpy(), release.table("month")["estimate"].to_numpy())
    for statement in (
        "SELECT COUNT(DISTINCT person) FROM t",
        "SELECT month, COUNT(DISTINCT person) / 2 FROM t GROUP BY month",
        "SELECT COUNT(*) AS n FROM t HAVING COUNT(DISTINCT person) > 3",
    ):
        with pytest.raises(EntryError):
            release.sql(statement)
    with pytest.raises(EntryError):
        release.answer(mdp.product(month="prefix", count="persons"))
    with pytest.raises(EntryError):  # another unit
        mdp.select(workload).measure(columns, mdp.Budget(mu=1000, unit=mdp.Unit(id="person", records=3)))


def test_statements_that_count_persons_keep_their_texts() -> None:
    text = "domain: {month: 3}\nunit: {id: person, per: month, max_values: 3}\nworkload:\n"
    text += "  - {sql: 'SELECT month, COUNT(DISTINCT person) AS n FROM t GROUP BY month', title: Persons}\n"
    [entry] = mdp.load_specification(text).workload.entries
    assert (entry.to_spec()["count"], entry.to_spec()["title"]) == ("persons", "Persons")
