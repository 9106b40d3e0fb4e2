"""The rules of `matrixdp.domain.rules` in SQL: one skeleton, with what DuckDB writes in its own way.

Two steps, each one expression a column, so that a value is parsed once: from the raw value to a canonical
text, a number or both, and from there to a code, NULL where the value is out of domain. No expression can
raise an error, whatever the value. `matrixdp.sources.postgresql` has the other dialect.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from typing import final

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.domain import rules as meaning
from matrixdp.domain.rules import (
    BOOLEANS,
    SPELLINGS,
    BinEdges,
    Categories,
    IntegerRange,
    Kind,
    Listed,
    Numbers,
    Rule,
)
from matrixdp.sources.base import Request, strides

FIRST_DAY, LAST_DAY = (f"DATE '{day.isoformat()}'" for day in meaning.DAYS)
LONGEST_TEXT = 2**20
"""No longer text has a number or a day: functions of PostgreSQL fail on texts a hundred times as long."""


def identifier(name: str) -> str:
    """Return a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a quoted literal; in PostgreSQL where `standard_conforming_strings` is on.

    Examples
    --------
    >>> print(literal("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def by_bytes(column: str) -> str:
    """Return a text that is compared byte by byte: a collation would make some equal, or order others.

    Examples
    --------
    >>> print(by_bytes('"a"'))
    (CAST("a" AS text) COLLATE "C")
    """
    return f'(CAST({column} AS text) COLLATE "C")'


def double(number: float) -> str:
    """Return a number as a literal that is read as the same double."""
    return f"CAST({literal(repr(float(number)))} AS double precision)"


def canonical_texts(rule: Categories) -> dict[str, int]:
    """Return the codes of canonical texts."""
    texts = (value if isinstance(value, str) else meaning.canonical_text(value) for value in rule.codes)
    return dict(zip(texts, rule.codes.values(), strict=True))


_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_KINDS = {
    **dict.fromkeys((*_SIZES, *(f"U{size}" for size in _SIZES)), Kind.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), Kind.FLOAT),
    **dict.fromkeys(("NULL", '"NULL"'), Kind.NULL),
    **dict.fromkeys(("VARCHAR", "ENUM"), Kind.TEXT),
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"), Kind.TIMESTAMP),
    "TIMESTAMP_NS": Kind.NANOSECONDS,
    "TIMESTAMP WITH TIME ZONE": Kind.INSTANT,
}
_EXACT = 2**53
_EPOCH = date(1970, 1, 1).toordinal()
MINUTE, _HOUR = 60_000_000, 3_600_000_000
_SPACE = literal(meaning.WHITESPACE)
_SPACED_NUMERAL = literal(f"[{meaning.WHITESPACE}]*(?:{meaning.NUMERAL[1:-1]})[{meaning.WHITESPACE}]*")


def column_kind(type_name: str) -> Kind:
    """Return the kind of a column of a DuckDB type.

    Examples
    --------
    >>> column_kind("DECIMAL(10,2)"), column_kind("TIME")
    (<Kind.FLOAT: 'float'>, <Kind.OTHER: 'other'>)
    """
    name, _, options = type_name.partition("(")
    return Kind.OTHER if options and not options.endswith(")") else _KINDS.get(name, Kind.OTHER)


class Dialect:
    """The SQL of DuckDB; that of another engine overrides all that this one writes otherwise.

    Every column is a quoted name, and comes with the name of the type that it is stored as.
    """

    cast = "TRY_CAST"
    """What casts a value that is known to have the type."""
    divide = "//"
    """What divides integers that are not negative, without a remainder."""

    def kind(self, stored: str) -> Kind:
        """Return the kind of a column of a type."""
        return column_kind(stored)

    def within(self, longest: int, text: str, value: str) -> str:
        """Return a value, or NULL where a text has more bytes and functions of the engine may fail on it."""
        return value

    def numeral(self, text: str, otherwise: str = "NULL") -> str:
        """Return the number that a text is a numeral of, or else another expression."""
        # DuckDB skips the same white space when it casts.
        matches = f"regexp_full_match({text}, {_SPACED_NUMERAL})"
        return f"CASE WHEN {matches} THEN TRY_CAST({text} AS DOUBLE) ELSE {otherwise} END"

    def finite(self, column: str, stored: str) -> str:
        """Return the double that is nearest to a number that is no integer; NULL where it is not finite."""
        return f"CASE WHEN isfinite(CAST({column} AS DOUBLE)) THEN CAST({column} AS DOUBLE) END"

    def is_nan(self, column: str) -> str:
        """Return whether a number that is no integer is none."""
        return f"isnan(CAST({column} AS DOUBLE))"

    def integer(self, rule: Rule, column: str) -> str:
        """Return an integer as a number that compares exactly with those of the rule."""
        return f"TRY_CAST({column} AS DOUBLE)"

    def day(self, column: str) -> str:
        """Return the text of a date from year 1 to 9999."""
        return f"CAST({column} AS VARCHAR)"

    def days_of_text(self, text: str) -> str:
        """Return the `days` of the date that a text of the form 2020-01-31 is, or NULL."""
        return days(f"TRY_CAST({text} AS DATE)")

    def since(self, column: str, kind: Kind, unit: int) -> str:
        """Return the hour of a timestamp, as `Timestamps` counts them, or another unit in microseconds."""
        if kind is Kind.NANOSECONDS:
            since = f"CAST(epoch_ns({column}) AS HUGEINT) + {_EPOCH * 24 * _HOUR * 1000}"
            return f"CASE WHEN isfinite({column}) THEN CAST(({since}) // {unit * 1000} AS BIGINT) END"
        zone, offset = (" WITH TIME ZONE", "+00") if kind is Kind.INSTANT else ("", "")
        moment = f"TRY_CAST({column} AS TIMESTAMP{zone})"
        first = f"CAST('0001-01-01 00:00:00{offset}' AS TIMESTAMP{zone})"
        last = f"CAST('9999-12-31 23:59:59.999999{offset}' AS TIMESTAMP{zone})"
        since = f"(epoch_us({moment}) + {_EPOCH * 24 * _HOUR}) // {unit}"
        return f"CASE WHEN {moment} BETWEEN {first} AND {last} THEN {since} END"

    def code_of_text(self, rule: Categories, text: str) -> str:
        """Return the code of a canonical text."""
        labels = ", ".join(map(literal, canonical_texts(rule)))
        return f"enum_code(TRY_CAST({text} AS ENUM({labels})))"

    def code_of_number(self, rule: Listed | Numbers, number: str) -> str:
        """Return the code of a listed number."""
        # Integral numbers go through the text of the integer; the few others are compared one by one.
        integral = self.code_of_text(rule, f"CAST(TRY_CAST({number} AS BIGINT) AS VARCHAR)")
        others = [
            f" WHEN {double(listed)} THEN {code}"
            for listed, code in rule.codes.items()
            if isinstance(listed, float) and (abs(listed) >= _EXACT or not listed.is_integer())
        ]
        rest = f" ELSE CASE {number}{''.join(others)} END" if others else ""
        return f"CASE WHEN abs({number}) < {_EXACT} AND {number} = floor({number}) THEN {integral}{rest} END"

    @final
    def _text(self, rule: Rule, column: str) -> str:
        """Return a text that is compared byte by byte, trimmed and with folded letters as a rule says."""
        text = by_bytes(column)
        cleaned = trimmed(text) if rule.trim else text
        if rule.folded[0]:
            cleaned = f"translate({cleaned}, {literal(rule.folded[0])}, {literal(rule.folded[1])})"
        return text if cleaned == text else self.within(LONGEST_TEXT, text, cleaned)

    @final
    def _since_of_text(self, rule: meaning.Timestamps, text: str) -> str:
        day = self.days_of_text(f"substr({text}, 1, 10)")
        hour, minute = (f"{self.cast}(substr({text}, {place}, 2) AS bigint)" for place in (12, 15))
        zone = f"regexp_replace(substr({text}, 17), '^[^+-]*', '')"
        apart = f"{self.cast}(substr({zone}, 2, 2) AS bigint) * 60"
        apart += f" + {self.cast}('0' || replace(substr({zone}, 4), ':', '') AS bigint)"
        ahead = f"CASE substr({zone}, 1, 1) WHEN '+' THEN {apart} WHEN '-' THEN -({apart}) ELSE 0 END"
        timed = f"({day} * 1440 + {hour} * 60 + {minute} - ({ahead}))"
        timed += f" {self.divide} 60" if rule.offsets is None else ""
        alone = "CAST(NULL AS bigint)" if rule.timed else f"{day} * {24 if rule.offsets is None else 1440}"
        moment = f"CASE WHEN length({text}) = 10 THEN {alone} ELSE {timed} END"
        return f"CASE WHEN {text} ~ {literal(meaning.MOMENT)} THEN {moment} END"

    @final
    def values(self, rule: Rule, column: str, stored: str) -> dict[str, str]:
        """Return the expressions from a raw value to what its code is found from.

        Under ``t`` a text, under ``n`` a number, each NULL where there is none; for texts that are compared
        with numbers too, both.
        """
        kind = self.kind(stored)
        if meaning.never(rule, kind):
            return {"t": "CAST(NULL AS varchar)"}
        within = f"CASE WHEN {column} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN"
        if isinstance(rule, meaning.Timestamps):
            if kind is Kind.DATE:
                return {"n": f"{within} {days(column)} * 24 END"}
            if kind is not Kind.TEXT:
                return {"n": self.since(column, kind, MINUTE if self._zoned(rule, kind) else _HOUR)}
            text = self._text(rule, column)
            moment = {"n": self._since_of_text(rule, trimmed(text))}
            if rule.offsets is not None:
                moment["z"] = f"(substr({trimmed(text)}, 17) ~ '^.*[Z+-].*$')"
            return {part: self.within(LONGEST_TEXT, text, value) for part, value in moment.items()}
        if kind is Kind.DATE:
            return {"t": f"{within} {self.day(column)} END"}
        if kind is Kind.INTEGER:
            return {"n": self.integer(rule, column)}
        if kind is Kind.FLOAT:
            return {"n": self.finite(column, stored)}
        if kind is Kind.BOOLEAN:
            # No cast: DuckDB may move one into its reader of CSV, and give the text of the file.
            write = literal if isinstance(rule, Listed) else _truth
            boolean = f"CASE WHEN {column} THEN {write('true')} WHEN NOT {column} THEN {write('false')} END"
            return {"t" if isinstance(rule, Listed) else "n": boolean}
        text = self._text(rule, column)
        if not isinstance(rule, Categories) or isinstance(rule, Numbers):
            return {"n": self.numeral(text, f"CASE lower({text}) {_spelled(_truth)} END")}
        if isinstance(rule, meaning.Days):
            return {"t": self.within(LONGEST_TEXT, text, trimmed(text))}
        found, longest = text, max(len(label.encode()) for label in ("", *canonical_texts(rule)))
        if isinstance(rule, Listed) and not BOOLEANS.keys().isdisjoint(rule.codes):
            found = f"CASE lower({text}) {_spelled(literal)} ELSE {text} END"
            longest = max(longest, *map(len, SPELLINGS))
        numbers = {"n": self.numeral(text)} if isinstance(rule, Listed) and rule.numbers else {}
        return {"t": self.within(longest, text, found), **numbers}

    @final
    def code(self, rule: Rule, values: Mapping[str, str], kind: Kind) -> str:
        """Return the expression from what `values` gives, as columns, to an integer code, or NULL."""
        if meaning.never(rule, kind):
            return "CAST(NULL AS integer)"
        if isinstance(rule, meaning.Texts | meaning.Days):
            return self.code_of_text(rule, values["t"])
        if isinstance(rule, Listed | Numbers):
            found = [self.code_of_text(rule, values["t"])] if "t" in values else []
            found += [self.code_of_number(rule, values["n"])] if "n" in values else []
            return f"coalesce({', '.join(found)})" if len(found) > 1 else found[0]
        value = values["n"]
        if isinstance(rule, meaning.Timestamps):
            if rule.offsets is None or not self._zoned(rule, kind):
                return self._code_of_hours(rule, value)
            local = self._code_of_hours(rule, f"({value} {self.divide} 60)")
            code = self._code_of_utc(rule, rule.offsets, value)
            return code if kind is Kind.INSTANT else f"CASE WHEN {values['z']} THEN {code} ELSE {local} END"
        if isinstance(rule, IntegerRange):
            whole = value if kind is Kind.INTEGER else f"floor({value})"
            exact = f" AND {value} = {whole}" if rule.round is None and kind is not Kind.INTEGER else ""
            if rule.round == "nearest" and kind is not Kind.INTEGER:
                whole = f"({whole} + CASE WHEN {value} - {whole} >= 0.5 THEN 1 ELSE 0 END)"
            clipped = _clipped(rule, value, rule.first, rule.last, rule.last - rule.first)
            inside = f"{whole} BETWEEN {rule.first} AND {rule.last}{exact}"
            return f"CASE {clipped}WHEN {inside} THEN {self.cast}({whole} AS bigint) - ({rule.first}) END"
        if isinstance(rule, meaning.Multiples):
            low, high = map(double, rule.ends)
            steps = f"({value} * {double(rule.under)} + {double(rule.over / 2)}) / {double(rule.over)}"
            nearest = f"{self.cast}(floor({steps}) AS bigint) - ({rule.first})"
            ends = f"WHEN {value} <= {low} THEN 0 WHEN {value} >= {high} THEN {rule.last - rule.first}"
            return f"CASE {ends} WHEN {value} IS NOT NULL THEN {nearest} END"
        edges, below = list(map(double, rule.edges)), "<=" if rule.closed else "<"
        clipped = _clipped(rule, value, edges[0], edges[-1], len(edges) - 2)
        inside = f"{value} >= {edges[0]} AND {value} {below} {edges[-1]}"
        return f"CASE {clipped}WHEN {inside} THEN {_bin(edges, value, 0, len(edges) - 1)} END"

    def _zoned(self, rule: meaning.Timestamps, kind: Kind) -> bool:
        """Return whether moments of a kind may be read in the time zone of a rule, so that minutes matter."""
        return rule.offsets is not None and kind in (Kind.TEXT, Kind.INSTANT)

    def _code_of_utc(self, rule: meaning.Timestamps, offsets: meaning.Offsets, minutes: str) -> str:
        """Return the code of a time in UTC, in minutes: the search for its offset, then for its code."""
        starts, codes = [-math.inf, *map(float, offsets.starts), math.inf], []
        for offset, ends in zip(offsets.minutes, pairwise(starts), strict=True):
            hours = f"(({minutes} + {offset}) {self.divide} 60)".replace("+ -", "- ")
            codes.append(self._code_of_hours(rule, hours, *((end + offset) / 60 for end in ends)))
        return _bin(["", *map(str, offsets.starts)], minutes, 0, len(codes), codes)

    def _code_of_hours(
        self, rule: meaning.Timestamps, hours: str, least: float = -math.inf, most: float = math.inf
    ) -> str:
        """Return the code at an hour that is known to be between two."""
        if rule.edges is None:
            last = (rule.last - rule.start) // rule.width
            code = f"(({hours} - {rule.start}) {self.divide} {rule.width})"
        else:
            edges, last = ["", *map(str, rule.edges), ""], len(rule.edges)
            code = _bin(edges, hours, bisect_right(rule.edges, least), bisect_right(rule.edges, most) + 1)
        code = code if rule.cycle is None else f"({code}) % {rule.cycle}"
        cases = _clipped(rule, hours, rule.first, rule.last, last)
        if rule.blank:
            days, null = ", ".join(map(str, rule.blank)), "NULL" if rule.null is None else rule.null
            cases = f"WHEN {hours} - {hours} % 24 IN ({days}) THEN {null} {cases}"
        return f"CASE {cases}WHEN {hours} BETWEEN {rule.first} AND {rule.last} THEN {code} END"

    @final
    def named(self, rule: Rule, column: str, stored: str, index: int) -> tuple[list[str], str]:
        """Return both steps for one column: the first as columns that are named by an index."""
        kind, found = self.kind(stored), self.values(rule, column, stored)
        values = [f"{value} AS {part}{index}" for part, value in found.items()]
        code = self.code(rule, {part: f"{part}{index}" for part in found}, kind)
        cases = ""
        if rule.null is not None:
            special = {Kind.TEXT: f"{self._text(rule, column)} = ''", Kind.FLOAT: self.is_nan(column)}
            missing = f" OR coalesce({special[kind]}, false)" if kind in special else ""
            values.append(f"{column} IS NULL{missing} AS m{index}")
            cases = f"WHEN m{index} THEN {rule.null} "
        if rule.missing is not None and kind in (*meaning.NUMBERS, Kind.DATE):
            found = self.values(rule.missing, column, stored)
            values += [f"{value} AS m{part}{index}" for part, value in found.items()]
            missing = self.code(rule.missing, {part: f"m{part}{index}" for part in found}, kind)
            cases += f"WHEN ({missing}) IS NOT NULL THEN {'NULL' if rule.null is None else rule.null} "
        return values, f"CASE {cases}ELSE {code} END" if cases else code

    @final
    def encoded(
        self, request: Request, encoders: Domain, stored: Mapping[str, str], own: Mapping[str, str]
    ) -> tuple[list[str], list[str], dict[str, str]]:
        """Return both steps for all columns: columns of values, columns of codes, and those of attributes.

        Parameters
        ----------
        request : Request
        encoders : Domain
            The readings that say how the columns are read.
        stored, own : mapping of str to str
            The type and the quoted name of each column of the table.

        Returns
        -------
        tuple of (list of str, list of str, dict of str to str)
            The last are expressions over the columns of codes, for each attribute of the request's domain.
        """
        kinds = {name: self.kind(type_name) for name, type_name in stored.items()}
        values, codes, read = [], [], {}
        for i, (name, rule) in enumerate(request.rules(kinds, encoders).items()):
            column = encoders[name].column
            parts, code = self.named(rule, own[column], stored[column], i)
            values += parts
            codes.append(f"{_or_other(code, request.other(name))} AS c{i}")
            read[name] = f"c{i}"
        return values, codes, attribute_codes(request.domain, request.out_of_domain, read)


# The codes of derived attributes, looked up by those of what they are derived from, in SQL of any server.


def attribute_codes(domain: Domain, out_of_domain: OutOfDomain, read: Mapping[str, str]) -> dict[str, str]:
    """Return the expression for the code of each attribute of a domain, NULL where it is out of domain.

    Parameters
    ----------
    domain : Domain
    out_of_domain : OutOfDomain
        Has been carried out on what was read; it is here on what is derived from this.
    read : mapping of str to str
        The columns of codes, NULL where a value is out of domain, by the names of `Domain.readings`.

    Examples
    --------
    >>> domain = Domain({"age": 3, "minor": {"of": ["age"], "map": {0: "yes"}, "otherwise": "no"}})
    >>> print(attribute_codes(domain, OutOfDomain(), {"age": "c0"})["minor"])
    CAST(substr('011', CAST(1 + 1 * (CAST(c0 AS BIGINT) * 1) AS INTEGER), 1) AS INTEGER)
    """
    found = {}
    for attribute in domain:
        derivation = attribute.codebook.derivation
        if derivation is None:
            found[attribute.name] = read[attribute.name]
            continue
        names = domain.parents[attribute.name]
        steps = zip(names, strides([domain.readings[name].size for name in names]), strict=True)
        terms = [f"CAST({read[name]} AS BIGINT) * {step}" for name, step in steps]
        # Every code as a text of one width, which every server finds by its place without looking at others.
        width = len(str(attribute.size - 1))
        table = "".join(f"{code:0{width}d}" for code in derivation.codes)
        place = f"CAST(1 + {width} * ({' + '.join(terms)}) AS INTEGER)"
        code = f"CAST(substr('{table}', {place}, {width}) AS INTEGER)"
        found[attribute.name] = _or_other(code, out_of_domain.code(attribute.name))
    return found


def _or_other(code: str, other: int | None) -> str:
    return code if other is None else f"coalesce({code}, {other})"


def trimmed(text: str) -> str:
    """Return a text without white space around it."""
    return f"trim({text}, {_SPACE})"


def outside(request: Request, codes: Mapping[str, str], inside: str) -> list[str]:
    """Return the conditions of the counts of records out of domain."""
    return [
        f"NOT ({inside})" if name is None else f"{codes[name]} IS NULL"
        for name in request.out_of_domain.counts
    ]


def days(date: str) -> str:
    """Return the days of a date since the one before 0001-01-01."""
    return f"CAST({date} - {FIRST_DAY} + 1 AS bigint)"


def _spelled(write: Callable[[str], str]) -> str:
    return " ".join(f"WHEN {literal(name)} THEN {write(same)}" for name, same in SPELLINGS.items())


def _truth(name: str) -> str:
    return double(BOOLEANS[name])


def _clipped(
    rule: IntegerRange | BinEdges | meaning.Timestamps, value: str, first: object, last: object, code: int
) -> str:
    """Return the cases of numbers beyond the ends, the last of which has a code, where they are clipped."""
    return f"WHEN {value} < {first} THEN 0 WHEN {value} >= {last} THEN {code} " if rule.clip else ""


def _bin(edges: Sequence[str], value: str, first: int, end: int, codes: Sequence[str] = ()) -> str:
    """Return the binary search for the bin among those from `first` to `end`, as nested cases."""
    if end - first == 1:
        return codes[first] if codes else str(first)
    middle = (first + end) // 2
    below = _bin(edges, value, first, middle, codes)
    above = _bin(edges, value, middle, end, codes)
    return f"CASE WHEN {value} < {edges[middle]} THEN {below} ELSE {above} END"


DUCKDB = Dialect()
