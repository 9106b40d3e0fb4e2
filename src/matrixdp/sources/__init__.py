"""Tables, and the one thing that is asked of them: marginals as arrays of integers.

Everything is counted by DuckDB: paths, tables in memory and relations here, lazy frames of Polars and Ibis as
their rows come, frames of Dask and Spark on every worker. PostgreSQL alone counts its own tables. All
engines follow the rules of `matrixdp.domain.rules`; another one joins by `register_source`.
"""

from matrixdp.sources.base import Marginal as Marginal
from matrixdp.sources.base import Request as Request
from matrixdp.sources.base import Source as Source
from matrixdp.sources.engines import engine_names as engine_names
from matrixdp.sources.engines import open_source as open_source
from matrixdp.sources.engines import register_source as register_source
from matrixdp.sources.formats import register_format as register_format
