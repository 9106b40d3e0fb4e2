"""Noisy answers: exact integer answers to a plan from the counts of marginals, and noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import OutOfDomain
from matrixdp.errors import NumericalError, PrivacyError, SourceError
from matrixdp.exact import IdentityMatrix, IntegerTensor, apply_kronecker
from matrixdp.mapped import Multiples, room
from matrixdp.measure.calibration import NoiseScale, OutOfDomainCounts, check_entries, check_range
from matrixdp.noise import LAPLACE, RandomSource, SeededSource, SystemSource, Walk
from matrixdp.noise import integers as integer_noise
from matrixdp.plans import Part, Plan, Slices
from matrixdp.privacy.budget import DEFAULT_MAX_RECORDS
from matrixdp.sources.base import OUT_OF_DOMAIN, Marginal


def maximal_marginals(marginals: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """Assign every marginal to a largest one that contains it; only those are counted.

    Examples
    --------
    >>> maximal_marginals([(), ("a",), ("a", "b"), ("c",)])
    {('a', 'b'): [('a', 'b'), ('a',), ()], ('c',): [('c',)]}
    """
    chosen: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    holders: dict[str, list[tuple[str, ...]]] = {}
    for marginal in sorted(marginals, key=len, reverse=True):
        wanted = set(marginal)
        candidates = holders.get(marginal[0], []) if marginal else list(chosen)[:1]
        holder = next((c for c in candidates if wanted <= set(c)), None)
        if holder is None:
            holder = marginal
            chosen[holder] = []
            for name in holder:
                holders.setdefault(name, []).append(holder)
        chosen[holder].append(marginal)
    return chosen


def random_source(seed_not_private: int | None) -> RandomSource:
    """Return the operating system's generator, or a seeded one, whose noise protects nobody."""
    return SystemSource() if seed_not_private is None else SeededSource(seed_not_private)


