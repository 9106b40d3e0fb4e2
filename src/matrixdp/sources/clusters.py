"""Tables of many machines: Dask and Modin count partitions, Spark its tasks, and only counts come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import chain
from typing import Any, final

import numpy as np

from matrixdp.errors import SourceError
from matrixdp.sources.base import FAILED, ComputedSource, Marginal, Request, guarded
from matrixdp.sources.columns import arrow
from matrixdp.sources.counting import Read, check, groups
from matrixdp.sources.memory import FrameSource, encode_batches, read_frame

# Counting a table in parts: each worker counts its own with our counter, and sends (marginal, key,
# records).
#
# A part's counts are a table of integers; those of all parts are added up, on the workers where the engine
# can. Nothing that happens on a worker leaves it but these integers: where counting fails there is one row
# that says so, and no error of an engine, which may quote the data.

COUNTS = arrow.schema([("marginal", arrow.int32()), ("key", arrow.int64()), ("records", arrow.int64())])
"""The columns of counts: the place of a marginal in the request, that of a cell in it, and its records."""

INSTALLED = "every worker must have this version of matrixdp"
"""What workers need."""

#: What a record may weigh, so that 2^33 records stay within 64 bits.
_MOST_WEIGHT = 2**30
_FAILED = arrow.table([[-1], [0], [0]], schema=COUNTS)


@final
@dataclass(frozen=True)
class Counter:
    """What a worker is given: the request, and the version that must count it.

    Examples
    --------
    >>> from matrixdp.domain import Domain, OutOfDomain
    >>> request = Request(Domain({"age": 3}), (("age",), ()), OutOfDomain())
    >>> Counter(request).frame(arrow.table({"age": [2, 0, 2, 9]})).to_pydict()
    {'marginal': [0, 0, 1], 'key': [0, 2, 0], 'records': [1, 2, 3]}
    """

    request: Request
    version: str = field(default_factory=lambda: version("matrixdp"))

    def frame(self, frame: Any) -> Any:
        """Count one part, a frame in memory."""
        return self._counts(lambda: read_frame(self.request, frame))

    def batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Count one part, batches of Arrow columns in the order of the request."""
        started = iter(batches)
        first = next(started, None)
        if first is not None:
            read = partial(encode_batches, self.request, first.schema, chain((first,), started))
            yield from self._counts(lambda: read).to_batches()

    def _counts(self, reader: Callable[[], Read]) -> Any:
        try:
            if self.version != version("matrixdp"):
                return _FAILED
            found = [COUNTS.empty_table()]
            # Workers count next to each other; each takes one core.
            for index, (_, keys, records) in enumerate(groups(self.request, reader(), few=True, threads=1)):
                place, order = np.full(len(keys), index, dtype=np.int32), np.argsort(keys)
                found.append(arrow.table([place, keys[order], records[order]], schema=COUNTS))
            return arrow.concat_tables(found)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001  whatever it is, a panic of an engine too, may quote the data
            return _FAILED


def check_weights(request: Request) -> None:
    """Reject amounts that are too finely divided for the 64 bits of counts.

    Raises
    ------
    SourceError
        If what a record weighs, times 2^33 records, leaves them.
    """
    for subset in request.subsets:
        if request.domain.weight(subset) > _MOST_WEIGHT:
            names = [name for name in subset if request.domain[name].divided]
            found = "an amount of more than 2^30 steps, alone or with others"
            expected = "a larger step, in this engine; convert the table, or name its file"
            raise SourceError.at(("domain", names[0]), found, expected, code="not-supported")


def merge(tables: Sequence[Any]) -> Any:
    """Add up counts, of no part too; that a worker failed stays as it is."""
    grouped = arrow.concat_tables([COUNTS.empty_table(), *tables]).group_by(["marginal", "key"])
    added = grouped.aggregate([("records", "sum")]).rename_columns({"records_sum": "records"})
    return added.select(COUNTS.names).cast(COUNTS)


def marginals(request: Request, run: Callable[[], Any]) -> Iterator[Marginal]:
    """Yield every marginal of a request; what is run returns the counts of all parts.

    Raises
    ------
    SourceError
        If a worker could not count its part.
    """
    counts = guarded(run, "count the table", f"{INSTALLED}, or {FAILED}")
    place, keys, records = (counts[name].to_numpy() for name in COUNTS.names)
    if (place < 0).any():
        message = f"a worker could not count its part of the table; {INSTALLED}, and {FAILED}"
        raise SourceError(message, code="engine-failed")
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(request.counted) + 1))
    for index, subset in enumerate(request.counted):
        own = order[ends[index] : ends[index + 1]]
        yield subset, request.array(subset, keys[own], records[own])


_TOGETHER = 16
"""How many tables of counts one task adds up."""


@final
class DaskSource(ComputedSource):
    """A frame of Dask: every partition is counted where it is, and their counts are added up there."""

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        check_weights(request)
        # A frame without records that has the types of every partition.
        check(request, read_frame(request, guarded(lambda: self._table._meta)))
        return marginals(request, partial(self._counts, request))

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
        """Reject a frame that lacks columns, or has some that cannot be read."""
        self._whole.check_columns(request)

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        from modin.config import Engine

        run = None if request.unit.id is not None else _ON_PARTITIONS.get(str(Engine.get()))
        if run is None:
            return self._whole.count(request)
        check_weights(request)
        self.check_columns(request)
        return marginals(request, partial(self._counts, request, run))

    def _counts(self, request: Request, run: Callable[[Any, Any], list[Any]]) -> Any:
        from modin.distributed.dataframe.pandas import unwrap_partitions

        parts = unwrap_partitions(self._table[list(request.columns)], axis=0)
        return merge(run(Counter(request).frame, parts))


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
        check_weights(request)
        names = guarded(lambda: list(self._table.columns))
        request.check_columns(names)
        # Spark does not tell upper from lower case, and reads a point in a name as a field of a column.
        wanted = [f"a{names.index(name)}" for name in request.columns]
        renamed = [f"a{i}" for i in range(len(names))]
        chosen = guarded(lambda: self._table.toDF(*renamed).select(*wanted))
        schema = guarded(lambda: chosen.limit(0).toArrow().schema)
        check(request, partial(encode_batches, request, schema, iter(())))
        return marginals(request, partial(self._counts, request, chosen))

    def _counts(self, request: Request, chosen: Any) -> Any:
        counts = chosen.mapInArrow(Counter(request).batches, "marginal int, key bigint, records bigint")
        added = counts.groupBy("marginal", "key").agg({"records": "sum"})
        return added.toDF(*COUNTS.names).toArrow()
