"""What a public table or code book says of each column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, final

import duckdb

from matrixdp.domain.rules import MOMENTS, NUMERAL, WHITESPACE, Kind
from matrixdp.errors import SourceError
from matrixdp.sources.database import connect
from matrixdp.sources.guard import guarded
from matrixdp.sources.paths import PathSource
from matrixdp.sources.sql import column_kind, identifier, literal

__all__ = ["DATED", "MOST_LISTED", "Profile", "code_book", "profiles"]

DATED = tuple(kind for kind in MOMENTS if kind not in (Kind.TEXT, Kind.NULL))
"""The kinds that dates are read from, texts aside."""

MOST_LISTED = 1_000
"""Distinct values are listed up to this many."""

_ATTRIBUTES = ("variable", "attribute", "column", "field", "name")
_VALUES = ("value", "code", "category")
_LABELS = ("label", "labels", "meaning", "description", "text")
_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)?"

_MONTH = (
    r"(?i:jan(uary?)?|feb(ruary?)?|mar(ch)?|m[aä]rz?|apr(il)?|ma[iy]|jun[ei]?|jul[iy]?|aug(ust)?"
    r"|sept?(ember)?|o[ck]t(ober)?|nov(ember)?|de[cz](ember)?)\.?"
)
_FOREIGN_DATE = "|".join(
    (
        r"([0-9]{1,2}[./-][0-9]{1,2}[./-]([0-9]{2}|[0-9]{4})|[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2})([ T].*)?",
        r"[12][0-9]{3}[-/](0[1-9]|1[0-2])|(0?[1-9]|1[0-2])[-/][12][0-9]{3}",
        rf"([0-9]{{1,2}}[. -]+)?{_MONTH}([ -][0-9]{{1,2}})?[ ,'/-]*([0-9]{{2}}|[0-9]{{4}})",
        rf"[12][0-9]{{3}}[ /-]{_MONTH}([ -][0-9]{{1,2}})?",
        r"[12][0-9]{3}[ -]?(Q[1-4]|W[0-5][0-9])|Q[1-4][ /-]?[12][0-9]{3}",
    )
)
_SIGN = "([\u20ac$\u00a3%]|EUR|USD|GBP|CHF)?"
_FOREIGN_NUMBER = (
    f"{_SIGN} ?[-+]?([1-9][0-9]{{0,2}}([., '\u2019\u00a0\u202f][0-9]{{3}})+|[0-9]+)([.,][0-9]+)? ?{_SIGN}"
)
_MOST_NEGATIVES = 5
_REPLACED = "\ufffd"
#: What is asked of a column: text as it stands (r) and without spaces (t), as a number (n) and a moment (m).
_TOLD = {
    "records": "count(*)",
    "present": "count(t)",
    "distinct": "count(DISTINCT t)",
    "numbers": "count(n)",
    "whole": "count(n) FILTER (n = floor(n))",
    "low": "min(n)",
    "high": "max(n)",
    "below": "quantile_disc(n, 0.01)",
    "above": "quantile_disc(n, 0.99)",
    "moments": "count(m)",
    "first": "min(m)",
    "last": "max(m)",
    "timed": "coalesce(bool_or(m <> date_trunc('day', m)), false)",
    "longest": "coalesce(max(length(t)), 0)",
    "spaced": "coalesce(bool_or(r <> t), false)",
    "foreign_dates": f"count(*) FILTER (regexp_full_match(t, {literal(_FOREIGN_DATE)}))",
    "foreign_numbers": f"count(*) FILTER (n IS NOT NULL OR regexp_full_match(t, {literal(_FOREIGN_NUMBER)}))",
    "replaced": f"count(*) FILTER (contains(r, {literal(_REPLACED)}))",
    "least_other": "min(n) FILTER (n >= 0)",
}


@final
@dataclass(frozen=True)
class Profile:
    """What the records of a public table say of one column.

    Attributes
    ----------
    records, missing, distinct : int
        How many records there are, how many have no value, and how many different values there are.
    values : tuple of str
        The different values, the most frequent first; empty where there are more than `MOST_LISTED`.
    numbers, whole : bool
        Whether every value is a number, and whether every one is an integer.
    low, high, central : float and pair of float
        The least and the largest number, and those that 1 % and 99 % of the values lie below.
    first, last : datetime or None
        The first and the last moment, where every value is a date.
    timed : bool
        Whether one of these has a time of day.
    longest : int
        The length of the longest text.
    spaced : bool
        Whether white space stands around a value.
    foreign : {"", "dates", "numbers"}
        What every value is in a form that is not read as such: ``31.01.2024``, or ``1,476.62``.
    negatives : tuple of float
        The different numbers below 0, where there are a few at most.
    least_other : float
        The least of the other numbers.
    """

    records: int
    missing: int
    distinct: int
    values: tuple[str, ...]
    numbers: bool
    whole: bool
    low: float
    high: float
    central: tuple[float, float]
    first: datetime | None
    last: datetime | None
    timed: bool
    longest: int
    spaced: bool
    foreign: str
    negatives: tuple[float, ...]
    least_other: float


def profiles(source: PathSource, names: Sequence[str]) -> dict[str, Profile]:
    """Return the profiles of those of some columns that a public table has.

    Parameters
    ----------
    source : PathSource
        The public table.
    names : sequence of str
        The columns.

    Raises
    ------
    SourceError
        If the table cannot be read.
    """

    def read() -> dict[str, Profile]:
        with connect() as connection:
            # A file of texts is read once.
            source.records(connection).create("public")
            held = connection.table("public")
            stored = dict(zip(held.columns, map(str, held.types), strict=True))
            wanted = [name for name in names if name in stored]
            return {name: _profile(held, name, stored[name]) for name in wanted}

    return guarded(read, "read the public table")


def code_book(source: PathSource, names: Sequence[str]) -> dict[str, dict[str, str]] | None:
    """Return the values of each attribute and their labels, where the public table is a code book.

    That is a table with none of the columns, but with one that names them (`variable`, `attribute`,
    `column`, `field` or `name`), one of values (`value`, `code` or `category`) and perhaps one of labels
    (`label`, `meaning`, `description` or `text`). None for other tables.
    """
    columns = {name.lower(): name for name in source.columns()}
    if any(name in columns.values() for name in names):
        return None
    found = [
        next((columns[n] for n in kind if n in columns), None) for kind in (_ATTRIBUTES, _VALUES, _LABELS)
    ]
    attribute, value, label = found
    if attribute is None or value is None:
        return None
    asked = [attribute, value, *([label] if label else [])]

    def read() -> list[tuple[Any, ...]]:
        with connect() as connection:
            texts = (f"CAST({identifier(name)} AS VARCHAR)" for name in asked)
            return source.records(connection).project(", ".join(texts)).fetchall()

    book: dict[str, dict[str, str]] = {name: {} for name in names}
    for row in guarded(read, "read the public table"):
        for title, text in zip(asked, row, strict=True):
            _check_text(title, text or "")
        if row[0] in book and row[1] not in (None, ""):
            book[row[0]].setdefault(row[1], (row[2] if label else None) or "")
    return {name: values for name, values in book.items() if values}


def _check_text(name: str, text: str) -> None:
    """Refuse a text of the public table that was not UTF-8."""
    if _REPLACED in text:
        expected = "save it as CSV UTF-8, or convert it: `iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW`"
        raise SourceError(f"the public table has texts that are not UTF-8 in its column {name!r}; {expected}")


def _read(table: duckdb.DuckDBPyRelation, name: str, kind: Kind) -> duckdb.DuckDBPyRelation:
    """Return a column as it stands, without spaces, as a number and as a moment, where it is one."""
    column = identifier(name)
    text = f"trim(CAST({column} AS VARCHAR), {literal(WHITESPACE)})"
    number = moment = "NULL"
    if kind is Kind.TEXT:
        number = f"CASE WHEN regexp_matches({text}, {literal(NUMERAL)}) THEN TRY_CAST({text} AS DOUBLE) END"
        moment = (
            f"CASE WHEN regexp_full_match({text}, {literal(_ISO)}) THEN TRY_CAST({text} AS TIMESTAMP) END"
        )
    elif kind in (Kind.INTEGER, Kind.FLOAT):
        number = f"CASE WHEN isfinite(CAST({column} AS DOUBLE)) THEN CAST({column} AS DOUBLE) END"
    elif kind in DATED:
        moment = f"CAST({column} AS TIMESTAMP)"
    columns = {"r": f"CAST({column} AS VARCHAR)", "t": f"nullif({text}, '')"}
    columns |= {"n": f"CAST({number} AS DOUBLE)", "m": f"CAST({moment} AS TIMESTAMP)"}
    return table.project(", ".join(f"{made} AS {short}" for short, made in columns.items()))


def _profile(table: duckdb.DuckDBPyRelation, name: str, stored: str) -> Profile:
    kind = column_kind(stored)
    held = _read(table, name, kind)
    told = dict(zip(_TOLD, held.aggregate(", ".join(_TOLD.values())).fetchall()[0], strict=True))
    present, distinct = told["present"], told["distinct"]
    _check_text(name, _REPLACED if told["replaced"] else "")
    listed: list[tuple[Any, ...]] = []
    if distinct <= MOST_LISTED:
        groups = held.filter("t IS NOT NULL").aggregate("t, count(*) AS c", "t")
        listed = groups.order("c DESC, t").project("t").fetchall()
    below_zero = held.filter("n < 0").aggregate("n", "n").order("n").limit(_MOST_NEGATIVES + 1).fetchall()
    dated = told["moments"] == present > 0
    return Profile(
        records=told["records"],
        missing=told["records"] - present,
        distinct=distinct,
        values=tuple(value for (value,) in listed),
        numbers=told["numbers"] == present > 0,
        whole=told["whole"] == present > 0,
        low=told["low"] or 0.0,
        high=told["high"] or 0.0,
        central=(told["below"] or 0.0, told["above"] or 0.0),
        first=told["first"] if dated else None,
        last=told["last"] if dated else None,
        timed=told["timed"],
        longest=told["longest"],
        spaced=told["spaced"],
        foreign="" if kind is not Kind.TEXT or dated else _foreign(told),
        negatives=tuple(n for (n,) in below_zero) if len(below_zero) <= _MOST_NEGATIVES else (),
        least_other=told["least_other"] or 0.0,
    )


def _foreign(told: Mapping[str, int]) -> str:
    """Return what all texts of a column are in a form that is not read, if they are."""
    present = told["present"]
    if told["numbers"] == present:
        return ""
    forms = {"dates": told["foreign_dates"], "numbers": told["foreign_numbers"]}
    return next((form for form, times in forms.items() if times == present), "")
