"""The table of engines: which kinds of tables can be opened, and by which source."""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from os import PathLike
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from matrixdp.errors import SourceError
from matrixdp.exact.resources import granted_memory, memory_limit, processors
from matrixdp.forms import has_scheme, shown
from matrixdp.locks import private_folder
from matrixdp.plugins import load_offered
from matrixdp.sources.base import Source, guarded, native

if TYPE_CHECKING:
    import duckdb


@final
@dataclass(frozen=True)
class _Engine:
    takes: Callable[[Any], bool]
    opens: str | Callable[..., Source]
    named: bool


_ENGINES: dict[str, _Engine] = {}
_TABLES = (
    "give a path, a pandas, Polars or PyArrow table, a lazy frame of Polars, Dask, PySpark or Ibis, "
    "a DuckDB relation, or a mapping of names to arrays"
)
_GROUP = "matrixdp.sources"
_SCHEMES = ("postgresql", "sqlite", "https", "s3")


def register_source(
    name: str, takes: Callable[[Any], bool], opens: str | Callable[..., Source], *, named: bool = False
) -> None:
    """Add an engine: a kind of table that `open_source` can open from now on.

    An installed package that has an entry point in the group ``matrixdp.sources``, whose value is the module
    that calls this, needs no import: it is asked for what no engine of ours takes.

    Parameters
    ----------
    name : str
        The name of the engine.
    takes : callable
        Is called with what is to be opened, and returns whether this engine opens it; it must not read the
        table. Engines are asked from the last one that was added to the first.
    opens : str or callable
        What returns the `Source` of a table, or ``module:name``, where it is found once it is needed.
    named : bool
        Whether what is opened may hold several tables; then `opens` is called with the name of one, or None,
        as its second argument.

    Raises
    ------
    SourceError
        If there is an engine of that name.
    """
    if name in _ENGINES:
        raise SourceError(f"there is an engine {name!r} already", code="duplicate")
    _ENGINES[name] = _Engine(takes, opens, named)


def engine_names() -> tuple[str, ...]:
    """Return the names of the engines that are registered."""
    return tuple(_ENGINES)


def open_source(table: object, *, table_name: str | None = None, quoted_newlines: bool = False) -> Source:
    """Return the source for a path or a table.

    Parameters
    ----------
    table : object
        A path to CSV or Parquet files (a glob too) or to a DuckDB database; the address of a database of
        PostgreSQL (``postgresql://host/database``) or SQLite (``sqlite:///path``), or of files
        (``https://``, ``s3://``); a pandas, Polars or PyArrow table; a Polars, Dask, PySpark or Ibis lazy
        frame; a DuckDB relation; a mapping of names to arrays; or what an engine that was added by
        `register_source` takes.
    table_name : str, optional
        The table in a database; needed only where there are several.
    quoted_newlines : bool
        Whether quotes in CSV files may hold line ends. Without it a record is a line, whatever stands in it;
        with it one record may take those after it into itself, and the statement of a release says so.

    Returns
    -------
    Source
        The source. Nothing of the table has been read yet.

    Raises
    ------
    SourceError
        If there is no such file, or the table is of none of these kinds.

    Examples
    --------
    >>> from matrixdp.domain import Domain, OutOfDomain
    >>> domain = Domain({"sex": ["female", "male"]})
    >>> source = open_source({"sex": ["male", "male", "female", None]})
    >>> [(subset, counts.tolist()) for subset, counts in source.marginals(domain, [("sex",)], OutOfDomain())]
    [(('sex',), [1, 2])]
    """
    for name, engine in reversed(_ENGINES.items()):
        if not guarded(partial(engine.takes, table), "read the table"):
            continue
        if (table_name is not None and not engine.named) or (
            quoted_newlines and name not in ("path", "remote")
        ):
            break
        opens: Any = resolve_name(engine.opens) if isinstance(engine.opens, str) else engine.opens
        options = {"quoted_newlines": True} if quoted_newlines else {}
        return cast("Source", opens(*((table, table_name) if engine.named else (table,)), **options))
    else:
        if load_offered(_GROUP):
            return open_source(table, table_name=table_name, quoted_newlines=quoted_newlines)
    if table_name is not None:
        told = "the name of a table goes with the path or the address of a database only"
        raise SourceError(told, code="conflict")
    if quoted_newlines:
        raise SourceError("quoted_newlines goes with the path of CSV files only", code="conflict")
    raise SourceError(f"a {type(table).__name__} is not a table; {_TABLES}", code="wrong-type")


def _other_scheme(address: str, table_name: str | None = None) -> Source:
    if load_offered(_GROUP):
        return open_source(address, table_name=table_name)
    expected = "a path, or an address that starts with " + ", ".join(f"{scheme}://" for scheme in _SCHEMES)
    raise SourceError.at(("data",), shown(address), expected, code="unknown-name")


def _is_address(*schemes: str) -> Callable[[object], bool]:
    return lambda table: has_scheme(table, *schemes)


def _is_arrays(table: object) -> bool:
    return isinstance(table, Mapping) or (isinstance(table, np.ndarray) and bool(table.dtype.names))


