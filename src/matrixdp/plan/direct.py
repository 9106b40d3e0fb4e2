"""Direct plans: one part, on whose marginal every query is answered as it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, UnsupportedQueryError
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import Noise
from matrixdp.plan.analysis import Estimates
from matrixdp.plan.part import Block, Part
from matrixdp.plan.pieces import PieceAnalysis
from matrixdp.plan.plan import Plan
from matrixdp.queries.groups import DenseGroup, Group
from matrixdp.queries.predicates import Total

__all__ = ["Direct", "TableAnalysis"]

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Direct(Plan, kind="direct"):
    """One part, on whose marginal every query is answered as it stands."""

    words: ClassVar[str] = "one table"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.parts) != 1:
            raise NumericalError("a direct plan has one part")

    @classmethod
    def of(cls, domain: Domain, blocks: Sequence[Block], noise: Noise) -> Direct:
        """Return the plan that measures the Kronecker product of blocks at the whole privacy cost."""
        names = domain.sort([name for block in blocks for name in block.attributes])
        return cls(domain, (Part(names, tuple(blocks), 1.0).at_cost(noise),), noise)

    def analysed(self, noise: Sequence[float]) -> TableAnalysis:
        [part], [variance] = self.parts, noise
        return TableAnalysis(self.domain, part, variance)


class TableAnalysis(PieceAnalysis):
    """Estimates and errors of queries on the table that one part measures; nothing is contracted."""

    def __init__(self, domain: Domain, part: Part, variance: float) -> None:
        if any(block.matrix.residual for block in part.blocks):
            raise NumericalError(f"part {part.attributes}: residuals alone; their sums need a split plan")
        part = _with_single_values(domain, part)
        whole = {name: np.zeros(domain[name].size) for name in part.attributes}
        super().__init__(domain, (part,), (variance,), whole)

    def pieces(self, attributes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
        measured = self.parts[0].attributes
        missing = [name for name in attributes if name not in measured]
        if missing:
            raise UnsupportedQueryError(
                f"attribute {missing[0]!r} was not measured: the strategy measures one table of "
                f"{', '.join(measured)}"
            )
        yield measured, 0

    def asked(self, group: Group) -> tuple[str, ...]:
        if isinstance(group, DenseGroup):
            return group.attributes
        measured = self.parts[0].attributes
        return tuple(n for n, p in group.sets.items() if n in measured or not isinstance(p, Total))

    def rows(self, group: Group, some: Array | None = None) -> Array:
        """Return some or all queries of a group over the cells of the table, shape (queries, cells)."""
        return self._supported_pieces(group, some)[0]

    def row_covariances(self, left: Array, right: Array, paired: bool) -> Array:
        """Return the covariances of queries over the cells of the table, or only those in one place."""
        own, other = self._factors(0, left, right)
        return np.asarray(np.einsum("ij,ij->i", own, other) if paired else own @ other.T)

    def noise_shares(self, rows: Array) -> Array:
        """Return what each noise variable adds to the variances of queries over the cells."""
        found = self._measured_rows(self.parts[0], rows).reshape(len(rows), -1)
        return np.asarray(self.noise[0] * found**2)

    def answering(self, table: Array) -> Estimates:
        """Return the answers of a table of estimates."""
        return self.from_residuals(lambda _place: table)

    def marginal(self, attributes: tuple[str, ...], residual: Callable[[int], Array]) -> Array:
        [(measured, place)] = self.pieces(attributes)
        others = tuple(axis for axis, name in enumerate(measured) if name not in attributes)
        assert place is not None
        return np.asarray(residual(place).sum(axis=others))


def _with_single_values(domain: Domain, part: Part) -> Part:
    """Return a part with the attributes of a single value, of which it says as much as of the total."""
    single = [name for name in domain.names if domain[name].size == 1 and name not in part.attributes]
    if not single:
        return part
    blocks = (*part.blocks, *(Block((name,), IdentityMatrix(1)) for name in single))
    multipliers = part.multipliers
    if multipliers is not None:
        multipliers = multipliers.reshape(*multipliers.shape, *(1 for _ in single))
    return replace(
        part, attributes=domain.sort([*part.attributes, *single]), blocks=blocks, multipliers=multipliers
    )
