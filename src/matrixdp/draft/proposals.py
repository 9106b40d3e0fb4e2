"""What a column is proposed to be, by its name, its storage type, and what is public of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import product
from typing import final

from matrixdp.domain.canonical import number_text
from matrixdp.domain.categorical import is_unreadable
from matrixdp.domain.rules import Kind, canonical_value
from matrixdp.draft.public import DATED, Profile

__all__ = ["UNFILLED_VALUE", "Proposal", "Unfilled", "propose", "propose_listed"]


@final
@dataclass(frozen=True)
class Unfilled:
    """What is still to be filled in."""


UNFILLED_VALUE = Unfilled()
_IDENTIFIERS = frozenset(
    {
        *("id", "uuid", "guid", "ssn", "nin", "key", "iban", "passport", "username", "login", "ip", "url"),
        *("email", "mail", "phone", "telephone", "mobile", "fax", "address", "street"),
        *("surname", "firstname", "lastname", "fullname"),
    }
)
_TEXTS = frozenset({"comment", "comments", "note", "notes", "remark", "remarks", "message", "messages"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
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
#: Of so many records, a column with so large a share of different values names them.
_NAMED_RECORDS, _NAMED_SHARE = 20, 0.9
_WIDTHS = sorted(unit * 10.0**power for power, unit in product(range(-9, 16), (1, 2, 5)))


@final
@dataclass(frozen=True)
class Proposal:
    """What a column is proposed to be.

    Attributes
    ----------
    spec : object
        What the specification says of the attribute, with `Unfilled` for what is to be filled in; None for a
        column that is skipped.
    note : str
        Why it is skipped, or what the reader is told.
    identifies : bool
        Whether it is skipped as it names persons or records.
    """

    spec: object
    note: str = ""
    identifies: bool = False


def propose(name: str, kind: Kind, profile: Profile | None = None) -> Proposal:
    """Return what a column is proposed to be.

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
    words = {word.lower() for word in _WORD.findall(name)}
    few = profile is not None and 0 < profile.distinct <= _MOST_CATEGORIES
    if (words & _IDENTIFIERS or words == {"name"}) and not (few and not _names_records(profile)):
        return Proposal(None, "an identifier, by its name", identifies=True)
    if words & _TEXTS and not few:
        return Proposal(None, "free text, by its name")
    if kind is Kind.BOOLEAN:
        return Proposal([False, True])
    if profile is None or profile.records == profile.missing:
        return _unfilled(kind)
    proposal = _of_profile(kind, profile)
    if profile.distinct == 1 and proposal.spec is not None:
        note = "; ".join(filter(None, (proposal.note, f"{_ALONE} of the public records")))
        proposal = Proposal(_widened(proposal.spec), note)
    if isinstance(proposal.spec, list | dict) and profile.missing:
        spec = proposal.spec if isinstance(proposal.spec, dict) else {"categories": proposal.spec}
        return Proposal({**spec, "null": "missing"}, proposal.note)
    return proposal


