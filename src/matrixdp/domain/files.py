"""Public files with values: lists of categories, and tables that say which value stands for which."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from matrixdp.errors import DomainError, within
from matrixdp.forms import Given, describe_value

__all__ = ["PublicFile", "inlined", "read_file", "with_paths"]

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
        self.check_two()
        return {row[0]: row[1] for row in self._once()}

    def check_two(self) -> None:
        """Check that the file has two columns."""
        if len(self.header) != 2:
            found = f"a file with {len(self.header) or 1} column{'s' * (len(self.header) > 1)}"
            raise DomainError.at((), found, "a CSV file of two columns: the value, and what it counts as")

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
    content = _content(file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DomainError.at((), f"{file.name!r}, which is not UTF-8", "a file in UTF-8") from None
    digest = hashlib.sha256(content).hexdigest()
    if kind == ".txt":
        return PublicFile((), tuple((line,) for line in _lines(text)), digest)
    header, rows = _records(text, file.name)
    return PublicFile(header, rows, digest)


def _content(file: Path) -> bytes:
    if not os.path.isfile(file):  # noqa: PTH113 - no error where the path is none
        raise DomainError.at((), f"{file.name!r}, which is no file", _KINDS)
    try:
        content = file.read_bytes() if file.stat().st_size <= _LARGEST else None
    except OSError as error:
        found = f"{file.name!r}, which cannot be read ({error.strerror})"
        raise DomainError.at((), found, _KINDS) from None
    if content is None:
        raise DomainError.at((), f"{file.name!r} of more than 64 MiB", "a smaller file")
    return content


def _lines(text: str) -> list[str]:
    return [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


def _records(text: str, name: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    try:
        records = [tuple(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        raise DomainError.at((), f"{name!r}, which is no CSV ({error})", _KINDS) from None
    if len(records) < 2:
        raise DomainError.at(
            (),
            f"{name!r} with {len(records)} record{'s' * (len(records) != 1)}",
            "a header and at least one record",
        )
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


def inlined(spec: Mapping[object, object]) -> dict[object, object]:
    """Return what describes an attribute with the contents of files in the place of their paths.

    The digests of the files are added under ``sha256``; one that is given there already must be the same.

    Raises
    ------
    DomainError
        If a file cannot be read, does not have the columns that are needed, or has another digest.
    """
    found, digests = dict(spec), {}
    for key, read in _READERS.items():
        value = found.get(key)
        if isinstance(value, os.PathLike):
            with within(key):
                file = read_file(value)
                found[key], digests[key] = read(file), file.sha256
    levels = found.get("levels")
    if isinstance(levels, Mapping):
        read_levels = dict(levels)
        for name, value in levels.items():
            if isinstance(value, os.PathLike):
                with within("levels", str(name)):
                    file = read_file(value)
                    read_levels[name], digests[f"levels.{name}"] = _level(file), file.sha256
        found["levels"] = read_levels
    if digests:
        given = found.get("sha256", {})
        for key, digest in digests.items():
            if isinstance(given, Mapping) and given.get(key, digest) != digest:
                raise DomainError.at(
                    ("sha256", key), describe_value(given[key]), f"{digest}, that of the file"
                )
        found["sha256"] = {**given, **digests} if isinstance(given, Mapping) else given
    return found


def _level(file: PublicFile) -> dict[str, list[str]]:
    file.check_two()
    [groups] = file.groups().values()
    return groups


_READERS: Mapping[str, Callable[[PublicFile], object]] = {
    "categories": lambda file: list(file.values()),
    "map": PublicFile.pairs,
    "levels": PublicFile.groups,
}
"""How the keys that may have the path of a file are read from it."""


def with_paths(spec: object, given: Given) -> object:
    """Return what describes an attribute with paths in the place of names of files, relative to a folder."""
    if not isinstance(spec, Mapping):
        return spec
    found = dict(spec)
    for key in _READERS:
        if isinstance(found.get(key), str):
            found[key] = given(found[key])
    if isinstance(found.get("levels"), Mapping):
        levels = found["levels"].items()
        found["levels"] = {name: given(value) if isinstance(value, str) else value for name, value in levels}
    if isinstance(found.get("columns"), Mapping):
        found["columns"] = {name: with_paths(own, given) for name, own in found["columns"].items()}
    return found
