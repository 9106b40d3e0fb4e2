"""Tables, and the one thing that is asked of them: marginals as arrays of integers.

Paths are read by DuckDB; tables in memory and relations are counted by it too; lazy frames are counted by the
engine that they belong to. Every engine follows the rules of `matrixdp.domain.encoding`.
"""

from matrixdp.sources.source import Source, open_source

__all__ = ["Source", "open_source"]
