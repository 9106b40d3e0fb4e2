"""What a workload will need: sizes that are known, and memory and time roughly, without the data.

Memory and time come from a few coefficients measured on two cores of an ordinary server; they are there to
tell seconds from hours, not to be exact.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, final

from matrixdp.domain import Attribute, Bins, Coded, Domain, Integers
from matrixdp.domain.rules import number_text
from matrixdp.errors import TooLargeError
from matrixdp.exact.resources import matrix_bytes, most_cells
from matrixdp.noise import GAUSSIAN, noise_named
from matrixdp.privacy import Budget
from matrixdp.queries import Group, ProductGroup, Workload
from matrixdp.queries.groups import asked_attributes
from matrixdp.queries.workload import MAX_ANSWERS, budget_shares
from matrixdp.selection.compose.coarse_weights import GRID_POINTS
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.noise_choice import noises_for
from matrixdp.selection.problem.levels import tree_for
from matrixdp.selection.reduce import reduce

if TYPE_CHECKING:
    from matrixdp.selection.explain import Explanation
    from matrixdp.selection.selection import PartMethod

#: Subsets are listed up to this many; beyond it only the groups' own marginals are counted.
_MOST_SUBSETS = 2_000_000
_BASE_BYTES = 250e6
_ROWS_A_SECOND = 2.0e6
_ANSWERS_A_SECOND = 1.3e6
_BYTES_AN_ANSWER = 25.0
#: Seconds until selection begins, and for each subset of a group's attributes.
_START, _SECONDS_A_SUBSET = 0.6, 4e-6
#: Of a tree, for each node and set of other attributes.
_SECONDS_A_NODE = 6e-7
#: One attribute: fitted to CDFs of 600, 1,200, 2,400 and 8,500 values; and how many times as long it takes
#: with several marginals: with one such attribute, and with more.
_SECONDS, _POWER = 1.3e-7, 2.33
_WEIGHED, _WEIGHED_TOGETHER = 2.5, 12.0
#: Marginals of no larger attributes are looked through one by one; then the same of those that are chains.
_MOST_LISTED, _CHAINED = 1_200, 1.8
#: A problem of n cells to its optimum, by their square and their cube.
_SECONDS_A_SQUARE, _SECONDS_A_CUBE = 4e-7, 1.6e-9
#: While weights are searched: about this many evaluations, in steps of any size and with a part of what the
#: optimum takes, and of products instead.
_EVALUATIONS, _STEP, _STEP_PART, _PRODUCT_STEP = 40, 2e-3, 1 / 3, 8e-3
#: How many problems of its size are solved for a large attribute.
_SOLVED = 3
#: A product with weighted rows, and by its cells; tables of pairs that are designed, by the square of theirs.
_PRODUCT, _PRODUCT_A_CELL, _TABLE_A_SQUARE = 0.3, 2.5e-4, 6e-7
#: Selections until entries have their shares of the budget, about.
_SELECTIONS = 4
#: Searches under Laplace noise: for a set of attributes, for one attribute, beside others by its size and
#: always by the square of it, and for two sets of attributes that are tried together, of up to this many.
_COVER_SECONDS, _SEARCHED_A_VALUE, _SEARCHED_A_SQUARE = 1.2e-3, 0.01, 5e-6
_MERGE_SECONDS, _MOST_MERGED = 8e-4, 40


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
    select_seconds, release_seconds : float or None
        For the selection alone, and in all; None where they depend on what a search finds: with targets, and
        under Laplace noise for other queries than cells and totals of several attributes.
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
    select_seconds: float | None
    release_seconds: float | None
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
    gaussian = all(own.norm == 2 for own in noises)
    levels = tree_for(workload) if gaussian else None
    asked = reduce(workload, gaussian, but=() if levels is None else (levels.name,)).workload
    structured = structured_sizes(asked)
    if levels is not None:
        structured.pop(levels.name, None)
    # of two noises, Laplace is searched only where a fast trial leaves hope for it
    selecting = selection_seconds(asked, structured, laplace)
    attributes = {name for group in asked for name in asked_attributes(group)}
    told = not targets and not (laplace and len(attributes) > 1 and not _is_plain(asked, structured))
    if levels is not None:
        nodes = sum(len(own) for _, own in levels.asked)
        subsets = {tuple(name for name in names if name != levels.name) for names in cells}
        selecting += _SECONDS_A_NODE * nodes * len(subsets)
    if any(budget_shares(workload)):
        selecting *= _SELECTIONS
    matrices = [*structured.values()]
    matrices += [math.prod(group.sizes) for group in asked if _is_joint(group)]
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
        select_seconds=selecting if told else None,
        release_seconds=selecting + 1.0 + counted / _ROWS_A_SECOND + written / _ANSWERS_A_SECOND
        if told
        else None,
    )
    long = selecting >= _LONG_SECONDS
    return replace(found, suggestions=tuple(_suggestions(workload, asked, structured, found, laplace, long)))


def structured_sizes(workload: Workload) -> dict[str, int]:
    """Return the attributes on which something is asked whose optimum takes a search, and their values."""
    found: dict[str, int] = {}
    for group in workload:
        asked = zip(group.attributes, getattr(group, "predicates", None) or (), group.sizes, strict=False)
        found |= {name: size for name, predicates, size in asked if predicates.symmetric(size) is None}
    return found


def _is_plain(workload: Workload, structured: Mapping[str, int]) -> bool:
    """Return whether all is known in closed form."""
    return not structured and all(isinstance(group, ProductGroup) for group in workload)


def attribute_seconds(size: int, searched: bool, alone: bool = False) -> float:
    """Return about how long selection takes for one attribute, `searched` under Laplace noise too.

    `alone` says that nothing is asked of other attributes.
    """
    return _SECONDS * math.pow(size, _POWER) + (_axis_seconds(size, alone) if searched else 0.0)


def _axis_seconds(size: int, alone: bool) -> float:
    """Return about how long the search for one attribute takes under Laplace noise."""
    return _SEARCHED_A_SQUARE * float(size) ** 2 + (0.0 if alone else _SEARCHED_A_VALUE * size)


def _is_joint(group: Group) -> bool:
    return not isinstance(group, ProductGroup) and math.prod(group.sizes) <= LIMITS.joint_cells


def selection_seconds(workload: Workload, structured: Mapping[str, int], searched: bool) -> float:
    """Return about how long selection takes, from how its parts would be solved.

    Parameters
    ----------
    workload : Workload
        As selection sees it.
    structured : mapping of str to int
        The attributes whose optimum takes a search, and their values: see `structured_sizes`.
    searched : bool
        Whether strategies are searched under Laplace noise. What Gaussian noise takes is then for the bound.
    """
    subsets = sum(2.0 ** len(group.attributes) for group in workload)
    seconds = _START + _SECONDS_A_SUBSET * min(subsets, _MOST_SUBSETS)
    plain = _is_plain(workload, structured)
    if searched:
        seconds += _search_seconds(workload, structured, plain)
    if plain:
        return seconds
    sizes = {(size, workload.domain[name].numeric) for name, size in structured.items()}
    alone = sum(attribute_seconds(size, False) for size, _ in sizes)
    several = len({asked_attributes(group) for group in workload}) > 1
    if max(structured.values(), default=0) > _MOST_LISTED:
        times = (_WEIGHED_TOGETHER if len(structured) > 1 else _WEIGHED) if several else 1.0
        return seconds if searched else seconds + times * alone
    from matrixdp.selection.explain import explain  # loads what nothing else of `validate` needs

    found: Explanation | None = None
    with suppress(TooLargeError):
        found = explain(workload, GAUSSIAN) if subsets <= _MOST_SUBSETS else None
    if found is None or not found.parts:  # one product, or what is rejected
        return seconds if searched else seconds + alone
    parts = found.parts
    chains = {max(part.sizes) for part in parts if "chain" in part.method}
    seconds += sum(_part_seconds(part, several) for part in parts)
    seconds += _CHAINED * sum(attribute_seconds(n, False) for n in chains)
    tried = {one.mechanism for one in found.candidates if one.status.startswith("tried")}
    largest = max(parts, key=lambda part: part.cells)
    if "dense" in tried and not searched and any(part.matrix for part in parts):
        cells = min(found.matrices["dense"], workload.queries)
        seconds += _optimum_seconds(cells, len({*largest.sizes}) < len(largest.sizes))
    if "weighted-product" in tried and not searched:
        seconds += _PRODUCT + _PRODUCT_A_CELL * largest.cells
    return seconds


def _optimum_seconds(cells: int, halves: bool) -> float:
    """Return about how long a problem takes; in two halves where two attributes may trade places."""
    size = cells / 2.0 if halves else float(cells)
    return (1 + halves) * (_SECONDS_A_SQUARE * size**2 + _SECONDS_A_CUBE * size**3)


def _part_seconds(part: PartMethod, several: bool) -> float:
    """Return about how long a class of marginals takes, in the search for weights and at last.

    Weights are searched where there are `several` sets of attributes.
    """
    product = _EVALUATIONS * _PRODUCT_STEP
    if part.method == "joint tables":
        table = _TABLE_A_SQUARE * float(part.cells) ** 2
        return (len(part.sizes) > 1) * product + (_EVALUATIONS if several else 1) * table
    if not part.matrix:
        return 0.0
    if "product" in part.method:
        return product + _PRODUCT + _PRODUCT_A_CELL * part.cells
    halves = part.matrix == math.prod(part.sizes) and len({*part.sizes}) < len(part.sizes)
    optimum = _optimum_seconds(part.matrix, halves)
    evaluated = optimum
    if max(part.sizes, default=0) > LIMITS.max_searched_size:
        # weights are searched on a grid, from and to points that are solved for
        evaluated, optimum = _optimum_seconds(GRID_POINTS, False), _SOLVED * optimum
    step = _EVALUATIONS * (_STEP + _STEP_PART * evaluated)
    return (product if part.search.startswith("product") else step) + optimum


def _search_seconds(workload: Workload, structured: Mapping[str, int], plain: bool) -> float:
    """Estimate the searches under Laplace noise: of marginals, of strategies, and of sums of products."""
    sets = {asked_attributes(group) for group in workload}
    if len({name for names in sets for name in names}) == 1:
        return sum(_axis_seconds(size, True) for size in structured.values())
    seconds = _COVER_SECONDS * len(sets) + sum(_axis_seconds(size, False) for size in {*structured.values()})
    return seconds + (0.0 if plain else _MERGE_SECONDS * min(len(sets), _MOST_MERGED) ** 2)


# What to change in a specification that would take minutes or hours.

_LONG_SECONDS = 60.0
_SHORT_SECONDS = 10.0
_WORTH_SECONDS = 20.0
"""What takes less on its own is not told of."""
_MANY_CELLS = 100_000_000
_STEPS = sorted(unit * 10**power for power, unit in product(range(16), (1, 2, 5, 25)))
"""Widths of bins that people choose."""


def _suggestions(
    workload: Workload,
    asked: Workload,
    structured: Mapping[str, int],
    expected: Forecast,
    searched: bool,
    long: bool,
) -> Iterator[str]:
    """Yield what would make selection or a release short, where the forecast says that it is long.

    `asked` is the workload over groups of values, with its `structured` attributes; `searched` says that
    there is Laplace noise alone, `long` that the time of selection is worth telling of.
    """
    yield from _of_attributes(workload.domain, asked, structured, searched, long)
    if expected.counted_cells > _MANY_CELLS:
        largest = max(workload, key=lambda group: workload.domain.cells(group.attributes))
        yield (
            f"workload: {expected.counted_cells:,} cells are measured; the most are those of "
            f"{', '.join(largest.attributes)}: ask for fewer attributes at once (marginals with "
            "`attributes: [...]`), or give them fewer values"
        )


def _of_attributes(
    domain: Domain, asked: Workload, structured: Mapping[str, int], searched: bool, long: bool
) -> Iterator[str]:
    limit = min(LIMITS.max_measured_cells, most_cells())
    alone = len({name for group in asked for name in asked_attributes(group)}) == 1

    def seconds(size: int) -> float:
        return attribute_seconds(size, searched, alone)

    for name, size in structured.items():
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
