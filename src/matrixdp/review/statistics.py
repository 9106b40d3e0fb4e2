"""Whether the statistics on disk are those that follow from a measurement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.release.leftovers import STATISTICS
from matrixdp.release.release import Release
from matrixdp.release.writing import privacy_mark
from matrixdp.review.answers import STANDARD_ERRORS
from matrixdp.review.finding import Finding, settled
from matrixdp.statistics import statistics_table

__all__ = ["check_statistics", "earlier_heads"]

Array = NDArray[np.float64]

#: What figures may differ by that are computed again: so much of their interval, and so much of themselves.
_OF_INTERVAL, _OF_ITSELF = STANDARD_ERRORS, 1e-9
_DAMAGED = (pa.ArrowException, OSError, ValueError, KeyError)


def check_statistics(folder: Path, release: Release, there: bool) -> Iterator[Finding]:
    """Yield whether the file of statistics holds those that follow, if the workload asks for any."""
    follow = any(one.table is not None for one in release.asked)
    if follow != there:
        wrong = f"{STATISTICS} is {'missing' if follow else 'there, and nothing is asked that it could hold'}"
        yield Finding("statistics", "failed", wrong)
    elif follow:
        count = sum(one.table is not None for one in release.asked)
        words = f"{count} table{'s follow' if count != 1 else ' follows'} from the measurement"
        yield from settled("statistics", words, _differences(folder / STATISTICS, release))


def earlier_heads(names: list[str], domain: Domain) -> list[str]:
    """Return what earlier versions called columns: those of levels had the names of their attributes."""
    return [domain.levels[name].name if name in domain.levels else name for name in names]


def _differences(path: Path, release: Release) -> Iterator[str]:
    expected = statistics_table(release.asked)
    try:
        found = pq.read_table(path)
        found.validate(full=True)
    except _DAMAGED:
        yield f"{path.name} cannot be read"
        return
    if (found.schema.metadata or {}).get(b"matrixdp") != privacy_mark(release.private):
        yield f"{path.name} does not say whether the noise was seeded"
    if found.column_names == earlier_heads(expected.column_names, release.workload.domain):
        found = found.rename_columns(expected.column_names)
    if not found.schema.equals(expected.schema, check_metadata=False):
        yield f"{path.name} has other columns than those that follow"
        return
    if found.num_rows != expected.num_rows:
        yield f"{path.name} has {found.num_rows} rows; {expected.num_rows} follow"
        return
    for name in expected.column_names:
        says, follows = found.column(name), expected.column(name)
        if pa.types.is_floating(follows.type):
            wrong = _far(_numbers(says), _numbers(follows), _widths(expected, name))
        else:
            pairs = zip(says.to_pylist(), follows.to_pylist(), strict=True)
            wrong = np.array([one != other for one, other in pairs])
        for row in np.flatnonzero(wrong)[:1]:
            place = int(row)
            yield f"{path.name}, row {place}: {name} says {says[place]}; {follows[place]} follows"


def _numbers(column: Any) -> Array:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=float)


def _widths(expected: pa.Table, name: str) -> Array:
    """Return the lengths of the intervals that a column belongs to; 0 where they have no end."""
    start = name.removesuffix("estimate").removesuffix("stddev").removesuffix("lower").removesuffix("upper")
    ends = [f"{start}{end}" for end in ("lower", "upper")]
    if not set(ends) <= set(expected.column_names):
        start = f"{name}_"
        ends = [f"{start}{end}" for end in ("lower", "upper")]
    if not all(
        one in expected.column_names and pa.types.is_floating(expected.field(one).type) for one in ends
    ):
        return np.zeros(expected.num_rows)
    with np.errstate(invalid="ignore"):
        widths = _numbers(expected.column(ends[1])) - _numbers(expected.column(ends[0]))
    return np.where(np.isfinite(widths), widths, 0.0)


def _far(found: Array, expected: Array, widths: Array) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        near = np.abs(found - expected) <= _OF_INTERVAL * widths + _OF_ITSELF * np.abs(expected)
    return np.asarray(~(near | (found == expected) | (np.isnan(found) & np.isnan(expected))))
