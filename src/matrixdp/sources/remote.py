"""Files at an address, ``https://`` or ``s3://``: fetched by DuckDB, and then read as files at a path are.

They are fetched whole: DuckDB's own reader of remote Parquet files would fail on a text that is not UTF-8,
and so tell of it. The copies lie in a temporary folder that nobody else can open, and go when all is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import final

import duckdb

from matrixdp.domain import Domain
from matrixdp.errors import SourceError
from matrixdp.forms import shown
from matrixdp.locks import private_folder
from matrixdp.sources.base import QUOTES_CLOSED, Marginal, OrderedSource, Request, guarded
from matrixdp.sources.counting import encode
from matrixdp.sources.engines import connect
from matrixdp.sources.formats import CSV, PARQUET, expected_endings, find_format
from matrixdp.sources.paths import DatabaseSource, FileSource, open_path
from matrixdp.sources.sql import literal

_NEEDED = (
    "reading https:// and s3:// needs DuckDB's extension httpfs, which nothing here downloads by itself; "
    "install it once: python -c \"import duckdb; duckdb.sql('INSTALL httpfs')\""
)


@final
class RemoteSource(OrderedSource):
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

    def __init__(self, address: str, *, quoted_newlines: bool = False) -> None:
        self._address = address
        self._quoted_newlines = quoted_newlines
        found = find_format(shown(address), remote=True)
        if found is None:
            raise SourceError.at(
                ("data",), shown(address), expected_endings(remote=True), code="unknown-name"
            )
        self._format, self._ending = found
        if self._format is not CSV and quoted_newlines:
            message = f"{shown(address)} is not CSV, so quoted_newlines does not apply to it"
            raise SourceError(message, code="conflict")

    def __repr__(self) -> str:
        return f"RemoteSource({shown(self._address)!r})"

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return what the guarantee assumes of the table."""
        return (QUOTES_CLOSED,) if self._quoted_newlines else self._format.assumptions

    def check_columns(self, request: Request) -> None:
        """Reject a Parquet file that lacks columns, by its metadata; others are not fetched for that."""
        with closing(self._connect()) as connection:
            if self._format is PARQUET:
                described = guarded(lambda: connection.read_parquet(self._address), self._reading)
                names = described.columns
                if request.unit.id is not None:
                    described = described.project("*, 0 AS place")
                request.check_columns(names)
                encode(described, request, columns=names)

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        with ExitStack() as stack:
            source = stack.enter_context(self._fetched())
            marginals = source.count(request)
            return _closing(stack.pop_all(), marginals)

    @property
    def _reading(self) -> str:
        return f"read {shown(self._address)}"

    def _connect(self) -> duckdb.DuckDBPyConnection:
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
                guarded(lambda: self._fetch(connection, folder), self._reading)
            yield open_path(f"{folder}/*{self._ending}", quoted_newlines=self._quoted_newlines)

    def _fetch(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        found = connection.execute("SELECT filename FROM read_blob(?) ORDER BY filename", [self._address])
        for place, (name,) in enumerate(found.fetchall()):
            # Quoted literals cannot end the statement.
            copy = literal(str(folder / f"{place:09}{self._ending}"))
            content = f"SELECT content FROM read_blob({literal(str(name))})"  # noqa: S608
            connection.execute(f"COPY ({content}) TO {copy} (FORMAT blob, COMPRESSION none)")


def _load(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("LOAD httpfs")


def _closing(stack: ExitStack, marginals: Iterator[Marginal]) -> Iterator[Marginal]:
    with stack:
        yield from marginals
