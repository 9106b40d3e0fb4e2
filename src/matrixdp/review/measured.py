"""What was measured and with which noise, in words: equal parts together, so that it stays short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix
from matrixdp.measure import Measurement, NoiseScale
from matrixdp.plan import Part
from matrixdp.review.markdown import about, cell, table

__all__ = ["measured_parts"]

#: Rows of a table at most: those that cost most.
_MOST = 25
#: Marginals of one row that are named.
_NAMED = 3
_SUMS = {
    1: "the largest sum of absolute entries over a column (L1)",
    2: "the largest sum of squared entries over a column (squared L2)",
}


@final
@dataclass
class _Kind:
    """Parts that differ in their attributes alone."""

    part: Part
    scale: NoiseScale
    matrices: tuple[int, ...]
    marginals: list[tuple[str, ...]] = field(default_factory=list)

    def cost(self, norm: int) -> Fraction:
        """Return what one of them costs."""
        return self.part.column_power_sum(norm) / self.scale.exact**norm


def measured_parts(measurement: Measurement) -> list[str]:
    """Return lines about the matrices and the parts of a measurement.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"]}), mdp.marginals([0, 1]))
    >>> strategy = mdp.select(workload, mechanism="identity")
    >>> release = strategy.measure({"sex": ["f"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> for line in measured_parts(release.measurement)[-3:]:
    ...     print(line)
    | parts | on | measured | rows of each | s | b, exact | variance of a row | cost of each | of the cost |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | 1 | sex | M1 | 2 | 1 | 1 | 1 | 1 | 100 % |
    """
    norm = measurement.plan.noise.norm
    matrices: dict[object, tuple[int, MeasuredMatrix]] = {}
    kinds: dict[object, _Kind] = {}
    for part, scale in zip(measurement.plan.parts, measurement.scales, strict=True):
        places = []
        for block in part.blocks:
            key = (type(block.matrix), block.matrix.digest())
            places.append(matrices.setdefault(key, (len(matrices) + 1, block.matrix))[0])
        factors = None if part.multipliers is None else part.multipliers.tobytes()
        own = (*places, factors, scale.steps, scale.power)
        kinds.setdefault(own, _Kind(part, scale, tuple(places))).marginals.append(part.attributes)
    total = sum((kind.cost(norm) * len(kind.marginals) for kind in kinds.values()), Fraction(0))
    ordered = sorted(kinds.values(), key=lambda kind: kind.cost(norm) * len(kind.marginals), reverse=True)
    lines = [f"The sensitivity s of a part is {_SUMS[norm]}: an exact integer. {_computed(ordered)}", ""]
    lines += _matrices(list(matrices.values()), norm)
    heads = ("parts", "on", "measured", "rows of each", "s", "b, exact", "variance of a row", "cost of each")
    lines += ["", *table((*heads, "of the cost"), _rows(ordered[:_MOST], norm, total))]
    if len(ordered) > _MOST:
        rest = ordered[_MOST:]
        share = sum((kind.cost(norm) * len(kind.marginals) for kind in rest), Fraction(0)) / total
        count = sum(len(kind.marginals) for kind in rest)
        lines += [
            "",
            f"{count:,} more parts of {len(rest):,} more kinds have {float(share):.3%} of the cost.",
        ]
    return lines


def _computed(kinds: list[_Kind]) -> str:
    text = "That of a Kronecker product is the product of those of its matrices."
    if any(kind.part.multipliers is not None for kind in kinds):
        text += (
            " Where each row has an integer factor, the sums are formed exactly for every column of the "
            "product, one matrix after the other."
        )
    return text


def _matrices(matrices: list[tuple[int, MeasuredMatrix]], norm: int) -> list[str]:
    if not matrices:
        return ["Totals alone are measured: the matrix is 1, its sensitivity 1."]
    rows = [
        (f"M{place}", f"{matrix.rows} x {matrix.columns}", matrix.column_power_sum(norm), _how(matrix))
        for place, matrix in matrices[:_MOST]
    ]
    lines = table(("matrix", "rows x cells", "s", "how it is known"), rows)
    if len(matrices) > _MOST:
        lines += ["", f"{len(matrices) - _MOST:,} more matrices are in the file of the measurement."]
    return lines


def _how(matrix: MeasuredMatrix) -> str:
    if isinstance(matrix, IdentityMatrix):
        return "the identity: one 1 in each column"
    if isinstance(matrix, CenteredMatrix):
        return "n I - 11': each column has n - 1 once and -1 the other n - 1 times"
    return f"integers, summed over each of the {matrix.columns:,} columns"


def _rows(kinds: list[_Kind], norm: int, total: Fraction) -> Iterator[tuple[object, ...]]:
    for kind in kinds:
        names = [", ".join(marginal) or "the total" for marginal in kind.marginals[:_NAMED]]
        more = len(kind.marginals) - _NAMED
        on = "; ".join(cell(name) for name in names) + (f"; {more:,} more" if more > 0 else "")
        product = " (x) ".join(f"M{place}" for place in kind.matrices) or "1"
        cost = kind.cost(norm)
        yield (
            f"{len(kind.marginals):,}",
            on,
            f"{product}, rows weighted" if kind.part.multipliers is not None else product,
            f"{kind.part.rows:,}",
            kind.part.column_power_sum(norm),
            about(kind.scale.exact),
            f"{kind.scale.variance:.6g}",
            f"{float(cost):.6g}",
            f"{float(cost * len(kind.marginals) / total):.3%}".replace(".000%", "%").replace("%", " %"),
        )
