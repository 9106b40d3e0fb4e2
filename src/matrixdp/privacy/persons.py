"""Counts of persons: a query that counts at most one record of each person counts persons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matrixdp.errors import EntryError, within
from matrixdp.language.periods import whole_entry
from matrixdp.privacy.unit import Unit
from matrixdp.queries import Entry, Group, ProductGroup, Workload


def counts_persons(entry: Entry) -> bool:
    """Return whether an entry counts persons, or of a series what it asks about the periods that are over."""
    return getattr(whole_entry(entry), "count", "records") == "persons"


def check_persons(workload: Workload, unit: Unit) -> None:
    """Check that entries with `count: persons` count them under a privacy unit.

    Raises
    ------
    EntryError
        If a query may count several records of a person; at the entry, with what would make it exact.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"month": 12}), mdp.marginals([["month"]], count="persons"))
    >>> check_persons(workload, mdp.Unit(id="person", per="month", max_values=12))
    >>> check_persons(workload, mdp.Unit(id="person", records=12))
    Traceback (most recent call last):
        ...
    matrixdp.errors.EntryError: workload[0].count: found persons, of whom each query may count 12 records; \
expected a unit of at most one record of a person, or `per` attributes of the table with max_records_each 1
    """
    for position, (entry, places) in enumerate(zip(workload.entries, workload.places, strict=True)):
        if counts_persons(entry):
            # where SQL counts ids the key is not the user's
            named = "sql" if "sql" in entry.to_spec() else "count"
            with within("workload", position):
                check_groups([workload.groups[place] for place in places], unit, named)


def check_groups(groups: Sequence[Group], unit: Unit, place: str = "count") -> None:
    """Check that each query of some groups counts at most one record of a person; see `check_persons`."""
    if unit.records == 1:
        return
    found = f"persons, of whom each query may count {unit.records:,} records"
    expected = "a unit of at most one record of a person"
    if not unit.per:
        expected += ", or `per` attributes of the table with max_records_each 1"
    elif unit.max_records_each > 1:
        expected = f"max_records_each 1, not {unit.max_records_each}"
    else:
        groups = [group for group in groups if not _within_one_value(group, unit.per)]
        expected += f", or queries that are each about one value of {' and '.join(unit.per)}"
    if groups:
        raise EntryError.at((place,), found, expected, code="conflict")


def _within_one_value(group: Group, names: tuple[str, ...]) -> bool:
    """Return whether each query of a group is about at most one combination of values of some attributes."""
    if not set(names) <= set(group.attributes):
        return False
    places = [group.attributes.index(name) for name in names]
    if isinstance(group, ProductGroup):
        spans = [group.predicates[place].spans(group.sizes[place]) for place in places]
        return all((own.whole & (own.first == own.last)).all() for own in spans)
    cells = (group.rows() != 0).reshape(-1, *group.sizes)
    others = tuple(axis + 1 for axis in range(len(group.sizes)) if axis not in places)
    return bool((np.count_nonzero(cells.any(axis=others).reshape(len(cells), -1), axis=1) <= 1).all())
