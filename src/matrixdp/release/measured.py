"""What ``release.json`` says of the parts that were measured, each with its exact noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix
from matrixdp.measure import Measurement, NoiseScale
from matrixdp.plan import Part

__all__ = ["exact_scale", "measured"]

#: What the exact sensitivity is called that costs are computed from, by the norm of the noise.
_SENSITIVITY = {1: "sensitivity", 2: "squared_sensitivity"}


def exact_scale(scale: Fraction) -> dict[str, Any]:
    """Return an exact scale of noise as JSON has it: numerator / 2^exponent, and as text.

    Examples
    --------
    >>> exact_scale(Fraction(3, 4)), exact_scale(Fraction(6))
    ({'numerator': 3, 'exponent': 2, 'text': '3/4'}, {'numerator': 3, 'exponent': -1, 'text': '6'})
    """
    zeros = (scale.numerator & -scale.numerator).bit_length() - 1
    exponent = scale.denominator.bit_length() - 1 - zeros
    return {"numerator": scale.numerator >> zeros, "exponent": exponent, "text": str(scale)}


def measured(measurement: Measurement) -> dict[str, Any]:
    """Return the matrices and the parts; parts that differ in their attributes alone are one row.

    A plan can have ten thousand parts that share three matrices and a few scales.
    """
    plan = measurement.plan
    norm = plan.noise.norm
    matrices: dict[object, int] = {}
    listed: list[dict[str, object]] = []
    rows: dict[object, dict[str, object]] = {}
    attributes: dict[object, list[list[list[str]]]] = {}
    for part, scale in zip(plan.parts, measurement.scales, strict=True):
        places = []
        for block in part.blocks:
            matrix = block.matrix
            key = (_kind(matrix), matrix.digest())
            if key not in matrices:
                matrices[key] = len(listed)
                power_sum = str(matrix.column_power_sum(norm))
                shape = [matrix.rows, matrix.columns]
                listed.append({"kind": _kind(matrix), "shape": shape, _SENSITIVITY[norm]: power_sum})
            places.append(matrices[key])
        row = _row(part, scale, places, norm)
        own = (*places, "|", row["row_multipliers"], row[_SENSITIVITY[norm]], scale.exact, scale.power)
        rows.setdefault(own, row)
        attributes.setdefault(own, []).append([list(block.attributes) for block in part.blocks])
    return {
        "split": plan.words,
        "noise": plan.noise.name,
        "matrices": listed,
        "parts": [{**row, "attributes": attributes[own]} for own, row in rows.items()],
        "measured_rows": sum(part.rows for part in plan.parts),
    }


def _row(part: Part, scale: NoiseScale, places: list[int], norm: int) -> dict[str, object]:
    return {
        "matrices": places,
        "row_multipliers": part.multipliers is not None,
        "rows": part.rows,
        _SENSITIVITY[norm]: str(part.column_power_sum(norm)),
        "scale": exact_scale(scale.exact),
        "lattice_exponent": -scale.power,
        "noise_stddev": math.sqrt(scale.variance),
    }


def _kind(matrix: MeasuredMatrix) -> str:
    if isinstance(matrix, IdentityMatrix):
        return "identity"
    return "centered identity" if isinstance(matrix, CenteredMatrix) else "integer"
