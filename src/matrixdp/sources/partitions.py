"""Counting a table in parts: each worker counts its own with our counter, and sends (marginal, key, records).

A part's counts are a table of integers; those of all parts are added up, on the workers where the engine can.
Nothing that happens on a worker leaves it but these integers: where counting fails there is one row that says
so, and no error of an engine, which may quote the data.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain
from typing import Any, final

import numpy as np
import pyarrow as pa

from matrixdp.errors import SourceError
from matrixdp.sources.counting import Read, groups
from matrixdp.sources.memory import read_frame
from matrixdp.sources.requests import Request
from matrixdp.sources.source import FAILED, Marginal
from matrixdp.sources.streams import read_batches

__all__ = ["COUNTS", "INSTALLED", "Counter", "marginals", "merge"]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""

COUNTS = arrow.schema([("marginal", arrow.int32()), ("key", arrow.int64()), ("records", arrow.int64())])
"""The columns of counts: the place of a marginal in the request, that of a cell in it, and its records."""

INSTALLED = "every worker must have this version of matrixdp"
"""What workers need."""

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
            held = chain((first,), started)
            yield from self._counts(lambda: read_batches(self.request, first.schema, held)).to_batches()

    def _counts(self, reader: Callable[[], Read]) -> Any:
        try:
            if self.version != version("matrixdp"):
                return _FAILED
            found = [COUNTS.empty_table()]
            # Workers count next to each other; each takes one core.
            counted = groups(self.request, reader(), few=True, threads=1)
            for index, (_, keys, records) in enumerate(counted):
                place = np.full(len(keys), index, dtype=np.int32)
                order = np.argsort(keys)
                found.append(arrow.table([place, keys[order], records[order]], schema=COUNTS))
            return arrow.concat_tables(found)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001  whatever it is, a panic of an engine too, may quote the data
            return _FAILED


def merge(tables: Sequence[Any]) -> Any:
    """Add up counts, of no part too; that a worker failed stays as it is."""
    added = (
        arrow.concat_tables([COUNTS.empty_table(), *tables])
        .group_by(["marginal", "key"])
        .aggregate([("records", "sum")])
    )
    return added.rename_columns({"records_sum": "records"}).select(COUNTS.names).cast(COUNTS)


def marginals(request: Request, counts: Any) -> Iterator[Marginal]:
    """Return every marginal of a request from the counts of all parts.

    Raises
    ------
    SourceError
        If a worker could not count its part.
    """
    place, keys, records = (counts[name].to_numpy() for name in COUNTS.names)
    if (place < 0).any():
        raise SourceError(f"a worker could not count its part of the table; {INSTALLED}, and {FAILED}")
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(request.counted) + 1))
    for index, subset in enumerate(request.counted):
        own = order[ends[index] : ends[index + 1]]
        yield subset, request.array(subset, keys[own], records[own])
