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
from matrixdp.sources.base import INFERRED, QUOTES_CLOSED, Marginal, Request, Source, guarded
from matrixdp.sources.counting import encode
from matrixdp.sources.engines import connect
from matrixdp.sources.paths import PathSource
from matrixdp.sources.sql import literal

_ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_NEEDED = (
    "reading https:// and s3:// needs DuckDB's extension httpfs, which nothing here downloads by itself; "
    "install it once: python -c \"import duckdb; duckdb.sql('INSTALL httpfs')\""
)


@final
class RemoteSource(Source):
    """A CSV or Parquet file at an address; with ``s3://`` a pattern of such files too.

    Parameters
    ----------
    address : str
        The address.
    quoted_newlines : bool
        Whether quotes in CSV files may hold line ends.

    Raises
    ------
    SourceError
        If the ending says neither CSV nor Parquet.
    """

    bounds_contributions = True
    counts_out_of_domain = True
    derives_attributes = True

    def __init__(self, address: str, *, quoted_newlines: bool = False) -> None:
        self._address = address
        self._quoted_newlines = quoted_newlines
        name = shown(address).lower()
        ending = next((ending for ending in reversed(_ENDINGS) if name.endswith(ending)), None)
        if ending is None:
            expected = f"an address that ends in one of {', '.join(_ENDINGS)}"
            raise SourceError.at(("data",), shown(address), expected)
        self._ending = ending
        self._is_parquet = ending in _ENDINGS[:2]
        if self._is_parquet and quoted_newlines:
            raise SourceError(f"{shown(address)} is not CSV, so quoted_newlines says nothing about it")

    def __repr__(self) -> str:
        return f"RemoteSource({shown(self._address)!r})"

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return what the promise assumes of the table."""
        if self._is_parquet:
            return (INFERRED,)
        return (QUOTES_CLOSED,) if self._quoted_newlines else ()

    def check_columns(self, request: Request) -> None:
        """Refuse a Parquet file that lacks columns, from its metadata; CSV files are not fetched for that."""
        with closing(self._connect()) as connection:
            if self._is_parquet:
                described = guarded(lambda: connection.read_parquet(self._address), self._reading)
                names = described.columns
                if request.unit.id is not None:
                    described = described.project("*, 0 AS place")
                request.check_columns(names)
                encode(described, request, request.domain, names)

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
            raise SourceError(_NEEDED) from None
        return connection

    @contextmanager
    def _fetched(self) -> Iterator[PathSource]:
        """Fetch the files, in the order of their names."""
        with private_folder() as folder:
            with closing(self._connect()) as connection:
                guarded(lambda: self._fetch(connection, folder), self._reading)
            yield PathSource(f"{folder}/*{self._ending}", quoted_newlines=self._quoted_newlines)

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
