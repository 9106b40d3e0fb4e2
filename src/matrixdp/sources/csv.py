"""CSV files, read so that no record can raise an error or change how another one is read.

A record is a line: it ends at a line feed, with a carriage return before it or not, and a quote that is still
open there ends with it. A carriage return elsewhere is a space. Bytes that are not UTF-8 become U+FFFD. A
record that is too short ends in nulls, fields beyond the header are ignored, and empty lines are no records.
What a line has beyond 256 MiB is ignored, and so is what a field has beyond as many characters.

Where quotes may hold line ends, one that a record does not close takes what follows into it, as in every
reader of CSV, so that is read only where the user says so, and the statement of the release tells it.

No reader of CSV keeps to that for all files, but all of them do for lines that have as many fields as the
header, no stray carriage returns, and no quotes but those around whole fields. So a file is read by blocks of
lines: PyArrow parses those that hold nothing else, and the rest are halved until little is left, which is
parsed here line by line. What is read is the same either way; only the time tells which way was taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from typing import IO, Any, final

import numpy as np
import pyarrow.csv as arrow_csv

from matrixdp.sources.columns import LISTED, arrow, listed, stream
from matrixdp.sources.headers import MARK, opened_text, read_header, read_rows

_BATCH = 2**16
_BLOCK = 2**24
_LONGEST = 2**28
"""The most bytes of a line, and characters of a field, that are read; not less than a block."""
_LEAST_BLOCK = 2**15
_PARSED = arrow.dictionary(arrow.int32(), arrow.string())


def read_texts(
    files: Sequence[str], wanted: Sequence[str], quoted_newlines: bool, placed: bool = False
) -> tuple[list[list[str]], dict[str, Any]]:
    """Return the headers of CSV files and one stream of their records, by the first, each column `LISTED`.

    Records that are `placed` have the place of each as a last column.
    """
    found = [read_header(file, wanted, quoted_newlines) for file in files]
    columns = chain.from_iterable(
        _read(file, _Layout(delimiter, header, wanted), quoted_newlines)
        for file, (delimiter, header) in zip(files, found, strict=True)
    )
    streams = {files[0]: stream([LISTED] * len(wanted), [(0, columns)], placed)}
    return [header for _, header in found], streams


@final
@dataclass(frozen=True)
class _Layout:
    """How the lines of a file are divided, and which fields are wanted."""

    delimiter: str
    header: Sequence[str]
    wanted: Sequence[str]

    @property
    def positions(self) -> list[int]:
        """The place of each wanted field; that of one which is missing is behind all fields."""
        header = self.header
        return [header.index(name) if name in header else len(header) for name in self.wanted]

    def columns(self, rows: Iterable[list[str]]) -> Iterator[list[Any]]:
        """Yield the wanted columns of many records at a time."""
        rows = iter(rows)
        while some := list(islice(rows, _BATCH)):
            kept = [row for row in some if row]
            yield [listed(arrow.array(_fields(kept, at), arrow.large_string())) for at in self.positions]

    def quotes_whole_fields(self, block: bytes) -> bool:
        """Return whether all quotes are around whole fields, which hold neither quotes nor line ends."""
        held = np.frombuffer(block, np.uint8)
        places = np.flatnonzero(held == ord('"'))
        if len(places) % 2:
            return False
        opened, closed = places[::2], places[1::2]
        before, after = held[opened[opened > 0] - 1], held[closed[closed < len(held) - 1] + 1]
        ends = [ord(self.delimiter), ord("\n")]
        # A carriage return stands before a line end here.
        if not (np.isin(before, ends).all() and np.isin(after, [*ends, ord("\r")]).all()):
            return False
        marks = held[np.sort(np.concatenate((places, np.flatnonzero(held == ord("\n")))))] == ord('"')
        return not (np.cumsum(marks)[~marks] % 2).any()

    def parse(self, block: bytes) -> Iterator[list[Any]] | None:
        """Yield the wanted columns of a block of lines, or return None where its lines are not plain."""
        # PyArrow would not cut a field, and parses less than 2^31 bytes at once.
        if len(block) > _LONGEST or block.startswith(MARK):
            return None
        if block.count(b"\r") != block.count(b"\r\n"):
            return None
        quoted = b'"' in block
        if quoted and not self.quotes_whole_fields(block):
            return None
        names = [str(position) for position in range(len(self.header) + 1)]
        wanted = [names[position] for position in self.positions]
        try:
            table = arrow_csv.read_csv(
                BytesIO(block),
                arrow_csv.ReadOptions(column_names=names[:-1], block_size=len(block) + 1),
                arrow_csv.ParseOptions(
                    delimiter=self.delimiter, quote_char='"' if quoted else False, double_quote=False
                ),
                arrow_csv.ConvertOptions(
                    check_utf8=False, column_types=dict.fromkeys(wanted, _PARSED), include_columns=wanted
                ),
            )
        except arrow.ArrowInvalid:
            return None
        return ([listed(column) for column in batch.columns] for batch in table.to_batches())


def _fields(rows: Iterable[list[str]], at: int) -> list[str | None]:
    return [row[at][:_LONGEST] if at < len(row) else None for row in rows]


def _read(file: str, layout: _Layout, quoted_newlines: bool) -> Iterator[list[Any]]:
    """Yield the wanted columns of a file, many records at a time."""
    with opened_text(file) as data:
        blocks, at_header = _blocks(data, None if quoted_newlines else _LONGEST), True
        for block in blocks:
            if quoted_newlines and b'"' in block and not layout.quotes_whole_fields(block):
                # From here on a record may be several lines.
                lines = chain.from_iterable(map(BytesIO, chain((block,), blocks)))
                rows = read_rows(lines, layout.delimiter, quoted_newlines)
                yield from layout.columns(islice(rows, int(at_header), None))
            else:
                yield from _halved(block.partition(b"\n")[2] if at_header else block, layout)
            at_header = False


def _blocks(data: IO[bytes], longest: int | None) -> Iterator[bytes]:
    """Yield blocks of whole lines, each cut where it is longer than that."""
    begun = bytearray()
    while read := data.read(_BLOCK):
        line, newline, rest = read.partition(b"\n")
        begun += line if longest is None else line[: longest - len(begun)]
        if newline:
            end = rest.rfind(b"\n") + 1
            yield b"".join((begun, newline, rest[:end]))
            begun = bytearray(rest[end:])
    if begun:
        yield bytes(begun)


def _halved(block: bytes, layout: _Layout) -> Iterator[list[Any]]:
    """Yield the wanted columns of a block of lines, each of which is a record."""
    parsed = layout.parse(block)
    if parsed is not None:
        yield from parsed
        return
    middle = block.find(b"\n", len(block) // 2) + 1
    if len(block) <= _LEAST_BLOCK or middle in (0, len(block)):
        yield from layout.columns(read_rows(BytesIO(block), layout.delimiter, quoted_newlines=False))
        return
    yield from _halved(block[:middle], layout)
    yield from _halved(block[middle:], layout)
