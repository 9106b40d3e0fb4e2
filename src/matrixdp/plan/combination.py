"""How several tables, each with estimates of its own, are combined by least squares: the interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact import MeasuredMatrix
from matrixdp.plan.direct import TableAnalysis
from matrixdp.plan.part import Part
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicates import Predicates, Total

__all__ = ["Combination", "Loss", "Placed", "asked_sets", "axis_matrices"]

Array = NDArray[np.float64]

#: A group with the place of a part that determines it.
Placed = tuple[int, Group]
#: From the precisions of parts to a loss and its gradient.
Loss = Callable[[Array], tuple[float, Array]]


class Combination(ABC):
    """The global least squares of the noisy answers of several parts, seen from each part's marginal.

    Parameters
    ----------
    tables : sequence of TableAnalysis
        One for each part; the parts are products of matrices on single attributes.
    """

    def __init__(self, tables: Sequence[TableAnalysis]) -> None:
        self.alone = tuple(tables)
        self.domain = tables[0].domain
        self.parts = tuple(table.parts[0] for table in tables)
        self.noise = tuple(table.noise[0] for table in tables)

    @abstractmethod
    def tables(self, estimates: Sequence[Array]) -> list[Array]:
        """Return the estimate of every part's marginal from the estimates that each part gives alone.

        They agree in every sum that two parts determine.
        """

    @abstractmethod
    def variances(self, place: int, group: ProductGroup) -> Array:
        """Return the variances of a product group that a part determines, flat."""

    @abstractmethod
    def covariances(self, left: tuple[int, Array], right: tuple[int, Array], paired: bool) -> Array:
        """Return the covariances of explicit queries on the marginals of parts, given by their places.

        Shape (queries, cells) each in; (queries of left, queries of right) out, or (queries,) in pairs.
        """

    @abstractmethod
    def local_rows(self, place: int, rows: Array) -> list[Array]:
        """Return queries on each part's marginal whose local estimates add up to the combined ones.

        Shape (queries, cells of the marginal) in and out.
        """

    @abstractmethod
    def factors(self, place: int, group: ProductGroup) -> Mapping[str, Sequence[Array] | None]:
        """Return for each attribute what the variances are made from; see `repeats.representatives`."""

    @property
    def work(self) -> float:
        """About how many multiplications one evaluation of `loss` takes, beyond few."""
        return 0.0

    @abstractmethod
    def loss(self, placed: Iterable[Placed]) -> Loss:
        """Return the weighted sum of variances as a function of the parts' precisions, with its gradient.

        A precision is one over the noise variance of a part.
        """


def axis_matrices(part: Part) -> dict[str, MeasuredMatrix]:
    """Return the matrix on each attribute of a part; refuse one that is not such a product."""
    if part.multipliers is not None or any(len(block.attributes) != 1 for block in part.blocks):
        raise NumericalError(f"part {part.attributes}: a union measures products over single attributes")
    found = {block.attributes[0]: block.matrix for block in part.blocks}
    return {name: found[name] for name in part.attributes}


def asked_sets(part: Part, group: ProductGroup) -> list[Predicates]:
    """Return what a group asks of each attribute of a part."""
    return [group.sets.get(name, Total()) for name in part.attributes]
