"""Values that readers stumble over, and attributes of every kind that they may stumble for."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from matrixdp.domain import Domain

__all__ = ["HOSTILE_OBJECTS", "HOSTILE_TEXTS", "NEIGHBOURS_DOMAIN"]

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
        "month": {"from": "2020-01-31", "to": "2020-02-01", "by": "month"},
    }
)
"""Attributes of every kind, with few enough cells that all of them can be counted together."""

HOSTILE_TEXTS = (
    '"', '""', '"x', 'x"', "';--", "\\N", ",", ";", "\t", "|", "a,b", "#", "\x00", "3\x00", "\x1a",
    "\x1b[2J", "\u2028", "\u202e3", "\ufffd", "\U0001f600", "a\u0301\u0323", "ﬀ", "İ", "1e999999999",
    "-1e-999999999", "3e0000", "0e400", "x" * 100_000, "0" * 100_000, "3." + "0" * 400, "#N/A", "NaT",
    "-nan", "2020-02-30", "2020-01-31T00:00:00", "2020-01-31 00:00:00+14:00", "31/01/2020",
    "100000000-01-01", "12:00", "0x1F", "0x1p3", "1/2", "1,000.5", "１", "%s{0}", "=1+2", "3\r",
)  # fmt: skip
"""Texts besides those of `HOSTILE_VALUES` that mean something to some program."""


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
"""Python objects that a column of objects may hold, some of which raise whatever is asked of them."""
