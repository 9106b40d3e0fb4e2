"""A made-up nation of states, counties and tracts, what is asked of it, and its persons."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

__all__ = ["OTHERS", "SUBSETS", "Nation", "Subset", "counts_of", "write_records"]

Places = NDArray[np.int64]
Subset = tuple[str, ...]

#: Attributes beside the area, and how many values they have.
OTHERS = {"sex": 2, "age": 21, "race": 63, "hispanic": 2}
SUBSETS: tuple[Subset, ...] = tuple(own for size in range(5) for own in combinations(OTHERS, size))
_AT_ONCE = 1_000_000
#: What each level is called, how many areas it has, how unlike they are in size, and at most how large.
_LEVELS = (
    ("nation", 1, 0.0, 1),
    ("state", 51, 0.0, 51),
    ("county", 3_143, 1.0, 254),
    ("tract", 74_000, 2.0, 2_500),
    ("group", 240_000, 0.5, 9),
    ("block", 1_000_000, 0.8, 100),
)


@dataclass(frozen=True)
class Nation:
    """Its areas.

    Attributes
    ----------
    levels : tuple of str
        Their names, from the nation to the smallest areas.
    groups : tuple of ndarray of int64
        For each level the area of each smallest area.
    """

    levels: tuple[str, ...]
    groups: tuple[Places, ...]

    @classmethod
    def down_to(cls, smallest: str) -> Nation:
        """Return the nation with so many levels.

        Examples
        --------
        >>> Nation.down_to("tract").counts
        (1, 51, 3143, 74000)
        """
        random = np.random.default_rng(0)
        names = [level[0] for level in _LEVELS]
        chosen = _LEVELS[: names.index(smallest) + 1]
        children = [_children(random, above[1], *own[1:]) for above, own in pairwise(chosen)]
        groups = [np.arange(chosen[-1][1])]
        for own in reversed(children):
            parents = np.repeat(np.arange(len(own)), own)
            groups.insert(0, parents[groups[0]])
        return cls(tuple(level[0] for level in chosen), tuple(groups))

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of areas of each level."""
        return tuple(int(own.max()) + 1 for own in self.groups)

    @property
    def smallest(self) -> str:
        return self.levels[-1]

    def codes(self, level: int) -> list[str]:
        """Return the codes of all areas of a level."""
        return [f"{self.levels[level][0]}{place:07}" for place in range(self.counts[level])]

    def write_areas(self, path: Path) -> None:
        """Write the public list: a row for each smallest area, with the larger ones that it lies in."""
        columns = [
            np.array(self.codes(level))[self.groups[level]].tolist()
            for level in range(len(self.levels) - 1, 0, -1)
        ]
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([self.levels[:0:-1], *zip(*columns, strict=True)])

    def entries(self, asked: Sequence[tuple[tuple[Subset, ...], float]]) -> list[dict[str, Any]]:
        """Return the workload of a specification: at each level some marginals with a weight."""
        return [
            {"marginals": [list(own) for own in subsets], "at": {self.smallest: level}, "weight": weight}
            for level, (subsets, weight) in zip(("total", *self.levels[1:]), asked, strict=True)
            if subsets
        ]


def _children(random: np.random.Generator, parents: int, total: int, spread: float, most: int) -> Places:
    """Return numbers of children, lognormal, each at least 1, that sum to a total."""
    drawn = np.exp(random.normal(0.0, spread, parents))
    found = np.minimum(np.floor(drawn / drawn.sum() * (total - parents)).astype(np.int64) + 1, most)
    largest = np.argsort(-drawn)
    while found.sum() != total:
        lacking = total - int(found.sum())
        places = largest[found[largest] < most] if lacking > 0 else np.flatnonzero(found > 1)
        found[places[: abs(lacking)]] += np.sign(lacking)
    return np.asarray(found)


def write_records(path: Path, nation: Nation, records: int) -> None:
    """Write persons in any order; areas and groups have heavy tails."""
    codes = pa.array(nation.codes(len(nation.levels) - 1))
    schema = pa.schema(
        [(nation.smallest, pa.dictionary(pa.int32(), pa.string())), *((name, pa.uint8()) for name in OTHERS)]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for areas, others in _drawn(nation, records):
            column = pa.DictionaryArray.from_arrays(areas, codes)
            writer.write_table(pa.table({nation.smallest: column, **others}, schema=schema))


def _drawn(nation: Nation, records: int) -> Iterator[tuple[NDArray[np.int32], dict[str, NDArray[np.uint8]]]]:
    """Yield smallest areas of persons, and what else is known of them."""
    random = np.random.default_rng(0)
    sizes = np.cumsum(random.lognormal(size=nation.counts[-1]))
    shares = {name: np.cumsum(random.gamma(0.5, size=size)) for name, size in OTHERS.items()}
    for start in range(0, records, _AT_ONCE):
        many = min(_AT_ONCE, records - start)
        areas = np.searchsorted(sizes, random.random(many) * sizes[-1]).astype(np.int32)
        others = {
            name: np.searchsorted(own, random.random(many) * own[-1]).astype(np.uint8)
            for name, own in shares.items()
        }
        yield areas, others


def counts_of(nation: Nation, records: int, level: int, subset: Subset) -> Places:
    """Return the true counts of a marginal in every area of a level, area after area, of what is drawn."""
    sizes = [nation.counts[level], *(OTHERS[name] for name in subset)]
    found = np.zeros(int(np.prod(sizes)), dtype=np.int64)
    for areas, others in _drawn(nation, records):
        places = nation.groups[level][areas]
        for name in subset:
            places = places * OTHERS[name] + others[name]
        if len(found) < _AT_ONCE:
            found += np.bincount(places, minlength=len(found))
        else:
            np.add.at(found, places, 1)
    return found