def propose_listed(values: Mapping[str, str]) -> Proposal:
    """Return what an attribute is proposed to be whose values and labels a code book lists.

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
        return [*spec, UNFILLED_VALUE]
    known = dict(spec) if isinstance(spec, Mapping) else {}
    key = next(key for key in ("categories", "labels", "max", "to") if key in known)
    if key == "labels":
        return {**known, key: {**known[key], "TODO": UNFILLED_VALUE}}
    return {**known, key: _widened(known[key]) if key == "categories" else UNFILLED_VALUE}


def _plain_value(value: str) -> str | int | float:
    """Return a value as a number where it is written as one."""
    number = canonical_value(value)
    return plain(number) if isinstance(number, float) and number_text(number) == value else value


def _unfilled(kind: Kind) -> Proposal:
    ends = {"min": UNFILLED_VALUE, "max": UNFILLED_VALUE}
    if kind is Kind.INTEGER:
        return Proposal(ends)
    if kind is Kind.FLOAT:
        return Proposal({**ends, "bins": UNFILLED_VALUE})
    if kind in DATED:
        return Proposal({"from": UNFILLED_VALUE, "to": UNFILLED_VALUE, "by": "month"})
    if kind is Kind.OTHER:
        return Proposal(None, "a type that no attribute is read from; convert it first, or leave it out")
    return Proposal(UNFILLED_VALUE, "[category, ...], {min, max}, {min, max, bins} or {from, to, by}")


def _of_profile(kind: Kind, profile: Profile) -> Proposal:
    if profile.first is not None and profile.last is not None:
        return _dates(profile.first, profile.last)
    if profile.foreign and profile.distinct > _FEW_INTEGERS:
        return Proposal(None, _FOREIGN[profile.foreign])
    if _names_records(profile) and (not profile.numbers or _run(kind, profile)):
        return Proposal(None, "an identifier or free text: nearly every public record has its own value")
    coded = _is_coded(kind, profile)
    if profile.numbers and not coded:
        proposal, codes = _numbers(profile), _missing_codes(profile)
        if not codes or not isinstance(proposal.spec, dict):
            return proposal
        note = f"{codes} may stand for missing values: if so begin at {number_text(profile.least_other)}"
        return Proposal(proposal.spec, "; ".join(filter(None, (proposal.note, note))))
    if kind is Kind.OTHER:
        return _unfilled(kind)
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
    listed = [value if coded else _plain_value(value) for value in _sorted(spelled.values())]
    spec = {"categories": listed, **cleaned} if cleaned else listed
    if not profile.foreign:
        return Proposal(spec)
    note = f"texts of {_FOREIGN[profile.foreign]}"
    if profile.foreign == "numbers" or profile.distinct == 1:
        return Proposal(spec, note)
    return Proposal(_widened(spec), f"{note}, or add all of the table's period")


def _missing_codes(profile: Profile) -> str:
    """Return the numbers below 0 where they are few and stand apart from all others; else nothing."""
    codes, first = profile.negatives, profile.least_other
    if not codes or profile.high < 0 or any(code != math.floor(code) for code in codes):
        return ""
    # a range that goes on below 0 has no holes there
    held = profile.distinct > 2 * len(codes) and first - codes[0] > len(codes)
    return " and ".join(map(number_text, codes)) if held else ""


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
    if any(is_unreadable(value, canonical_value(value)) for value in values):
        return True  # a domain refuses them, unless texts are compared as they are
    if not any(map(_ZERO.match, values)):
        return False
    far = not profile.numbers or profile.high - profile.low >= _MOST_INTEGERS
    return far or len({canonical_value(value) for value in values}) < len(values)


def _run(kind: Kind, profile: Profile) -> bool:
    """Return whether the values are running numbers, or nearly so."""
    return kind is not Kind.FLOAT and profile.whole and profile.high - profile.low < 1.2 * profile.records


def _numbers(profile: Profile) -> Proposal:
    low, high = profile.low, profile.high
    if profile.whole and abs(low) < 2**53 and abs(high) < 2**53:
        size = int(high) - int(low) + 1
        if profile.distinct <= _FEW_INTEGERS and size > 2 * profile.distinct:
            return Proposal(sorted({int(float(value)) for value in profile.values}))
        if size <= _MOST_INTEGERS:
            return Proposal({"min": int(low), "max": int(high)})
    below, above = profile.central
    if high - low > 5 * (above - below) > 0:
        width = _width((above - below) / (_BINS / 2))
        start, end = math.floor(below / width), math.ceil(above / width)
        edges = [plain(round(step * width, 9)) for step in range(start, end + 1)]
        return Proposal(
            {"edges": [-math.inf, *edges, math.inf]}, "far values are in the open bins at the ends"
        )
    width = _width(max(high - low, 1e-6 * max(1.0, abs(low), abs(high))) / _BINS)
    start, end = math.floor(low / width), math.ceil(high / width)
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


def _sorted(values: Iterable[str]) -> list[str]:
    return sorted(values, key=lambda value: (value.casefold(), value))


def plain(number: float) -> int | float:
    """Return a number as an integer where it is one.

    Examples
    --------
    >>> plain(10.0), plain(0.5)
    (10, 0.5)
    """
    return int(number) if number == math.floor(number) else number
