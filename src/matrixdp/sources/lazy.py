"""Lazy frames, counted by their own engine: Polars, Dask, PySpark, Ibis and others that narwhals takes."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, final

import narwhals as nw
import numpy as np

from matrixdp.domain import Domain
from matrixdp.domain.rules import Kind, Rule
from matrixdp.errors import SourceError
from matrixdp.sources.expressions import code, frame_kind, total, values
from matrixdp.sources.guard import guarded
from matrixdp.sources.requests import Request, strides
from matrixdp.sources.source import COMPUTED, FAILED, INFERRED, Marginal, Source

__all__ = ["LazySource", "unions"]

_COUNTING = "count the table"
UNION_CELLS = 2**22


@final
class LazySource(Source):
    """A lazy frame. Its engine encodes and counts, and only counts leave it.

    As every query may read the whole table again, marginals are counted together where the marginal on all of
    their attributes has at most `UNION_CELLS` cells, and are summed from that one.
    """

    def __init__(self, frame: Any) -> None:
        self._frame: nw.LazyFrame[Any] = nw.from_native(frame)

    def assumptions(self, domain: Domain) -> tuple[str, ...]:  # noqa: ARG002
        """Return what the promise assumes of the table."""
        return (COMPUTED, INFERRED)

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        schema = guarded(self._frame.collect_schema, "read the table")
        request.check_columns(schema.names())
        empty = self._null_columns()
        kinds = {n: Kind.NULL if n in empty else frame_kind(schema[n]) for n in request.domain.columns}
        rules = request.rules(kinds)
        for name, rule in rules.items():
            if rule.trim or rule.null is not None:
                found = "`trim` or `null`"
                raise SourceError.at(("domain", name), found, "neither, where a lazy frame is counted")
        return self._marginals(guarded(lambda: self._encode(request, kinds, rules), _COUNTING), request)

    def _null_columns(self) -> set[str]:
        """Return the columns of Polars' type for nulls alone, which narwhals has no name for."""
        if not self._frame.implementation.is_polars():
            return set()
        types = guarded(self._frame.to_native().collect_schema, "read the table")
        return {name for name, dtype in types.items() if str(dtype) == "Null"}

    def _encode(
        self, request: Request, kinds: Mapping[str, Kind], rules: Mapping[str, Rule]
    ) -> nw.LazyFrame[Any]:
        raw: list[nw.Expr] = []
        codes, replaced = [], []
        for index, (name, rule) in enumerate(rules.items()):
            column = request.domain[name].column
            parts = values(rule, nw.col(column), kinds[column])
            names = [f"value_{index}_{part}" for part in range(len(parts))]
            raw.extend(part.alias(alias) for part, alias in zip(parts, names, strict=True))
            found = code(rule, [nw.col(alias) for alias in names], kinds[column])
            codes.append(found.cast(nw.Int64()).alias(f"code_{index}"))
            other = request.out_of_domain.code(name)
            if other is not None:
                found = nw.col(f"code_{index}")
                kept = nw.when(found >= 0).then(found).otherwise(nw.lit(other))
                replaced.append(kept.cast(nw.Int64()).alias(f"code_{index}"))
        frame = self._frame.select(*raw).select(*codes)
        frame = frame.with_columns(*replaced) if replaced else frame
        return frame.filter(*(nw.col(f"code_{index}") >= 0 for index in range(len(rules))))

    def _marginals(self, encoded: nw.LazyFrame[Any], request: Request) -> Iterator[Marginal]:
        for union, members in unions(request.domain, request.subsets, UNION_CELLS):
            counts = guarded(partial(self._group, encoded, request, union), _COUNTING, FAILED)
            for subset in members:
                away = tuple(axis for axis, name in enumerate(union) if name not in subset)
                kept = [name for name in union if name in subset]
                marginal = np.asarray(counts.sum(axis=away, dtype=np.int64))
                marginal = marginal.transpose([kept.index(name) for name in subset])
                yield subset, np.ascontiguousarray(marginal).reshape(request.shape(subset))

    def _group(
        self, encoded: nw.LazyFrame[Any], request: Request, union: tuple[str, ...]
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        steps = strides(request.shape(union))
        terms = [
            nw.col(f"code_{request.domain.index(name)}") * step
            for name, step in zip(union, steps, strict=True)
        ]
        # The term of zeros keeps the key a column where there is no attribute.
        key = total([nw.col("code_0") * 0, *terms]).alias("key")
        groups = encoded.select(key).group_by("key").agg(nw.len().alias("records")).collect("pyarrow")
        return request.array(union, groups["key"].to_numpy(), groups["records"].to_numpy())


def unions(
    domain: Domain, subsets: Sequence[tuple[str, ...]], cells: int
) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Gather marginals into fewer, larger ones.

    Examples
    --------
    >>> unions(Domain({"a": 2, "b": 3, "c": 4}), [("a", "b"), ("c",), ("b", "a"), ()], 12)
    [(('a', 'b'), [('a', 'b'), ('b', 'a'), ()]), (('c',), [('c',)])]
    """
    gathered: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
    order = sorted(range(len(subsets)), key=lambda index: (-domain.cells(subsets[index]), index))
    for subset in (subsets[index] for index in order):
        best: tuple[int, int, tuple[str, ...]] | None = None
        for index, (union, _) in enumerate(gathered):
            joined = domain.sort({*union, *subset})
            size, growth = domain.cells(joined), domain.cells(joined) // domain.cells(union)
            if (size <= cells or growth == 1) and (best is None or growth < best[0]):
                best = growth, index, joined
        if best is None:
            gathered.append((domain.sort(subset), [subset]))
        else:
            gathered[best[1]] = best[2], [*gathered[best[1]][1], subset]
    return gathered
