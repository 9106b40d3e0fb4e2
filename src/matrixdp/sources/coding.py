"""Texts become codes by their dictionaries: what stands in many records is encoded once a batch.

How a text becomes a code is the same expression that DuckDB evaluates for every other column.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any, final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.domain import Attribute, Coded, Domain
from matrixdp.domain.rules import Kind, Rule
from matrixdp.sources.columns import PLACE, is_text, listed, plain
from matrixdp.sources.counting import encode, expressions
from matrixdp.sources.database import connect_to_kept
from matrixdp.sources.requests import Request

__all__ = ["encode_batches"]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""

#: The most texts of a batch that are looked up among those of earlier ones, rather than computed again.
_FEW = 2**12
#: The most texts of one column whose codes are remembered.
_MOST_KNOWN = 2**16


def encode_batches(
    request: Request, schema: Any, batches: Iterable[Any], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    """Return the codes of record batches with the columns of a request, and the place of each if it is asked.

    Texts may be dictionaries. Batches are read when the relation is counted, and once.
    """
    types = dict(zip(request.columns, schema.types, strict=False))
    encoders: list[Attribute] = []
    fields = []
    coders: dict[str, Rule] = {}
    for index, attribute in enumerate(request.domain.readings):
        held = types[attribute.column]
        rule = attribute.rule(Kind.TEXT) if is_text(held) else None
        if rule is None:
            encoders.append(attribute.read_from(None))
            fields.append((f"a{index}", plain(arrow.nulls(0, held)).type))
        else:
            coders[attribute.name] = rule
            encoders.append(Coded(attribute.name, attribute.size))
            fields.append((f"a{index}", arrow.int64()))
    names = list(request.domain.readings.names)
    if request.unit.id is not None:
        names.append(request.unit.id)
        fields += [("id", plain(arrow.nulls(0, types[request.unit.id])).type), PLACE]
    # Positions instead of names: DuckDB does not tell upper from lower case.
    own = arrow.schema(fields)
    coded = _coded(request, coders, batches, own)
    records = connection.from_arrow(arrow.RecordBatchReader.from_batches(own, coded))
    return encode(records, request, Domain(encoders), names)


def _coded(request: Request, rules: dict[str, Rule], batches: Iterable[Any], schema: Any) -> Iterator[Any]:
    place = {name: index for index, name in enumerate(request.columns)}
    with closing(connect_to_kept()) as connection:
        coders = {name: _Coder(rule, connection) for name, rule in rules.items()}
        for batch in batches:
            columns = []
            for attribute in request.domain.readings:
                column = batch.column(place[attribute.column])
                coder = coders.get(attribute.name)
                columns.append(plain(column) if coder is None else coder.codes(column))
            if request.unit.id is not None:
                columns += [plain(batch.column(place[request.unit.id])), batch.columns[-1]]
            yield arrow.record_batch(columns, schema=schema)


@final
class _Coder:
    """Texts to codes by one rule; -1 where they are out of domain."""

    def __init__(self, rule: Rule, connection: duckdb.DuckDBPyConnection) -> None:
        values, code = expressions(rule, '"text"', Kind.TEXT, 0)
        self._values, self._code = ", ".join(values), f"coalesce(CAST({code} AS BIGINT), -1) AS code"
        self._connection = connection
        self._known: dict[str, int] = {}
        self._missing = self._computed(arrow.nulls(1, arrow.large_string()))

    def codes(self, column: Any) -> NDArray[np.int64]:
        """Return the codes of a column of texts, which may be a dictionary."""
        column = listed(column)
        texts = column.dictionary
        found = self._computed(texts) if len(texts) > _FEW else self._remembered(texts.to_pylist())
        # What is missing stands behind all texts.
        places: NDArray[np.int32] = column.indices.fill_null(len(texts)).to_numpy()
        return np.append(found, self._missing)[places]

    def _remembered(self, texts: list[str]) -> NDArray[np.int64]:
        if len(self._known) > _MOST_KNOWN:
            self._known = {}
        new = [text for text in texts if text not in self._known]
        if new:
            codes = self._computed(arrow.array(new, arrow.large_string()))
            self._known.update(zip(new, codes.tolist(), strict=True))
        return np.fromiter(map(self._known.__getitem__, texts), np.int64, len(texts))

    def _computed(self, texts: Any) -> NDArray[np.int64]:
        held = self._connection.from_arrow(arrow.table({"text": texts}))
        codes: NDArray[np.int64] = held.project(self._values).project(self._code).fetchnumpy()["code"]
        return codes
