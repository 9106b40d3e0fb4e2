"""CSV files, read so that no record can raise an error or change how another one is read.

A record is a line: it ends at a line feed, with a carriage return before it or not, and a quote that is still
open there ends with it. A carriage return elsewhere is a space. Bytes that are not UTF-8 become U+FFFD. A
record that is too short ends in nulls, fields beyond the header are ignored, and empty lines are no records.
Where quotes may hold line ends, one that a record does not close takes what follows into it, as in every
reader of CSV, so that is read only where the user says so, and the statement of the release tells it.
DuckDB's own reader is not used: depending on the records it raises errors, or lets a stray quote in one
record swallow those that follow.
"""

import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from itertools import islice, repeat
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from matrixdp.errors import SourceError
from matrixdp.sources.columns import PLACE, numbered

__all__ = ["read_texts"]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""

_DELIMITERS = (",", ";", "\t", "|")
_LONGEST_FIELD = 2**31 - 1
_BATCH = 2**16


def read_texts(
    files: Sequence[str], wanted: Sequence[str], quoted_newlines: bool, placed: bool = False
) -> tuple[list[list[str]], Any]:
    """Return the headers of CSV files and their records as a stream, `placed` with the place of each."""
    found = [_header(file, wanted, quoted_newlines) for file in files]
    schema = arrow.schema([(f"a{index}", arrow.large_string()) for index in range(len(wanted))])
    batches = (
        batch
        for file, (delimiter, header) in zip(files, found, strict=True)
        for batch in _batches(file, delimiter, header, wanted, schema, quoted_newlines)
    )
    headers = [header for _, header in found]
    if placed:
        return headers, arrow.RecordBatchReader.from_batches(schema.append(PLACE), numbered(batches))
    return headers, arrow.RecordBatchReader.from_batches(schema, batches)


def _batches(
    file: str,
    delimiter: str,
    header: Sequence[str],
    wanted: Sequence[str],
    schema: Any,
    quoted_newlines: bool,
) -> Iterator[Any]:
    positions = [header.index(name) if name in header else len(header) for name in wanted]
    with _records(file, delimiter, quoted_newlines) as records:
        next(records, None)
        while rows := list(islice(records, _BATCH)):
            rows = [row for row in rows if row]
            columns = [
                arrow.array(
                    [row[position] if position < len(row) else None for row in rows],
                    type=arrow.large_string(),
                )
                for position in positions
            ]
            yield arrow.record_batch(columns, schema=schema)


def _header(file: str, wanted: Sequence[str], quoted_newlines: bool) -> tuple[str, list[str]]:
    """Return the delimiter and the names of the columns, from the first line alone."""
    best: tuple[str, list[str]] | None = None
    for delimiter in ("\t",) if ".tsv" in Path(file.lower()).suffixes[-2:] else _DELIMITERS:
        with _records(file, delimiter, quoted_newlines) as records:
            names = next(records, [])
        if best is None or len(set(names) & set(wanted)) > len(set(best[1]) & set(wanted)):
            best = delimiter, names
    if best is None or not best[1]:
        raise SourceError(f"{file!r} is empty; its first line must name the columns")
    return best


@contextmanager
def _records(file: str, delimiter: str, quoted_newlines: bool) -> Iterator[Iterator[list[str]]]:
    with ExitStack() as stack:
        data = cast("IO[bytes]", stack.enter_context(Path(file).open("rb")))
        if file.lower().endswith(".gz"):
            data = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=data)))
        text = stack.enter_context(TextIOWrapper(data, encoding="utf-8-sig", errors="replace", newline="\n"))
        # The default limit of 128 KiB would end a long field in the middle, and read the rest as new records.
        previous = csv.field_size_limit(_LONGEST_FIELD)
        stack.callback(csv.field_size_limit, previous)
        lines = map(_without_returns, text)
        yield csv.reader(lines, delimiter=delimiter) if quoted_newlines else _lines(lines, delimiter)


def _lines(lines: Iterator[str], delimiter: str) -> Iterator[list[str]]:
    """Read every line alone, so that a quote that it leaves open ends with it."""
    for line in map(str.rstrip, lines, repeat("\r\n")):
        if '"' in line:
            yield next(csv.reader((line,), delimiter=delimiter))
        else:
            yield line.split(delimiter) if line else []


def _without_returns(line: str) -> str:
    if "\r" not in line:
        return line
    end = next(end for end in ("\r\n", "\n", "") if line.endswith(end))
    return line.removesuffix(end).replace("\r", " ") + end
