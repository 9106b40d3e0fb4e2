"""Public files with values: lists of categories, and tables that say which value stands for which."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from matrixdp.errors import DomainError

__all__ = ["PublicFile", "read_file"]

_LARGEST = 64 * 2**20
_KINDS = "a CSV file (.csv) with a header, or a text file (.txt) of one value a line"


@final
@dataclass(frozen=True)
class PublicFile:
    """What a public file says.

    Attributes
    ----------
    header : tuple of str
        The names of its columns; empty for a text file, which has one column.
    rows : tuple of tuple of str
        Its records, each of as many texts as there are columns.
    sha256 : str
        The digest of its bytes.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sha256: str

    def values(self) -> tuple[str, ...]:
        """Return the values of a file of one column."""
        if len(self.header) > 1:
            found = f"a file with the columns {', '.join(self.header)}"
            raise DomainError.at((), found, "a file of one column, the values")
        return tuple(row[0] for row in self.rows)

    def pairs(self) -> dict[str, str]:
        """Return for each value of the first column what the second says of it, in a file of two."""
        if len(self.header) != 2:
            found = f"a file with {len(self.header) or 1} column{'s' * (len(self.header) > 1)}"
            raise DomainError.at((), found, "a CSV file of two columns: the value, and what it counts as")
        return {row[0]: row[1] for row in self._once()}

    def groups(self) -> dict[str, dict[str, list[str]]]:
        """Return for each column but the first its values, each with those of the first that stand beside."""
        if len(self.header) < 2:
            raise DomainError.at(
                (), "a file with 1 column", "a CSV file: the value, then a column for each level"
            )
        found: dict[str, dict[str, list[str]]] = {name: {} for name in self.header[1:]}
        for row in self._once():
            for name, value in zip(self.header[1:], row[1:], strict=True):
                found[name].setdefault(value, []).append(row[0])
        return found

    def _once(self) -> tuple[tuple[str, ...], ...]:
        """Return the records, each of another value in the first column."""
        seen: set[str] = set()
        for line, row in enumerate(self.rows, start=2):
            if row[0] in seen:
                raise DomainError.at((f"record {line}",), f"{row[0]!r} a second time", "each value once")
            seen.add(row[0])
        return self.rows


def read_file(path: str | os.PathLike[str]) -> PublicFile:
    r"""Return what a public file of values says.

    Parameters
    ----------
    path : path
        Of a CSV file, whose first record names its columns, or of a text file of one value a line. Both are
        UTF-8. Values are taken as they stand; empty lines are left out.

    Raises
    ------
    DomainError
        If there is no such file, it is of another kind or too large, or a record has too few or too many
        values.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "codes.txt").write_text("AA\nDL\n")
    ...     read_file(Path(folder, "codes.txt")).values()
    ('AA', 'DL')
    """
    file = Path(path)
    kind = file.suffix.lower()
    if kind not in (".csv", ".txt"):
        raise DomainError.at((), f"{file.name!r}", _KINDS)
    try:
        if file.stat().st_size > _LARGEST:
            raise DomainError.at((), f"{file.name!r} of more than 64 MiB", "a smaller file")
        content = file.read_bytes()
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DomainError.at((), f"{file.name!r}, which is not UTF-8", "a file in UTF-8") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "a name that is not a path"
        raise DomainError.at((), f"{file.name!r}, which cannot be read ({reason})", _KINDS) from None
    digest = hashlib.sha256(content).hexdigest()
    if kind == ".txt":
        return PublicFile((), tuple((line,) for line in text.splitlines() if line.strip()), digest)
    header, rows = _records(text, file.name)
    return PublicFile(header, rows, digest)


def _records(text: str, name: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    try:
        records = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        raise DomainError.at((), f"{name!r}, which is no CSV ({error})", _KINDS) from None
    if len(records) < 2:
        raise DomainError.at((), f"{name!r} with {len(records)} records", "a header and at least one record")
    header = records[0]
    if len(set(header)) < len(header) or "" in header:
        raise DomainError.at(
            (), f"{name!r} with the header {', '.join(header)}", "a name for each column, once"
        )
    for line, row in enumerate(records[1:], start=2):
        if len(row) != len(header):
            found = f"{len(row)} value{'s' * (len(row) != 1)} in record {line} of {name!r}"
            raise DomainError.at((), found, f"{len(header)}, one for each column of its header")
    return header, tuple(records[1:])


def is_file(written: object) -> bool:
    """Return whether what was written is the path of a file, and no text."""
    return isinstance(written, os.PathLike) and not isinstance(written, Mapping)
