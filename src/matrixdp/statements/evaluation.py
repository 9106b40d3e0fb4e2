"""Values of expressions at the cells of a few attributes: DuckDB computes them, and sees no data."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.domain.scalars import SETTINGS
from matrixdp.errors import TooLargeError
from matrixdp.statements.parsing import Scalar, column_values, key_values, labels, level_values
from matrixdp.statements.query import Statement

MOST_CELLS = 20_000_000
"""An expression of several attributes is evaluated at no more cells of theirs than this."""
_MOST_KEPT = 100_000
"""What is evaluated at no more cells than this is kept for the statements that follow."""


@final
@dataclass(frozen=True)
class Key:
    """The values of what is grouped by.

    Attributes
    ----------
    ranks : ndarray of int
        The place among the values at each cell, in the shape of the attributes.
    values : pyarrow.Array
        The distinct values, in the order in which cells have them.
    """

    ranks: NDArray[np.int64]
    values: pa.Array


@final
@dataclass(frozen=True)
class Evaluation:
    """Expressions at the cells of a domain; each is evaluated once."""

    domain: Domain
    _conditions: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    _keys: dict[str, Key] = field(default_factory=dict)
    _constants: dict[tuple[str, str], object] = field(default_factory=dict)

    def constant(self, sql: str, kind: str) -> object:
        """Return the value of an expression without attributes, as a type of SQL; None for no such value."""
        if (sql, kind) not in self._constants:
            try:
                with cursor() as connection:
                    [(value,)] = connection.sql(f"SELECT TRY_CAST(({sql}) AS {kind})").fetchall()
            except duckdb.Error:
                value = None
            self._constants[sql, kind] = value
        return self._constants[sql, kind]

    def condition(self, statement: Statement, scalar: Scalar) -> NDArray[np.bool_]:
        """Return at which cells of its attributes a condition holds; NULL is no."""
        if scalar.sql not in self._conditions:
            made = f"coalesce(CAST(({scalar.sql}) AS BOOLEAN), false)"
            column = self._column(statement, scalar, made)
            holds: NDArray[np.bool_] = column.to_numpy(zero_copy_only=False).reshape(self._shape(scalar))
            if holds.size > _MOST_KEPT:
                return holds
            self._conditions[scalar.sql] = holds
        return self._conditions[scalar.sql]

    def key(self, statement: Statement, scalar: Scalar) -> Key:
        """Return the values of what is grouped by."""
        name = scalar.sql if scalar.column is None else f"{scalar.sql} alone"
        if name not in self._keys:
            if scalar.column is not None:
                values = key_values(self.domain[scalar.column])
                self._keys[name] = Key(np.arange(len(values)), values)
            else:
                ranked = f"dense_rank() OVER (ORDER BY ({scalar.sql}))"
                ids = self._column(statement, scalar, ranked).to_numpy()
                values = self._column(statement, scalar, f"({scalar.sql})")
                first, ranks = in_order(ids)
                self._keys[name] = Key(ranks.reshape(self._shape(scalar)), values.take(first))
        return self._keys[name]

    def _shape(self, scalar: Scalar) -> tuple[int, ...]:
        return tuple(self.domain[name].size for name in scalar.names)

    def _name(self, column: re.Match[str]) -> str:
        """Return the attribute that a column of `over_columns` stands for."""
        place = int(column[1])
        return self.domain.names[place] if place < len(self.domain) else column[0]

    def _columns(self, name: str, codes: pa.Array, sql: str) -> dict[str, pa.Array]:
        """Return the columns of an attribute that an expression may name; see `over_columns`."""
        attribute, place = self.domain[name], self.domain.index(name)
        columns = {f"c{place}": column_values(attribute).take(codes)}
        if f"k{place}" in sql:
            columns[f"k{place}"] = pc.if_else(pc.equal(codes, attribute.null_code or -1), None, codes)
        if f"l{place}" in sql:
            columns[f"l{place}"] = labels(attribute).take(codes)
        for position, level in enumerate(attribute.codebook.levels):
            columns[f"v{place}_{position}"] = level_values(level, attribute.size).take(codes)
        return columns

    def _column(self, statement: Statement, scalar: Scalar, sql: str) -> pa.Array:
        """Return an expression at every cell of its attributes, row-major."""
        shape = self._shape(scalar)
        if math.prod(shape) > MOST_CELLS:
            found = f"a condition on the {math.prod(shape):,} cells of {', '.join(scalar.names)}"
            expected = f"one on at most {MOST_CELLS:,}; use fewer attributes in it, or fewer values"
            raise statement.error(scalar.node, found, expected, kind=TooLargeError)
        columns = {"place": pa.array(np.arange(math.prod(shape)))}
        for name, indices in zip(scalar.names, np.indices(shape), strict=True):
            columns |= self._columns(name, pa.array(indices.ravel()), scalar.sql)
        # made of what `Scope` lets through alone
        asked = f"SELECT {sql} AS found FROM cells ORDER BY place"  # noqa: S608
        try:
            with cursor() as connection:
                connection.register("cells", pa.table(columns))
                found = connection.sql(asked).to_arrow_table()
        except duckdb.Error as error:
            told = re.sub(r"\b[ckl]([0-9]+)\b", self._name, str(error).partition("\n")[0].partition(". ")[0])
            expected = f"an expression that has a value everywhere in the domain ({told})"
            raise statement.unfit(scalar.node, expected) from None
        return found.column("found").combine_chunks()


def in_order(items: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each distinct item first occurs, and the rank of every item among these."""
    axis = 0 if items.ndim > 1 else None
    _, first, inverse = np.unique(items, axis=axis, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return first[order], np.argsort(order)[inverse.ravel()]


def cursor() -> duckdb.DuckDBPyConnection:
    """Return a connection to a database that holds nothing, and reads and writes no file."""
    return _database(os.getpid()).cursor()


@lru_cache(maxsize=1)
def _database(process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 - a child has one of its own
    """Return an empty database that nothing is ever written to."""
    return duckdb.connect(":memory:", config=SETTINGS)


@lru_cache(maxsize=4)
def evaluation(domain: Domain) -> Evaluation:
    """Return the evaluation of a domain, the same for the same domain: statements have much in common."""
    return Evaluation(domain)
