"""Checks of sources: hostile values in columns of every kind, contribution bounding and neighbours."""

from __future__ import annotations

import math
import os
import struct
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import partial
from io import StringIO
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Amount, Attribute, Domain, OutOfDomain, encode_value, person_id
from matrixdp.domain.rules import Kind
from matrixdp.errors import DomainError, MatrixDPError, SourceError, TooLargeError
from matrixdp.privacy import Unit
from matrixdp.sources import Source
from matrixdp.sources.base import OUT_OF_DOMAIN
from matrixdp.sources.columns import arrow
from matrixdp.testing.plugins import refusal, require

Opener = Callable[[Any], Source]
"""Makes the engine's own table of a `pyarrow.Table`, and opens that."""

#: Attributes of every kind, with few enough cells that all of them can be counted together.
NEIGHBOURS_DOMAIN = Domain(
    {
        "category": ["3", "true", "x", "2020-01-31"],
        "as written": {"categories": ["3", " 3", "x"], "type": "text"},
        "number": {"categories": [3, 0.5], "type": "number"},
        "integer": {"categories": ["03", 0], "type": "integer"},
        "boolean": {"categories": [True, False], "type": "boolean"},
        "day": {"categories": ["2020-01-31", "9999-12-31"], "type": "date"},
        "whole": {"min": -1, "max": 3},
        "code": 4,
        "bins": {"edges": [-1, 0.5, 4], "closed": True},
        "any case": {"categories": ["X"], "case": "ignore", "trim": True, "null": "none"},
        "rounded": {"min": 3, "max": 3, "round": "nearest", "null": "none"},
        "clipped": {"min": 3, "max": 4, "clip": True, "missing": ["x", 0.5, "1e99"], "null": "none"},
        "month": {"from": "2020-01-31", "to": "2020-02-01", "by": "month"},
    }
)

#: Texts besides those of `HOSTILE_VALUES` that mean something to some program.
HOSTILE_TEXTS = (
    '"', '""', '"x', 'x"', "';--", "\\N", ",", ";", "\t", "|", "a,b", "#", "\x00", "3\x00", "\x1a",
    "\x1b[2J", "\u2028", "\u202e3", "\ufffd", "\U0001f600", "a\u0301\u0323", "ﬀ", "İ", "1e999999999",
    "-1e-999999999", "3e0000", "0e400", "x" * 100_000, "0" * 100_000, "3." + "0" * 400, "#N/A", "NaT",
    "-nan", "2020-02-30", "2020-01-31T00:00:00", "2020-01-31 00:00:00+14:00", "31/01/2020",
    "100000000-01-01", "12:00", "0x1F", "0x1p3", "1/2", "1,000.5", "１", "%s{0}", "=1+2", "3\r",
)  # fmt: skip


def _refuse(*_: object) -> Any:
    raise RuntimeError


class _Refuses:
    """Refuses whatever is asked of it."""

    __hash__ = None  # type: ignore[assignment]
    __str__ = __float__ = __int__ = __bool__ = __len__ = __iter__ = __eq__ = __array__ = _refuse


class _Text(str):
    """A text that cannot be looked up."""

    __slots__ = ()
    __hash__ = __eq__ = lower = strip = _refuse


class _Number(int):
    """A number that cannot be read."""

    __hash__ = __eq__ = __float__ = _refuse


class _Day(date):
    """A day that cannot be written."""

    isoformat = _refuse


