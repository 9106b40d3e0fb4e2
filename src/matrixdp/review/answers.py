"""Whether the answers on disk are those that follow from a measurement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp.answers.columns import FIGURES, AnswerColumns
from matrixdp.exact.threads import one_blas_thread
from matrixdp.release.release import Release
from matrixdp.release.writing import privacy_mark

__all__ = ["STANDARD_ERRORS", "AnswerFile", "CsvAnswers", "ParquetAnswers", "compare_answers"]

#: How far an estimate, a standard error or the end of an interval may lie from what is computed again: so
#: many standard errors, and so much of itself, which is what sums of floating-point numbers may differ by.
STANDARD_ERRORS, RELATIVE = 1e-6, 1e-12
_ROWS = 1 << 16
_DAMAGED = (pa.ArrowException, OSError, ValueError, KeyError)


@dataclass
class AnswerFile(ABC):
    """A file of answers, read once from the beginning, and the first thing that is wrong with it."""

    path: Path
    schema: pa.Schema
    problems: list[str] = field(default_factory=list)
    _read: int = 0
    _batches: Iterator[pa.RecordBatch] | None = None
    _rest: pa.Table | None = None

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield its rows, in the columns of the schema."""

    def follow(self, expected: pa.RecordBatch) -> None:
        """Compare the next rows with those that follow from the measurement."""
        for start in range(0, expected.num_rows, _ROWS):
            if not self.problems:
                self._compare(expected.slice(start, _ROWS))

    def _compare(self, expected: pa.RecordBatch) -> None:
        try:
            found = self._take(expected.num_rows)
        except _DAMAGED:
            self.problems.append(f"{self.path.name} cannot be read")
            return
        if found.num_rows < expected.num_rows:
            self.problems.append(f"{self.path.name} ends after row {self._read + found.num_rows}")
            return
        wrong = next(_mismatches(found, pa.Table.from_batches([expected]), self._read), None)
        if wrong is not None:
            self.problems.append(f"{self.path.name}, {wrong}")
        self._read += expected.num_rows

    def end(self) -> None:
        """Check that nothing is left."""
        if self.problems:
            return
        try:
            left = self._take(1).num_rows
        except _DAMAGED:
            left = 1
        if left:
            self.problems.append(f"{self.path.name} has more than the {self._read} rows that follow")

    def _take(self, rows: int) -> pa.Table:
        """Return the next rows; fewer at the end."""
        if self._batches is None:
            self._batches = self.batches()
        tables = [] if self._rest is None else [self._rest]
        held = sum(table.num_rows for table in tables)
        while held < rows and (batch := next(self._batches, None)) is not None:
            tables.append(pa.Table.from_batches([batch]).cast(self.schema))
            held += batch.num_rows
        joined = pa.concat_tables(tables) if tables else self.schema.empty_table()
        self._rest = joined.slice(rows)
        taken = joined.slice(0, rows)
        taken.validate(full=True)  # texts may be no UTF-8
        return taken


@final
class ParquetAnswers(AnswerFile):
    """answers.parquet; what it says of itself and its columns must be those of the release."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield its rows."""
        with pq.ParquetFile(self.path, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=_ROWS)

    def check_schema(self, schema: pa.Schema, private: bool) -> None:
        """Compare the columns, and whether it says that the noise was seeded."""
        try:
            found = pq.read_schema(self.path)
        except _DAMAGED:
            self.problems.append(f"{self.path.name} cannot be read")
            return
        # files of earlier versions admit nulls in every column; what is null where a value follows is found
        said, follows = (pa.schema([own.with_nullable(True) for own in one]) for one in (found, schema))
        if not said.equals(follows):
            self.problems.append(f"{self.path.name} has other columns than those that follow")
        elif (found.metadata or {}).get(b"matrixdp") != privacy_mark(private):
            self.problems.append(f"{self.path.name} does not say whether the noise was seeded")


@final
class CsvAnswers(AnswerFile):
    """answers.csv."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield its rows; an empty cell is null, an empty text is not."""
        types = {field.name: field.type for field in self.schema}
        convert = pacsv.ConvertOptions(
            column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        )
        options = pacsv.ParseOptions(newlines_in_values=True)
        with pacsv.open_csv(self.path, parse_options=options, convert_options=convert) as reader:
            if reader.schema.names != self.schema.names:
                raise ValueError("columns")
            yield from reader


def compare_answers(
    release: Release,
    columns: AnswerColumns,
    files: Sequence[AnswerFile],
    progress: Callable[[int, int], None] | None,
) -> list[tuple[float, float]]:
    """Compare files with the answers computed again; return each group's sum and largest of the variances."""
    errors: list[tuple[float, float]] = []

    def seen(variances: NDArray[np.float64]) -> None:
        errors.append((float(variances.sum()), float(variances.max())))

    done = 0
    # as they were made
    with one_blas_thread():
        for batch in release.batches(release.workload.groups, columns, seen):
            for file in files:
                file.follow(batch)
            done += batch.num_rows
            if progress is not None:
                progress(done, release.workload.queries)
    for file in files:
        file.end()
    return errors


def _mismatches(found: pa.Table, expected: pa.Table, first: int) -> Iterator[str]:
    expected = expected.cast(found.schema)
    # null where a model extrapolates
    deviation = np.nan_to_num(expected.column("stddev").to_numpy(zero_copy_only=False))
    for name in found.schema.names:
        one, other = found.column(name), expected.column(name)
        if name in (*FIGURES, "modelled"):
            wrong = _far(one.to_numpy(), other.to_numpy(), deviation)
        else:
            # equal texts may have other dictionaries
            same = one.equals(other) or one.cast(pa.utf8()).equals(other.cast(pa.utf8()))
            wrong = None if same else _unequal(one.to_pylist(), other.to_pylist())
        if wrong is not None:
            says, follows = one[wrong].as_py(), other[wrong].as_py()
            yield f"row {first + wrong}: {name} says {says}; {follows} follows"


def _far(
    found: NDArray[np.float64], expected: NDArray[np.float64], deviation: NDArray[np.float64]
) -> int | None:
    allowed = STANDARD_ERRORS * deviation + RELATIVE * np.abs(expected)
    near = np.abs(found - expected) <= allowed
    wrong = ~(near | (np.isnan(found) & np.isnan(expected)))  # so that what is no number is wrong
    return int(wrong.argmax()) if wrong.any() else None


def _unequal(found: list[Any], expected: list[Any]) -> int:
    return next(i for i, (one, other) in enumerate(zip(found, expected, strict=True)) if one != other)
