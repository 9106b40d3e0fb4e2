"""Repairs of unbiased marginals that models are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.measure.measurement import Measurement
from matrixdp.measure.noisy_answers import maximal_marginals
from matrixdp.model.likelihood import Evidence

__all__ = ["local_nonnegative", "projected"]

Array = NDArray[np.float64]
Names = tuple[str, ...]

#: Steps of the alternating directions, their over-relaxation, and the least cell, relative to a standard
#: deviation of the noise, at which they end.
_STEPS, _RELAXED, _ENDS = 6000, 1.6, 1e-3


def projected(values: Array, total: float) -> Array:
    """Return the nearest non-negative values with a given sum."""
    order = np.sort(values)[::-1]
    over = (np.cumsum(order) - total) / np.arange(1, len(order) + 1)
    return np.asarray(np.maximum(values - over[np.flatnonzero(order > over)[-1]], 0.0))


def local_nonnegative(measurement: Measurement, total: float) -> dict[Names, Array] | None:
    """Return marginals that agree with one another, none of them negative, of the least loss.

    The loss is half the squared residuals over the noise's variance; the total is fixed. A marginal is the
    sum of its interactions r_R, tables that sum to 0 along each of their attributes, spread over the others.
    Each was measured with noise that is alike in all directions, or None is returned. It is the local
    non-negativity of Mullins et al. (NeurIPS 2024), here solved by alternating directions.
    """
    domain, found, precision = measurement.plan.domain, dict[Names, Array](), dict[Names, float]()
    for part in Evidence.of(measurement).parts:
        names = domain.sort(part.free)
        if not part.separable or names in found or not all(axis.centers for axis in part.axes):
            return None
        target = part.target.reshape([axis.size for axis in part.axes])
        turned = target.transpose([part.free.index(name) for name in names])
        found[names] = _interaction(turned, range(turned.ndim))
        precision[names] = part.scale
    found[()] = np.array(total)
    tops = list(maximal_marginals(list(found)))
    inside = {top: [names for names in found if set(names) <= set(top)] for top in tops}
    spread = {
        names: {
            top: math.prod(domain[name].size for name in top if name not in names)
            for top in tops
            if names in inside[top]
        }
        for names in found
    }
    step = float(np.median([precision[names] for names in tops]))
    held = dict(found)
    marginals = {top: _lifted(held, top, inside[top], spread) for top in tops}
    tables = {top: np.maximum(own, 0.0) for top, own in marginals.items()}
    prices = {top: np.zeros_like(own) for top, own in marginals.items()}
    for _ in range(_STEPS):
        sums = {names: precision[names] * found[names] for names in found if names}
        for top in tops:
            off = tables[top] - prices[top]
            for names in inside[top]:
                if names:
                    others = tuple(axis for axis, name in enumerate(top) if name not in names)
                    own = _interaction(off.sum(axis=others), range(len(names)))
                    sums[names] = sums[names] + step * own / spread[names][top]
        for names, own in sums.items():
            held[names] = own / (
                precision[names] + step * math.fsum(1 / many for many in spread[names].values())
            )
        least = 0.0
        for top in tops:
            marginals[top] = _lifted(held, top, inside[top], spread)
            relaxed = _RELAXED * marginals[top] + (1 - _RELAXED) * tables[top]
            tables[top] = np.maximum(relaxed + prices[top], 0.0)
            prices[top] += relaxed - tables[top]
            least = min(least, float(marginals[top].min()) * math.sqrt(precision[top]))
        if least > -_ENDS:
            break
    return marginals


def _interaction(table: Array, axes: Sequence[int]) -> Array:
    for axis in axes:
        table = table - table.mean(axis=axis, keepdims=True)
    return np.asarray(table)


def _lifted(
    held: dict[Names, Array], top: Names, inside: Sequence[Names], spread: dict[Names, dict[Names, int]]
) -> Array:
    """Return a marginal, from its interactions."""
    shape = dict(zip(top, held[top].shape, strict=True))
    total = np.zeros(held[top].shape)
    for names in inside:
        broad = [shape[name] if name in names else 1 for name in top]
        total += held[names].reshape(broad) / spread[names][top]
    return total
