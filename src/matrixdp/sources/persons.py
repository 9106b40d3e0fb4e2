"""Bounding the records of one person in DuckDB: the first ones in the order of the table, and no others.

Which records of a person are kept follows from their ids and their order alone, and no record of one person
has an influence on those of another; docs/privacy.md has the proof. Ids are compared by canonical value, like
categories (`matrixdp.domain.rules`), so that a storage type that was inferred from values does not change who
is one person.
"""

import duckdb

from matrixdp.domain.rules import BOOLEANS, NUMBERS, Kind, Listed
from matrixdp.errors import SourceError
from matrixdp.sources.requests import Request
from matrixdp.sources.sql import value_expression

__all__ = ["bounded", "id_columns", "id_expressions"]

_IDS = (*NUMBERS, Kind.DATE)
#: Canonical texts of categories as they are read where both numbers and booleans are listed.
_CANONICAL = Listed((*BOOLEANS, "0"))


def id_expressions(name: str, column: str, kind: Kind) -> list[str]:
    """Return the expressions from a raw id, in a quoted column, to its canonical text and its number.

    Raises
    ------
    SourceError
        If ids cannot be read from such a column: names it.
    """
    if kind not in _IDS:
        raise SourceError(
            f"column {name!r} holds values of another kind; ids are texts, numbers, booleans or dates, so "
            "convert it first"
        )
    value = value_expression(_CANONICAL, column, kind)
    if kind in (Kind.INTEGER, Kind.FLOAT):
        return ["CAST(NULL AS VARCHAR) AS id_text", f"{value} AS id_number"]
    if kind is Kind.TEXT:
        return [f"struct_extract({value}, 't') AS id_text", f"struct_extract({value}, 'n') AS id_number"]
    return [f"CAST({value} AS VARCHAR) AS id_text", "CAST(NULL AS DOUBLE) AS id_number"]


def id_columns() -> list[str]:
    """Return the expressions from those of `id_expressions` to what tells persons apart.

    A text that is empty, or holds U+FFFD in the place of what cannot be read, names nobody. The two zeros are
    one number.
    """
    readable = "id_number IS NULL AND id_text <> '' AND NOT contains(id_text, chr(65533))"
    return [f"CASE WHEN {readable} THEN id_text END AS id_text", "id_number + 0.0 AS id_number"]


def bounded(relation: duckdb.DuckDBPyRelation, request: Request) -> duckdb.DuckDBPyRelation:
    """Return the first records of each person; all where no id is named.

    The relation is what `matrixdp.sources.counting.encode` makes: codes, whether a record is `inside` the
    domain, which counts of records out of domain it is in, the columns of `id_columns`, and the `place` of
    each record.
    """
    unit = request.unit
    if unit.id is None:
        return relation
    kept = ", ".join(relation.columns[: relation.columns.index("id_text")])
    rank = "row_number() OVER (PARTITION BY id_text, id_number ORDER BY place) AS rank"
    named = relation.filter("id_text IS NOT NULL OR id_number IS NOT NULL")
    return named.project(f"{kept}, {rank}").filter(f"rank <= {unit.records}").project(kept)
