"""Tables of many machines: Dask and Modin count partitions, Spark its tasks, and only counts come back."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, final

from matrixdp.sources.counting import check
from matrixdp.sources.guard import guarded
from matrixdp.sources.memory import FrameSource, read_frame
from matrixdp.sources.partitions import COUNTS, INSTALLED, Counter, marginals, merge
from matrixdp.sources.requests import Request
from matrixdp.sources.source import FAILED, ComputedSource, Marginal
from matrixdp.sources.streams import read_batches

__all__ = ["DaskSource", "ModinSource", "SparkSource"]

_COUNTING = "count the table"
_HINT = f"{INSTALLED}, or {FAILED}"
_TOGETHER = 16
"""How many tables of counts one task adds up."""


@final
class DaskSource(ComputedSource):
    """A frame of Dask: every partition is counted where it is, and their counts are added up there."""

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        # A frame without records that has the types of every partition.
        check(request, read_frame(request, guarded(lambda: self._table._meta, "read the table")))
        return self._marginals(request)

    def _marginals(self, request: Request) -> Iterator[Marginal]:
        yield from marginals(request, guarded(partial(self._counts, request), _COUNTING, _HINT))

    def _counts(self, request: Request) -> Any:
        from dask.delayed import delayed

        counted = delayed(Counter(request).frame, pure=False)
        parts = self._table[list(request.columns)].to_delayed()
        tables = [counted(part) for part in parts]
        while len(tables) > 1:
            groups = (tables[first : first + _TOGETHER] for first in range(0, len(tables), _TOGETHER))
            tables = [delayed(merge, pure=False)(group) for group in groups]
        return tables[0].compute()


@final
class ModinSource(ComputedSource):
    """A frame of Modin: on Dask and on Ray every partition is counted where it is.

    On other engines, and where an id is named, the columns come to this process.
    """

    bounds_contributions = True
    counts_out_of_domain = False

    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self._whole = FrameSource(frame)

    def check_columns(self, request: Request) -> None:
        """Refuse a frame that lacks columns, or has such as cannot be read."""
        self._whole.check_columns(request)

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        run = None if request.unit.id is not None else _ON_PARTITIONS.get(_modin_engine())
        if run is None:
            return self._whole.count(request)
        self.check_columns(request)
        return self._marginals(request, run)

    def _marginals(self, request: Request, run: Callable[[Any, Any], list[Any]]) -> Iterator[Marginal]:
        def counts() -> Any:
            from modin.distributed.dataframe.pandas import unwrap_partitions

            parts = unwrap_partitions(self._table[list(request.columns)], axis=0)
            return merge(run(Counter(request).frame, parts))

        yield from marginals(request, guarded(counts, _COUNTING, _HINT))


def _modin_engine() -> str:
    from modin.config import Engine

    return str(Engine.get())


def _on_dask(counted: Any, parts: Any) -> list[Any]:
    from dask.distributed import default_client

    client: Any = default_client()  # type: ignore[no-untyped-call]
    return list(client.gather(client.map(counted, parts, pure=False)))


def _on_ray(counted: Any, parts: Any) -> list[Any]:
    import ray

    remote = ray.remote(lambda frame: counted(frame))
    return list(ray.get([remote.remote(part) for part in parts]))


_ON_PARTITIONS = {"Dask": _on_dask, "Ray": _on_ray}


@final
class SparkSource(ComputedSource):
    """A frame of Spark: every task counts its rows in `mapInArrow`, and Spark adds up their counts."""

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        names = guarded(lambda: list(self._table.columns), "read the table")
        request.check_columns(names)
        # Spark does not tell upper from lower case, and reads a point in a name as a field of a column.
        wanted = [f"a{names.index(name)}" for name in request.columns]
        chosen = guarded(
            lambda: self._table.toDF(*[f"a{i}" for i in range(len(names))]).select(*wanted), "read the table"
        )
        schema = guarded(lambda: chosen.limit(0).toArrow().schema, "read the table")
        check(request, read_batches(request, schema, iter(())))
        return self._marginals(request, chosen)

    def _marginals(self, request: Request, chosen: Any) -> Iterator[Marginal]:
        yield from marginals(request, guarded(partial(self._counts, request, chosen), _COUNTING, _HINT))

    def _counts(self, request: Request, chosen: Any) -> Any:
        counts = chosen.mapInArrow(Counter(request).batches, "marginal int, key bigint, records bigint")
        added = counts.groupBy("marginal", "key").agg({"records": "sum"})
        return added.toDF(*COUNTS.names).toArrow()
