"""Analyses by several tables: which of them may answer a query, and why none does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import UnsupportedQueryError
from matrixdp.plan.analysis import Analysis, Estimates
from matrixdp.plan.direct import TableAnalysis
from matrixdp.plan.pieces import not_measured
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicates import Identity, Total

__all__ = ["SeveralEstimates", "SeveralTables"]

Array = NDArray[np.float64]


class SeveralTables(Analysis):
    """Estimates and errors from several tables, each over attributes of its own."""

    def __init__(self, tables: Sequence[TableAnalysis]) -> None:
        super().__init__()
        self.tables = tuple(tables)
        self._measured = [frozenset(table.parts[0].attributes) for table in tables]

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.tables[0].domain

    def able(self, group: Group) -> list[TableAnalysis | None]:
        """Return each table, or None in the place of one that lacks an attribute, and need not be asked."""
        needed = _needed(group)
        pairs = zip(self.tables, self._measured, strict=True)
        return [table if needed <= measured else None for table, measured in pairs]

    def refuse(self, group: Group) -> NoReturn:
        """Raise UnsupportedQueryError for a group that no table determines, saying why."""
        for table in self.able(group):
            if table is not None:
                table.check_support(group)  # says why
        needed = _needed(group)
        kept = tuple(name for name in self.domain.names if name in needed)
        raise UnsupportedQueryError(f"{group.name}: {not_measured(kept)}")


class SeveralEstimates(Estimates):
    """What the estimates of several tables have in common."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def marginal(self, attributes: tuple[str, ...]) -> Array:
        """Return the estimates of the cells of a marginal, in the shape of the attributes' sizes."""
        sizes = tuple(self._domain[name].size for name in attributes)
        cells = ProductGroup("marginal", attributes, tuple(Identity() for _ in attributes), sizes)
        return self.answers(cells).reshape(sizes)


def _needed(group: Group) -> frozenset[str]:
    """Return the attributes of which a group asks more than the total."""
    if isinstance(group, ProductGroup):
        return frozenset(name for name, own in group.sets.items() if not isinstance(own, Total))
    return frozenset(group.attributes)
