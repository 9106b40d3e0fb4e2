"""Noisy marginals averaged into residuals: the values of the ``split`` plan that is a ``pooled`` one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.plan import Plan
from matrixdp.plan.pooled import residual_precisions

__all__ = ["pooled_values"]

Array = NDArray[np.float64]


def _residuals(tensor: Array, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Array]]:
    """Yield every residual of a marginal: attributes, and the centered sums in their shape."""
    stack: list[tuple[Array, int, tuple[str, ...]]] = [(tensor, 0, ())]
    while stack:
        current, position, kept = stack.pop()
        if position == len(names):
            yield kept, current
            continue
        axis = len(kept)
        stack.append((current.sum(axis=axis), position + 1, kept))
        if current.shape[axis] > 1:
            centered = current - current.mean(axis=axis, keepdims=True)
            stack.append((centered, position + 1, (*kept, names[position])))


def pooled_values(plan: Plan, effective: Plan, values: Sequence[Array]) -> tuple[Array, ...]:
    """Return the values of the ``split`` plan that a ``pooled`` plan amounts to.

    Parameters
    ----------
    plan : Plan
        Of kind ``pooled``.
    effective : Plan
        What `matrixdp.plan.pooled.pooled_plan` returned for it.
    values : sequence of ndarray
        The noisy answers of each part of ``plan``, flat.

    Returns
    -------
    tuple of ndarray
        For each part of ``effective``, flat.
    """
    precisions = residual_precisions(plan)
    totals: list[Array | None] = [None] * len(effective.parts)
    for place, (part, flat) in enumerate(zip(plan.parts, values, strict=True)):
        tensor = np.asarray(flat, dtype=np.float64).reshape(
            [plan.domain[name].size for block in part.blocks for name in block.attributes]
        )
        listed = [name for block in part.blocks for name in block.attributes]
        tensor = np.transpose(tensor, [listed.index(name) for name in part.attributes])
        for kept, residual in _residuals(tensor, part.attributes):
            own = precisions[kept]
            scale = math.prod(plan.domain[name].size for name in kept)
            share = own[place] / math.fsum(own.values()) * scale
            index = effective.index[kept]
            before = totals[index]
            totals[index] = share * residual if before is None else before + share * residual
    return tuple(np.asarray(total).ravel() for total in totals)
