"""Tables, and the one thing that is asked of them: marginals as arrays of integers.

Paths are read by DuckDB; tables in memory and relations are counted by it too; lazy frames are counted by the
engine that they belong to. Every engine follows the rules of `matrixdp.domain.rules`; another one joins by
`register_source`.
"""

from matrixdp.sources.engines import engine_names, open_source, register_source
from matrixdp.sources.requests import Request
from matrixdp.sources.source import Marginal, Source

__all__ = ["Marginal", "Request", "Source", "engine_names", "open_source", "register_source"]
