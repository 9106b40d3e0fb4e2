"""Formats of files: one table of their endings, what reads them, and what the guarantee assumes of them.

A new format is one call of `register_format`: paths and addresses read it, and messages and help list it. An
installed package that has an entry point in the group ``matrixdp.formats``, named as the format, whose value
is the module that calls it, needs no import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any, final

from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.plugins import load_offered, offered
from matrixdp.sources.base import INFERRED, QUOTES_CLOSED
from matrixdp.sources.headers import column_names, read_header

_GROUP = "matrixdp.formats"
#: Records of the file at a position have their places from this multiple of it.
_PLACES = 2**40

Read = Callable[[Sequence[str], Sequence[str], bool], tuple[list[list[str]], dict[str, Any]]]
Kinds = Callable[[Sequence[str], Sequence[str]], Mapping[str, Kind] | None]


@final
@dataclass(frozen=True)
class Format:
    """A format of files. Those that hold one table are given in its order.

    Parameters
    ----------
    name : str
        Its name in messages.
    endings : tuple of str
        The endings of its files, in small letters, each with its point.
    assumptions : tuple of str
        What the guarantee assumes of its tables.
    read : callable
        Takes files, the columns that are wanted, and whether their records are to be placed. Returns the
        names of the columns of each, and streams of the wanted columns in that order, with the place of each
        record where that is asked, by the first of the files that a stream is of. There are none where DuckDB
        reads the files without failing on any value.
    kinds : callable
        Takes files and columns, and returns what these hold where the files say so by themselves; None where
        that takes an engine.
    names : callable or None
        Returns the names of the columns of a file; None where DuckDB reads all columns itself.
    is_database : bool
        Whether a file has tables of its own; it is then not read as above.
    """

    name: str
    endings: tuple[str, ...]
    assumptions: tuple[str, ...] = (INFERRED,)
    read: Read = lambda *_: ([], {})
    kinds: Kinds = lambda *_: None
    names: Callable[[str], list[str]] | None = None
    is_database: bool = False


def register_format(
    name: str,
    *endings: str,
    reader: Callable[[str], Any],
    assumptions: Sequence[str] = (INFERRED,),
) -> None:
    """Add a format of files that paths, patterns of files and addresses may have from now on.

    Parameters
    ----------
    name : str
        The name of the format, as messages show it.
    *endings : str
        The endings of its files, such as ``.orc``.
    reader : callable
        Takes the path of a file and returns a `pyarrow.RecordBatchReader` or `pyarrow.Table` with all columns
        in the order of the records. One record must not change how others are read, or make the reader fail.
    assumptions : sequence of str
        What the guarantee assumes of such tables, as the statement of a release says it: by default that
        the types of the columns do not depend on any one record.

    Raises
    ------
    SourceError
        If another format has one of the endings.

    Examples
    --------
    >>> import pyarrow.orc
    >>> register_format("ORC", ".orc", reader=pyarrow.orc.read_table)
    >>> find_format("people.orc")[0].name
    'ORC'
    """
    taken = sorted({*endings} & {*_endings()})
    if taken or not endings:
        found = f"{taken[0]!r}, which another format has" if taken else "no ending"
        raise SourceError.at(("endings",), found, "endings of this format alone", code="duplicate")
    opened = partial(_opened, reader)
    read = partial(_read_arrow, opened)
    _FORMATS.append(
        Format(name, endings, tuple(assumptions), read, names=lambda file: opened(file).schema.names)
    )


def format_names() -> str:
    """Return the names of all formats in words."""
    names = list(dict.fromkeys([*(one.name for one in _FORMATS), *offered(_GROUP)]))
    return f"{', '.join(names[:-1])} or {names[-1]}"


def find_format(name: str, remote: bool = False) -> tuple[Format, str] | None:
    """Return the format of a file, and its ending; None where no format has it."""
    for one in _FORMATS:
        for ending in one.endings:
            if name.lower().endswith(ending) and not (remote and one.is_database):
                return one, ending
    return find_format(name, remote) if load_offered(_GROUP) else None


def expected_endings(remote: bool = False) -> str:
    """Return the endings of all formats in words."""
    addresses = "" if remote else "; or an address, such as sqlite:///people.sqlite"
    return f"a name that ends in {', '.join(_endings(remote))}{addresses}"


def _endings(remote: bool = False) -> list[str]:
    return [ending for one in _FORMATS if not (remote and one.is_database) for ending in one.endings]


def _opened(reader: Callable[[str], Any], file: str) -> Any:
    held = reader(file)
    return held.to_reader() if hasattr(held, "to_reader") else held


def _read_arrow(
    opened: Callable[[str], Any], files: Sequence[str], wanted: Sequence[str], placed: bool
) -> tuple[list[list[str]], dict[str, Any]]:
    from matrixdp.sources.columns import plain, plain_type, stream

    readers = [opened(file) for file in files]
    headers = [list(reader.schema.names) for reader in readers]
    if any(header.count(name) != 1 for header in headers for name in wanted):
        return headers, {}
    streams = {}
    for i, reader in enumerate(readers):
        types = [plain_type(reader.schema.field(name).type) for name in wanted]
        columns = ([plain(batch.column(name)) for name in wanted] for batch in reader)
        streams[files[i]] = stream(types, [(_PLACES * i, columns)], placed)
    return headers, streams


def _later(name: str) -> Callable[..., Any]:
    """Return a function of a module that is imported when it is called: it needs PyArrow."""
    return lambda *given, **named: resolve_name(f"{__package__}.{name}")(*given, **named)


def _csv(quoted_newlines: bool) -> Format:
    def kinds(files: Sequence[str], wanted: Sequence[str]) -> Mapping[str, Kind] | None:
        headers = [read_header(file, wanted, quoted_newlines)[1] for file in files]
        once = all(header.count(name) == 1 for header in headers for name in wanted)
        return dict.fromkeys(wanted, Kind.TEXT) if once else None

    def read(files: Sequence[str], wanted: Sequence[str], placed: bool) -> Any:
        return _later("csv:read_texts")(files, wanted, quoted_newlines, placed)

    plain = (".csv", ".tsv", ".txt")
    endings = (*plain, *(f"{ending}.gz" for ending in plain))
    assumptions = (QUOTES_CLOSED,) if quoted_newlines else ()
    return Format("CSV", endings, assumptions, read, kinds, lambda file: column_names(file, quoted_newlines))


CSV, QUOTED = _csv(quoted_newlines=False), _csv(quoted_newlines=True)
"""CSV where every line is a record, and where quotes may hold line ends."""

PARQUET = Format(
    "Parquet",
    (".parquet", ".pq"),
    read=_later("columns:read_parquet"),
    kinds=_later("columns:parquet_kinds"),
)
DUCKDB = Format("DuckDB", (".duckdb", ".ddb", ".db"), is_database=True)
OURS = (CSV, PARQUET, DUCKDB)
"""The formats of this package."""
_FORMATS = [*OURS]
