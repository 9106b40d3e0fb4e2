"""DataCube: a few marginals, measured alike, from which all that are asked are computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.exact import IdentityMatrix
from matrixdp.exact.linear import Array
from matrixdp.mechanisms import (
    LIMITS,
    Certificate,
    Choice,
    Mechanism,
    Options,
    Task,
    option,
    register,
)
from matrixdp.noise import Noise
from matrixdp.plans import Block, Part, Plan, Pooled
from matrixdp.queries import DenseGroup, Identity, Predicates, Stacked, Total, Workload

Members = tuple[str, ...]

_SEARCHES = ("bounded", "once")
#: The most asked marginals: a search for which of them to measure takes seconds.
MAX_ASKED_MARGINALS = 4_096
#: Pairs of a candidate and an asked marginal, up to which every subset of the attributes is a candidate;
#: beyond, only the asked marginals themselves are.
_PAIRS = 1 << 24
#: Strategies whose largest variances differ by less than this share are equally good.
_TIE = 1e-12


def _kept(predicates: Predicates, size: int) -> set[bool] | None:
    """Return whether marginals with, without, or with and without an attribute are asked; None if neither."""
    if size == 1:
        return {False}
    if isinstance(predicates, Stacked):
        known = [_kept(one, size) for one in predicates.sets]
        found = [one for one in known if one is not None]
        return set().union(*found) if len(found) == len(known) else None
    if predicates.key(size) == Identity().key(size):
        return {True}
    if predicates.key(size) == Total().key(size):
        return {False}
    return None


def asked_marginals(workload: Workload) -> tuple[Members, ...]:
    """Return the marginals that a workload is made of, each once, without attributes of one value.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 3, "b": 2})
    >>> asked_marginals(mdp.Workload(domain, mdp.marginals([1, 2])))
    (('b',), ('a',), ('a', 'b'))
    """
    found: set[Members] = set()
    for group in workload:
        if isinstance(group, DenseGroup):
            raise WorkloadError(f"{group.name}: datacube answers marginals only; use opt-m or residual")
        choices: list[list[Members]] = []
        for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
            kept = _kept(predicates, size)
            if kept is None:
                raise WorkloadError(
                    f"{group.name}: {name}: datacube answers marginals only, which are products of identity "
                    "and total; use opt-m or residual"
                )
            choices.append([(name,) if member else () for member in sorted(kept)])
        if math.prod(len(options) for options in choices) <= MAX_ASKED_MARGINALS:
            found |= {tuple(name for names in chosen for name in names) for chosen in product(*choices)}
            if len(found) <= MAX_ASKED_MARGINALS:
                continue
        raise TooLargeError(
            f"datacube: more than {MAX_ASKED_MARGINALS:,} marginals are asked about; use opt-m or residual"
        )
    sizes = {name: workload.domain[name].size for name in workload.domain.names}
    return tuple(sorted(found, key=lambda names: (math.prod(sizes[n] for n in names), sorted(names))))


@dataclass(frozen=True, eq=False)
class Cube:
    """Which marginals can be measured, and what it costs to compute those that are asked from them.

    Attributes
    ----------
    candidates : tuple of tuple of str
        By increasing number of cells, then by name.
    summed : ndarray, shape (candidates, asked)
        How many cells of a candidate add up to one cell of an asked marginal; infinite if it does not
        determine it. (The paper's magnification.)
    """

    candidates: tuple[Members, ...]
    summed: Array


def cube_of(workload: Workload, asked: tuple[Members, ...], *, every: bool = True) -> Cube:
    """Return the cube of marginals that can be measured for those that are asked.

    Every marginal of at most ``LIMITS.max_marginal_cells`` cells is a candidate, or, where these are too many
    or ``every`` is False, only those that are asked.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 2}), mdp.marginals(1))
    >>> cube_of(workload, asked_marginals(workload)).candidates
    ((), ('b',), ('a',), ('a', 'b'))
    """
    names = workload.domain.sort({name for members in asked for name in members})
    sizes = np.array([workload.domain[name].size for name in names], dtype=np.float64)
    wanted = np.array([[name in members for name in names] for members in asked], dtype=bool)
    wanted = wanted.reshape(len(asked), len(names))
    cells = np.where(wanted, sizes, 1.0).prod(axis=1)
    if float(cells.max()) > LIMITS.max_table_cells:
        raise TooLargeError(
            f"datacube: the workload asks about a marginal of {cells.max():.3g} cells; the limit is "
            f"{LIMITS.max_table_cells:,}. Use residual, or ask about fewer attributes together"
        )
    offered = wanted
    if every and len(names) < 24 and len(asked) << len(names) <= _PAIRS:
        subsets = (np.arange(1 << len(names))[:, None] >> np.arange(len(names))) & 1 == 1
        small = np.where(subsets, sizes, 1.0).prod(axis=1) <= LIMITS.max_marginal_cells
        offered = np.unique(np.vstack([subsets[small], wanted]), axis=0)
    members = [tuple(n for n, kept in zip(names, row, strict=True) if kept) for row in offered]
    offered_cells = np.where(offered, sizes, 1.0).prod(axis=1)
    order = sorted(range(len(members)), key=lambda place: (offered_cells[place], sorted(members[place])))
    missing = (~offered[order]).astype(np.float64) @ wanted.T.astype(np.float64)
    ratios = offered_cells[order][:, None] / cells[None, :]
    return Cube(tuple(members[place] for place in order), np.where(missing == 0, ratios, np.inf))


def greedy_cover(cube: Cube, most: float) -> list[int]:
    """Return candidates that determine every asked marginal by sums of at most ``most`` cells.

    The next candidate is always the one that determines most marginals that are still open; of several, the
    one of fewest cells.

    References
    ----------
    Ding et al. 2011, section 4 (set cover).

    Examples
    --------
    >>> greedy_cover(Cube(((), ("a",)), np.array([[1.0, np.inf], [50.0, 1.0]])), 50.0)
    [1]
    """
    within = cube.summed <= most
    gains = within.sum(axis=1)
    still = np.ones(cube.summed.shape[1], dtype=bool)
    chosen = []
    while still.any():
        best = int(gains.argmax())
        new = within[best] & still
        still &= ~new
        gains = gains - within[:, new].sum(axis=1)
        chosen.append(best)
    return chosen


def bound_max_noise(cube: Cube, noise: Noise) -> list[list[int]]:
    """Return the sets of candidates with the least largest variance that the greedy search finds.

    A cell that is the sum of m cells of one of s marginals has variance m s (Gaussian noise) or 2 m s^2
    (Laplace noise). For each s the least m that s marginals reach is found by bisection, sets by the greedy
    cover.

    References
    ----------
    Ding et al. 2011, section 4 (bounding the maximal noise): within (ln |L| + 1)^2 of the least possible
    for |L| marginals under Laplace noise.

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> summed = np.array([[1.0, np.inf], [50.0, 1.0]])
    >>> bound_max_noise(Cube(((), ("a",)), summed), LAPLACE)
    [[0, 1]]
    """
    levels = np.unique(cube.summed[np.isfinite(cube.summed)])
    power = 2.0 / noise.norm
    least = math.inf
    best: list[list[int]] = []

    def count(place: int) -> int:
        nonlocal least, best
        chosen = greedy_cover(cube, float(levels[place]))
        cost = float(cube.summed[chosen].min(axis=0).max()) * len(chosen) ** power
        if cost < least * (1.0 - _TIE):
            best = []
        if cost < least * (1.0 + _TIE):
            least = min(least, cost)
            if sorted(chosen) not in map(sorted, best):
                best.append(chosen)
        return len(chosen)

    last = len(levels) - 1
    open_ = [(0, count(0), last, count(last))]
    while open_:
        low, more, high, fewer = open_.pop()
        # between two levels no fewer marginals are needed than at the upper one
        if high - low < 2 or more == fewer or float(levels[low + 1]) * fewer**power > least * (1.0 + _TIE):
            continue
        middle = (low + high) // 2
        needed = count(middle)
        open_ += [(low, more, middle, needed), (middle, needed, high, fewer)]
    return best


@dataclass(frozen=True)
class Covers(Options):
    """Of DataCube."""

    search: str = option("bounded", "for the least largest variance, or one greedy cover", _SEARCHES)


def _datacube(task: Task[Covers]) -> Choice:
    """Select by DataCube: the marginals to measure, each with the same noise.

    With the option ``search`` "once" there is one greedy cover of the asked marginals, by sums of at most as
    many cells as marginals are asked: what McKenna et al. call DataCube in their comparisons.

    Weights have no influence on what is measured: the largest variance is bounded. The paper has Laplace
    noise; Gaussian noise differs in how the variance grows with the number of marginals. Of sets with equal
    largest variances the one with the least total squared error is taken.

    References
    ----------
    Ding, Winslett, Han and Li (2011), "Differentially private data cubes: optimizing noise sources and
    consistency", sections 4 and 5.
    """
    task.progress("choosing marginals", None)
    workload = task.workload
    asked, once = asked_marginals(workload), task.options.search == "once"
    cube = cube_of(workload, asked, every=not once)
    choices = []
    for chosen in [greedy_cover(cube, len(asked))] if once else bound_max_noise(cube, task.noise):
        plan = _plan(workload, [cube.candidates[place] for place in chosen], task.noise)
        analysis = plan.analysis
        choices.append((math.fsum(analysis.group(group).weighted for group in workload), plan))
    loss, plan = min(choices, key=lambda choice: (choice[0], len(choice[1].parts)))
    return plan, Certificate(loss, None, "no bound on all strategies")


def _plan(workload: Workload, chosen: list[Members], noise: Noise) -> Plan:
    """Return the plan that measures marginals with equal noise at privacy cost 1."""
    variance = noise.variance_factor * len(chosen) ** (2.0 / noise.norm)
    places = {name: place for place, name in enumerate(workload.domain.names)}
    parts = []
    for names in sorted(chosen, key=lambda names: (len(names), [places[name] for name in names])):
        blocks = tuple(Block((name,), IdentityMatrix(workload.domain[name].size)) for name in names)
        parts.append(Part(names, blocks, float(variance)))
    return Pooled(workload.domain, tuple(parts), noise)


register(Mechanism("datacube", "Ding et al. 2011: marginals by greedy covering", (1, 2), Covers, _datacube))
