"""The rules of `matrixdp.domain.rules` for one value, in plain Python."""

from __future__ import annotations

import math
import numbers
import re
from bisect import bisect_right
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import numpy as np

from matrixdp.domain import rules
from matrixdp.domain.attribute import Attribute
from matrixdp.domain.rules import Kind

_MOMENT = re.compile(rules.MOMENT)
_NULLS = ("NAType", "NaTType")
"""The types of the nulls that pandas has besides None and NaN."""


def encode_value(attribute: Attribute, value: object) -> int | None:
    """Return the code of a raw value, or None where it is out of domain.

    Never raises, whatever the value.

    Parameters
    ----------
    attribute : Attribute
        The attribute that the value belongs to.
    value : object
        A raw value.

    Returns
    -------
    int or None
        The code, 0 to ``attribute.raw_size - 1``.

    Examples
    --------
    >>> from matrixdp.domain import Bins, Categorical
    >>> encode_value(Categorical("rooms", ("2", "3")), 3.0)
    1
    >>> encode_value(Bins("income", (0.0, 10.0, 25.0)), "25") is None
    True
    """
    if attribute.null_code is not None and _is_missing(value, attribute.codebook.trim):
        return attribute.raw_code(attribute.null_code)
    kind = _kind(value)
    rule = attribute.rule(kind)
    if rule is None:
        return None
    if rule.missing is not None and _code_of_category(rule.missing, value) is not None:
        return rule.null
    if isinstance(rule, rules.Timestamps):
        return _code_of_hours(rule, _hours(value, rule))
    if isinstance(rule, rules.Categories):
        return _code_of_category(rule, value)
    number = _number(_canonical(value, rule))
    if number is None:
        return None
    if isinstance(rule, rules.Multiples):
        return rule.code(number)
    if isinstance(rule, rules.IntegerRange):
        number = min(max(number, rule.first), rule.last) if rule.clip else number
        whole = math.floor(number)
        if rule.round is None and number != whole:
            return None
        # Exact: the distance to the integer below is a double, or rounds to 1.
        whole += rule.round == "nearest" and number - whole >= 0.5
        return whole - rule.first if rule.first <= whole <= rule.last else None
    edges = rule.edges
    number = max(number, edges[0]) if rule.clip else number
    if (rule.closed and number == edges[-1]) or (rule.clip and number >= edges[-1]):
        return len(edges) - 2
    return bisect_right(edges, number) - 1 if edges[0] <= number < edges[-1] else None


def _code_of_category(rule: rules.Categories, value: object) -> int | None:
    canonical = _canonical(value, rule)
    if canonical is None:
        return None
    if isinstance(rule, rules.Texts):
        # The rule is for texts alone; one that is more than a text may do anything when it is asked.
        return rule.codes.get(rule.cleaned(str.__str__(cast("str", value))))
    if isinstance(rule, rules.Days):
        return rule.codes.get(canonical.strip(rules.WHITESPACE)) if isinstance(canonical, str) else None
    if isinstance(rule, rules.Numbers):
        number = _number(canonical)
        return None if number is None else rule.codes.get(number)
    return rule.codes.get(canonical)


def person_id(value: object) -> str | float | None:
    r"""Return the canonical value by which ids are compared; None for one that names nobody.

    That is its canonical value (`matrixdp.domain.rules`). Values without one name nobody, and nor does a text
    that is empty or holds U+FFFD, which stands in place of what could not be read. Never raises.

    Examples
    --------
    >>> [person_id(value) for value in ("ab-1", " 01", 1, True, "", None, float("nan"), "M\ufffdller")]
    ['ab-1', 1.0, 1.0, 'true', None, None, None, None]
    """
    canonical = _canonical(value)
    if isinstance(canonical, str):
        # One that is more than a text may be equal to any other.
        text = str.__str__(canonical)
        return text if text and "\ufffd" not in text else None
    return canonical if type(canonical) is float else None


def _is_missing(value: object, trim: bool) -> bool:
    """Return whether a value is missing: a null, NaN, or a text that is empty."""
    if value is None or type(value).__name__ in _NULLS:
        return True
    try:
        if isinstance(value, str):
            text = str(value)
            return not (text.strip(rules.WHITESPACE) if trim else text)
        if isinstance(value, np.datetime64):
            return bool(np.isnat(value))
        return isinstance(value, numbers.Real | Decimal) and math.isnan(float(value))
    except Exception:  # noqa: BLE001  whatever an object does when it is asked, it is one record's affair
        return False


def _kind(value: object) -> Kind:
    try:
        if isinstance(value, str):
            return Kind.TEXT
        if isinstance(value, bool | np.bool_):
            return Kind.BOOLEAN
        if isinstance(value, numbers.Real | Decimal):
            return Kind.FLOAT
        if isinstance(value, datetime | np.datetime64):
            return Kind.TIMESTAMP
        if isinstance(value, date):
            return Kind.DATE
    except Exception:  # noqa: BLE001  whatever an object does when it is asked, it is one record's affair
        return Kind.OTHER
    return Kind.OTHER


def _canonical(value: object, reading: rules.ParseRule = rules.AS_IT_STANDS) -> str | float | None:
    """Return the canonical value, of a text that is cleaned before as a rule says."""
    kind = _kind(value)
    held = cast("Any", value)
    try:
        if kind is Kind.TEXT:
            return rules.canonical_value(reading.cleaned(str(held)))
        if kind is Kind.BOOLEAN:
            return "true" if held else "false"
        if kind is Kind.FLOAT:
            number = float(held)
            return number if math.isfinite(number) else None
        if kind is Kind.DATE:
            return str(held.isoformat())
    except Exception:  # noqa: BLE001  as above
        return None
    return None


def _hours(value: object, rule: rules.Timestamps) -> int | None:
    """Return the hour of a moment, as `Timestamps` counts them; None for anything else."""
    try:
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        if isinstance(value, str):
            text = str(value).strip(rules.WHITESPACE)
            if not _MOMENT.fullmatch(text):
                return None
            value = date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
        if not isinstance(value, date):
            return None
        hours = value.toordinal() * 24
        if not isinstance(value, datetime):
            return None if rule.timed else hours
        offset = value.utcoffset()
        time = timedelta(hours=hours + value.hour, minutes=value.minute, seconds=value.second)
        minutes = (time - (offset or timedelta())) // timedelta(minutes=1)
        if offset is not None and rule.offsets is not None:
            minutes += rule.offsets.at(minutes)
        return minutes // 60
    except Exception:  # noqa: BLE001  as above
        return None


def _code_of_hours(rule: rules.Timestamps, hours: int | None) -> int | None:
    if hours is None:
        return None
    if hours - hours % 24 in rule.blank:
        return rule.null
    hours = min(max(hours, rule.first), rule.last) if rule.clip else hours
    if not rule.first <= hours <= rule.last:
        return None
    if rule.edges is not None:
        return bisect_right(rule.edges, hours)
    code = (hours - rule.start) // rule.width
    return code if rule.cycle is None else code % rule.cycle


def _number(canonical: str | float | None) -> float | None:
    return rules.BOOLEANS.get(canonical) if isinstance(canonical, str) else canonical