def noisy(
    answers: IntegerTensor,
    scale: NoiseScale,
    source: RandomSource,
    shift: int = 0,
    weight: int = 1,
    walk: Walk | None = None,
    joint: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return round((answers / (2^shift weight) + noise) / step) for exact answers, flat.

    The noise is independent, that of a walk, or integers that were drawn together with those of other parts.
    """
    if joint is not None:
        if shift or weight != 1 or scale.power > 0 or scale.noise != LAPLACE:
            raise PrivacyError("one radius for answers that are not on its lattice", "conflict")
        whole, _, _ = answers.split(scale.power)
        return np.asarray(whole + joint)
    if walk is not None:
        if shift or weight != 1 or scale.power > 0 or scale.noise != LAPLACE:
            raise PrivacyError("a walk for answers that are not on its lattice", "conflict")
        whole, _, _ = answers.split(scale.power)
        return np.asarray(whole + walk.draw(scale.steps, source))
    if scale.multiple is not None:
        if shift or weight != 1:
            raise PrivacyError("noise on integers for answers that are none", "conflict")
        steps = scale.steps / scale.multiple
        whole, _, _ = answers.split(0)
        return np.asarray(whole + scale.multiple * integer_noise.draw_integers(steps, len(whole), source))
    power = scale.power + shift
    quotient, fraction, exact = answers.split(power, weight)
    offsets, exact_offset = (None, None) if power <= 0 and weight == 1 else (fraction, exact)
    drawn = scale.noise.draw_rounded(
        scale.steps, len(quotient), offsets=offsets, exact_offset=exact_offset, source=source
    )
    return np.asarray(quotient + drawn)


#: Takes the noisy answers to some rows of a part, by its place, in lattice steps.
Keep = Callable[[int, slice, NDArray[np.int64]], None]
#: By the place of a part what is measured of counts, which of its rows, and where in those of the part.
Measured = Mapping[int, tuple[Part, NDArray[np.bool_] | None, slice]]
#: The attributes of a marginal, its counts or some of them, and what is measured of these.
Table = tuple[tuple[str, ...], NDArray[np.int64], Measured]
#: Exact sums over consecutive nodes, by marginal and level: the number of the first, and those of each.
Sums = dict[tuple[tuple[str, ...], int], tuple[int, NDArray[np.int64]]]
Groups = Mapping[tuple[str, ...], Sequence[tuple[str, ...]]]


def every_table(
    plan: Plan, groups: Groups, marginals: Iterable[Marginal], slices: Slices | None
) -> Iterator[Table]:
    """Yield all tables of counts that are measured, from marginals that come whole or in slices."""
    if slices is None:
        yield from whole_tables(plan, groups, marginals)
        return
    sums = Sums()
    yield from slice_tables(slices, range(slices.size), groups, marginals, sums)
    yield from sum_tables(slices, sums)


def times(plan: Plan, slices: Slices | None) -> int:
    """Return how many times something is measured of those tables."""
    if slices is None:
        return len(plan.parts)
    own = sum(slices.own(part, slice(0, 1)) is not None for part in plan.parts)
    return own * len(slices) + sum(1 for part in plan.parts for _ in slices.above(part))


def whole_tables(plan: Plan, groups: Groups, marginals: Iterable[Marginal]) -> Iterator[Table]:
    """Yield the marginals, of which all is measured."""
    every = {place: (part, None, slice(0, part.rows)) for place, part in enumerate(plan.parts)}
    missing = set(groups)
    for subset, counts in marginals:
        if subset != OUT_OF_DOMAIN:
            _check_asked(subset in missing)
            missing.remove(subset)
        yield subset, counts, every
    _check_asked(not missing)


def slice_tables(
    slices: Slices, run: range, groups: Groups, marginals: Iterable[Marginal], sums: Sums
) -> Iterator[Table]:
    """Yield slices of some values with what is measured of each value alone; add up the sums meanwhile."""
    parts, ended = slices.plan.parts, dict.fromkeys(groups, run.start)
    for subset, counts in marginals:
        if subset == OUT_OF_DOMAIN:
            yield subset, counts, {}
            continue
        first = ended[subset]
        counts = counts[: run.stop - first]
        _check_asked(len(counts) > 0)
        values = slice(first, first + len(counts))
        ended[subset] = values.stop
        for level, nodes in enumerate(slices.levels):
            if (subset, level) not in sums:
                inside = nodes[run.start : run.stop]
                low, high = int(inside.min()), int(inside.max())
                sums[subset, level] = low, np.zeros((high - low + 1, *counts.shape[1:]), counts.dtype)
            low, added = sums[subset, level]
            for node in np.unique(here := nodes[values]):
                added[node - low] += counts[here == node].sum(axis=0)
        alone = ((place, slices.own(part, values)) for place, part in enumerate(parts))
        yield subset, counts, {place: (own[0], None, own[1]) for place, own in alone if own is not None}
    _check_asked(all(stop == run.stop for stop in ended.values()))


def sum_tables(slices: Slices, sums: Sums) -> Iterator[Table]:
    """Yield sums over the nodes of levels, each with what one part measures of them."""
    above = [(place, own) for place, part in enumerate(slices.plan.parts) for own in slices.above(part)]
    for (subset, level), (first, counts) in sums.items():
        for place, own in above:
            if own.level == level:
                yield subset, counts, {place: own.of(first, first + len(counts))}


def _check_asked(asked: bool) -> None:
    if not asked:
        raise SourceError("the source did not return every marginal that was asked for, once")


@final
class Room:
    """Room for the noisy answers to all parts of a plan, on disk where they are many."""

    def __init__(self, plan: Plan, scales: Sequence[NoiseScale]) -> None:
        pairs = zip(plan.parts, scales, strict=True)
        self._steps = [Multiples(room(part.rows), scale.power) for part, scale in pairs]
        self._missing = [part.rows for part in plan.parts]
        self._held = Slices.of(plan) is None

    def keep(self, place: int, rows: slice, steps: NDArray[np.int64]) -> None:
        """Take the answers to some rows of a part."""
        self._steps[place].put(rows, steps)
        self._missing[place] -= len(steps)

    def values(self) -> tuple[Any, ...]:
        """Return the answers to each part; where the plan has slices, `Multiples`, of which slices are read.

        Raises
        ------
        NumericalError
            If a row was not answered, or twice.
        """
        if any(self._missing):
            raise NumericalError("some rows of the plan were measured twice, or not at all")
        return tuple(np.asarray(own) if self._held else own for own in self._steps)


def noisy_answers(
    plan: Plan,
    scales: tuple[NoiseScale, ...],
    groups: Groups,
    tables: Iterable[Table],
    keep: Keep,
    max_records: int,
    random: RandomSource,
    *,
    before_noise: Callable[[], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    times: int = 0,
    due: Sequence[NDArray[np.bool_]] | None = None,
) -> NDArray[np.int64] | None:
    """Measure tables of counts: answer what is measured of each exactly, add noise, and keep that.

    Of each part only the rows that are ``due``, where that is given; no noise is drawn for others. Returned
    are the exact counts of records out of domain, if there are such. Progress is told out of so many times
    that something is measured.
    """
    joint: dict[int, NDArray[np.int64]] = {}
    outside: NDArray[np.int64] | None = None
    done = 0
    for subset, counts, measured in tables:
        if subset == OUT_OF_DOMAIN:
            outside = counts
            continue
        # records with amounts are divided among cells, and counted in integers of which each is `weight`
        weight = plan.domain.weight(subset)
        bound = max_records
        while int(counts.sum()) > bound * weight:
            bound *= 2
        if bound > max(max_records, DEFAULT_MAX_RECORDS):
            check_range(plan, scales, bound)
        for attributes in groups[subset]:
            places = [place for place in plan.positions[attributes] if place in measured]
            if not places:
                continue
            others = tuple(axis for axis, name in enumerate(subset) if name not in attributes)
            own = plan.domain.weight(attributes)
            marginal = np.asarray(counts.sum(axis=others) if others else counts)
            if weight > own:
                marginal = marginal // (weight // own)  # added up over an amount, records are whole again
            marginal = marginal.astype(object if own > 1 else np.int64, copy=False)
            for place in places:
                if before_noise is not None and not done:
                    before_noise()
                scale, (part, chosen, rows) = scales[place], measured[place]
                answers = part.answers(marginal, bound * own)
                for choice in (None if due is None else due[place], chosen):
                    answers = answers if choice is None else answers.chosen(choice)
                if part.width is not None and not joint:
                    joint = _radius_noise(plan, scale, random)
                drawn = noisy(answers, scale, random, weight=own, walk=part.walk, joint=joint.get(place))
                keep(place, rows, drawn)
                done += 1
                if progress is not None:
                    progress(done, times)
    return outside


def _radius_noise(plan: Plan, scale: NoiseScale, random: RandomSource) -> dict[int, NDArray[np.int64]]:
    """Draw the noise of the parts that share one radius, by their places."""
    assert plan.radius is not None
    copies = [plan.radius.draw(scale.steps, random) for _ in range(plan.radius.copies)]
    drawn = zip(plan.under_radius, zip(*copies, strict=True), strict=True)
    return {place: plan.parts[place].radius_noise(np.array(own)) for place, own in drawn}


def noisy_counts(
    rules: OutOfDomain,
    scale: NoiseScale,
    counts: NDArray[np.int64] | None,
    max_records: int,
    random: RandomSource,
) -> OutOfDomainCounts:
    """Return the counts of records out of domain with noise."""
    number = len(rules.counts)
    if counts is None or counts.shape != (number,):
        raise SourceError("the source did not return the counts out of domain that were asked for")
    bound = max(max_records, DEFAULT_MAX_RECORDS)
    while int(counts.max()) > bound:
        bound *= 2
    check_entries(scale, 1, bound)
    answers = apply_kronecker([IdentityMatrix(number)], counts, bound * number)
    values = np.ldexp(noisy(answers, scale, random).astype(np.float64), scale.power)
    return OutOfDomainCounts(rules.counts, scale, values)
