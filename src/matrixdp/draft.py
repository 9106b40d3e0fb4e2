"""A first specification for a table: from its header and storage types, and from a table that is public."""

from __future__ import annotations

import json
import math
import os
import re
import textwrap
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, Any, final, get_origin, get_type_hints

import duckdb
import numpy as np

from matrixdp.display import counted
from matrixdp.domain import Amount, Attribute, Domain
from matrixdp.domain.book import ATTRIBUTES, VALUES
from matrixdp.domain.encoding import encode_value
from matrixdp.domain.rules import (
    MOMENTS,
    NUMERAL,
    WHITESPACE,
    Kind,
    canonical_value,
    is_unreadable,
    number_text,
)
from matrixdp.errors import MatrixDPError, SourceError, SpecificationError
from matrixdp.exact.linear import Array
from matrixdp.forms import names_secret, shown
from matrixdp.language import marginals
from matrixdp.privacy import Budget
from matrixdp.quality import same_table
from matrixdp.queries import Workload
from matrixdp.sources import open_source
from matrixdp.sources.base import guarded
from matrixdp.sources.engines import connect
from matrixdp.sources.paths import DatabaseSource, FileSource, open_path
from matrixdp.sources.sql import column_kind, identifier, literal
from matrixdp.specification.load import UNFILLED, parse_yaml
from matrixdp.specification.names import is_code, is_identifier, is_money, is_text
from matrixdp.statistics import ask
from matrixdp.strategy.reliability import LARGEST_SHARE, expected_counts
from matrixdp.strategy.strategy import select

# What a public table or code book says of each column.

DATED = tuple(kind for kind in MOMENTS if kind not in (Kind.TEXT, Kind.NULL))
"""The kinds that dates are read from, texts aside."""

MOST_LISTED = 1_000
"""Distinct values are listed up to this many."""

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
_MOST_SUSPECTS, _LEAST_GAP = 10, 5.0
#: Numbers that stand for missing values in many registers: 99, 998, 9997, 77, 888.
_SUSPECT = """(n < 0 OR (n = floor(n) AND regexp_full_match(CAST(TRY_CAST(n AS BIGINT) AS VARCHAR),
    '9+[6-9]|77+|88+')))"""
_REPLACED = "\ufffd"


_FOREIGN_FORM = f"""CASE WHEN count(m) = count(t) OR count(n) = count(t) THEN ''
    WHEN bool_and(regexp_full_match(t, {literal(_FOREIGN_DATE)})) THEN 'dates'
    WHEN bool_and(n IS NOT NULL OR regexp_full_match(t, {literal(_FOREIGN_NUMBER)})) THEN 'numbers'
    ELSE '' END"""


@final
@dataclass(frozen=True)
class Profile:
    """What the records of a public table say of one column.

    Most say what is asked of it: of text as it stands (r) and without spaces (t), number (n) and moment (m).

    Attributes
    ----------
    records, missing, distinct : int
        How many records there are, how many have no value, and how many different values there are.
    values : tuple of str
        The different values, the most frequent first; empty where there are more than `MOST_LISTED`.
    numbers, whole : bool
        Whether every value is a number, and whether every one is an integer.
    low, high, below, above : float
        The least and the largest number, and those that 1% and 99% of the values lie below.
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
    counts : tuple of int
        How often each of `values` stands.
    codes : tuple of float
        Numbers apart from all others that seem to stand for missing values, which they count as here.
    """

    records: Annotated[int, "count(*)"]
    missing: Annotated[int, "count(*) - count(t)"]
    distinct: Annotated[int, "count(DISTINCT t)"]
    numbers: Annotated[bool, "count(t) > 0 AND count(n) = count(t)"]
    whole: Annotated[bool, "count(t) > 0 AND count(n) FILTER (n = floor(n)) = count(t)"]
    low: Annotated[float, "coalesce(min(n), 0.0)"]
    high: Annotated[float, "coalesce(max(n), 0.0)"]
    below: Annotated[float, "coalesce(quantile_disc(n, 0.01), 0.0)"]
    above: Annotated[float, "coalesce(quantile_disc(n, 0.99), 0.0)"]
    first: Annotated[datetime | None, "CASE WHEN count(m) = count(t) THEN min(m) END"]
    last: Annotated[datetime | None, "CASE WHEN count(m) = count(t) THEN max(m) END"]
    timed: Annotated[bool, "coalesce(bool_or(m <> date_trunc('day', m)), false)"]
    longest: Annotated[int, "coalesce(max(length(t)), 0)"]
    spaced: Annotated[bool, "coalesce(bool_or(r <> t), false)"]
    foreign: Annotated[str, _FOREIGN_FORM]
    values: tuple[str, ...]
    counts: tuple[int, ...] = ()
    codes: tuple[float, ...] = ()

    def shares(self, attribute: Attribute) -> Array:
        """Return the shares of records with each value of an attribute; equal ones where they are unknown."""
        found = np.zeros(attribute.size)
        for value, count in zip(self.values, self.counts, strict=True):
            if (code := encode_value(attribute, value)) is not None:
                found[code] += count
        if not found.any():
            return np.full(attribute.size, 1.0 / attribute.size)
        if attribute.null_code is not None:
            found[attribute.null_code] = self.missing
        return np.asarray(found / found.sum())


