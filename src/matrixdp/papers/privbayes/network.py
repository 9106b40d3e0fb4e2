"""Bayesian networks: possible families, their greedy private choice, and answers from their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.noise import RandomSource, choose, uniform
from matrixdp.papers.door import MOST_RECORDS
from matrixdp.papers.privbayes.scores import Score
from matrixdp.papers.spending import Spent
from matrixdp.queries import Workload

Integers = NDArray[np.int64]
Marginal = tuple[str, ...]
#: A child and its parents.
Family = tuple[str, Marginal]
_Factor = tuple[Marginal, Array]

#: Of a table that is made on the way to an answer.
MOST_CELLS = 1 << 24
#: Records that are drawn where exact answers would need larger tables.
_MOST_DRAWN = 1 << 17


def maximal_sets(sizes: Mapping[str, int], limit: int) -> Iterator[Marginal]:
    """Yield the maximal sets of attributes with at most `limit` cells; () if no attribute fits.

    References
    ----------
    Zhang et al., TODS 2017 (maximal parent sets).

    Examples
    --------
    >>> list(maximal_sets({"a": 2, "b": 3, "c": 5}, 10))
    [('a', 'b'), ('a', 'c')]
    >>> list(maximal_sets({"a": 2}, 1)), list(maximal_sets({}, 0))
    ([()], [()])
    """
    names = list(sizes)
    left = [math.prod(list(sizes.values())[place:]) for place in range(len(names) + 1)]

    def extended(place: int, chosen: Marginal, cells: int, smallest: int) -> Iterator[Marginal]:
        if smallest and cells * left[place] * smallest <= limit:
            return  # what was left out could be added
        if place == len(names):
            yield chosen
            return
        size = sizes[names[place]]
        if cells * size <= limit:
            yield from extended(place + 1, (*chosen, names[place]), cells * size, smallest)
        yield from extended(place + 1, chosen, cells, min(smallest or size, size))

    yield from extended(0, (), 1, 0)


class PrivateCounts:
    """Exact counts of a table, which leave by noise or the exponential mechanism alone.

    Parameters
    ----------
    read : callable
        From marginals to their counts, each of the shape of the marginal.

    Attributes
    ----------
    spent : list of Spent
        What was drawn from them so far.
    """

    def __init__(self, read: Callable[[Sequence[Marginal]], Mapping[Marginal, Integers]]) -> None:
        self._read = read
        self._held: dict[Marginal, Integers] = {}
        self._scores: dict[tuple[Family, Score], int] = {}
        self.spent: list[Spent] = []

    def fetch(self, marginals: Sequence[Marginal]) -> None:
        """Read marginals that were not read before."""
        missing = [marginal for marginal in marginals if marginal not in self._held]
        if missing:
            self._held.update(self._read(missing))

    def of(self, attributes: Marginal) -> Integers:
        """Return the counts of a marginal within one that was read, its axes in the order given.

        They are cut to `MOST_RECORDS` as those that were read: sensitivities of scores rest on it.
        """
        wanted = set(attributes)
        holder = min((own for own in self._held if wanted <= set(own)), key=lambda own: self._held[own].size)
        axes = tuple(axis for axis, name in enumerate(holder) if name not in wanted)
        kept = [name for name in holder if name in wanted]
        counts = np.minimum(self._held[holder].sum(axis=axes), MOST_RECORDS)
        return np.asarray(counts.transpose([kept.index(name) for name in attributes]))

    def score(self, family: Family, score: Score) -> int:
        """Return the score of a family."""
        if (family, score) not in self._scores:
            child, parents = family
            joint = self.of((child, *parents))
            self._scores[family, score] = score.of(joint.reshape(len(joint), -1))
        return self._scores[family, score]


def greedy_families(
    counts: PrivateCounts,
    sizes: Mapping[str, int],
    limit: int,
    score: Score,
    epsilon: Fraction,
    random: RandomSource,
) -> list[Family]:
    """Return a network, parents before children: each step chooses a family with the exponential mechanism.

    The d - 1 steps share epsilon. The first child is drawn uniformly, and costs nothing. Candidates depend on
    what was chosen before and on public sizes alone.

    References
    ----------
    Zhang et al., TODS 2017 (GreedyBayes).
    """
    names = list(sizes)
    chosen: dict[str, Marginal] = {names[uniform(len(names), random)]: ()}
    for _ in names[1:]:
        inside = {name: sizes[name] for name in names if name in chosen}
        candidates = [
            (child, parents)
            for child in names
            if child not in chosen
            for parents in maximal_sets(inside, limit // sizes[child])
        ]
        scores = [counts.score(family, score) for family in candidates]
        cells = max(math.prod(sizes[name] for name in (child, *own)) for child, own in candidates)
        share = epsilon / (len(names) - 1)
        sensitivity = score.sensitivity(cells)
        child, parents = candidates[choose(scores, sensitivity, share, random)]
        counts.spent.append(Spent(f"choice of {child}", Fraction(sensitivity), sensitivity / share))
        chosen[child] = parents
    return list(chosen.items())


@dataclass(frozen=True, eq=False)
class Network:
    """A Bayesian network with its conditional distributions.

    Attributes
    ----------
    families : tuple of (str, tuple of str)
        Every attribute with its parents, parents before children.
    conditionals : tuple of ndarray
        For each family the distribution of the child, the last axis, given the parents.
    records : float
        The noisy number of records.
    """

    families: tuple[Family, ...]
    conditionals: tuple[Array, ...]
    records: float

    def marginal(self, attributes: Marginal) -> Array | None:
        """Return the distribution of a few attributes, by variable elimination; None if that takes too much.

        Too much is a table of more than `MOST_CELLS` on the way. Attributes are eliminated in the order of
        the size of the table that this takes, ancestors alone.
        """
        needed = set(attributes)
        for child, parents in reversed(self.families):
            needed.update(parents if child in needed else ())
        factors: list[_Factor] = [((), np.ones(()))]
        sizes: dict[str, int] = {}
        for (child, parents), table in zip(self.families, self.conditionals, strict=True):
            sizes[child] = table.shape[-1]
            if child in needed:
                factors.append(((*parents, child), table))

        def scope(name: str) -> set[str]:
            return {other for own, _ in factors if name in own for other in own}

        left = needed - set(attributes)
        while left:
            name = min(sorted(left), key=lambda own: math.prod(sizes[other] for other in scope(own)))
            joined = scope(name)
            if math.prod(sizes[other] for other in joined) > MOST_CELLS:
                return None
            touched = [factor for factor in factors if name in factor[0]]
            factors = [factor for factor in factors if name not in factor[0]]
            factors.append(_multiplied(touched, tuple(sorted(joined - {name}))))
            left.remove(name)
        return _multiplied(factors, attributes)[1]

    def answers(self, workload: Workload, random: RandomSource) -> tuple[Array, bool]:
        """Return the answers of all queries, shape (queries,), and whether any is counted in drawn records.

        Answers are exact sums of products along the network where `marginal` returns them.
        """
        known: dict[Marginal, Array] = {}
        drawn: dict[str, Integers] = {}
        for group in workload:
            if group.attributes not in known:
                table = self.marginal(group.attributes)
                if table is None:
                    drawn = drawn or self._drawn(random)
                    codes = np.ravel_multi_index([drawn[name] for name in group.attributes], group.sizes)
                    table = np.bincount(codes, minlength=math.prod(group.sizes)) / len(codes)
                known[group.attributes] = self.records * table.reshape(group.sizes)
        found = [np.asarray(group.answers(known[group.attributes])).ravel() for group in workload]
        return np.concatenate(found), bool(drawn)

    def _drawn(self, random: RandomSource) -> dict[str, Integers]:
        """Return the codes of records that are drawn from the network, by attribute."""
        number = min(max(round(self.records), 1), _MOST_DRAWN)
        drawn: dict[str, Integers] = {}
        for (child, parents), table in zip(self.families, self.conditionals, strict=True):
            points = (random.bits64(number) >> np.uint64(11)).astype(np.float64) * 2.0**-53
            below = table.cumsum(axis=-1)[..., :-1][tuple(drawn[name] for name in parents)]
            drawn[child] = (below <= points[:, None]).sum(axis=-1)
        return drawn


def _multiplied(factors: Sequence[_Factor], kept: Marginal) -> _Factor:
    """Return the product of tables, summed over all attributes but those that are kept."""
    names = {name: place for place, name in enumerate(dict.fromkeys(n for own, _ in factors for n in own))}
    given: list[Any] = [part for own, table in factors for part in (table, [names[name] for name in own])]
    return kept, np.asarray(np.einsum(*given, [names[name] for name in kept]))
