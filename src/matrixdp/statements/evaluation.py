"""Conditions and keys at the cells of a few attributes: DuckDB computes them, and sees no data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError, TooLargeError
from matrixdp.statements.engine import cursor
from matrixdp.statements.parsing import (
    Scalar,
    Scope,
    check,
    column_values,
    key_values,
    labels,
    level_values,
    scalar,
    unwrapped,
)
from matrixdp.statements.query import Statement, sql_of

MOST_CELLS = 20_000_000
"""An expression of several attributes is evaluated at no more cells of theirs than this."""
_MOST_KEPT = 100_000
"""What is evaluated at no more cells than this is kept for the statements that follow."""


@final
@dataclass(frozen=True)
class Condition:
    """A condition at the cells of its attributes, which are in domain order."""

    names: tuple[str, ...]
    holds: NDArray[np.bool_]
    text: str


@final
@dataclass(frozen=True)
class Key:
    """What is grouped by at the cells of its attributes, which are in domain order.

    Attributes
    ----------
    place : int
        Which of the keys of the statement it is.
    names : tuple of str
    ranks : ndarray of int
        The place among the values at each cell.
    values : pyarrow.Array
        The distinct values, in the order in which cells have them.
    text : str
    """

    place: int
    names: tuple[str, ...]
    ranks: NDArray[np.int64]
    values: pa.Array
    text: str


def conditions_of(scope: Scope, made: Scalar) -> list[Condition]:
    """Return the condition that a part of a statement says, in which NULL is no; none where it always holds.

    Raises
    ------
    EntryError
        If it never holds.
    """
    column = values_at_cells(scope, made, f"coalesce(CAST(({made.sql}) AS BOOLEAN), false)")
    holds: NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    if not holds.any():
        raise nothing(scope.statement, made.node)
    return [] if holds.all() else [Condition(made.names, holds, sql_of(made.node))]


def nothing(statement: Statement, node: exp.Expr) -> MatrixDPError:
    """Return the error of conditions that no record can meet."""
    expected = "conditions that some value of the domain meets; this count is 0 for every table"
    return statement.unfit(node, expected)


def key_of(scope: Scope, place: int, node: exp.Expr) -> Key:
    """Return the key of a grouping expression; an attribute alone stands for its values."""
    plain = unwrapped(node)
    attribute, level = scope.named(plain) if isinstance(plain, exp.Column) else (None, None)
    if attribute is not None and level is None:
        check(scope, plain)
        values = key_values(attribute)
        return Key(place, (attribute.name,), np.arange(len(values)), values, sql_of(node))
    made = scalar(scope, node)
    if not made.names:
        raise scope.statement.unfit(node, "an attribute, or an expression of attributes")
    first, ranks = in_order(
        values_at_cells(scope, made, f"dense_rank() OVER (ORDER BY ({made.sql}))").to_numpy()
    )
    return Key(place, made.names, ranks, values_at_cells(scope, made, made.sql).take(first), sql_of(node))


def in_order(items: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each distinct item first occurs, and the rank of every item among these."""
    axis = 0 if items.ndim > 1 else None
    _, first, inverse = np.unique(items, axis=axis, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[inverse.ravel()]


def values_at_cells(scope: Scope, made: Scalar, sql: str) -> pa.Array:
    """Return SQL over the columns of an expression at every cell of its attributes, row-major."""
    cells = scope.domain.cells(made.names)
    if cells > MOST_CELLS:
        found = f"a condition on the {cells:,} cells of {', '.join(made.names)}"
        expected = f"one on at most {MOST_CELLS:,}; use fewer attributes in it, or fewer values"
        raise scope.statement.error(made.node, found, expected, kind=TooLargeError)
    evaluate = _kept if cells <= _MOST_KEPT else _evaluated
    try:
        return evaluate(scope.domain, made.names, sql)
    except duckdb.Error as error:

        def named(column: re.Match[str]) -> str:
            place = int(column[1])
            return scope.domain.names[place] if place < len(scope.domain) else column[0]

        told = re.sub(r"\b[ckl]([0-9]+)\b", named, str(error).partition("\n")[0].partition(". ")[0])
        expected = f"an expression that has a value everywhere in the domain ({told})"
        raise scope.statement.unfit(made.node, expected) from None


def _evaluated(domain: Domain, names: tuple[str, ...], sql: str) -> pa.Array:
    columns = {"place": pa.array(np.arange(domain.cells(names)))}
    for name, indices in zip(names, np.indices([domain[name].size for name in names]), strict=True):
        columns |= _columns(domain, name, pa.array(indices.ravel()), sql)
    with cursor() as connection:
        connection.register("cells", pa.table(columns))
        # made of what `Scope` lets through alone
        found = connection.sql(f"SELECT ({sql}) AS found FROM cells ORDER BY place").to_arrow_table()  # noqa: S608
    return found.column("found").combine_chunks()


_kept = lru_cache(maxsize=512)(_evaluated)  # statements have much in common


def _columns(domain: Domain, name: str, codes: pa.Array, sql: str) -> dict[str, pa.Array]:
    """Return the columns of an attribute that an expression may name; see `over_columns`."""
    attribute, place = domain[name], domain.index(name)
    columns = {f"c{place}": column_values(attribute).take(codes)}
    if f"k{place}" in sql:
        columns[f"k{place}"] = pc.if_else(pc.equal(codes, attribute.null_code or -1), None, codes)
    if f"l{place}" in sql:
        columns[f"l{place}"] = labels(attribute).take(codes)
    for position, level in enumerate(attribute.codebook.levels):
        columns[f"v{place}_{position}"] = level_values(level, attribute.size).take(codes)
    return columns
