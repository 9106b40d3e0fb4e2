"""Tables, and the one thing that is asked of them: marginals as arrays of integers.

Everything is counted by DuckDB: paths, tables in memory and relations here, lazy frames of Polars and Ibis as
their rows come, frames of Dask and Spark on every worker. PostgreSQL alone counts its own tables. All
engines follow the rules of `matrixdp.domain.rules`; another one joins by `register_source`.
"""

from matrixdp.sources.base import Marginal, Request, Source
from matrixdp.sources.engines import engine_names, open_source, register_source
from matrixdp.sources.formats import register_format

__all__ = [
    "Marginal",
    "Request",
    "Source",
    "engine_names",
    "open_source",
    "register_format",
    "register_source",
]
