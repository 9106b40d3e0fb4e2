"""Tables at a path or an address: files of the formats of `matrixdp.sources.formats`, and DuckDB databases.

Engines are imported once records are counted; that they can be is mostly told without. What lies at an
address, ``https://`` or ``s3://``, is fetched whole by DuckDB, and then read as files at a path are: DuckDB's
own reader of remote Parquet files would fail on a text that is not UTF-8, and so tell of it. The copies lie
in a temporary folder that nobody else can open, and go when all is counted.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from matrixdp.domain import Domain
from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.forms import is_unicode, shown
from matrixdp.locks import private_folder
from matrixdp.privacy import Unit
from matrixdp.sources import base, formats
from matrixdp.sources.engines import connect, connect_to_kept, settings
from matrixdp.sources.sql import column_kind, identifier, literal

if TYPE_CHECKING:
    import duckdb

_NOT_CSV = "is not CSV, so quoted_newlines does not apply to it"
#: The most bytes of text that one thread counts sooner than a database is made.
_SMALL = 2**20
_NEEDED = (
    "reading https:// and s3:// needs DuckDB's extension httpfs, which nothing here downloads by itself; "
    "install it once: python -c \"import duckdb; duckdb.sql('INSTALL httpfs')\""
)
_GZIP = b"\x1f\x8b"
#: What files begin with, what they are, the endings that say so, and what to do about it.
_STARTS: tuple[tuple[bytes, str, tuple[str, ...], str], ...] = (
    (b"SQLite format 3\0", "an SQLite database", (), "its address, sqlite:///{}"),
    (_GZIP, "compressed by gzip", (".gz",), "a name that ends in .gz, such as table.csv.gz"),
    (b"PAR1\x15", "Parquet", formats.PARQUET.endings, "a name that ends in .parquet"),
    (b"PK\3\4", "a ZIP archive or an Excel workbook", (), "CSV UTF-8: unpack it, or save it as such"),
    (b"BZh91AY&SY", "compressed by bzip2", (), "CSV: `bzip2 -dc OLD > NEW`"),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard", (), "CSV: `zstd -dc OLD > NEW`"),
    (b"\xfd7zXZ\0", "compressed by xz", (), "CSV: `xz -dc OLD > NEW`"),
)
_conflict = partial(SourceError, code="conflict")


def open_path(
    path: str | os.PathLike[str], table_name: str | None = None, *, quoted_newlines: bool = False
) -> FileSource | DatabaseSource:
    """Return the source for a path.

    Parameters
    ----------
    path : str or PathLike
        Of a file, a glob of files of one format, or a DuckDB database.
    table_name : str, optional
        The table in the database, with its schema or without; needed only where there are several.
    quoted_newlines : bool
        Whether quotes in CSV files may hold line ends.

    Raises
    ------
    SourceError
        If there is no such file, its format is not known, or an option does not go with it.
    """
    name = os.fspath(path)
    files = _files(name)
    found = [formats.find_format(file) for file in files]
    for file, one in zip(files, found, strict=True):
        if one is None or one[0] in formats.OURS:
            base.guarded(partial(_check_start, file), f"open {file!r}")
    if None in found:
        unknown = repr(files[found.index(None)])
        raise SourceError.at((), unknown, formats.expected_endings(), code="unknown-name")
    held, *others = dict.fromkeys(one[0] for one in found if one)
    if others:
        raise _conflict(f"{name!r} matches files of several formats; name files of one")
    if table_name is not None and not held.is_database:
        raise _conflict(f"{name!r} is no database, so it has no table to choose")
    if quoted_newlines and held is not formats.CSV:
        raise _conflict(f"{name!r} {_NOT_CSV}")
    if held is not formats.CSV and not all(map(is_unicode, files)):
        raise SourceError.at((), repr(name), "a path in UTF-8, in this format: rename the file or its folder")
    if held.is_database and len(files) > 1:
        raise _conflict(f"{name!r} matches several databases; name one")
    if held.is_database:
        return DatabaseSource(files[0], table_name)
    return FileSource(name, files, formats.QUOTED if quoted_newlines else held)


def _check_start(file: str) -> None:
    """Reject a file that begins as one of another format than its name says."""
    with Path(file).open("rb") as data:
        start = data.read(16)
    for begins, what, endings, expected in _STARTS:
        if start.startswith(begins) and not file.lower().endswith(endings):
            raise SourceError.at((), f"{file!r}, which is {what}", expected.format(file))
    if start and file.lower().endswith(".gz") and not start.startswith(_GZIP):
        raise SourceError.at((), f"{file!r}, which is not compressed by gzip", "a name without .gz")


@final
class FileSource(base.OrderedSource):
    """A table in files of one format, counted by DuckDB.

    The columns of CSV files are texts, and nothing about their form is guessed from their records: the first
    line names the columns and, by the names that the domain wants, tells the delimiter. See
    `matrixdp.sources.csv` for what makes a record.
    """

    counts_slices = opens_anywhere = True

    def __init__(self, path: str, files: Sequence[str], form: formats.Format) -> None:
        self._path = path
        self._reading = f"read {path!r}"
        self._files = files
        self._format = form

    def __repr__(self) -> str:
        return f"FileSource({self._path!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # another process, whose folder may be another, opens the files for itself
        path = os.path.abspath(self._path)  # noqa: PTH100  a pattern stays one
        return partial(open_path, quoted_newlines=self._format is formats.QUOTED), (path,)

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return the assumptions of the guarantee about the table."""
        return self._format.assumptions

    def columns(self) -> Mapping[str, Kind]:
        """Return the names of the table's columns and what they hold, by its storage types."""
        open_database = connect_to_kept if self._is_small() else connect
        return base.guarded(lambda: _columns(self, open_database()), self._reading)

    def _is_small(self) -> bool:
        """Return whether one thread reads these files sooner than a database is made."""
        if self._format not in (formats.CSV, formats.QUOTED):
            return False
        return base.guarded(lambda: sum(map(os.path.getsize, self._files)), self._reading) <= _SMALL

    def records(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """Return all columns of the table as a relation that is not yet computed.

        Its records are for nobody who may not see them: it is for tables that are public, and for types.
        """
        if self._format.names is None:
            # A bracket in the name of a file that exists is not a pattern any more.
            return connection.read_parquet([glob.escape(file) for file in self._files], union_by_name=True)
        names = [name for name in dict.fromkeys(self._format.names(self._files[0])) if name]
        held = _union(map(connection.from_arrow, self._format.read(self._files, names, False)[1].values()))
        own = zip(held.columns, names, strict=True)
        return held.project(", ".join(f"{identifier(column)} AS {identifier(name)}" for column, name in own))

    def check_columns(self, request: base.Request) -> None:
        """Reject what `count` rejects; what files say of their columns themselves is mostly enough."""
        settings()
        kinds = None
        if request.unit.id is None:
            kinds = base.guarded(partial(self._format.kinds, self._files, request.columns), self._reading)
        if kinds is None or any(own.rule(kinds[own.column]) is None for own in request.domain.readings):
            self.count(request)

    def count(self, request: base.Request) -> Iterator[base.Marginal]:
        """Return every marginal of a request, with its counts."""
        from matrixdp.sources.counting import count

        return count(request, partial(self._codes, request), self._reading, few=self._is_small())

    def _codes(self, request: base.Request, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        from matrixdp.sources.counting import encode
        from matrixdp.sources.memory import encode_batches

        placed = request.unit.id is not None
        read: Any = self._format.read
        if self._format is formats.PARQUET and (
            near := request.near(dict.fromkeys(request.columns, Kind.TEXT))
        ):
            read = partial(read, near=near)
        headers, streams = read(self._files, request.columns, placed)
        for file, header in zip(self._files, headers, strict=True):
            with _naming(file, self._files):
                request.check_columns(header)
        encoded = []
        for file, held in streams.items():
            with _naming(file, self._files):
                encoded.append(encode_batches(request, held.schema, held, connection))
        if encoded:
            return _union(encoded)
        stored = self.records(connection)
        return encode(stored, request, columns=stored.columns)


@final
class DatabaseSource(base.TableSource):
    """A table of a DuckDB database."""

    bounds_contributions = lists_values = True
    counts_slices = opens_anywhere = True

    def __reduce__(self) -> tuple[Any, ...]:
        return DatabaseSource, (os.path.abspath(self._where), self.table_name)  # noqa: PTH100

    def _connect(self) -> duckdb.DuckDBPyConnection:
        return connect()

    def columns(self) -> Mapping[str, Kind]:
        """Return the names of the table's columns and what they hold, by its storage types."""
        return base.guarded(lambda: _columns(self, connect()), self._reading)

    def records(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """Return all columns of the table as a relation, as `FileSource.records` does."""
        return self._stored(connection, Unit())

    def count(self, request: base.Request) -> Iterator[base.Marginal]:
        """Return every marginal of a request, with its counts."""
        from matrixdp.sources.counting import count

        hint = base.FAILED if self.table().computes(request.domain) else ""
        return count(request, partial(self._codes, request), self._reading, hint)

    def _codes(self, request: base.Request, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        from matrixdp.sources.counting import encode

        return encode(self._stored(connection, request.unit), request)

    def _stored(self, connection: duckdb.DuckDBPyConnection, unit: Unit) -> duckdb.DuckDBPyRelation:
        """Return the table; where an id is named, its last column is the place of each record."""
        table = self._find(connection)
        stored = connection.sql(f"SELECT * FROM {table.name}")  # noqa: S608
        if unit.id is None:
            return stored
        names = [name.lower() for name in stored.columns]
        if table.computed or "rowid" in names:
            what = "a view" if table.computed else "a table with a column 'rowid'"
            found = f"{what}, whose records have no order"
            raise SourceError.at(("unit", "id"), found, base.UNORDERED, code="not-supported")
        table.check_id(unit.id)
        place = next(f"place{i}" for i in range(len(names) + 1) if f"place{i}" not in names)
        return connection.sql(f"SELECT *, rowid AS {place} FROM {table.name}")  # noqa: S608

    def _find(self, connection: duckdb.DuckDBPyConnection) -> base.Table:
        connection.execute(f"ATTACH {literal(self._where)} AS source (READ_ONLY)")
        tables = connection.execute(_TABLES).fetchall()
        schema, name, is_view = self.choose(tables, "main")
        generated = connection.execute(_GENERATED, [schema, name]).fetchall()
        # Quoted identifiers cannot end the statement.
        quoted = f"source.{identifier(schema)}.{identifier(name)}"
        return base.Table(quoted, is_view, {}, [column for (column,) in generated])


_TABLES = """
SELECT schema_name, table_name, false FROM duckdb_tables() WHERE database_name = 'source' AND NOT internal
UNION ALL
SELECT schema_name, view_name, true FROM duckdb_views() WHERE database_name = 'source' AND NOT internal
ORDER BY ALL
"""
_GENERATED = """
SELECT column_name FROM duckdb_columns()
WHERE database_name = 'source' AND schema_name = ? AND table_name = ? AND is_generated
"""


@contextmanager
def _naming(file: str, files: Sequence[str]) -> Iterator[None]:
    """Name the one of several files that an error is about."""
    try:
        yield
    except SourceError as error:
        if len(files) == 1:
            raise
        raise SourceError(f"{shown(file)!r}: {error}", code=error.code) from None


def _union(relations: Iterable[duckdb.DuckDBPyRelation]) -> duckdb.DuckDBPyRelation:
    return reduce(lambda first, second: first.union(second), relations)


def _columns(source: FileSource | DatabaseSource, connection: duckdb.DuckDBPyConnection) -> dict[str, Kind]:
    with connection:
        held = source.records(connection)
        kinds = (column_kind(str(stored)) for stored in held.types)
        return dict(zip(held.columns, kinds, strict=True))


def _files(path: str) -> list[str]:
    if os.path.isfile(path):  # noqa: PTH113 - no error where the path is none
        return [path]
    if os.path.isdir(path):  # noqa: PTH112
        expected = f"a file, or a pattern of files such as {path}/*.parquet"
        raise SourceError.at((), f"{path!r}, a folder", expected)
    files = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())  # noqa: PTH207
    if files:
        return files
    if glob.has_magic(path):
        raise SourceError(f"no file matches {path!r}", code="file-missing")
    raise SourceError(f"there is no file {path!r}", code="file-missing")


@final
class RemoteSource(base.OrderedSource):
    """A file of a format of `matrixdp.sources.formats` at an address; with ``s3://`` a pattern of files too.

    Parameters
    ----------
    address : str
        The address.
    quoted_newlines : bool
        Whether quotes in CSV files may hold line ends.

    Raises
    ------
    SourceError
        If the ending is that of no format.
    """

    counts_slices = True

    def __init__(self, address: str, *, quoted_newlines: bool = False) -> None:
        self._address = address
        found = formats.find_format(shown(address), remote=True)
        if found is None:
            expected = formats.expected_endings(remote=True)
            raise SourceError.at(("data",), shown(address), expected, code="unknown-name")
        self._format, self._ending = found
        if quoted_newlines and self._format is not formats.CSV:
            raise _conflict(f"{shown(address)} {_NOT_CSV}")
        self._format = formats.QUOTED if quoted_newlines else self._format

    def __repr__(self) -> str:
        return f"RemoteSource({shown(self._address)!r})"

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return the assumptions of the guarantee about the table."""
        return self._format.assumptions

    def check_columns(self, request: base.Request) -> None:
        """Reject a Parquet file that lacks columns, by its metadata; others are not fetched for that."""
        from matrixdp.sources.counting import encode

        with closing(self._connect()) as connection:
            parquet = self._format is formats.PARQUET
            files = base.guarded(lambda: self._listed(connection), self._reading) if parquet else []
            for file in files:
                described = base.guarded(partial(connection.read_parquet, file), self._reading)
                names = described.columns
                if request.unit.id is not None:
                    described = described.project("*, 0 AS place")
                with _naming(file, files):
                    request.check_columns(names)
                    encode(described, request, columns=names)

    def count(self, request: base.Request) -> Iterator[base.Marginal]:
        """Return every marginal of a request, with its counts."""
        return base.started(self._counted(request))

    def _counted(self, request: base.Request) -> Iterator[Any]:
        with self._fetched() as source:
            marginals = source.count(request)
            yield None
            yield from marginals

    @property
    def _reading(self) -> str:
        return f"read {shown(self._address)}"

    def _connect(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        connection = connect()
        try:
            _load(connection)
        except duckdb.Error:
            connection.close()
            raise SourceError(_NEEDED, code="missing-library") from None
        return connection

    @contextmanager
    def _fetched(self) -> Iterator[FileSource | DatabaseSource]:
        """Fetch the files, in the order of their names."""
        with private_folder() as folder:
            with closing(self._connect()) as connection:
                base.guarded(lambda: self._fetch(connection, folder), self._reading)
            quoted = self._format is formats.QUOTED
            yield open_path(f"{folder}/*{self._ending}", quoted_newlines=quoted)

    def _listed(self, connection: duckdb.DuckDBPyConnection) -> list[str]:
        found = connection.execute("SELECT filename FROM read_blob(?) ORDER BY filename", [self._address])
        return [name for (name,) in found.fetchall()]

    def _fetch(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        for place, name in enumerate(self._listed(connection)):
            # Quoted literals cannot end the statement.
            copy = literal(str(folder / f"{place:09}{self._ending}"))
            content = f"SELECT content FROM read_blob({literal(name)})"  # noqa: S608
            connection.execute(f"COPY ({content}) TO {copy} (FORMAT blob, COMPRESSION none)")


def _load(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("LOAD httpfs")
