"""That of the records of one person only the first ones are counted, whoever else is in the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.domain import Domain, OutOfDomain, person_id
from matrixdp.errors import DomainError, MatrixDPError, SourceError
from matrixdp.privacy import Unit
from matrixdp.sources import Source
from matrixdp.testing.agreement import require

__all__ = ["HOSTILE_IDS", "check_persons", "first_records"]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""

HOSTILE_IDS = (
    "1", "01", "1.0", " 1", "+1", "10e-1", "1_0", "0", "-0", "ann", "Ann", "ANN", " ann", "ann ", "ann\x00",
    "ann\x00\x00", "ANN\x00", "a\x00nn", "\x00", "é", "e\u0301", "É", "ﬁ", "fi", "\ufffd", "M\ufffdller",
    "m\ufffdller", "ß", "ss", "ı", "I", "i", "true", "T", "no", "NULL", "null", "None", "nan", "NaN", "inf",
    "9007199254740993", "9007199254740992", "18446744073709551616", "'", "''", '"', ";--", "\u200bann",
    "x" * 300, "x" * 299 + "y", None, "", " ",
)  # fmt: skip
"""Texts that name persons who are easily taken for others, and texts that name nobody."""


def first_records(ids: Sequence[object], most: int) -> list[bool]:
    """Return which records are counted: the first ones of each person, and none that names nobody.

    Examples
    --------
    >>> first_records(["ann", 1, "ann", None, "01", "ann", "1.0"], 2)
    [True, True, True, False, True, False, False]
    """
    seen: Counter[str | float] = Counter()
    kept = []
    for person in map(person_id, ids):
        if person is not None:
            seen[person] += 1
        kept.append(person is not None and seen[person] <= most)
    return kept


def check_persons(open_table: Callable[[Any], Source], ids: Any) -> None:
    """Check that an engine counts the first records of each person, or says that it cannot.

    Every id has three records between those of others, of which one is out of domain. What is counted must be
    what `first_records` says, and must differ by at most as many records as a person may have when all
    records of one person are taken away.

    Parameters
    ----------
    open_table : callable
        Takes a `pyarrow.Table`, makes the engine's own table of it, and returns the source of that.
    ids : pyarrow.Array
        Ids of one kind.

    Raises
    ------
    AssertionError
        Names the person whose records are counted wrongly, or what else is broken.
    """
    values = ids.to_pylist() * 3
    table = arrow.table(
        {
            "record": [str(place) for place in range(len(values))],
            "inside": ["no" if place % 4 == 0 else "1" for place in range(len(values))],
            "person": arrow.concat_arrays([ids] * 3),
        }
    )
    domain = Domain({"record": len(values), "inside": [1]})
    if not open_table(table).bounds_contributions:
        _check_refused(open_table, table, domain, "person", SourceError)
        return
    _check_first(open_table, table, domain, values, 2)
    _check_refused(open_table, table, domain, "no such column", SourceError)
    _check_refused(open_table, table, domain, "record", DomainError)


def _check_first(
    open_table: Callable[[Any], Source], table: Any, domain: Domain, values: Sequence[object], most: int
) -> None:
    counted = _counted(open_table, table, domain, most)
    inside = [value == "1" for value in table["inside"].to_pylist()]
    expected = [first and there for first, there in zip(first_records(values, most), inside, strict=True)]
    for value, found, right in zip(values, counted, expected, strict=True):
        require(found == right, f"of the id {value!r}, {most} at most, a record is counted {found} times")
    people = dict.fromkeys(person_id(value) for value in values)
    for person in list(people)[:: max(1, len(people) // 2)]:
        others = [person_id(value) != person for value in values]
        fewer = _counted(open_table, table.filter(arrow.array(others)), domain, most)
        moved = int(np.abs(counted - fewer).sum())
        require(moved <= most, f"the records of {person!r}, {most} at most, change counts by {moved}")


def _counted(open_table: Callable[[Any], Source], table: Any, domain: Domain, most: int) -> NDArray[np.int64]:
    unit = Unit(records=most, id="person")
    ((_, counts),) = open_table(table).marginals(domain, [("record",)], OutOfDomain(), unit)
    return counts


def _check_refused(
    open_table: Callable[[Any], Source], table: Any, domain: Domain, name: str, failure: type[MatrixDPError]
) -> None:
    try:
        open_table(table).marginals(domain, [()], OutOfDomain(), Unit(id=name))
    except failure as error:
        require("1" not in str(error), f"the id {name!r}: the message quotes the table")
    else:
        raise AssertionError(f"the id {name!r} is not refused by the call")