def _nan(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


#: Python objects that a column of objects may hold, some of which raise whatever is asked of them.
HOSTILE_OBJECTS: tuple[object, ...] = (
    None, 3, 3.0, True, "3", -0.0, math.nan, -math.inf, _nan(0x7FF8DEADBEEF0001), _nan(0xFFF0000000000001),
    10**400, -(10**400), 2**63, 2**64, Decimal(3), Decimal("-0"), Decimal("NaN"), Decimal("sNaN"),
    Decimal("1e999999"), Fraction(1, 2), Fraction(10**400), Fraction(1, 10**400), np.int8(3),
    np.uint64(2**64 - 1), np.float16(0.5), np.float64("nan"), np.longdouble(3), np.bool_(True), np.str_("x"),
    np.bytes_(b"x"), np.datetime64("2020-01-31"), np.datetime64("NaT"), np.complex128(3), np.array(3),
    np.array([3, 4]), 3j, b"3", b"\xff", memoryview(b"3"), "\ud800", "3\udcff", "x" * 100_000, "9" * 5000,
    date(2020, 1, 31), date.max, datetime(2020, 1, 31), datetime(2020, 1, 31, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), time(12), timedelta.max, (), [3], {"x": 1},
    range(3), object(), NotImplemented, int, ValueError("3"), _Refuses(), _Refuses, _Text("3"), _Number(3),
    _Day(2020, 1, 31),
)  # fmt: skip


# Contribution bounding: of the records of one person the first are counted, whatever else is in the table.

#: Texts that name persons who are easily taken for others, and texts that name nobody.
HOSTILE_IDS = (
    "1", "01", "1.0", " 1", "+1", "10e-1", "1_0", "0", "-0", "ann", "Ann", "ANN", " ann", "ann ", "ann\x00",
    "ann\x00\x00", "ANN\x00", "a\x00nn", "\x00", "é", "e\u0301", "É", "ﬁ", "fi", "\ufffd", "M\ufffdller",
    "m\ufffdller", "ß", "ss", "ı", "I", "i", "true", "T", "no", "NULL", "null", "None", "nan", "NaN", "inf",
    "9007199254740993", "9007199254740992", "18446744073709551616", "'", "''", '"', ";--", "\u200bann",
    "x" * 300, "x" * 299 + "y", None, "", " ",
)  # fmt: skip


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


def counted_records(
    ids: Sequence[object], codes: Mapping[str, Sequence[int | None]], unit: Unit
) -> list[bool]:
    """Return which records a unit with an id and `per` counts; a code is None where it is out of domain.

    Examples
    --------
    >>> unit = Unit(id="person", per="month", max_values=2)
    >>> counted_records(["ann", "ann", "ben", "ann", "ann"], {"month": [3, 3, 3, None, 1]}, unit)
    [True, False, True, False, True]
    """
    places: dict[str | float, list[int]] = {}
    for place, person in enumerate(map(person_id, ids)):
        if person is not None and all(own[place] is not None for own in codes.values()):
            places.setdefault(person, []).append(place)
    kept = [False] * len(ids)
    for own in places.values():
        alike = [p for p in own if all(codes[name][p] == codes[name][own[0]] for name in unit.constant)]
        held: dict[tuple[int | None, ...], list[int]] = {}
        for place in alike:
            held.setdefault(tuple(codes[name][place] for name in unit.per), []).append(place)
        few = list(held.values())[: unit.max_values]
        for place in sorted(p for value in few for p in value[: unit.max_records_each])[: unit.records]:
            kept[place] = True
    return kept


def check_persons(open_table: Opener, ids: Any) -> None:
    """Check that an engine counts the first records of each person, or says that it cannot.

    Every id has three records between those of others, one of them out of domain. The counts must be those
    of `first_records`, and for a unit with `per` those of `counted_records`. Without the records of one
    person they must differ by at most as many records as a person may have.

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
    columns = {
        "record": [str(place) for place in range(len(values))],
        "inside": [_SECRET if place % 4 == 0 else "1" for place in range(len(values))],
    }
    table = arrow.table({**columns, "person": arrow.concat_arrays([ids] * 3)})
    domain, most = Domain({"record": len(values), "inside": [1]}), 2

    def counted(rows: Any, name: str = "person") -> Any:
        unit = Unit(records=most, id=name)
        return dict(open_table(rows).marginals(domain, [("record",)], OutOfDomain(), unit)).get(("record",))

    bounded = open_table(table).bounds_contributions
    wrong = {"no such column": SourceError, "record": DomainError} if bounded else {"person": SourceError}
    for name, failure in wrong.items():
        _refused(f"the id {name!r}", failure, partial(counted, table, name))
    if not bounded:
        return
    every = counted(table)
    pairs = zip(first_records(values, most), columns["inside"], strict=True)
    for value, found, right in zip(values, every, [kept and one == "1" for kept, one in pairs], strict=True):
        require(found == right, f"of the id {value!r}, {most} at most, a record is counted {found} times")
    _check_per(open_table, ids)
    people = dict.fromkeys(person_id(value) for value in values)
    for person in list(people)[:: max(1, len(people) // 2)]:
        others = [person_id(value) != person for value in values]
        moved = int(np.abs(every - counted(table.filter(arrow.array(others)))).sum())
        require(moved <= most, f"the records of {person!r}, {most} at most, change counts by {moved}")
    _check_per(open_table, ids)


def _check_per(open_table: Opener, ids: Any) -> None:
    """Check that records are bounded in each value, and agree in what is constant."""
    values = ids.to_pylist() * 6
    places = range(len(values))
    codes: dict[str, list[int | None]] = {
        "record": list(places),
        "month": [(place * place // 3 + place // len(ids)) % 3 for place in places],
        "region": [None if place % 13 == 0 else place // 2 % 2 for place in places],
    }
    texts = {name: ["x" if code is None else str(code) for code in own] for name, own in codes.items()}
    table = arrow.table({**texts, "person": arrow.concat_arrays([ids] * 6)})
    domain = Domain({"record": len(values), "month": 3, "region": 2})
    units = (
        Unit(id="person", per="month", max_values=2, max_records_each=2, records=3),
        Unit(id="person", per="month", max_values=2, constant="region"),
        Unit(id="person", per=("month", "region"), max_values=3),
    )
    for unit in units:
        [(_, every)] = open_table(table).marginals(domain, [("record",)], OutOfDomain(), unit)
        for value, found, right in zip(values, every, counted_records(values, codes, unit), strict=True):
            require(found == right, f"of the id {value!r}, for {unit!r}, a record is counted {found} times")


# What every source must do.

#: Attributes of every kind, whose values lie where encoders go wrong.
HOSTILE_DOMAIN = Domain(
    {
        "category": [
            "3", "true", "0.5", "-1", "0", "x", " x", "it's", "", "6e-07", "False", "1e16", "4.0", " true",
            "9007199254740993", "9223372036854775807", "-9223372036854775808", "1e99", "0.30000000000000004",
            "2020-01-31", "0001-01-01", "9999-12-31", "1_0", "0x1", "NULL", "None", "é", "e\u0301", "٣",
        ],
        "texts": ["x", "1_0", "é", "", "2020-01-31"],
        "numbers": ["+4", "0.10", "-00", "3e0"],
        "booleans": [False, "T"],
        "as written": {
            "categories": ["3", "3.0", " 3", "true", "True", "0", "-0", "1e99", "nan", "2020-01-31", "x", ""],
            "type": "text",
        },
        "of numbers": {
            "categories": [3, "0.5", -1, 1, "1e99", 2**53, 0.30000000000000004, -4.5], "type": "number",
        },
        "of integers": {"categories": ["03", -1, 0, 10**16], "type": "integer"},
        "of booleans": {"categories": ["no", True], "type": "boolean"},
        "dates": {"categories": ["2020-01-31", "0001-01-01", "9999-12-31"], "type": "date"},
        "whole": {"min": -1, "max": 4},
        "large whole": {"min": 2**53 - 3, "max": 2**53 - 1},
        "code": 3,
        "open bins": {"edges": [-1, 0, 0.5, 3]},
        'closed "bins"': {"min": 0, "max": 4, "bins": 2},
        "any case": {
            "categories": ["x", "É", "Ŝs", "yes", "3E0"], "case": "ignore", "trim": True, "null": "none",
        },
        "nearest": {"min": -1, "max": 3, "round": "nearest", "trim": True},
        "weeks": {"from": "1969-12-24", "to": "1970-01-10", "by": "week", "null": "none"},
        "months": {"from": "2019-12-15", "to": "2020-02-01", "by": "month", "trim": True},
        "hours": {"by": "hour"},
        "hours of Hobart": {
            "from": "1969-10-01", "to": "1970-12-31", "by": "hour", "time_zone": "Australia/Hobart",
        },
        "days of Kiritimati": {
            "from": "2020-01-30", "to": "2020-02-02", "by": "day", "time_zone": "Pacific/Kiritimati",
            "clip": True,
        },
        "clipped": {
            "min": 0, "max": 3, "clip": True, "null": "none", "missing": ["-1", 4, "x", "1e99", True],
        },
        "clipped and rounded": {"min": 0, "max": 3, "clip": True, "round": "nearest", "missing": ["nan "]},
        "clipped bins": {"edges": [0, 0.5, 3], "clip": True, "missing": ["", 4], "trim": True},
        "clipped months": {
            "from": "2020-01-31", "to": "2020-02-01", "by": "month", "clip": True, "null": "none",
            "missing": ["9999-12-31", "0001-01-01", "x", 3],
        },
        "clipped weeks": {"from": "1969-12-24", "to": "1970-01-10", "by": "week", "clip": True},
        "missing texts": {
            "categories": ["x", "3"], "type": "text", "case": "ignore", "missing": ["3.0", " X "],
        },
        "missing": {"categories": ["x", "yes"], "missing": [3, "0.5", False, "2020-01-31"], "null": "none"},
        "missing days": {
            "categories": ["2020-01-31", "2020-02-01"], "type": "date", "missing": ["9999-12-31", 3, "x"],
        },
        "odd bins": {"edges": [-1e30, 0.1, 0.2, 0.3, 3.0000000000000004, 1e30]},
        "cents": {"amount": [-0.5, 3.25], "step": 0.01, "null": "none"},
        "coarse": {"amount": [-9e15, 9e15], "step": 10**8, "trim": True},
    }
)  # fmt: skip

_EAST, _WEST = timezone(timedelta(hours=1)), timezone(timedelta(hours=-1))

#: Values of every kind that encoders read differently unless they follow one rule.
HOSTILE_VALUES: dict[Kind, tuple[object, ...]] = {
    Kind.TEXT: (
        None, "3", " 3", "3.0", "+3", "3e0", "30E-1", "3.", ".5", "0.5", "-1", "-0", "4", "4.0000", "true",
        "True", "TRUE", "tRUe", "false", "FALSE", " true", "true ", "true\x0b", "t", "T", "yes", "NO", "f",
        "y", "n", "falſe", "x", "X", " x", "x ", "it's", "", " ", "abc", "nan", "NaN", "inf", "-inf",
        "infinity", "0x1", "1_0", "1 0", "1,0", "٣", "\u00a03", "3\n", "\t3\r", "3\x0b", "3\x0c", "1e400",
        "1e-400",
        "1e99", "1e199", "1e200", "1e-199", "1" * 41, "9" * 40, "9" * 5000, "+", "-", ".", "e1", "1e", "--1",
        "+-1", "NULL", "null", "None", "1e05", "1e00000005", "0.1", "0.30000000000000004", "6e-07",
        "3.00000000000000044", "9007199254740991", "9007199254740993", "10000000000000000", "1d", "1f",
        "0b1", "½", "²", "x\x00", "2020-01-31", "0.0", "-0.0", "é", "e\u0301", "\ufeff3", "\u200b3",
        "2020-01-31T00:00", "2020-01-31 23:59:59.999999999", "2020-01-31T23:59Z", "2020-02-01T00:30+01:00",
        "2020-01-31T23:30-0030", "2020-01-31T23:30-01", "2020-01-31T24:00", "2020-01-31T10:60", "2020-02-30",
        "2020-01-31T10", "2020-01-31t10:00", "2020-01-31T10:00z", "2020-01-31T10:00+15:00", "0000-01-01",
        "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:59", "1969-12-31T23:59:59", "2020-01-31T10:00:60",
        "２０20-01-31", "2020-01-31 (BC)", "IT'S", "é", "É", "ŜS", "ſ", "ŝſ", " X\t", "2.5", "-0.5", "-1.5",
        " 2020-01-31\t", "2020-1-31", "20200131", "0001-01-01", "-4.5",
    ),
    Kind.INTEGER: (
        None, *range(-2, 6), 10**16, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 1 - 2**63, -(2**63),
    ),
    Kind.FLOAT: (
        None, float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 0.5, 3.0, 4.0, -1.0, 1e16, 2e16, 1e300,
        -1e300, 6e-7, 5e-324, 0.1, 0.2, 0.1 + 0.2, 3.0000000000000004, 2.0**53 - 1, 2.0**53,
        2.0**63, -(2.0**63),
    ),
    Kind.BOOLEAN: (None, True, False),
    Kind.DATE: (None, date(2020, 1, 31), date.min, date.max, date(1969, 12, 31)),
    Kind.TIMESTAMP: (
        None, datetime(2020, 1, 31), datetime(2020, 1, 31, 23, 59, 59, 999999), datetime(2020, 2, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime.min, datetime.max,
        datetime(1969, 12, 28, 23), datetime(1969, 12, 29),
    ),
    Kind.INSTANT: (
        None, datetime(2020, 1, 31, tzinfo=UTC), datetime(2020, 2, 1, 0, 30, tzinfo=_EAST),
        datetime(2020, 1, 31, 23, 30, tzinfo=_WEST), datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ),
}  # fmt: skip

TYPES = {
    Kind.TEXT: arrow.string(),
    Kind.INTEGER: arrow.int64(),
    Kind.FLOAT: arrow.float64(),
    Kind.BOOLEAN: arrow.bool_(),
    Kind.DATE: arrow.date32(),
    Kind.TIMESTAMP: arrow.timestamp("us"),
    Kind.INSTANT: arrow.timestamp("us", "UTC"),
}
#: Attributes that are derived from others in every way.
DERIVED = Domain(
    {
        "age": 4,
        "minor": {"of": ["age"], "columns": {"sex": ["f", "m"]}, "sql": "sex = 'f' AND age < 2"},
        "group": {"map": {"a": "x", "b": "x", 3: "y"}, "column": "letter", "trim": True, "null": "none"},
        "half": {"of": ["age"], "cases": [{"when": {"age": {"range": [0, 1]}}, "then": 0}], "otherwise": 1},
    }
)
_SECRET = "Waldemar-4711"  # noqa: S105
_DOMAIN = Domain({"sex": ["female", "male"], "age": 4})


def check_source(open_table: Opener, kinds: Collection[Kind] = tuple(HOSTILE_VALUES)) -> None:
    """Check that an engine reads, counts, bounds what a person contributes, and refuses as every engine does.

    Parameters
    ----------
    open_table : callable
        Takes a `pyarrow.Table`, makes the engine's own table of it, and returns the source of that.
    kinds : collection of Kind
        What columns of the engine can hold; files of text hold nothing else.

    Raises
    ------
    AssertionError
        Names the value that is read wrongly, or what else is broken.

    Examples
    --------
    >>> from matrixdp.sources import open_source
    >>> check_source(open_source)
    """
    _check_codes(open_table, kinds)
    for kind in kinds:
        values = HOSTILE_VALUES[kind]
        ids = (*values, *HOSTILE_IDS) if kind is Kind.TEXT else values
        if kind not in (Kind.TIMESTAMP, Kind.INSTANT):
            check_persons(open_table, arrow.array(ids, type=TYPES[kind]))
    _check_counts(open_table)
    _check_derived(open_table)
    _check_refusals(open_table)


def _check_codes(open_table: Opener, kinds: Collection[Kind]) -> None:
    """Check the code of each value for every attribute: one more column tells the records apart.

    Values out of domain are counted as the first value of their attribute, and then as the last one.
    """
    rows = max(len(HOSTILE_VALUES[kind]) for kind in kinds)
    held = {kind: [*HOSTILE_VALUES[kind], *[None] * (rows - len(HOSTILE_VALUES[kind]))] for kind in kinds}
    columns = {kind.value: arrow.array(values, type=TYPES[kind]) for kind, values in held.items()}
    source = open_table(arrow.table({"record": [str(row) for row in range(rows)], **columns}))
    read = {
        f"{attribute.name} of {kind.value}": (attribute, kind)
        for kind in kinds
        for attribute in HOSTILE_DOMAIN
        if attribute.rule(kind) is not None and (source.divides_records or not attribute.divided)
    }
    own = {name: replace(one.read_from(kind.value), name=name) for name, (one, kind) in read.items()}
    domain = Domain({"record": rows, **own})
    for others in (dict.fromkeys(read, 0), {name: one.size - 1 for name, one in own.items()}):
        marginals = source.marginals(domain, [("record", name) for name in read], OutOfDomain(others))
        for (_, name), counts in marginals:
            (attribute, kind), other = read[name], others[name]
            for value, row in zip(held[kind], counts, strict=True):
                code = encode_value(attribute, value)
                right = weights_of(attribute, attribute.raw_code(other) if code is None else code)
                read_as = f"{value!r} has the code {code}, and is counted as {row.tolist()}"
                what = f"where {other} stands for what is out of domain"
                require(row.tolist() == right, f"{attribute.name}: the {kind.value} {read_as} {what}")


def weights_of(attribute: Attribute, code: int) -> list[int]:
    """Return the weights of a record with a raw value's code at each value of its attribute."""
    if isinstance(attribute, Amount):
        return [int(own[0]) for own in attribute.weights(np.array([code], dtype=object))]
    return [int(own == code) for own in range(attribute.size)]


def _check_counts(open_table: Opener) -> None:
    """Check marginals in any order of axes, empty ones, and what becomes of values out of domain."""
    columns = {"note": ["x"] * 5, "age": list("1120x"), "sex": ["male", "male", "f", None, "female"]}
    table = arrow.table(columns)
    source = open_table(table)
    for rule, cells in (
        (OutOfDomain(), [(1, 1)] * 2),
        (OutOfDomain({"sex": 0}), [(1, 1), (1, 1), (0, 2), (0, 0)]),
        (OutOfDomain({"sex": 0, "age": 3}), [(1, 1), (1, 1), (0, 2), (0, 0), (0, 3)]),
    ):
        source.check(_DOMAIN, rule)
        expected = np.zeros((2, 4), dtype=np.int64)
        for cell in cells:
            expected[cell] += 1
        marginals = {(): expected.sum(), ("age",): expected.sum(0)}
        marginals |= {("sex", "age"): expected, ("age", "sex"): expected.T}
        for _ in range(2):
            found = dict(source.marginals(_DOMAIN, list(marginals), rule))
            require(set(found) == set(marginals), "a marginal is missing, or one too many")
            for subset, counts in found.items():
                right = counts.dtype == np.int64 and np.array_equal(counts, marginals[subset])
                require(right, f"the marginal on {subset} is {counts!r}; expected {marginals[subset]!r}")
        require(not list(source.marginals(_DOMAIN, [], rule)), "marginals that nobody asked for")
    _check_slices(source)
    if source.counts_out_of_domain:
        _check_out_of_domain(source)
    ((_, none),) = open_table(table.slice(0, 0)).marginals(_DOMAIN, [("sex",)], OutOfDomain())
    require(none.tolist() == [0, 0], "an empty table has every cell of the domain, each with no record")


def _check_slices(source: Source) -> None:
    """Check that slices of marginals are the marginals, whatever an engine counts at a time."""
    subsets, rule = (("age", "sex"), ("age",)), OutOfDomain({"sex": 0}, counts=[None])
    if not source.counts_out_of_domain:
        rule = OutOfDomain({"sex": 0})
    whole = dict(source.marginals(_DOMAIN, subsets, rule))
    for width in (1, 3, 5):
        found: dict[tuple[str, ...], list[NDArray[np.int64]]] = {}
        for subset, counts in source.marginals(_DOMAIN, subsets, rule, slices=("age", width)):
            found.setdefault(subset, []).append(counts)
        require(set(found) == set(whole), "a marginal is missing, or one too many")
        for subset, slices in found.items():
            counts = np.concatenate(slices)
            right = np.array_equal(counts[: len(whole[subset])], whole[subset])
            most = width if subset != OUT_OF_DOMAIN else len(rule.counts)
            require(right and max(map(len, slices)) <= most, f"slices of {subset} are {slices!r}")


def _check_out_of_domain(source: Source) -> None:
    """Check the numbers of records out of domain: every record is in them, or in the domain."""
    whole, sex, age = 3, 2, 1
    for rule, expected, inside in (
        (OutOfDomain(counts=[None, "age", "sex"]), [whole, age, sex], 2),
        (OutOfDomain(counts=["sex"]), [sex], 2),
        (OutOfDomain({"sex": 0}, [None, "age"]), [age, age], 4),
        (OutOfDomain({"sex": 0, "age": 3}, [None]), [0], 5),
    ):
        found = dict(source.marginals(_DOMAIN, [()], rule))
        right = found[OUT_OF_DOMAIN].tolist() == expected and found[()] == inside
        require(right, f"{rule}: found {found}; expected {expected} out of domain, {inside} inside")


def _check_derived(open_table: Opener) -> None:
    """Check the codes of derived attributes, whichever parents are out of domain, or their refusal."""
    letters = ("a", " b", "3.0", "", "c", None)
    records = list(product(("0", "1", "3", "9", "old"), ("f", "m", "x"), letters))
    names = ("age", "sex", "letter")
    source = open_table(arrow.table(dict(zip(names, map(list, zip(*records, strict=True)), strict=True))))
    if not source.derives_attributes:
        _refused("a derived attribute", SourceError, partial(source.check, DERIVED))
        return
    for others in ({}, {"age": 3}, {"minor": 1, "group": 0}, {"age": 1, "minor": 0}):
        expected = np.zeros(DERIVED.shape, dtype=np.int64)
        for record in records:
            codes = [_derived(others, *record)[name] for name in DERIVED.names]
            if None not in codes:
                expected[tuple(codes)] += 1
        ((_, found),) = source.marginals(DERIVED, [DERIVED.names], OutOfDomain(others))
        require(np.array_equal(found, expected), f"derived attributes where {others} stand for others")
    if source.counts_out_of_domain:
        rule = OutOfDomain({"age": 3}, [None, "minor"])
        outside = [_derived({"age": 3}, *record) for record in records]
        minors = sum(codes["minor"] is None for codes in outside)
        counts = [sum(None in codes.values() for codes in outside), minors]
        found = dict(source.marginals(DERIVED, [()], rule))[OUT_OF_DOMAIN]
        require(found.tolist() == counts, f"derived attributes out of domain: {found}; expected {counts}")


def _derived(others: Mapping[str, int], age: str, sex: str, letter: str | None) -> dict[str, int | None]:
    """Return the codes of a record of `DERIVED`, from what it says of its attributes."""
    years = int(age) if age in ("0", "1", "3") else others.get("age")
    minor = None if years is None or sex == "x" else 1 - int(sex == "f" and years < 2)
    listed = {"a": 0, "b": 0, "3.0": 1, "": 2}
    return {
        "age": years,
        "minor": others.get("minor") if minor is None else minor,
        "group": listed.get((letter or "").strip(), others.get("group")),
        "half": None if years is None else int(years > 1),
    }


def _check_refusals(open_table: Opener) -> None:
    """Check that what is impossible is said by the call itself, and that it tells nothing of the records."""
    table = arrow.table({"sex": ["male", _SECRET], "age": ["1", _SECRET]})
    other = table.rename_columns(["sex", _SECRET])
    wide = Domain({"sex": 2**30, "age": 3})
    rule = OutOfDomain()
    for what, failure, given, domain, subset, wanted in (
        ("a missing column", SourceError, other, _DOMAIN, (), rule),
        ("an unknown attribute", DomainError, table, _DOMAIN, ("aeg",), rule),
        ("an attribute twice", DomainError, table, _DOMAIN, ("age", "age"), rule),
        ("a code that there is not", DomainError, table, _DOMAIN, (), OutOfDomain({"sex": 2})),
        ("a marginal that is too large", TooLargeError, table, wide, ("sex", "age"), rule),
    ):
        source = open_table(given)
        _refused(what, failure, partial(source.marginals, domain, [subset], wanted))
        if not subset:
            # Errors that the columns alone decide occur without a record being read, too.
            _refused(what, failure, partial(source.check, domain, wanted))


def _refused(what: str, failure: type[MatrixDPError], call: Callable[[], object]) -> None:
    told = str(refusal(what, failure, call))
    require(_SECRET not in told, f"{what}: the message quotes the table")


# That one record changes one count by one, and nothing else that a reader of the output could see.

#: How many records follow those beside the one that is added.
_OTHERS = 29


def check_neighbours(
    open_table: Opener,
    kinds: Collection[Kind] = tuple(HOSTILE_VALUES),
    *,
    objects: bool = False,
    domain: Domain = NEIGHBOURS_DOMAIN,
    together: int = 1,
) -> int:
    """Check that a table and the same table with one record more differ by that record alone.

    The record holds a hostile value in every attribute at once and stands between others. With it and without
    it the messages, warnings and output must be the same, and the counts of all attributes together must
    differ by at most one in all. Values out of domain are replaced, but for one attribute, in turn another,
    which drops the record.

    Parameters
    ----------
    open_table : callable
        Takes a `pyarrow.Table`, makes the engine's own table of it, and returns the source of that. What it
        is given first and what it is given later must have the same name, if it has one.
    kinds : collection of Kind
        What columns of the engine can hold; files of text hold nothing else.
    objects : bool
        Whether the engine's columns can hold any Python object. Then `open_table` is also given mappings of
        names to lists of objects.
    domain : Domain
        The attributes; few enough that all of their cells can be counted.
    together : int
        How many records, each with another value, are added at once: the counts may then differ by as many.
        At most 30, which is below the number of records that are there already. More than one is a weaker
        check that takes less time.

    Returns
    -------
    int
        The number of hostile records that were added: one for each pair of tables that were compared, unless
        several were added together.

    Raises
    ------
    AssertionError
        Names the value that changes more than its own record.

    Examples
    --------
    >>> from matrixdp.sources import open_source
    >>> check_neighbours(open_source, [Kind.BOOLEAN])
    3
    """
    pairs = 0
    for kind in kinds:
        read = Domain([attribute for attribute in domain if attribute.rule(kind) is not None])
        values = HOSTILE_VALUES[kind] + (HOSTILE_TEXTS if kind is Kind.TEXT else ())
        pairs += _compare(open_table, partial(_arrow_table, kind), read, kind.value, values, together)
    if objects:
        pairs += _compare(open_table, dict, domain, "object", HOSTILE_OBJECTS, together)
    return pairs


def _arrow_table(kind: Kind, columns: Mapping[str, list[object]]) -> Any:
    return arrow.table({name: arrow.array(values, type=TYPES[kind]) for name, values in columns.items()})


def _compare(
    open_table: Opener,
    make: Callable[[Mapping[str, list[object]]], Any],
    domain: Domain,
    kind: str,
    values: Sequence[object],
    together: int,
) -> int:
    """Compare a table with those that have one record more, or a few, each with one of the values."""
    usual = [
        next((value for value in values if encode_value(attribute, value) is not None), values[-1])
        for attribute in domain
    ]
    # A record that is in the domain by all that its values are stays, whichever attribute drops records.
    droppers = [n for n, v in zip(domain.names, usual, strict=True) if encode_value(domain[n], v) is not None]

    def observe(dropper: str, *more: object) -> tuple[Any, Any, tuple[object, ...]]:
        columns = [[value, *more, value, *[value] * _OTHERS] for value in usual]
        return _observe(open_table, make(dict(zip(domain.names, columns, strict=True))), domain, dropper)

    fewer, _, told = observe(droppers[0])
    turns = range(0, len(values), together)
    outside = {name: observe(name)[1] for name in droppers[: len(turns)]}
    counted = fewer is not None and fewer.sum() == 2 + _OTHERS
    require(counted, f"the {kind}s {usual!r} cannot be counted: {told[0]}")
    for turn, start in enumerate(turns):
        added = values[start : start + together]
        dropper = droppers[turn % len(droppers)]
        more, out, also_told = observe(dropper, *added)
        several = f"{len(added)} records of {kind}s, the first {added[0]!r:.100}: that"
        what = f"one record of the {kind} {added[0]!r:.100}" if len(added) == 1 else several
        require(told == also_told, f"{what} changes what is told, from {told!r} to {also_told!r}")
        for axis, name in enumerate(domain.names):
            away = tuple(other for other in range(len(domain)) if other != axis)
            moved = int(np.abs(more.sum(axis=away) - fewer.sum(axis=away)).sum())
            require(moved <= len(added), f"{what} changes the counts of {name} by {moved}")
        moved = int(np.abs(more - fewer).sum())
        require(moved <= len(added), f"{what} changes the counts of all attributes together by {moved}")
        moved += int(np.abs(out - outside[dropper]).max())
        require(moved <= len(added), f"{what} is counted in the domain and out of it, {moved} times in all")
    return len(values)


def _observe(
    open_table: Opener, table: Any, domain: Domain, dropper: str
) -> tuple[Any, Any, tuple[object, ...]]:
    """Return the counts of a table, those of records out of domain, and all messages on the way."""
    counts: Any = None
    outside: Any = np.zeros(2, dtype=np.int64)
    failure: tuple[str, str] | None = None
    with warnings.catch_warnings(record=True) as warned, _printed() as printed:
        warnings.simplefilter("always")
        try:
            source = open_table(table)
            asked = (None, dropper) if source.counts_out_of_domain else ()
            rule = OutOfDomain({name: 0 for name in domain.names if name != dropper}, asked)
            found = dict(source.marginals(domain, [domain.names], rule))
            counts, outside = found.pop(domain.names), found.pop(OUT_OF_DOMAIN, outside)
            require(not found, "marginals that nobody asked for")
        except MatrixDPError as error:
            failure = type(error).__name__, str(error)
    return counts, outside, (failure, [str(warning.message) for warning in warned], *printed)


@contextmanager
def _printed() -> Iterator[list[str]]:
    """Collect what is written to standard output and standard error, by engines that are no Python too."""
    written: list[str] = []
    texts = StringIO(), StringIO()
    own = [os.dup(stream) for stream in (1, 2)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            with redirect_stdout(texts[0]), redirect_stderr(texts[1]):
                yield written
        finally:
            for stream, kept in zip((1, 2), own, strict=True):
                os.dup2(kept, stream)
                os.close(kept)
            for file, text in zip((out, err), texts, strict=True):
                file.seek(0)
                written.append(text.getvalue() + file.read().decode(errors="replace"))
