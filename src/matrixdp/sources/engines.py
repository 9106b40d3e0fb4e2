"""The table of engines: which kinds of tables can be opened, and by which source."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import PathLike
from typing import Any, NoReturn, cast, final

import numpy as np

from matrixdp.errors import SourceError
from matrixdp.forms import has_scheme, shown
from matrixdp.sources.guard import guarded
from matrixdp.sources.source import Source, native

__all__ = ["engine_names", "open_source", "register_source"]


@final
@dataclass(frozen=True)
class _Engine:
    takes: Callable[[Any], bool]
    opens: str | Callable[..., Source]
    named: bool


_ENGINES: dict[str, _Engine] = {}
_TEXTS = ("path", "remote")
_SCHEMES = ("postgresql", "sqlite", "https", "s3")


def register_source(
    name: str, takes: Callable[[Any], bool], opens: str | Callable[..., Source], *, named: bool = False
) -> None:
    """Add an engine: a kind of table that `open_source` can open from now on.

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
        raise SourceError(f"there is an engine {name!r} already")
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
        opens: Any = engine.opens
        if isinstance(opens, str):
            module, _, attribute = opens.partition(":")
            opens = getattr(import_module(module), attribute)
        if quoted_newlines:
            opens = partial(opens, quoted_newlines=True)
        return cast("Source", opens(table, table_name) if engine.named else opens(table))
    if table_name is not None:
        raise SourceError("the name of a table goes with the path or the address of a database only")
    if quoted_newlines:
        raise SourceError("quoted_newlines goes with the path of CSV files only")
    raise SourceError(
        f"a {type(table).__name__} is not a table; give a path, a pandas, Polars or PyArrow table, a lazy "
        "frame of Polars, Dask, PySpark or Ibis, a DuckDB relation, or a mapping of names to arrays"
    )


def _no_such_scheme(address: str, table_name: str | None = None) -> NoReturn:  # noqa: ARG001
    expected = "a path, or an address that starts with " + ", ".join(f"{scheme}://" for scheme in _SCHEMES)
    raise SourceError.at(("data",), shown(address), expected)


def _is_address(*schemes: str) -> Callable[[object], bool]:
    return lambda table: has_scheme(table, *schemes)


def _is_arrays(table: object) -> bool:
    return isinstance(table, Mapping) or (isinstance(table, np.ndarray) and bool(table.dtype.names))


def _is_relation(table: object) -> bool:
    import duckdb

    return isinstance(native(table), duckdb.DuckDBPyRelation)


def _is_frame(table: object) -> bool:
    import narwhals as nw

    return isinstance(nw.from_native(cast("Any", table), pass_through=True), nw.DataFrame)


def _is_lazy(package: str, name: str) -> Callable[[object], bool]:
    """Return whether something is of a class of a package, known by name, so that nothing is imported."""

    def takes(table: object) -> bool:
        classes = [(one.__module__.partition(".")[0], one.__name__) for one in type(native(table)).__mro__]
        return (package, name) in classes

    return takes


register_source("frame", _is_frame, "matrixdp.sources.memory:FrameSource")
register_source("polars lazy", _is_lazy("polars", "LazyFrame"), "matrixdp.sources.streams:PolarsSource")
register_source("ibis", _is_lazy("ibis", "Table"), "matrixdp.sources.streams:IbisSource")
register_source("dask", _is_lazy("dask", "DataFrame"), "matrixdp.sources.clusters:DaskSource")
register_source("modin", _is_lazy("modin", "DataFrame"), "matrixdp.sources.clusters:ModinSource")
register_source("spark", _is_lazy("pyspark", "DataFrame"), "matrixdp.sources.clusters:SparkSource")
register_source("relation", _is_relation, "matrixdp.sources.memory:RelationSource")
register_source("arrays", _is_arrays, "matrixdp.sources.memory:ArraysSource")
register_source(
    "path",
    lambda table: isinstance(table, str | PathLike),
    "matrixdp.sources.paths:PathSource",
    named=True,
)
register_source("address", _is_address(), _no_such_scheme, named=True)
register_source(
    "postgresql",
    _is_address("postgresql", "postgres"),
    "matrixdp.sources.postgresql:PostgreSQLSource",
    named=True,
)
register_source("sqlite", _is_address("sqlite"), "matrixdp.sources.sqlite:SQLiteSource", named=True)
register_source("remote", _is_address("https", "http", "s3"), "matrixdp.sources.remote:RemoteSource")
