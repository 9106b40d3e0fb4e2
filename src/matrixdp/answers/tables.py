"""One clean table of a group of answers: as it stands, or wide."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from matrixdp.answers.columns import FIGURES, AnswerColumns
from matrixdp.answers.titles import find_group, head, title
from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.forms import describe_value, unknown_name
from matrixdp.queries import Group, ProductGroup, Total, Workload

__all__ = ["FIGURE", "Tabulated", "own_table", "pivoted"]

FIGURE = b"figure"
"""The key of a field's metadata that says which figure of an answer its column holds."""
#: A table gets at most so many columns for the values of an attribute.
_MOST_PIVOTED = 1_000


class Tabulated:
    """The tables of a release, one for each group."""

    workload: Workload

    @abstractmethod
    def _table(self, groups: Sequence[Group]) -> pa.Table:
        """Return the answers to some groups."""

    def table(self, text: str, *, pivot: str | None = None) -> pa.Table:
        """Return the answers of one group as a clean table.

        Parameters
        ----------
        text : str
            What the table is called: its title (`matrixdp.answers.title`), the name of the group, or its
            attributes, in any order and case.
        pivot : str, optional
            An attribute whose values become columns: the estimate under the text of the value, and beside it
            its standard error and the ends of its interval, ``male_stddev``, ``male_lower``, ``male_upper``.

        Returns
        -------
        pyarrow.Table
            The columns of `Release.answers` that the group has, without ``group``; an attribute that is asked
            about at a level has the name of the level.

        Raises
        ------
        WorkloadError
            If no table or several are called so, or the group does not ask about the attribute to pivot.
        TooLargeError
            If there are too many rows, or columns.
        UnsupportedQueryError
            If the measurement does not determine a query.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"sex": ["female", "male"], "age": range(4)})
        >>> workload = mdp.Workload(domain, mdp.product(sex="identity", age="prefix"))
        >>> table = {"sex": ["female", "male"], "age": [0, 3]}
        >>> release = mdp.select(workload).measure(table, mdp.Budget(rho=0.5)).reconstruct()
        >>> release.table("age CDF by sex").column_names[:4]
        ['sex', 'age', 'age_from', 'age_to']
        >>> wide = release.table("age CDF by sex", pivot="sex")
        >>> wide.column_names[:5], wide.num_rows
        (['age', 'age_from', 'age_to', 'female', 'female_stddev'], 4)
        """
        group = self.workload.groups[find_group(self.workload.groups, text)]
        return own_table(self._table((group,)), group, self.workload.domain, pivot)


def own_table(answers: pa.Table, group: Group, domain: Domain, pivot: str | None = None) -> pa.Table:
    """Return the table of a group from the answers to it alone."""
    table = answers.drop_columns(["group"])
    return table if pivot is None else pivoted(table, group, domain, pivot)


def pivoted(table: pa.Table, group: Group, domain: Domain, pivot: str) -> pa.Table:
    """Return a group's table with a column for each value of an attribute; see `Tabulated.table`."""
    product, axis = _axis(group, domain, pivot)
    counts = product.counts
    if counts[axis] > _MOST_PIVOTED:
        found = f"{pivot!r} with {counts[axis]:,} values in {title(group)!r}"
        raise TooLargeError.at(("pivot",), found, f"at most {_MOST_PIVOTED:,}, each of which is a column")
    places = np.moveaxis(np.arange(product.queries).reshape(counts), axis, 0).reshape(counts[axis], -1)
    figures = {name: table.column(name) for name in FIGURES}
    columns = AnswerColumns(domain, (group,), levels=True)
    pivot = product.attributes[axis]
    own = {*FIGURES, columns.columns[pivot], *columns.bounds.get(pivot, ())}
    taken = table.take(pa.array(places[0])).drop_columns(sorted(own))
    fields, arrays = list(taken.schema), list(taken.columns)
    names = {field.name for field in fields}
    for label, rows in zip(product.predicates[axis].describe(domain[pivot]), places, strict=True):
        called, number = label, 1
        while not names.isdisjoint(_named(called)):
            number += 1
            called = f"{label} ({number})"
        names.update(_named(called))
        for figure, name in zip(FIGURES, _named(called), strict=True):
            fields.append(pa.field(name, pa.float64(), metadata={FIGURE: figure.encode()}))
            arrays.append(figures[figure].take(pa.array(rows)))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _named(label: str) -> list[str]:
    return [label if figure == FIGURES[0] else f"{label}_{figure}" for figure in FIGURES]


def _axis(group: Group, domain: Domain, pivot: object) -> tuple[ProductGroup, int]:
    """Return the group, which is a product, and the place in it of the attribute to pivot."""
    if not isinstance(pivot, str):
        raise WorkloadError.at(("pivot",), describe_value(pivot), "the name of an attribute")
    if not isinstance(group, ProductGroup):
        found = f"{pivot!r} for {title(group)!r}, whose queries are written out"
        raise WorkloadError.at(("pivot",), found, "a table with a column for each attribute")
    sets = {
        name: place for place, name in enumerate(group.attributes) if not isinstance(group.sets[name], Total)
    }
    heads = {head(domain[name], (group.sets[name],)): place for name, place in sets.items()}
    if pivot in heads:
        return group, heads[pivot]
    if pivot not in sets:
        expected = f"an attribute of the table {title(group)!r}"
        raise WorkloadError(unknown_name(("pivot",), pivot, expected, heads))
    return group, sets[pivot]
