"""The columns of a table of answers, built from codes: text is made for distinct values alone.

A row is a query: its group, one column for each attribute that the table asks about (null where the query
does not ask about it, which is a total), the text of explicit queries, the estimate, its standard deviation
and the ends of its interval.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.queries import DenseGroup, Group, Predicates, ProductGroup, Total

__all__ = ["BATCH_ROWS", "FIGURES", "AnswerColumns", "plain_schema"]

Array = NDArray[np.float64]

#: Rows of a batch, and of a row group of a file.
BATCH_ROWS = 1 << 20
#: The columns of numbers, in order.
FIGURES = ("estimate", "stddev", "lower", "upper")

_TEXT = pa.dictionary(pa.int32(), pa.utf8())


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose texts are plain ones.

    Examples
    --------
    >>> plain_schema(pa.schema([("group", pa.dictionary(pa.int32(), pa.utf8()))])).field("group").type
    DataType(string)
    """
    return pa.schema([(f.name, pa.utf8() if pa.types.is_dictionary(f.type) else f.type) for f in schema])


@final
class AnswerColumns:
    """The columns of the answers to some query groups.

    ``schema`` has them, and ``columns`` those of the attributes that are asked about: where another column
    has the name of an attribute, its own gets the ending ``_attribute``.

    Examples
    --------
    >>> from matrixdp.language import marginals
    >>> from matrixdp.queries import Workload
    >>> workload = Workload(Domain({"sex": ["female", "male"], "code": 3}), marginals([0, 1]))
    >>> columns = AnswerColumns(workload.domain, workload.groups)
    >>> columns.schema.names
    ['group', 'sex', 'code', 'estimate', 'stddev', 'lower', 'upper']
    >>> batch = next(columns.batches(1, np.array([5.0, 7.0]), np.array([1.0, 1.0]), 2.0))
    >>> batch.to_pylist()[1]
    {'group': 'sex', 'sex': 'male', 'code': None, 'estimate': 7.0, 'stddev': 1.0, 'lower': 5.0, 'upper': 9.0}
    """

    def __init__(self, domain: Domain, groups: Sequence[Group]) -> None:
        self._domain = domain
        self._groups = tuple(groups)
        self._labels: dict[str, dict[str, int]] = {}
        self._codes: dict[Hashable, NDArray[np.int32]] = {}
        for group in self._groups:
            for name, predicates in _asked(group):
                self._register(name, predicates)
        asked = [name for name in domain.names if name in self._labels]
        self._texts = {name: pa.array(list(self._labels[name]), pa.utf8()) for name in asked}
        self._names = pa.array([group.name for group in self._groups], pa.utf8())
        self._explicit = any(isinstance(group, DenseGroup) for group in self._groups)
        self.columns = _column_names(asked)
        self.schema = pa.schema(
            [
                ("group", _TEXT),
                *((self.columns[name], _TEXT) for name in asked),
                *([("query", pa.utf8())] if self._explicit else []),
                *((name, pa.float64()) for name in FIGURES),
            ]
        )

    def _register(self, name: str, predicates: Predicates) -> None:
        attribute = self._domain[name]
        key = (name, predicates.text_key(attribute.size))
        if key in self._codes:
            return
        labels = self._labels.setdefault(name, {})
        codes = [labels.setdefault(text, len(labels)) for text in predicates.describe(attribute)]
        self._codes[key] = np.asarray(codes, dtype=np.int32)

    def batches(
        self, position: int, estimates: Array, variances: Array, quantile: float | Array
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the group at a place, in order, with the ends of intervals ``quantile`` apart."""
        group = self._groups[position]
        texts = None
        if isinstance(group, DenseGroup):
            texts = group.content.describe(self._domain, group.attributes)
        for start in range(0, group.queries, BATCH_ROWS):
            stop = min(start + BATCH_ROWS, group.queries)
            estimate = estimates[start:stop]
            deviation = np.sqrt(variances[start:stop])
            width = (quantile if isinstance(quantile, float) else quantile[start:stop]) * deviation
            count = stop - start
            codes = self._product_codes(group, start, stop)
            empty = pa.nulls(count, pa.int32())
            arrays = [_coded(np.full(count, position, dtype=np.int32), self._names)]
            for name, labels in self._texts.items():
                arrays.append(_coded(codes.get(name, empty), labels))
            if self._explicit:
                arrays.append(pa.nulls(count, pa.utf8()) if texts is None else pa.array(texts[start:stop]))
            figures = (estimate, deviation, estimate - width, estimate + width)
            arrays.extend(pa.array(figure, pa.float64()) for figure in figures)
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _product_codes(self, group: Group, start: int, stop: int) -> dict[str, NDArray[np.int32]]:
        """Return the labels' codes of the queries from start to stop, for each attribute asked about."""
        if isinstance(group, DenseGroup):
            return {}
        flat = np.arange(start, stop)
        counts = group.counts
        result = {}
        for axis, (name, predicates) in enumerate(zip(group.attributes, group.predicates, strict=True)):
            if isinstance(predicates, Total):
                continue
            stride = math.prod(counts[axis + 1 :])
            key = (name, predicates.text_key(group.sizes[axis]))
            result[name] = self._codes[key][flat // stride % counts[axis]]
        return result


def _asked(group: Group) -> Iterator[tuple[str, Predicates]]:
    if isinstance(group, ProductGroup):
        for name, predicates in zip(group.attributes, group.predicates, strict=True):
            if not isinstance(predicates, Total):
                yield name, predicates


def _column_names(asked: Sequence[str]) -> dict[str, str]:
    taken = {"group", "query", *FIGURES}
    columns: dict[str, str] = {}
    for name in asked:
        column = name
        while column in taken or (column != name and column in asked):
            column += "_attribute"
        taken.add(column)
        columns[name] = column
    return columns


def _coded(codes: NDArray[np.int32] | pa.Array, labels: pa.Array) -> pa.DictionaryArray:
    # The codes are made above, so their range is not checked again.
    indices = codes if isinstance(codes, pa.Array) else pa.array(codes, pa.int32())
    return pa.DictionaryArray.from_arrays(indices, labels, safe=False)
