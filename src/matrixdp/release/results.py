"""Answers in the shape of a statement's result: a row for each of its rows, its columns under their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.columns import FIGURES
from matrixdp.queries import Group
from matrixdp.statements import SqlQuery
from matrixdp.statements.query import Places

__all__ = ["FIGURE", "Figures", "result"]

Array = NDArray[np.float64]

FIGURE = b"figure"
"""The key of a field's metadata that says which figure of a count its column holds."""


@final
@dataclass(frozen=True)
class Figures:
    """What is known of a group's queries: estimates, standard errors, and half the lengths of intervals."""

    estimates: Array
    deviations: Array
    widths: Array


def result(query: SqlQuery, figures_of: Callable[[Group], Figures]) -> pa.Table:
    """Return the answers to a statement as its result would be.

    Parameters
    ----------
    query : SqlQuery
        What the statement asks.
    figures_of : callable
        Returns the figures of a query group.

    Returns
    -------
    pyarrow.Table
        The columns of SELECT in their order. Beside every count, under its name with an ending, its standard
        error ``_stddev`` and the ends of its interval, ``_lower`` and ``_upper``. What is 0 whatever the
        data has no error. Where a name stands twice, the later one gets a number.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> from matrixdp.statements import read
    >>> domain = Domain({"sex": ["female", "male"]})
    >>> query = read("SELECT sex AS s, COUNT(*) AS n FROM people GROUP BY sex").query(domain)
    >>> known = Figures(np.array([4.0, 5.0]), np.array([1.0, 1.0]), np.array([2.0, 2.0]))
    >>> result(query, lambda group: known).to_pylist()[1]
    {'s': 'male', 'n': 5.0, 'n_stddev': 1.0, 'n_lower': 3.0, 'n_upper': 7.0}
    """
    found = [figures_of(group) for group in query.groups]
    keys = iter(query.keys.columns)
    names: list[str] = []
    fields: list[pa.Field] = []
    arrays: list[pa.Array | pa.ChunkedArray] = []
    for column in query.columns:
        if column.aggregate is None:
            arrays.append(next(keys))
            fields.append(pa.field(_new(column.name, names), arrays[-1].type))
            continue
        estimates, deviations, widths = _placed(query.places[column.aggregate], found)
        values = (estimates, deviations, estimates - widths, estimates + widths)
        for figure, own in zip(FIGURES, values, strict=True):
            name = column.name if figure == FIGURES[0] else f"{column.name}_{figure}"
            arrays.append(pa.array(own, pa.float64()))
            fields.append(pa.field(_new(name, names), pa.float64(), metadata={FIGURE: figure.encode()}))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _placed(places: Places, found: list[Figures]) -> tuple[Array, Array, Array]:
    """Return the figures of every row of one aggregate, 0 where no record can fit."""
    filled = tuple(np.zeros(len(places.queries)) for _ in range(3))
    for number, figures in enumerate(found):
        own = (places.groups == number) & (places.queries >= 0)
        at = places.queries[own]
        for column, values in zip(
            filled, (figures.estimates, figures.deviations, figures.widths), strict=True
        ):
            column[own] = values[at]
    estimates, deviations, widths = filled
    return estimates, deviations, widths


def _new(name: str, names: list[str]) -> str:
    """Return a name that is not among others, and add it to them."""
    new, number = name, 1
    while new in names:
        new, number = f"{name}_{number}", number + 1
    names.append(new)
    return new
