"""What a workload will need: sizes that are known, and memory and time roughly, without the data.

Memory and time come from a few coefficients measured on two cores of an ordinary server; they are there to
tell seconds from hours, not to be exact.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import final

from matrixdp.domain import Attribute, Bins, Coded, Domain, Integers
from matrixdp.domain.rules import number_text
from matrixdp.exact.resources import matrix_bytes, most_cells
from matrixdp.noise import noise_named
from matrixdp.privacy import Budget
from matrixdp.queries import Group, Workload
from matrixdp.queries.groups import asked_attributes
from matrixdp.queries.workload import MAX_ANSWERS
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.noise_choice import noises_for
from matrixdp.selection.reduce import reduce

#: Subsets are listed up to this many; beyond it only the groups' own marginals are counted.
_MOST_SUBSETS = 2_000_000
_BASE_BYTES = 250e6
_ROWS_A_SECOND = 2.0e6
_ANSWERS_A_SECOND = 1.3e6
_BYTES_AN_ANSWER = 25.0
#: Fitted to selections of CDFs of 600, 1,200, 2,400 and 8,500 values.
_SECONDS, _POWER = 1.3e-7, 2.33
#: How many times as long it takes with several marginals: with one such attribute, and with more.
_WEIGHED, _WEIGHED_TOGETHER = 2.5, 12.0
#: Fitted to a pair of 2,300 cells that does not factor.
_JOINT_SECONDS_A_CUBE = 5.0e-9
#: Fitted to few selections: rounds of balancing for targets; searches under Laplace noise for one attribute,
#: by its size, with others and alone, and for one pair of marginals that is tried together; the most
#: marginals of which pairs are tried.
_ROUNDS = 20
_SEARCH_SECONDS_A_VALUE, _ALONE_SECONDS_A_SQUARE, _MERGE_SECONDS, _MOST_MERGED = 0.03, 5e-6, 0.05, 40


@final
@dataclass(frozen=True)
class Forecast:
    """What selection and a release will need.

    Attributes
    ----------
    groups, queries : int
        Of the workload.
    marginals, counted_cells, largest_marginal : int
        What is counted: how many marginals, their cells in all, and those of the largest.
    largest_group : int
        Its queries.
    disk_bytes, memory_bytes : float
        Of the files of a release, and while it is made.
    select_seconds, release_seconds : float
        For the selection alone, and in all.
    suggestions : tuple of str
        What would make it short, where it would take minutes or hours.
    """

    groups: int
    queries: int
    marginals: int
    counted_cells: int
    largest_marginal: int
    largest_group: int
    disk_bytes: float
    memory_bytes: float
    select_seconds: float
    release_seconds: float
    suggestions: tuple[str, ...] = ()


def measured_marginals(workload: Workload) -> set[tuple[str, ...]]:
    """Return the marginals that a workload's queries split over: every subset of a group's attributes.

    Examples
    --------
    >>> from matrixdp.language import marginals
    >>> workload = Workload(Domain({"sex": 2, "age": 100}), marginals([["sex", "age"]]))
    >>> sorted(measured_marginals(workload))
    [(), ('age',), ('sex',), ('sex', 'age')]
    """
    own = {asked_attributes(group) for group in workload}
    if sum(2 ** len(names) for names in own) > _MOST_SUBSETS:
        return own
    return {kept for names in own for size in range(len(names) + 1) for kept in combinations(names, size)}


def forecast(
    workload: Workload,
    budget: Budget | None = None,
    *,
    noise: str = "auto",
    targets: bool = False,
    max_answers: int = MAX_ANSWERS,
) -> Forecast:
    """Return what a workload will need: its sizes, and roughly memory, time and what to change.

    Parameters
    ----------
    workload : Workload
        What will be asked.
    budget : Budget, optional
        What will be spent; it decides the noise.
    noise : {"auto", "gaussian", "laplace"}
        As for `select`.
    targets : bool
        Whether standard errors have targets, for which selection takes longer.
    max_answers : int
        With more queries than this only the measurement is written.

    Returns
    -------
    Forecast
        Times are those of two cores of an ordinary server.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "age": 100}), mdp.marginals([1, 2]))
    >>> plan = mdp.forecast(workload)
    >>> plan.queries, plan.marginals, plan.counted_cells, plan.largest_marginal
    (302, 4, 303, 200)
    >>> pay = mdp.Workload(mdp.Domain({"pay": range(6_000)}), mdp.product(pay="prefix"))
    >>> print(*mdp.forecast(pay).suggestions)
    domain.pay: 6,000 values take about 2 min; {min: 0, max: 6000, bins: 1200} takes about 2 s
    """
    noises, _ = noises_for(None if noise == "auto" else noise_named(noise), budget, "auto")
    laplace = all(own.norm == 1 for own in noises)
    domain = workload.domain
    cells = {names: domain.cells(names) for names in measured_marginals(workload)}
    counted = sum(cells.values())
    largest_group = max(group.queries for group in workload)
    written, held = (workload.queries, largest_group) if workload.queries <= max_answers else (0, 0)
    asked = reduce(workload, pairs=all(own.norm == 2 for own in noises)).workload
    structured = structured_sizes(asked)
    selecting = 1.0 + _selection_seconds(asked, structured)
    # of two noises, Laplace is searched only where a fast trial leaves hope for it
    if laplace:
        selecting += _search_seconds(asked)
    if targets:
        selecting *= _ROUNDS
    matrices = [*structured.values()]
    matrices += [math.prod(group.sizes) for group in asked if joint_seconds(group)]
    held_bytes = 48.0 * held + matrix_bytes(max(matrices, default=0))
    found = Forecast(
        groups=len(workload),
        queries=workload.queries,
        marginals=len(cells),
        counted_cells=counted,
        largest_marginal=max(cells.values()),
        largest_group=largest_group,
        disk_bytes=written * _BYTES_AN_ANSWER + 4.0 * counted,
        memory_bytes=_BASE_BYTES + 30.0 * counted + held_bytes,
        select_seconds=selecting,
        release_seconds=selecting + 1.0 + counted / _ROWS_A_SECOND + written / _ANSWERS_A_SECOND,
    )
    return replace(found, suggestions=tuple(_suggestions(workload, asked, found, laplace)))


def structured_sizes(workload: Workload) -> dict[str, int]:
    """Return the attributes on which something is asked whose optimum takes a search, and their values."""
    found: dict[str, int] = {}
    for group in workload:
        asked = zip(group.attributes, getattr(group, "predicates", None) or (), group.sizes, strict=False)
        found |= {name: size for name, predicates, size in asked if predicates.symmetric(size) is None}
    return found


def attribute_seconds(size: int, searched: bool, alone: bool = False) -> float:
    """Return about how long selection takes for one attribute, `searched` under Laplace noise too.

    `alone` says that nothing is asked of other attributes.
    """
    search = (_ALONE_SECONDS_A_SQUARE * size if alone else _SEARCH_SECONDS_A_VALUE) * size
    return _SECONDS * math.pow(size, _POWER) + (search if searched else 0.0)


def joint_seconds(group: Group) -> float:
    """Return about how long selection takes for a group whose queries do not factor; 0 for others."""
    cells = math.prod(group.sizes)
    if hasattr(group, "predicates") or cells > LIMITS.joint_cells:
        return 0.0
    return _JOINT_SECONDS_A_CUBE * float(cells) ** 3


def _selection_seconds(workload: Workload, structured: Mapping[str, int]) -> float:
    """Estimate the eigenproblems of distinct attributes, and of distinct groups that do not factor."""
    sizes = {(size, workload.domain[name].numeric) for name, size in structured.items()}
    several = len({asked_attributes(group) for group in workload}) > 1
    times = (_WEIGHED_TOGETHER if len(structured) > 1 else _WEIGHED) if several else 1.0
    joint = {tuple(sorted(group.sizes)): joint_seconds(group) for group in workload}
    return times * sum(attribute_seconds(size, False) for size, _ in sizes) + sum(joint.values())


def _search_seconds(workload: Workload) -> float:
    """Estimate the searches under Laplace noise: for every attribute, and for products of several groups."""
    sizes = {(name, workload.domain[name].size) for group in workload for name in asked_attributes(group)}
    sets = min(len({asked_attributes(group) for group in workload}), _MOST_MERGED)
    if len(sizes) == 1:
        return sum(_ALONE_SECONDS_A_SQUARE * size**2 for _, size in sizes)
    return _SEARCH_SECONDS_A_VALUE * sum(size for _, size in sizes) + _MERGE_SECONDS * sets * (sets - 1) / 2


# What to change in a specification that would take minutes or hours.

_LONG_SECONDS = 60.0
_SHORT_SECONDS = 10.0
_WORTH_SECONDS = 20.0
"""What takes less on its own is not told of."""
_MANY_CELLS = 100_000_000
_STEPS = sorted(unit * 10**power for power, unit in product(range(16), (1, 2, 5, 25)))
"""Widths of bins that people choose."""


def _suggestions(workload: Workload, asked: Workload, expected: Forecast, searched: bool) -> Iterator[str]:
    """Yield what would make selection or a release short, where the forecast says that it is long.

    `asked` is the workload over groups of values; `searched` says that there is Laplace noise alone.
    """
    long = expected.select_seconds >= _LONG_SECONDS
    yield from _of_attributes(workload.domain, asked, searched, long)
    for group in asked:
        seconds = joint_seconds(group)
        if long and seconds >= _WORTH_SECONDS:
            cells, names = math.prod(group.sizes), " and ".join(group.attributes)
            fewer = int(cells * (_SHORT_SECONDS / seconds) ** (1 / 3))
            yield (
                f"workload: the group {group.name!r} compares {names} over {cells:,} cells, which takes "
                f"about {in_words(seconds)}; bins that leave {fewer:,} cells take about "
                f"{in_words(_SHORT_SECONDS)}"
            )
    if expected.counted_cells > _MANY_CELLS:
        largest = max(workload, key=lambda group: workload.domain.cells(group.attributes))
        yield (
            f"workload: {expected.counted_cells:,} cells are measured; the most are those of "
            f"{', '.join(largest.attributes)}: ask for fewer attributes at once (marginals with "
            "`attributes: [...]`), or give them fewer values"
        )


def _of_attributes(domain: Domain, asked: Workload, searched: bool, long: bool) -> Iterator[str]:
    limit = min(LIMITS.max_measured_cells, most_cells())
    alone = len({name for group in asked for name in group.attributes}) == 1

    def seconds(size: int) -> float:
        return attribute_seconds(size, searched, alone)

    for name, size in structured_sizes(asked).items():
        attribute, needed = domain[name], seconds(size)
        fits = searched or size <= limit
        if fits and not (long and needed >= _WORTH_SECONDS):
            continue
        most = bisect_right(range(1, (size if fits else limit) + 1), _SHORT_SECONDS, key=seconds)
        problem = f"are too many for selection here, which takes {limit:,}"
        if fits:
            problem = f"take about {in_words(needed)}"
        coarser, left = _coarser(attribute, most)
        merged = asked.domain[name].size < attribute.size
        values = "groups of values that queries tell apart" if merged else "values"
        yield f"domain.{name}: {size:,} {values} {problem}; {coarser} takes about {in_words(seconds(left))}"


def _coarser(attribute: Attribute, most: int) -> tuple[str, int]:
    """Return how to write an attribute with at most `most` values, and how many it then has."""
    if isinstance(attribute, Integers | Coded):
        low = attribute.minimum if isinstance(attribute, Integers) else 0
        width = next(step for step in _STEPS if -(-attribute.size // step) <= most)
        bins = -(-attribute.size // width)
        return f"{{min: {low}, max: {low + bins * width}, bins: {bins}}}", bins
    if isinstance(attribute, Bins):
        joined = -(-attribute.size // most)
        kept = [*range(0, attribute.size, joined), attribute.size]
        first, second, last = (number_text(attribute.edges[kept[i]]) for i in (0, 1, -1))
        return f"one of every {joined} edges (edges: [{first}, {second}, ..., {last}])", len(kept) - 1
    return f"categories that are put together, at most {most} of them, which", most


def in_words(seconds: float) -> str:
    """Return a time as a person would tell it.

    Examples
    --------
    >>> in_words(6.3), in_words(600)
    ('7 s', '10 min')
    """
    return f"{-int(-seconds // 1)} s" if seconds < _LONG_SECONDS else f"{-int(-seconds // 60)} min"