def _is_relation(table: object) -> bool:
    import duckdb

    return isinstance(native(table), duckdb.DuckDBPyRelation)


def _is_frame(table: object) -> bool:
    import narwhals as nw

    try:
        return isinstance(nw.from_native(cast("Any", table), pass_through=True), nw.DataFrame)
    except nw.exceptions.DuplicateError:
        told = "the table has several columns of one name (pandas: `frame.columns.duplicated()`)"
        raise SourceError(f"{told}; give each a name of its own", code="duplicate") from None


def _is_lazy(package: str, name: str) -> Callable[[object], bool]:
    """Return whether something is of a class of a package, known by name, so that nothing is imported."""

    def takes(table: object) -> bool:
        classes = [(one.__module__.partition(".")[0], one.__name__) for one in type(native(table)).__mro__]
        return (package, name) in classes

    return takes


for _name, _takes, _opens, _named in (
    ("frame", _is_frame, "memory:FrameSource", False),
    ("polars lazy", _is_lazy("polars", "LazyFrame"), "memory:PolarsSource", False),
    ("ibis", _is_lazy("ibis", "Table"), "memory:IbisSource", False),
    ("dask", _is_lazy("dask", "DataFrame"), "clusters:DaskSource", False),
    ("modin", _is_lazy("modin", "DataFrame"), "clusters:ModinSource", False),
    ("spark", _is_lazy("pyspark", "DataFrame"), "clusters:SparkSource", False),
    ("relation", _is_relation, "memory:RelationSource", False),
    ("arrays", _is_arrays, "memory:ArraysSource", False),
    ("path", lambda table: isinstance(table, str | PathLike), "paths:open_path", True),
    ("address", _is_address(), "engines:_other_scheme", True),
    ("postgresql", _is_address("postgresql", "postgres"), "postgresql:PostgreSQLSource", True),
    ("sqlite", _is_address("sqlite"), "sqlite:SQLiteSource", True),
    ("remote", _is_address("https", "http", "s3"), "paths:RemoteSource", False),
):
    register_source(_name, _takes, f"{__package__}.{_opens}", named=_named)


# DuckDB as this package runs it: in memory, with what the environment grants it.

THREADS = "MATRIXDP_THREADS"
"""The variable of the environment with the number of threads that DuckDB uses."""

FEW = 2**16
"""So many records one thread counts sooner than a database is made."""


def connect(threads: int | None = None, memory: float | None = None) -> duckdb.DuckDBPyConnection:
    """Return a database in memory; it downloads nothing.

    Where ``memory`` is given it takes so many bytes at most, or as many as the environment grants.

    What it spills goes to a folder of its own that nobody else can open, and that goes with it. Where no
    threads are given, they are those of the environment, else one for each processor. Arrow, which reads what
    the database counts, gets no more than there are processors.

    Raises
    ------
    SourceError
        If the environment holds something else than a size or a number of threads.
    StorageError
        If the temporary folder cannot be written to.

    Examples
    --------
    >>> with connect(threads=1) as connection:
    ...     connection.sql("SELECT current_setting('threads')").fetchall()
    [(1,)]
    """
    import duckdb
    import pyarrow as pa

    config = settings(threads)
    if memory is not None:
        config.setdefault("memory_limit", f"{min(memory, memory_limit()):.0f}B")
    if threads is None:
        pa.set_cpu_count(min(pa.cpu_count(), processors()))
        config.setdefault("threads", processors())
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        connection = duckdb.connect(config=config | {"temp_directory": str(folder)})
        weakref.finalize(connection, stack.pop_all().close)
    return _without_progress(connection)


def connect_to_kept() -> duckdb.DuckDBPyConnection:
    """Return a connection to a database of one thread that this process keeps: nothing is written there.

    Making a database takes longer than counting a few records, whose columns stay where they are.

    Raises
    ------
    SourceError
        As for `connect`.

    Examples
    --------
    >>> with connect_to_kept() as connection:
    ...     connection.sql("SELECT current_setting('threads')").fetchall()
    [(1,)]
    """
    return _without_progress(_kept(*settings(threads=1).items()).cursor())


@lru_cache(maxsize=1)
def _kept(*config: tuple[str, Any]) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config=dict(config))


if hasattr(os, "register_at_fork"):
    # A copy of the process has none of the database's threads, and crashes when it ends and waits for them.
    os.register_at_fork(before=_kept.cache_clear)


def _without_progress(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    # How long it takes is a function of the table. In notebooks that cannot show a bar there is none, and
    # DuckDB refuses to have the setting changed.
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")
    return connection


def settings(threads: int | None = None) -> dict[str, Any]:
    """Return how DuckDB is set up, with what the environment grants; `SourceError` as for `connect`."""
    config: dict[str, Any] = {"temp_directory": "", "autoinstall_known_extensions": False}
    granted, number = granted_memory(), os.environ.get(THREADS, "")
    if number and not re.fullmatch("[1-9][0-9]{0,3}", number):
        raise SourceError.at((THREADS,), repr(number), "a number of threads, such as 4")
    if granted is not None:
        config["memory_limit"] = f"{granted:.0f}B"
    if threads is not None or number:
        config["threads"] = threads or int(number)
    return config
