"""Releases from their folders: what the record says is held against what the measurement is."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from matrixdp.errors import Path as Place
from matrixdp.errors import SpecificationError, StorageError, format_place
from matrixdp.release.document import RELEASE_VERSION, as_text, promise
from matrixdp.release.leftovers import MEASUREMENT, RECORD, RELEASE_FORMAT, refuse_leftover
from matrixdp.release.measured import measured
from matrixdp.release.written import Written
from matrixdp.storage.documents import TOLERANCE, differences, read_strictly
from matrixdp.storage.files import entry
from matrixdp.storage.saving import load_measurement

__all__ = ["expected_in", "read_release"]

R = TypeVar("R", bound=Written)

#: What stands in the statement and follows from the measurement without any rounding.
_STATED = ("private", "neighbours", "unit", "noise", "cost", "budget", "ledger", "out_of_domain",
           "max_records", "time")  # fmt: skip
_EXACT = re.compile(r"\d{1,3000}(/[1-9]\d{0,2999})?")


def read_release(out: str | os.PathLike[str], make: Callable[..., R]) -> R:
    """Return the release that a folder holds; see `matrixdp.release.load_release`.

    ``make`` is called with the measurement, the workload, the confidence, how the strategy was chosen, and
    the expected number of records.
    """
    folder = Path(out)
    refuse_leftover(folder)
    record = folder / RECORD
    if not os.path.isfile(record):  # noqa: PTH113 - no error where the path is none
        raise StorageError(f"{folder}: found no {RECORD}; expected the folder of a release")
    written = read_strictly(record.read_bytes(), str(record))
    listed, stated, origin = _read(written, record)
    path = folder / MEASUREMENT
    if path.is_file() and entry(path) != listed:
        raise StorageError(f"{path}: does not belong to {RECORD}: its checksum is another")
    measurement, workload = load_measurement(path)
    try:
        release = make(measurement, workload, stated, origin, expected_in(written))
    except SpecificationError as error:
        raise StorageError(f"{record}: damaged: {error}") from None
    for problem in _differences(written, release):
        raise StorageError(f"{record}: damaged or altered: {problem} from {MEASUREMENT}")
    return release


def expected_in(written: Mapping[str, Any]) -> Any:
    """Return how many records a record says were expected."""
    size = written.get("size")
    return size.get("expect") if isinstance(size, dict) else None


def _read(written: Mapping[str, Any], record: Path) -> tuple[object, float, dict[str, Any]]:
    """Return what the record says of the measurement's file, the confidence, and the origin."""
    if written.get("format") != RELEASE_FORMAT:
        raise StorageError(f"{record}: holds something else than the record of a release")
    if written.get("format_version") != RELEASE_VERSION:
        raise StorageError(
            f"{record}: found format version {written.get('format_version')!r:.80}; expected "
            f"{RELEASE_VERSION}, which this matrixdp reads. What {MEASUREMENT} holds can be written as a "
            "release anew at no further cost: see `load_measurement` in the documentation"
        )
    try:
        listed = written["files"][MEASUREMENT]
        named = written["privacy"]["measurement"]
        stated, origin = written["confidence"], written["strategy"]
        if named != {"file": MEASUREMENT, "sha256": listed["sha256"]}:
            raise ValueError("two digests")
        if isinstance(stated, bool) or not isinstance(stated, int | float):
            raise TypeError("confidence")
        return listed, float(stated), origin
    except (ValueError, KeyError, TypeError, OverflowError):
        raise StorageError(f"{record}: damaged: not the record of a release") from None


def _differences(written: Mapping[str, Any], release: Written) -> Iterator[str]:
    """Yield where a record says something else than the measurement."""
    measurement = release.measurement
    authorization = measurement.authorization.as_dict()
    statement, parts = promise(release), measured(measurement)
    follows: dict[Place, object] = {
        ("private",): release.private,
        ("domain",): release.domain.to_spec(),
        ("queries",): release.workload.queries,
        **{("privacy", name): statement[name] for name in _STATED},
        **{("authorization", name): value for name, value in authorization.items() if name != "note"},
        **{("strategy", name): value for name, value in parts.items() if name != "split"},
    }
    for place, value in follows.items():
        found = _at(written, place)
        yield from differences(found, json.loads(as_text({place[-1]: value})), place[:-1], exact=True)
    place = ("privacy", "guarantees")
    if not _as_strong(_at(written, place).get("guarantees"), release.statement.guarantees):
        yield f"{format_place(place)}: others follow"


def _at(written: Any, place: Place) -> dict[str | int, Any]:
    """Return what stands at a place, by the last key of it alone; nothing where there is no such place."""
    *outer, last = place
    for key in outer:
        written = written.get(key) if isinstance(written, dict) else None
    return {last: written[last]} if isinstance(written, dict) and last in written else {}


def _as_strong(found: Any, expected: list[dict[str, Any]]) -> bool:
    """Return whether guarantees are those that follow, up to how their bounds were rounded."""
    if not isinstance(found, list) or len(found) != len(expected):
        return False
    return all(
        isinstance(one, dict) and _alike(one, other) for one, other in zip(found, expected, strict=True)
    )


def _alike(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    figures = ("parameters", "exact")
    if {k: v for k, v in found.items() if k not in figures} != {"definition": expected["definition"]}:
        return False
    for name in figures:
        one, other = found.get(name), expected[name]
        if not isinstance(one, dict) or set(one) != set(other):
            return False
        if not all(_near(one[key], other[key]) for key in other):
            return False
    return True


def _near(found: Any, expected: float | str) -> bool:
    if isinstance(expected, str):
        if not isinstance(found, str) or _EXACT.fullmatch(found) is None:
            return False
        one, other = Fraction(found), Fraction(expected)
        return abs(one - other) <= Fraction(TOLERANCE) * other
    if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) > sys.float_info.max:
        return False
    return math.isclose(found, expected, rel_tol=TOLERANCE)
