"""CSV files, read so that no record can raise an error or change how another one is read.

A record ends at a line feed, with a carriage return before it or not, outside double quotes; a carriage
return elsewhere is a space. Bytes that are not UTF-8 become U+FFFD. A record that is too short ends in nulls,
fields beyond the header are ignored, empty lines are no records, and a quote that opens a field and is never
closed takes the rest of the file into it, as in every reader of CSV. DuckDB's own reader is not used:
depending on the records it raises errors, or lets a stray quote in one record swallow those that follow.
"""

import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

from matrixdp.errors import SourceError

__all__ = ["read_texts"]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""

_DELIMITERS = (",", ";", "\t", "|")
_LONGEST_FIELD = 2**31 - 1
_BATCH = 2**16


def read_texts(files: Sequence[str], wanted: Sequence[str]) -> tuple[list[list[str]], Any]:
    """Return the headers of CSV files and their records as a stream."""
    found = [_header(file, wanted) for file in files]
    schema = arrow.schema([(f"a{index}", arrow.large_string()) for index in range(len(wanted))])
    batches = (
        batch
        for file, (delimiter, header) in zip(files, found, strict=True)
        for batch in _batches(file, delimiter, header, wanted, schema)
    )
    return [header for _, header in found], arrow.RecordBatchReader.from_batches(schema, batches)


def _batches(
    file: str, delimiter: str, header: Sequence[str], wanted: Sequence[str], schema: Any
) -> Iterator[Any]:
    positions = [header.index(name) if name in header else len(header) for name in wanted]
    with _records(file, delimiter) as records:
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


def _header(file: str, wanted: Sequence[str]) -> tuple[str, list[str]]:
    """Return the delimiter and the names of the columns, from the first line alone."""
    best: tuple[str, list[str]] | None = None
    for delimiter in ("\t",) if ".tsv" in Path(file.lower()).suffixes[-2:] else _DELIMITERS:
        with _records(file, delimiter) as records:
            names = next(records, [])
        if best is None or len(set(names) & set(wanted)) > len(set(best[1]) & set(wanted)):
            best = delimiter, names
    if best is None or not best[1]:
        raise SourceError(f"{file!r} is empty; its first line must name the columns")
    return best


@contextmanager
def _records(file: str, delimiter: str) -> Iterator[Iterator[list[str]]]:
    with ExitStack() as stack:
        data = cast("IO[bytes]", stack.enter_context(Path(file).open("rb")))
        if file.lower().endswith(".gz"):
            data = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=data)))
        text = stack.enter_context(TextIOWrapper(data, encoding="utf-8-sig", errors="replace", newline="\n"))
        # The default limit of 128 KiB would end a long field in the middle, and read the rest as new records.
        previous = csv.field_size_limit(_LONGEST_FIELD)
        stack.callback(csv.field_size_limit, previous)
        yield csv.reader(map(_without_returns, text), delimiter=delimiter)


def _without_returns(line: str) -> str:
    if "\r" not in line:
        return line
    end = next(end for end in ("\r\n", "\n", "") if line.endswith(end))
    return line.removesuffix(end).replace("\r", " ") + end
