"""What to change in a specification that would take minutes or hours."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import product

from matrixdp.cli.forecast import Forecast, attribute_seconds, joint_seconds, structured_attributes
from matrixdp.domain import Attribute, Bins, Coded, Integers
from matrixdp.domain.canonical import number_text
from matrixdp.exact.memory import most_cells
from matrixdp.queries import Workload
from matrixdp.selection.limits import MAX_MEASURED_CELLS

__all__ = ["suggestions"]

_LONG_SECONDS = 60.0
_SHORT_SECONDS = 10.0
_WORTH_SECONDS = 20.0
"""What takes less on its own is not told of."""
_MANY_CELLS = 100_000_000
_STEPS = sorted(unit * 10**power for power, unit in product(range(16), (1, 2, 5, 25)))
"""Widths of bins that people choose."""


def suggestions(workload: Workload, expected: Forecast, searched: bool) -> list[str]:
    """Return what would make selection or a release short, where the forecast says that it is long.

    Parameters
    ----------
    workload : Workload
    expected : Forecast
        What the workload is expected to need.
    searched : bool
        Whether strategies are searched under Laplace noise.

    Examples
    --------
    >>> from matrixdp.cli.forecast import forecast
    >>> from matrixdp.domain import Domain
    >>> from matrixdp.language import product
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = Workload(Domain({"pay": range(6_000)}), product(pay="prefix"))
    >>> for line in suggestions(workload, forecast(workload, 10**6, [GAUSSIAN]), searched=False):
    ...     print(line)
    domain.pay: 6,000 values take about 2 min; {min: 0, max: 6000, bins: 1200} takes about 2 s
    """
    long = expected.select_seconds >= _LONG_SECONDS
    own = _of_attributes(workload, searched, long)
    return [*own, *(_of_groups(workload) if long else ()), *_of_cells(workload, expected)]


def _of_attributes(workload: Workload, searched: bool, long: bool) -> Iterator[str]:
    limit = min(MAX_MEASURED_CELLS, most_cells())
    alone = len({name for group in workload for name in group.attributes}) == 1
    for name in structured_attributes(workload):
        attribute = workload.domain[name]
        seconds = attribute_seconds(attribute.size, searched, alone)
        fits = searched or attribute.size <= limit
        if fits and not (long and seconds >= _WORTH_SECONDS):
            continue
        sizes = range(1, (attribute.size if fits else limit) + 1)
        most = bisect_right(sizes, _SHORT_SECONDS, key=lambda size: attribute_seconds(size, searched, alone))
        refused = f"are too many for selection here, which takes {limit:,}"
        told = f"domain.{name}: {attribute.size:,} values " + (
            f"take about {in_words(seconds)}" if fits else refused
        )
        coarser, size = _coarser(attribute, most)
        yield f"{told}; {coarser} takes about {in_words(attribute_seconds(size, searched, alone))}"


def _of_groups(workload: Workload) -> Iterator[str]:
    for group in workload:
        seconds = joint_seconds(group, workload.domain)
        if seconds >= _WORTH_SECONDS:
            cells, names = workload.domain.cells(group.attributes), " and ".join(group.attributes)
            fewer = int(cells * (_SHORT_SECONDS / seconds) ** (1 / 3))
            short = in_words(_SHORT_SECONDS)
            yield (
                f"workload: the group {group.name!r} compares {names} over {cells:,} cells, which takes "
                f"about {in_words(seconds)}; bins that leave {fewer:,} cells take about {short}"
            )


def _of_cells(workload: Workload, expected: Forecast) -> Iterator[str]:
    if expected.counted_cells > _MANY_CELLS:
        largest = max(workload, key=lambda group: workload.domain.cells(group.attributes))
        names = ", ".join(largest.attributes)
        yield (
            f"workload: {expected.counted_cells:,} cells are measured; the most are those of {names}: ask "
            "for fewer attributes at once (marginals with `attributes: [...]`), or give them fewer values"
        )


def _coarser(attribute: Attribute, most: int) -> tuple[str, int]:
    """Return how an attribute is written with at most so many values, and how many it has then."""
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
