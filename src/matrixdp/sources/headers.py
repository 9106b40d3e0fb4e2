"""The header and line ends of CSV files, as far as they can be checked without an engine."""

from __future__ import annotations

import codecs
import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, cast

from matrixdp.errors import SourceError

_DELIMITERS = (",", ";", "\t", "|")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LONGEST = 2**22
"""The most bytes of what names the columns."""
_SAVE = "save the table as CSV UTF-8, or convert it by "
MARK = b"\xef\xbb\xbf"
"""What may stand at the beginning of a text in UTF-8."""


def column_names(file: str, quoted_newlines: bool = False) -> list[str]:
    """Return the names in the first line of a CSV file, by the delimiter that makes the most of it.

    Fields without a name are as many as they are.
    """
    names = read_header(file, None, quoted_newlines)[1]
    twice = next((name for name, times in Counter(names).items() if name.strip() and times > 1), None)
    if twice is not None:
        message = f"the table has several columns named {twice!r}; give each a name of its own"
        raise SourceError(message, code="duplicate")
    return names


def read_header(file: str, wanted: Sequence[str] | None, quoted_newlines: bool) -> tuple[str, list[str]]:
    """Return the delimiter and the names of the columns, from the first line alone.

    The delimiter is the one that gives the most of the wanted names, or of any where none are given.
    """
    head = _read_head(file, quoted_newlines)
    rows: dict[str, list[str]] = {}
    for delimiter in ("\t",) if ".tsv" in Path(file.lower()).suffixes[-2:] else _DELIMITERS:
        lines = BytesIO(head)
        rows[delimiter] = next(read_rows(lines, delimiter, quoted_newlines), [])
        if lines.tell() == _LONGEST:
            raise _fault(file, f"does not end within {_LONGEST} bytes", "check how its lines end")
    best = max(rows, key=lambda own: len(rows[own] if wanted is None else set(rows[own]) & set(wanted)))
    if not rows[best]:
        raise SourceError(f"{file!r} is empty; its first line must name the columns", code="empty")
    return best, rows[best]


def _read_head(file: str, quoted_newlines: bool) -> bytes:
    """Return the first line, and what follows it where quotes may hold line ends.

    Tables are rejected for the first line alone. What follows a carriage return may be records, so no message
    depends on it.
    """
    with opened_text(file) as data:
        head = data.read(_LONGEST) if quoted_newlines else data.readline(_LONGEST)
    names, returned, rest = head[: head.find(b"\n") + 1 or None].partition(b"\r")
    marked = names.startswith(_WIDE_MARKS)
    if marked or b"\0" in names:
        found = "is UTF-16" if marked else "has zero bytes, as UTF-16 has"
        raise _fault(file, found, f"{_SAVE}`iconv -f UTF-16 -t UTF-8 OLD > NEW`")
    if returned and rest != b"\n":
        if rest.strip(b"\r") == b"\n":
            raise _fault(file, "ends in several carriage returns", "convert it by `tr -d '\\r' < OLD > NEW`")
        found = "contains carriage returns, as in files from old Macs, whose lines end in them alone"
        raise _fault(file, found, f"{_SAVE}`tr '\\r' '\\n' < OLD > NEW`")
    if re.fullmatch(rb"(?i)sep=.\n?", names):
        raise _fault(file, "is `sep=`, which Excel alone reads", "delete it by `tail -n +2 OLD > NEW`")
    try:
        # The cut may be inside a character.
        codecs.getincrementaldecoder("utf-8")().decode(names, final=len(head) < _LONGEST)
    except UnicodeDecodeError:
        found = "is not UTF-8 (but Windows-1252, perhaps)"
        raise _fault(file, found, f"{_SAVE}`iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW`") from None
    return head


def _fault(file: str, found: str, cure: str) -> SourceError:
    return SourceError(f"{file!r}: the first line, which names the columns, {found}; {cure}")


@contextmanager
def opened_text(file: str) -> Iterator[IO[bytes]]:
    """Open a file behind the mark that may stand at its beginning."""
    with ExitStack() as stack:
        data = cast("IO[bytes]", stack.enter_context(Path(file).open("rb")))
        if file.lower().endswith(".gz"):
            data = cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=data)))
        if data.read(len(MARK)) != MARK:
            data.seek(0)
        yield data


def read_rows(lines: Iterable[bytes], delimiter: str, quoted_newlines: bool) -> Iterator[list[str]]:
    """Yield the fields of every record, none for an empty line.

    The module csv fails on a field longer than a limit that all threads of the process share.
    """
    # Possessive: nothing that a quote holds is read twice.
    pattern = '{0}(?:(")((?:[^"]++|"")*+)("?))?([^{0}\\r\\n]*+)'
    fields = re.compile(pattern.replace("{0}", re.escape(delimiter)))
    row: list[str] = []
    # The pieces of a field, one for each line that its quote holds.
    held: list[str] = []
    for line in lines:
        text = _without_returns(line.decode(errors="replace"))
        if '"' not in text:
            if held:
                held.append(text)
            else:
                text = text.rstrip("\r\n")
                yield text.split(delimiter) if text else []
            continue
        if not quoted_newlines:
            # Every line is read alone, so that a quote that it leaves open ends with it.
            text = text.rstrip("\r\n")
        for opened, inner, closed, rest in fields.findall(delimiter + '"' * bool(held) + text):
            held.append(inner.replace('""', '"'))
            if quoted_newlines and opened and not closed:
                break
            row.append("".join(held) + rest)
            held = []
        else:
            yield row
            row = []
    if held:
        yield [*row, "".join(held)]


def _without_returns(line: str) -> str:
    if "\r" not in line:
        return line
    end = next(end for end in ("\r\n", "\n", "") if line.endswith(end))
    return line.removesuffix(end).replace("\r", " ") + end