def profiles(source: FileSource | DatabaseSource, names: Sequence[str]) -> dict[str, Profile]:
    """Return the profiles of those of some columns that a public table has.

    Parameters
    ----------
    source : FileSource or DatabaseSource
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


def code_book(source: FileSource | DatabaseSource, names: Sequence[str]) -> dict[str, dict[str, str]] | None:
    """Return the values of each attribute and their labels, where the public table is a code book.

    That is a table with none of the columns, but with one that names them (`variable`, `attribute`,
    `column`, `field` or `name`), one of values (`value`, `code` or `category`) and perhaps one of labels
    (`label`, `meaning`, `description` or `text`). None for other tables.
    """
    columns = {name.lower(): name for name in source.columns()}
    if any(name in columns.values() for name in names):
        return None
    kinds = ATTRIBUTES, VALUES, _LABELS
    found = [next((columns[n] for n in kind if n in columns), None) for kind in kinds]
    if None in found[:2]:
        return None
    asked = list(filter(None, found))

    def read() -> list[tuple[Any, ...]]:
        with connect() as connection:
            texts = ", ".join(f"CAST({identifier(name)} AS VARCHAR)" for name in asked)
            return source.records(connection).project(texts).fetchall()

    book: dict[str, dict[str, str]] = {name: {} for name in names}
    for row in guarded(read, "read the public table"):
        for title, text in zip(asked, row, strict=True):
            _check_text(title, text or "")
        if row[0] in book and row[1] not in (None, ""):
            book[row[0]].setdefault(row[1], "".join(filter(None, row[2:])))
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
    replaced = held.filter(f"contains(r, {literal(_REPLACED)})").limit(1).fetchall()
    _check_text(name, _REPLACED if replaced else "")
    codes = _missing_codes(held)
    if codes:
        kept = f"CASE WHEN n IN ({', '.join(map(str, codes))}) THEN NULL ELSE"
        held = held.project(", ".join(f"{kept} {short} END AS {short}" for short in "rtnm"))
    hints = get_type_hints(Profile, include_extras=True).items()
    asked = {own: hint.__metadata__[0] for own, hint in hints if get_origin(hint) is Annotated}
    found = dict(zip(asked, held.aggregate(", ".join(asked.values())).fetchall()[0], strict=True))
    if kind is not Kind.TEXT:
        found["foreign"] = ""
    listed: list[tuple[Any, ...]] = []
    if found["distinct"] <= MOST_LISTED:
        groups = held.filter("t IS NOT NULL").aggregate("t, count(*) AS c", "t")
        listed = groups.order("c DESC, t").fetchall()
    values, counts = zip(*listed, strict=True) if listed else ((), ())
    return Profile(**found, values=values, counts=counts, codes=codes)


def _missing_codes(held: duckdb.DuckDBPyRelation) -> tuple[float, ...]:
    """Return the numbers that seem to stand for missing values: few, and apart from all others."""
    if held.filter("t IS NOT NULL AND n IS NULL").limit(1).fetchall():
        return ()
    found = held.filter(_SUSPECT).aggregate("n", "n").order("n").limit(_MOST_SUSPECTS + 1).fetchall()
    others = held.filter(f"NOT {_SUSPECT}").aggregate("count(DISTINCT n), min(n), max(n)").fetchall()
    distinct, low, high = others[0]
    if not 0 < len(found) <= _MOST_SUSPECTS or distinct <= len(found):
        return ()
    below = [n for (n,) in found if n < 0]
    above = [n for (n,) in found if n > high]
    # a range that goes on below 0 has no holes there; nor has one that ends with 99
    if below and (low - below[0] <= len(below) or any(n != math.floor(n) for n in below)):
        below = []
    if above and above[0] - high <= max(_LEAST_GAP, 0.1 * (high - low)):
        above = []
    return (*below, *above)


# What a column is proposed to be, by its name, its storage type, and what is public of it.


_ZERO = re.compile(r"0[0-9]+$")
_FOREIGN = {
    "dates": "dates that are not ISO 8601 (YYYY-MM-DD): convert the column",
    "numbers": "numbers with thousands separators, decimal commas or units: convert the column",
}
_ALONE = "add the others that the table may hold: this is the only value"
_MOST_CATEGORIES = 500
_MOST_INTEGERS, _FEW_INTEGERS = 120, 12
_LONGEST_CATEGORY = 60
_BINS = 40
_ACCOUNT_DIGITS = 6
#: From this many records on, a column with this share of distinct values identifies records.
_NAMED_RECORDS, _NAMED_SHARE = 20, 0.9
_WIDTHS = sorted(unit * 10.0**power for power, unit in product(range(-9, 16), (1, 2, 5)))


@final
@dataclass(frozen=True)
class Proposal:
    """What a column is proposed to be.

    Attributes
    ----------
    spec : object
        What the specification says of the attribute, with ``...`` for what is to be filled in; None for a
        column that is skipped.
    note : str
        Why it is skipped, or what the reader is told.
    identifies : bool
        Whether it is skipped as it names persons or records.
    """

    spec: object
    note: str = ""
    identifies: bool = False

    def noted(self, more: str) -> Proposal:
        """Return it with a further note."""
        return replace(self, note="; ".join(filter(None, (self.note, more))))


def propose(name: str, kind: Kind, profile: Profile | None = None) -> Proposal:
    """Propose an attribute for a column.

    Parameters
    ----------
    name : str
        Its name.
    kind : Kind
        What it holds, by its storage type.
    profile : Profile, optional
        What a public table says of it.

    Examples
    --------
    >>> propose("person_id", Kind.INTEGER)
    Proposal(spec=None, note='an identifier, by its name', identifies=True)
    >>> propose("married", Kind.BOOLEAN).spec
    [False, True]
    """
    few = profile is not None and 0 < profile.distinct <= _MOST_CATEGORIES
    if is_identifier(name) and not (few and not _names_records(profile)):
        return Proposal(None, "an identifier, by its name", identifies=True)
    if is_text(name) and not few:
        return Proposal(None, "free text, by its name")
    if kind is Kind.BOOLEAN:
        return Proposal([False, True])
    if profile is None or profile.records == profile.missing:
        return _unfilled(name, kind)
    proposal = _of_profile(name, kind, profile)
    if profile.distinct == 1 and proposal.spec is not None:
        proposal = Proposal(_widened(proposal.spec), proposal.note).noted(f"{_ALONE} of the public records")
    if isinstance(proposal.spec, list | dict) and profile.missing:
        spec = proposal.spec if isinstance(proposal.spec, dict) else {"categories": proposal.spec}
        coded: dict[str, object] = (
            {"missing": [plain(code) for code in profile.codes]} if profile.codes else {}
        )
        proposal = replace(proposal, spec={**spec, "null": "missing", **coded})
        return proposal.noted("missing values by their looks: if not, widen the range") if coded else proposal
    return proposal


def propose_listed(values: Mapping[str, str]) -> Proposal:
    """Propose an attribute whose values and labels a code book lists.

    Examples
    --------
    >>> propose_listed({"0": "female", "1": "male"}).spec
    {'labels': {'0': 'female', '1': 'male'}}
    """
    labels = {value: label.strip() for value, label in values.items() if label.strip()}
    labelled = len(labels) == len(values) == len(set(labels.values()))
    spec: object = {"labels": labels} if labelled else [_plain_value(value) for value in values]
    return Proposal(spec) if len(values) > 1 else Proposal(_widened(spec), f"{_ALONE} listed")


def _widened(spec: object) -> object:
    """Return a description with something left to fill in where further values go."""
    if isinstance(spec, list):
        return [*spec, ...]
    known = dict(spec) if isinstance(spec, Mapping) else {}
    key = next(key for key in ("categories", "labels", "max", "to") if key in known)
    if key == "labels":
        return {**known, key: {**known[key], "TODO": ...}}
    return {**known, key: _widened(known[key]) if key == "categories" else ...}


def _plain_value(value: str) -> str | int | float:
    """Return a value as a number where it is written as one."""
    number = canonical_value(value)
    return plain(number) if isinstance(number, float) and number_text(number) == value else value


def _unfilled(name: str, kind: Kind) -> Proposal:
    if kind in DATED:
        return Proposal({"from": ..., "to": ..., "by": "month"})
    if kind is Kind.OTHER:
        return Proposal(None, "a type that no attribute is read from; convert it first, or leave it out")
    if is_code(name):
        return Proposal(..., "codes, by its name: [code, ...]")
    if is_money(name):
        amount = Proposal({"amount": [0, ...]}, "the largest that counts; with cents also `step: 0.01`")
        return amount if kind is not Kind.TEXT else Proposal(..., "{amount: [0, largest], step: 0.01}")
    kinds = {
        Kind.INTEGER: Proposal({"min": ..., "max": ...}),
        Kind.FLOAT: Proposal({"min": ..., "max": ..., "bins": ...}),
    }
    return kinds.get(kind, Proposal(..., "[category, ...], {min, max}, {amount, step} or {from, to, by}"))


def _of_profile(name: str, kind: Kind, profile: Profile) -> Proposal:
    if profile.first is not None and profile.last is not None:
        return _dates(profile.first, profile.last)
    if profile.foreign and profile.distinct > _FEW_INTEGERS:
        return Proposal(None, _FOREIGN[profile.foreign])
    money = is_money(name) and profile.numbers and profile.distinct > _FEW_INTEGERS
    if _names_records(profile) and not money and (not profile.numbers or _run(kind, profile)):
        return Proposal(None, "an identifier or free text: nearly every public record has its own value")
    if is_code(name) and profile.distinct > _MOST_CATEGORIES:
        return Proposal(None, f"codes, by its name, of {profile.distinct:,} public values: group them first")
    coded = _is_coded(kind, profile)
    # listed where they are often the same
    few = 1 < profile.distinct <= min(_FEW_INTEGERS, (profile.records - profile.missing) // 4)
    padded = is_code(name) and any(map(_ZERO.match, profile.values))
    if profile.numbers and not (coded or padded):
        if is_code(name) or (few and not profile.whole):
            return Proposal(sorted({plain(float(value)) for value in profile.values}))
        proposal = _numbers(profile)
        return _amount(proposal, profile) if money else proposal
    if kind is Kind.OTHER:
        return _unfilled(name, kind)
    values = profile.values
    if profile.distinct > _MOST_CATEGORIES or not values or profile.longest > _LONGEST_CATEGORY:
        return Proposal(None, f"free text: {profile.distinct:,} different public values")
    # The most frequent spelling is kept of each value.
    read = {value if coded else canonical_value(value): value for value in reversed(values)}
    spelled = {value.casefold(): value for value in reversed(values) if value in read.values()}
    cleaned: dict[str, object] = {"type": "text"} if coded else {}
    cleaned |= {"trim": True} if profile.spaced else {}
    if len(spelled) < len(read):
        cleaned["case"] = "ignore"
    ordered = sorted(spelled.values(), key=lambda value: (value.casefold(), value))
    listed = [value if coded else _plain_value(value) for value in ordered]
    spec = {"categories": listed, **cleaned} if cleaned else listed
    if not profile.foreign:
        return Proposal(spec)
    note = f"texts of {_FOREIGN[profile.foreign]}"
    if profile.foreign == "numbers" or profile.distinct == 1:
        return Proposal(spec, note)
    return Proposal(_widened(spec), f"{note}, or add all of the table's period")


def _names_records(profile: Profile | None) -> bool:
    if profile is None or profile.first is not None:
        return False
    present = profile.records - profile.missing
    return present >= _NAMED_RECORDS and profile.distinct >= _NAMED_SHARE * present and not profile.timed


def _is_coded(kind: Kind, profile: Profile) -> bool:
    """Return whether the values are codes such as 01234, which are not the numbers that they look like."""
    values = profile.values
    if kind is not Kind.TEXT or profile.distinct > _MOST_CATEGORIES:
        return False
    if any(map(is_unreadable, values)):
        return True  # a domain refuses them, unless texts are compared as they are
    if not any(map(_ZERO.match, values)):
        return False
    far = not profile.numbers or profile.high - profile.low >= _MOST_INTEGERS
    return far or len({canonical_value(value) for value in values}) < len(values)


def _run(kind: Kind, profile: Profile) -> bool:
    """Return whether the values are running numbers, or of one length as those of accounts are."""
    if kind is Kind.FLOAT or not profile.whole:
        return False
    longest, shortest = (len(number_text(abs(end))) for end in (profile.high, profile.low))
    return profile.high - profile.low < 1.2 * profile.records or longest == shortest >= _ACCOUNT_DIGITS


def _amount(numbers: Proposal, profile: Profile) -> Proposal:
    """Return an amount over the finite ends of numbers."""
    spec = numbers.spec if isinstance(numbers.spec, dict) else {}
    if not {"bins", "edges"} & spec.keys():
        return numbers  # so few values may be codes of classes
    ends = spec["edges"][1:-1] if "edges" in spec else [spec["min"], spec["max"]]
    if any(round(100 * end) != 100 * end for end in ends):
        return numbers
    amount = {"amount": [ends[0], ends[-1]], **({} if profile.whole else {"step": 0.01})}
    return Proposal(amount, "numbers beyond the ends count as the ends; their distance is the error of sums")


def _numbers(profile: Profile) -> Proposal:
    low, high = profile.low, profile.high
    if profile.whole and abs(low) < 2**53 and abs(high) < 2**53:
        size = int(high) - int(low) + 1
        if profile.distinct <= _FEW_INTEGERS and (size > 2 * profile.distinct or size == 2):
            return Proposal(sorted({int(float(value)) for value in profile.values}))
        if size <= _MOST_INTEGERS:
            told = "list the values, [1, 2, ...], if they are codes" if 2 < size <= _FEW_INTEGERS else ""
            return Proposal({"min": int(low), "max": int(high)}, told)
    below, above = profile.below, profile.above
    if high - low > 5 * (above - below) > 0:
        width = _width((above - below) / (_BINS / 2))
        start, end = math.floor(below / width), math.ceil(above / width)
        edges = [plain(round(step * width, 9)) for step in range(start, end + 1)]
        edges = [-math.inf, *edges, math.inf]
        return Proposal({"edges": edges}, "far values are in the open bins at the ends")
    width = _width(max(high - low, 1e-6 * max(1.0, abs(low), abs(high))) / _BINS)
    start, end = math.floor(low / width), math.ceil(high / width)
    start, end = start - (start * width > low), end + (end * width < high)  # the quotient may have rounded
    ends = {"min": plain(round(start * width, 9)), "max": plain(round(max(end, start + 1) * width, 9))}
    return Proposal({**ends, "bins": max(end - start, 1)})


def _dates(first: datetime, last: datetime) -> Proposal:
    days = (last - first).days
    unit = "day" if days <= 92 else "month" if days <= 3_660 else "year"
    start, end = first.date(), last.date()
    if unit != "day":
        start, end = date(start.year, 1, 1), date(end.year, 12, 31)
    spec = {"from": start.isoformat(), "to": end.isoformat(), "by": unit}
    return Proposal(spec, "the period of the public records: make it that of the table")


def _width(least: float) -> float:
    return next((width for width in _WIDTHS if width >= least), _WIDTHS[-1])


def plain(number: float) -> int | float:
    """Return a number as an integer where it is one.

    Examples
    --------
    >>> plain(10.0), plain(0.5)
    (10, 0.5)
    """
    return int(number) if number == math.floor(number) else number


_BUDGET, _PRIVACY = Budget(epsilon=1.0, delta=1e-6), "{epsilon: 1.0, delta: 1.0e-6}"
#: Pairs have at most so many cells, and at most so many are listed; without a number of records fewer.
_LARGEST_PAIR, _MOST_PAIRS = 10_000, 100
_FEW_PAIRS, _FEW_CELLS = 5, 50

_PLAIN = re.compile(r"[A-Za-z_/][\w ./-]*[\w.]|[A-Za-z_]", re.ASCII)
_MODELINE = "# yaml-language-server: $schema=matrixdp.schema.json"
"""What editors find the schema by."""


def draft_specification(
    data: str | os.PathLike[str],
    *,
    table: str | None = None,
    public_table: str | os.PathLike[str] | None = None,
    records: int | None = None,
    quoted_newlines: bool = False,
) -> str:
    """Return the text of a first specification for a table.

    No record of the table is read: what the text says of it follows from the names of its columns and their
    storage types. Values are left as ``TODO``, or taken from a public table.

    Parameters
    ----------
    data : path or str
        The table.
    table : str, optional
        Its name in a database.
    public_table : path, optional
        A table whose records are public, with some of the same columns: last year's, a sample that was
        published; or a code book, with a column that names attributes (`variable`), one of values (`value`)
        and perhaps one of labels (`label`). What it says of values is public in the text.
    records : int, optional
        About how many records the table has, a public number; those of the public table where it is left out.
        Pairs of attributes are proposed whose counts are mostly reliable with so many.
    quoted_newlines : bool
        Whether quotes in CSV files may hold line ends.

    Returns
    -------
    str
        YAML with comments. What a public table cannot tell is left as ``TODO``: columns that it lacks, and
        columns with one value, and those of few dates as texts that are not ISO 8601: others have others.

    Raises
    ------
    SourceError
        If a table cannot be read, or no attribute can be made of its columns.
    SpecificationError
        If the public table is the table itself.

    Examples
    --------
    >>> print(draft_specification("examples/randhie.parquet").split("domain:")[1].splitlines()[1])
      visits: {min: TODO, max: TODO}
    """
    source = open_source(data, table_name=table, quoted_newlines=quoted_newlines)
    kinds = source.columns()
    known: dict[str, Proposal] = {}
    found: dict[str, Profile] = {}
    if public_table is not None:
        if same_table(public_table, data):
            expected = "a table that is public: its values stand in the text"
            raise SpecificationError.at(("public_table",), "the table itself", expected, code="privacy")
        public = open_path(public_table)
        book = code_book(public, list(kinds))
        if book is not None:
            known = {name: propose_listed(values) for name, values in book.items()}
        else:
            found = profiles(public, list(kinds))
            known = {name: propose(name, kinds[name], of) for name, of in found.items()}
            records = records or max((of.records for of in found.values()), default=None)
    proposals = {name: known.get(name) or propose(name, kind) for name, kind in kinds.items()}
    named = os.fspath(data)
    # others read specifications, which are refused where they hold a password
    named = shown(named) if names_secret(named) else named
    unfilled = any(UNFILLED in flow(proposal.spec) for proposal in proposals.values())
    public_name = Path(public_table).name if public_table is not None else ""
    lines = [*_heading(named, public_name, unfilled), "", f"data: {_scalar(named)}"]
    lines += [f"table: {_scalar(table)}"] if table is not None else []
    lines += ["quoted_newlines: true"] if quoted_newlines else []
    lines += ["", "domain:", *_domain(proposals, known, public_name), ""]
    lines += [*_workload(proposals, found, records), "", *_ending(proposals), ""]
    return "\n".join(lines)


def _heading(data: str, public_table: str, unfilled: bool) -> list[str]:
    lines = [
        _MODELINE,
        "# (Editors check by that file once you make it here: matrixdp schema > matrixdp.schema.json)",
        f"# Drafted from the names and the storage types of the columns of {Path(data).name};",
        "# no record of it was read. Check that they are names, and not a first record: all can read them.",
    ]
    if public_table:
        lines += [
            f"# Values are those of {public_table}, which is taken to be public; here they are.",
            "# Records of the table with other values are out of domain: widen what may have changed,",
            "# or let numbers and days beyond the ends count as the ends: `clip: true` beside them.",
        ]
    if unfilled:
        lines += [
            f"# {UNFILLED}: fill in from public knowledge, never by a look at the table; `matrixdp validate`",
            "# names each that is left.",
        ]
    return lines


def _domain(proposals: Mapping[str, Proposal], known: Mapping[str, Proposal], public: str) -> list[str]:
    lines = []
    for name, proposal in proposals.items():
        if proposal.spec is None:
            lines.append(f"  # {_scalar(name)} is left out: {proposal.note}")
            continue
        marked = "; ".join(filter(None, (f"public, from {public}" if name in known else "", proposal.note)))
        comment = f"   # {marked}" if marked else ""
        lines.append(f"  {_scalar(name)}: {flow(proposal.spec)}{comment}")
    if all(proposal.spec is None for proposal in proposals.values()):
        lines.append(f"  {UNFILLED}: {UNFILLED}   # no column could be made an attribute")
    return lines


def _workload(
    proposals: Mapping[str, Proposal], profiles: Mapping[str, Profile], records: int | None
) -> list[str]:
    amounts = [name for name, p in proposals.items() if isinstance(p.spec, dict) and "amount" in p.spec]
    known = {name: own for name, p in proposals.items() if (own := _attribute(name, p.spec)) is not None}
    tables = [name for name in known if name not in amounts]
    lines = ["workload:", "  - marginals: [0, 1]   # the total, and every attribute on its own"]
    lines += [f"  - {kind}: {_scalar(name)}" for name in amounts for kind in ("sum", "mean")]
    every = list(combinations(tables, 2))
    if records is not None and tables:
        pairs, reliable = _reliable_pairs(Domain(known.values()), every, profiles, records)
        told = [
            f"# With {counted(records, 'record')} {reliable} should have a standard error of at most a third",
            "# of them. Other pairs have too many values, or would take from these.",
        ]
    else:
        cells = {pair: math.prod(known[name].size for name in pair) for pair in every}
        pairs = sorted((pair for pair in every if cells[pair] <= _FEW_CELLS), key=lambda pair: cells[pair])
        pairs = pairs[:_FEW_PAIRS]
        told = [
            "# Add the pairs that you need; each table takes from the budget of others. With `--records N`,",
            "# about how many records there are, a draft has those whose counts are reliable, and with",
            "# `--expect N` `matrixdp validate` warns where nearly none are:",
            "# - marginals: [[one, another]]",
        ]
    if pairs and len(pairs) == len(every):
        lines += ["  - marginals: 2   # every pair of these"]
    elif pairs:
        whole = ", ".join(flow(pair).replace(" ", "\0") for pair in sorted(pairs, key=every.index))
        rows = textwrap.wrap(whole, 100, break_long_words=False, break_on_hyphens=False)
        lines += ["  - marginals: [", *(f"      {row}".replace("\0", " ") for row in rows), "    ]"]
    lines += [f"  {line}" for line in told]
    if numbers := [name for name in tables if _ordered(proposals[name].spec)]:
        example = f"# - quantile: {{{_scalar(numbers[0])}: [0.25, 0.5, 0.75]}}   # cdf, mean, share, ..."
        lines += ["  # Statistics are entries, too; each takes its part of the budget:", f"  {example}"]
    return lines


def _reliable_pairs(
    domain: Domain, every: Sequence[tuple[str, str]], profiles: Mapping[str, Profile], records: int
) -> tuple[list[tuple[str, str]], str]:
    """Return the pairs most of whose cells stay reliable beside each other, and how many counts then are.

    Cells are expected to be in proportion to the products of what is public of each attribute. Pairs come in
    the order of their middle cells, as many as leave all pairs, and what is reliable without pairs, reliable.
    """
    amounts = [own.name for own in domain.attributes if isinstance(own, Amount)]
    shares = {
        own.name: profiles[own.name].shares(own)
        if own.name in profiles
        else np.full(own.size, 1.0 / own.size)
        for own in domain.attributes
        if own.name not in amounts
    }
    cells: dict[tuple[str, ...], Array] = {(): np.array([float(records)])}
    cells |= {(name,): records * own for name, own in shares.items()}
    few = [pair for pair in every if domain.cells(pair) <= min(_LARGEST_PAIR, records)]
    cells |= {(one, other): records * np.outer(shares[one], shares[other]) for one, other in few}
    pairs = sorted(few, key=lambda pair: -float(np.median(cells[pair])))
    sums = [entry(name) for name in amounts for entry in (ask.sum, ask.mean)]

    def reliable(number: int) -> dict[tuple[str, ...], int]:
        asked = [marginals([0, 1]), *sums, *([marginals(list(map(list, pairs[:number])))] if number else [])]
        strategy = select(Workload(domain, *asked), "gaussian", mechanism="residual")
        found = {own.group.attributes: own.stddev for own in expected_counts(strategy, _BUDGET, records)}
        return {
            names: int((found[names] <= LARGEST_SHARE * cells[names]).sum()) for names in found.keys() & cells
        }

    def mostly(number: int) -> set[tuple[str, ...]]:
        return {names for names, good in reliable(number).items() if 2 * good >= cells[names].size}

    alone = mostly(0)
    # as many as come before the first number that is too many; every pair takes one line, others a list
    steps = [*range(1, min(len(pairs), _MOST_PAIRS + 1)), len(pairs)]
    fitting = bisect_left(steps, True, key=lambda n: not alone | set(pairs[:n]) <= mostly(n))
    number = [0, *steps][fitting]
    if number < len(every):
        number = min(number, _MOST_PAIRS)
    found = reliable(number)
    counts = counted(sum(cells[names].size for names in found), "count")
    return pairs[:number], f"{sum(found.values()):,} of {counts}"


def _ending(proposals: Mapping[str, Proposal]) -> list[str]:
    lines = [
        "# A common choice; decide with those responsible for the data. {epsilon: 1.0} alone is pure",
        "# differential privacy, {rho: 0.5} another definition.",
        f"privacy: {_PRIVACY}",
    ]
    persons = [name for name, proposal in proposals.items() if proposal.identifies]
    if persons:
        lines += [
            "# If a person may have several records: the column of the person, and how many count at most.",
            f"# unit: {{id: {_scalar(persons[0])}, max_records: 3}}",
        ]
    return [
        *lines,
        "# A record with a missing or unlisted value in any attribute is left out of every table.",
        "# `null: no answer` beside an attribute makes its missing values one more value.",
        "out_of_domain: drop",
    ]


def _attribute(name: str, spec: object) -> Attribute | None:
    """Return a proposed attribute; None where it is not all there."""
    if spec is None or UNFILLED in flow(spec):
        return None
    try:
        return Domain({name: parse_yaml(flow(spec)).value})[name]
    except MatrixDPError:
        return None


def _ordered(spec: object) -> bool:
    return isinstance(spec, dict) and not {"categories", "labels"} & spec.keys()


def flow(value: object) -> str:
    """Return a value as YAML on one line; ``...`` is what is still to be filled in.

    Examples
    --------
    >>> flow({"min": 0, "max": ..., "null": "no"})
    '{min: 0, max: TODO, null: no}'
    """
    if value is ...:
        return UNFILLED
    if isinstance(value, Mapping):
        # Keys are text however they are written.
        keys = (key if key == "null" else _scalar(key) for key in value)
        pairs = zip(keys, value.values(), strict=True)
        return "{" + ", ".join(f"{key}: {flow(held)}" for key, held in pairs) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(flow, value)) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    """Return one value as YAML: a text in quotes where it could be read as something else.

    Examples
    --------
    >>> print(_scalar("New York"), _scalar("no"), _scalar("TODO"), _scalar("007"), _scalar(7), _scalar(True))
    New York no "TODO" "007" 7 true
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    read_back = _PLAIN.fullmatch(text) and parse_yaml(text).value == text and text != UNFILLED
    return text if read_back else json.dumps(text, ensure_ascii=False)
