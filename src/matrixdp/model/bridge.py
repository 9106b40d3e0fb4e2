"""What was measured, as mbi has it: for its own estimators, without the data and at no privacy cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import UnsupportedQueryError
from matrixdp.measure.measurement import Measurement
from matrixdp.plan import Part

__all__ = ["MeasuredQuery", "to_mbi"]

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class MeasuredQuery:
    """A part's integer queries as a function of what has ``datavector()``: the cells of a marginal, flat.

    It is made of reshapes, transpositions and products alone, so arrays of JAX pass through it.

    Attributes
    ----------
    shape : tuple of int
        The sizes of the part's attributes, in domain order.
    order : tuple of int
        Their places in the order of the blocks.
    matrices : tuple of ndarray or None
        One for each block, of shape (rows, columns); None for the identity.
    columns : tuple of int
    multipliers : ndarray or None
        Of the rows.
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]
    matrices: tuple[Array | None, ...]
    columns: tuple[int, ...]
    multipliers: Array | None

    @classmethod
    def of(cls, part: Part, domain: Domain) -> MeasuredQuery:
        """Return the queries of a part.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> plan = mdp.select(mdp.Workload(mdp.Domain({"age": 3}), mdp.marginals(1))).selection.plan
        >>> MeasuredQuery.of(plan.parts[0], plan.domain).columns
        (3,)
        """
        held = [None if block.matrix.kind == "identity" else block.matrix.written() for block in part.blocks]
        return cls(
            tuple(domain[name].size for name in part.attributes),
            tuple(part.attributes.index(name) for name in part.listed),
            tuple(held),
            tuple(block.matrix.columns for block in part.blocks),
            None if part.multipliers is None else part.multipliers.ravel().astype(np.float64),
        )

    def __call__(self, factor: Any) -> Any:
        """Return the answers on a marginal, flat."""
        table = factor.datavector().reshape(self.shape).transpose(self.order)
        table = table.reshape(self.columns)
        for matrix in self.matrices:  # each takes the first axis and puts its own last
            first, rest = table.shape[0], table.shape[1:]
            flat = table.reshape((first, math.prod(rest))).transpose()
            flat = flat if matrix is None else flat @ matrix.T
            table = flat.reshape((*rest, flat.shape[1]))
        return table.reshape(-1) if self.multipliers is None else table.reshape(-1) * self.multipliers


def to_mbi(measurement: Measurement) -> tuple[Any, list[Any]]:
    """Return what was measured as mbi has it; see `matrixdp.Release.to_mbi`."""
    try:
        import mbi
    except ImportError:
        raise UnsupportedQueryError(
            "mbi is not installed: pip install 'matrixdp[mbi]' (which brings JAX)", "missing-library"
        ) from None
    domain, parts = measurement.plan.domain, measurement.plan.parts
    made = [
        mbi.LinearMeasurement(
            values,
            part.attributes,
            math.sqrt(scale.variance),
            query=MeasuredQuery.of(part, domain),
        )
        if not _counts_cells(part)
        else mbi.LinearMeasurement(values, part.attributes, math.sqrt(scale.variance))
        for part, scale, values in zip(parts, measurement.scales, measurement.values, strict=True)
    ]
    return mbi.Domain(domain.names, domain.shape), made  # type: ignore[arg-type, unused-ignore]


def _counts_cells(part: Part) -> bool:
    """Return whether a part's answers are the cells of its marginal, in their order."""
    identities = all(block.matrix.kind == "identity" for block in part.blocks)
    return identities and part.multipliers is None and part.listed == part.attributes
