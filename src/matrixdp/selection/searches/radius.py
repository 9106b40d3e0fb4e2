"""One radius of noise for small tables: the widths of its blocks, and its share beside other parts.

A block of n cells has d = n - 1 free numbers, and its squared error is a times E (c + r)^2 for a width c in
units of the scale, with the density of r in proportion to e^-r prod (c_b + r)^d_b (docs/mathematics.md). So
the error of all is a smooth function of a few widths, one for the blocks that are alike. Larger parts, whose
noise would gain nothing, keep Laplace noise of their own; shares of epsilon are in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from matrixdp.domain import Amount
from matrixdp.errors import WorkloadError
from matrixdp.exact import CenteredMatrix, IdentityMatrix
from matrixdp.exact.linear import Array
from matrixdp.exact.walks import UNIT
from matrixdp.noise import LAPLACE, Noise, Radius
from matrixdp.noise.radius import radii
from matrixdp.plans import Block, Part, Plan, Split
from matrixdp.plans.split import SplitAnalysis, residual_weights, subsets
from matrixdp.privacy.unit import Unit
from matrixdp.queries import Workload
from matrixdp.selection.descent import Effort, descend
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.registry import Progress, silent
from matrixdp.selection.selection import Certificate

NO_BOUND = (
    "no bound is known for tables that share one radius of noise: those for independent noise do not hold"
)

#: Points at which the density of the radius is summed.
_POINTS = 1_500
_EFFORT = Effort(500, 1e-12, 1e-8)
#: Shares of the widths of independent noise from which searches start.
_STARTS = (0.0, 0.1, 0.5, 1.0)


def second_moment(cells: int, ranged: bool = False) -> float:
    """Return the variance of a block's centred cells over the squared norm of its body, drawn uniformly.

    Examples
    --------
    >>> second_moment(2), second_moment(3)  # of half a number in [-1, 1]; of a hexagon
    (0.16666666666666666, 0.1388888888888889)
    >>> second_moment(2, ranged=True), round(12 * second_moment(13, ranged=True), 3)
    (0.16666666666666666, 1.154)
    """
    if ranged:
        return (cells + 2) / (12.0 * cells)
    free = cells - 1
    lone = 1 if cells % 2 == 0 else 0  # a cell more on one side of the median than on the other
    spread = 2.0 * free * (1.0 - 1.0 / cells) - (lone - free) / cells
    return spread / (free * (free + 1) * (free + 2))


def best_widths(free: Sequence[int], losses: Sequence[float], numbers: Sequence[int]) -> tuple[Array, float]:
    """Return the widths of kinds of blocks in units of the scale, and the sum of losses times E (c + r)^2.

    Parameters
    ----------
    free : sequence of int
        The free numbers of a block of each kind.
    losses : sequence of float
        What one unit of E (c + r)^2 of such a block adds to the error.
    numbers : sequence of int
        How many blocks of a kind there are.

    Examples
    --------
    Ten yes/no questions and their total, of each of which two counts are asked.

    >>> widths, loss = best_widths([1, 1], [20 / 12, 2 / 12], [1, 10])
    >>> [round(float(own), 1) for own in widths], round((loss / 20) ** 0.5, 2)
    ([0.0, 6.2], 4.52)
    """
    m, a, k = (np.asarray(own, dtype=np.float64) for own in (free, losses, numbers))
    a = a / a.max()

    def loss(widths: Array) -> tuple[float, Array]:
        r = _grid(widths, m * k)
        reach = widths[:, None] + r
        with np.errstate(divide="ignore"):
            log = (m * k) @ np.log(reach) - r
        density = np.exp(log - log.max())
        density /= density.sum()
        squares = (a * k) @ reach**2
        total = float(squares @ density)
        slope = 2.0 * a * k * (reach @ density)
        slope += m * k * ((1.0 / reach) @ ((squares - total) * density))
        return math.log(total), slope / total

    theta = np.cbrt(a * m**2)
    apart = m * float(theta @ k) / theta
    best: tuple[float, Array] | None = None
    for share in _STARTS:
        begin = np.maximum(apart - apart.min(), 0.0) * share
        found = descend(loss, begin, _EFFORT, bounds=(0.0, math.inf))
        reached = loss(found)[0]
        if best is None or reached < best[0] - LIMITS.fine_gain:
            best = reached, found
    assert best is not None
    return best[1], math.exp(best[0]) * float(np.max(losses))


def _grid(widths: Array, powers: Array) -> Array:
    """Return midpoints of equal steps over the radii that have all but nothing of the probability."""
    low, high = radii(widths, powers)
    return np.asarray(low + (high - low) * (np.arange(_POINTS) + 0.5) / _POINTS)


def _tables(workload: Workload) -> list[Part]:
    """Return a part for every marginal that queries have pieces on: centred, if small.

    An attribute of two values is a sign, the others together are one centred table.
    """
    domain, found = workload.domain, set[tuple[str, ...]]()
    for asked in {group.attributes for group in workload}:
        found.update(subsets(tuple(name for name in asked if domain[name].size > 1)))
    parts = []
    for names in sorted(found, key=lambda names: (len(names), [domain.names.index(name) for name in names])):
        blocks = [Block((name,), CenteredMatrix(2)) for name in names if domain[name].size == 2]
        long = tuple(name for name in names if domain[name].size > 2)
        if domain.cells(long) > LIMITS.radius_cells:
            blocks = [Block((name,), IdentityMatrix(domain[name].size)) for name in names]
        elif long:
            blocks.append(Block(long, CenteredMatrix(domain.cells(long))))
        parts.append(Part(names, tuple(blocks), 1.0))
    return parts


def _small(part: Part) -> bool:
    return all(block.matrix.residual for block in part.blocks)


def no_radius(workload: Workload, noise: Noise) -> str:
    """Return why no tables can share one radius, or nothing."""
    if noise != LAPLACE:
        return f"{noise} noise has none"
    if any(isinstance(workload.domain[name], Amount) for group in workload for name in group.attributes):
        return "amounts are asked about: their records are divided"
    variances = sum(group.queries << len(group.attributes) for group in workload)
    if variances > LIMITS.radius_variances:
        return f"{variances} variances in marginals would be formed; the limit is {LIMITS.radius_variances}"
    parts = _tables(workload)
    small = list(filter(_small, parts))
    dimension = sum(part.cells - 1 for part in small)
    if dimension > LIMITS.radius_dimension:
        return f"the small tables have {dimension} free numbers; the limit is {LIMITS.radius_dimension}"
    return "" if len(small) > 1 else "at most one small table is asked"


def select_radius(
    workload: Workload,
    noise: Noise,
    progress: Progress = silent,
) -> tuple[Plan, Certificate]:
    """Select centred tables of small marginals under one radius, and Laplace noise for all others.

    Raises
    ------
    WorkloadError
        If fewer than two marginals may share a radius.
    TooLargeError
        If the workload is too large.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({f"q{k}": 2 for k in range(10)}), mdp.marginals(1))
    >>> plan, certificate = select_radius(workload, LAPLACE)
    >>> round((certificate.loss / 20) ** 0.5, 2)
    4.52
    """
    progress("solving the widths of one radius", None)
    why, domain = no_radius(workload, noise), workload.domain
    if why:
        raise WorkloadError.at(("mechanism",), f"radius, but {why}", "several small tables of counts")
    weights = {name: residual_weights(domain[name].size) for name in domain.names}
    return beside_one_radius(workload, _tables(workload), weights, _small)


def beside_one_radius(
    workload: Workload,
    parts: Sequence[Part],
    weights: Mapping[str, Array],
    small: Callable[[Part], bool],
    persons: Unit | None = None,
) -> tuple[Plan, Certificate]:
    """Return the plan of parts of which the small ones share one radius, at the shares of least error.

    With ``persons`` at cost 1 for their records, which move these parts as those in one value do.
    """
    domain, noise, parts = workload.domain, LAPLACE, list(parts)
    errors = np.zeros(len(parts))
    analysis = SplitAnalysis(domain, parts, [1.0] * len(parts), weights)
    for group in workload:
        for place, own in analysis.by_part(group, weighted=True).items():
            errors[place] += own
    asked = errors > LIMITS.span * errors.max()  # of others queries have no piece but for rounding
    parts, errors = list(compress(parts, asked)), errors[asked]
    chosen = np.array([small(part) for part in parts], dtype=bool)
    # the small marginals of one large table are not asked for themselves
    under, loss = list[Part](), 0.0
    if chosen.any():
        under, loss = under_one_radius(list(compress(parts, chosen)), errors[chosen])
    moved = 1.0 if persons is None else persons.max_records_each / persons.records
    losses = [loss * moved**2, *(errors[~chosen] * noise.variance_factor).tolist()]
    share, *shares = noise.best_shares(losses)
    made = [replace(part, variance=part.variance * (moved / share) ** 2) for part in under]
    made += [part.at_cost(noise, own) for part, own in zip(compress(parts, ~chosen), shares, strict=True)]
    plan = Split(domain, tuple(made), noise, dict(weights), persons=persons)
    return plan, Certificate(noise.total_loss(losses), None, NO_BOUND)


def under_one_radius(parts: Sequence[Part], errors: Array) -> tuple[list[Part], float]:
    """Return parts under one radius at privacy cost 1, with the widths of least error, and that error.

    Parameters
    ----------
    parts : sequence of Part
        Centred tables.
    errors : ndarray, shape (parts,)
        What one unit of variance of each adds to the error.
    """
    moments = [part.radius_factor * second_moment(part.cells, part.ranged) for part in parts]
    keys = [
        (part.cells, float(f"{own * moment:.9g}"))
        for part, own, moment in zip(parts, errors, moments, strict=True)
    ]
    kinds = sorted(set(keys))
    numbers = [keys.count(kind) for kind in kinds]
    widths = best_widths([cells - 1 for cells, _ in kinds], [own for _, own in kinds], numbers)[0]
    whole = dict(zip(kinds, np.rint(widths * UNIT).astype(int).tolist(), strict=True))
    ranged = tuple(part.ranged for part in parts)
    radius = Radius(tuple(part.cells for part in parts), tuple(whole[key] for key in keys), ranged)
    variances = np.array([part.radius_factor for part in parts]) * np.array(radius.scaled_variances)
    made = [
        replace(part, variance=LAPLACE.variance_factor, width=width)
        for part, width in zip(parts, radius.widths, strict=True)
    ]
    return made, float(errors @ variances)
