"""The answers of a release as a page shows them: those that were published, in the digits that are known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp.answers.columns import FIGURES, AnswerColumns
from matrixdp.answers.titles import head
from matrixdp.exact.threads import one_blas_thread
from matrixdp.queries import DenseGroup, Group, ProductGroup
from matrixdp.release.leftovers import ANSWERS
from matrixdp.release.release import Release
from matrixdp.review.markdown import printable

__all__ = ["Answers", "GroupAnswers", "digits_of", "figure"]

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """The answers of one group.

    Attributes
    ----------
    heads : tuple of str
        The attributes that are asked about, or ``query``.
    table : pyarrow.Table
        A row for each query: a column for each head, then the figures.
    """

    heads: tuple[str, ...]
    table: pa.Table

    @property
    def estimates(self) -> Array:
        """The estimates."""
        return self._figure("estimate")

    @property
    def stddevs(self) -> Array:
        """Their standard errors."""
        return self._figure("stddev")

    @property
    def halves(self) -> Array:
        """Half the lengths of their intervals."""
        return (self._figure("upper") - self._figure("lower")) / 2

    def _figure(self, name: str) -> Array:
        return np.asarray(self.table.column(name).to_numpy(), dtype=np.float64)

    def rows(self, most: int) -> Iterator[list[str]]:
        """Yield the first rows as text: what was asked, and the figures in the digits that are known."""
        shown = self.table.slice(0, most)
        digits = digits_of(float(self.halves.min()))
        texts = [
            ["all" if text is None else printable(text) for text in shown.column(place).to_pylist()]
            for place in range(len(self.heads))
        ]
        numbers = [
            [figure(value, digits + (name == "stddev")) for value in shown.column(name).to_pylist()]
            for name in FIGURES
        ]
        for row in zip(*texts, *numbers, strict=True):
            yield list(row)


def digits_of(half: float) -> int:
    """Return how many digits after the point an estimate has whose interval has half a length.

    The half of the smallest interval has two digits that are not 0.

    Examples
    --------
    >>> digits_of(49.2), digits_of(4.9), digits_of(0.049), digits_of(0.0)
    (0, 1, 3, 0)
    """
    return max(0, 1 - math.floor(math.log10(half))) if half > 0 else 0


def figure(value: float, digits: int) -> str:
    """Return a number with so many digits after the point, which is never minus zero.

    Examples
    --------
    >>> figure(-0.04, 1), figure(20200.46, 0)
    ('0.0', '20,200')
    """
    return f"{round(value, digits) + 0.0:,.{digits}f}"


@final
class Answers:
    """The answers that a folder publishes; where it holds the measurement alone, what follows from that."""

    def __init__(self, folder: Path, release: Release) -> None:
        self._release = release
        path = folder / ANSWERS
        self._file = pq.ParquetFile(path) if path.is_file() else None
        groups = release.workload.groups
        self._first = np.cumsum([0, *(group.queries for group in groups)])
        self._columns = AnswerColumns(release.domain, groups).columns

    def group(self, place: int) -> GroupAnswers:
        """Return the answers of the group at a place of the workload."""
        group = self._release.workload.groups[place]
        names = _asked(group)
        heads = names
        if isinstance(group, ProductGroup):
            heads = tuple(head(self._release.domain[name], (group.sets[name],)) for name in names)
        if self._file is None:
            own = AnswerColumns(self._release.domain, [group])
            with one_blas_thread():
                batches = list(self._release.batches([group], own))
            columns = [name if name == "query" else own.columns[name] for name in names]
            return GroupAnswers(heads, pa.Table.from_batches(batches).select([*columns, *FIGURES]))
        columns = [name if name == "query" else self._columns[name] for name in names]
        first, stop = int(self._first[place]), int(self._first[place + 1])
        return GroupAnswers(heads, self._read(first, stop, [*columns, *FIGURES]))

    def _read(self, first: int, stop: int, columns: Sequence[str]) -> pa.Table:
        """Return some rows and columns of the file; whole row groups are read, one at a time."""
        file: Any = self._file
        found, before = [], 0
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            start, end = max(first - before, 0), min(stop - before, rows)
            if start < end:
                found.append(file.read_row_group(number, columns=list(columns)).slice(start, end - start))
            before += rows
        return pa.concat_tables(found).select(list(columns))


def _asked(group: Group) -> tuple[str, ...]:
    """Return what the rows of a group differ in: attributes that are asked about, or the text of a query."""
    if isinstance(group, DenseGroup):
        return ("query",)
    from matrixdp.queries import Total

    pairs = zip(group.attributes, group.predicates, strict=True)
    return tuple(name for name, predicates in pairs if not isinstance(predicates, Total))
