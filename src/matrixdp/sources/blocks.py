"""Counting many marginals in one statement of a server: few blocks of attributes first, marginals from those.

A server groups the records by each block at once, and the few groups of a block by the marginals in it. What
leaves the server are the marginals' own groups, each with one number that says which marginal and cell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.sources.requests import Request, strides
from matrixdp.sources.source import Marginal

__all__ = ["Block", "Counting", "blocks"]

_CELLS = 2**13
_AT_ONCE = 32
_MOST_SHORT = 2**31


@final
@dataclass(frozen=True)
class Block:
    """Some attributes, and the marginals that are counted from the marginal on all of them."""

    names: tuple[str, ...]
    subsets: tuple[tuple[str, ...], ...]


def blocks(domain: Domain, subsets: Sequence[tuple[str, ...]], cells: int = _CELLS) -> list[Block]:
    """Gather marginals into blocks of at most so many cells, unless one alone has more.

    Examples
    --------
    >>> for block in blocks(Domain({"a": 2, "b": 3, "c": 4}), [("a", "b"), ("c",), ("b", "a"), ()], 12):
    ...     print(block)
    Block(names=('a', 'b'), subsets=(('a', 'b'), ('b', 'a'), ()))
    Block(names=('c',), subsets=(('c',),))
    """
    gathered: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
    for subset in sorted(dict.fromkeys(subsets), key=lambda subset: -domain.cells(subset)):
        joined = [domain.sort({*names, *subset}) for names, _ in gathered]
        growth = [
            domain.cells(join) // domain.cells(names)
            for join, (names, _) in zip(joined, gathered, strict=True)
        ]
        fits = [i for i, join in enumerate(joined) if growth[i] == 1 or domain.cells(join) <= cells]
        if fits:
            best = min(fits, key=lambda i: growth[i])
            gathered[best] = joined[best], [*gathered[best][1], subset]
        else:
            gathered.append((domain.sort(subset), [subset]))
    return [Block(names, tuple(members)) for names, members in gathered]


@final
@dataclass(frozen=True)
class Counting:
    """Some blocks that are counted by one statement.

    Examples
    --------
    >>> from matrixdp.domain import OutOfDomain
    >>> request = Request(Domain({"a": 2, "b": 3}), (("b",), ("a", "b")), OutOfDomain())
    >>> (counting,) = Counting.of(request)
    >>> counting.parts
    (Block(names=('a', 'b'), subsets=(('a', 'b'), ('b',))),)
    >>> keys, counts = np.array([2, 5, 8]), np.array([1, 4, 5])
    >>> for subset, marginal in counting.marginals(keys, counts):
    ...     print(subset, marginal.tolist())
    ('a', 'b') [[0, 0, 1], [0, 0, 4]]
    ('b',) [0, 0, 5]
    """

    request: Request
    parts: tuple[Block, ...]

    @classmethod
    def of(cls, request: Request) -> list["Counting"]:
        """Return the blocks of a request, as many at once as a statement may have."""
        found = blocks(request.domain, request.subsets)
        return [cls(request, tuple(found[i : i + _AT_ONCE])) for i in range(0, len(found), _AT_ONCE)]

    def statement(self, codes: str) -> str:
        """Return the statement that counts, of a subquery with a column ``c0``, ``c1``, ... an attribute.

        Its rows are a number that says which marginal and cell, and the number of records there.
        """
        ends = self._ends([block.names for block in self.parts])
        keys = []
        for i, (block, first) in enumerate(zip(self.parts, ends, strict=False)):
            held = [f"c{self.request.domain.index(name)}" for name in block.names]
            keys.append(f"{self._packed(block.names, held, first)} AS b{i}")
        sets = [f"b{i}" for i in range(len(keys))]
        counted = (
            f"SELECT coalesce({', '.join(sets)}) AS block, count(*) AS records "  # noqa: S608
            f"FROM (SELECT {', '.join(keys)} FROM ({codes}) AS codes OFFSET 0) AS keys "
            f"GROUP BY GROUPING SETS (({'), ('.join(sets)}))"
        )
        starts = iter(self._ends(self._subsets()))
        marginals = [
            self._of_block(block.names, subset, first, end, next(starts))
            for block, first, end in zip(self.parts, ends, ends[1:], strict=False)
            for subset in block.subsets
        ]
        return f"WITH blocks AS MATERIALIZED ({counted}) " + " UNION ALL ".join(marginals)

    def marginals(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> Iterator[Marginal]:
        """Yield the marginals of the statement's rows."""
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        subsets = self._subsets()
        starts = self._ends(subsets)
        places = np.searchsorted(keys, np.array(starts, dtype=np.int64))
        for subset, start, first, end in zip(subsets, starts, places, places[1:], strict=False):
            yield subset, self.request.array(subset, keys[first:end] - start, counts[first:end])

    def _subsets(self) -> list[tuple[str, ...]]:
        return [subset for block in self.parts for subset in block.subsets]

    def _ends(self, subsets: Sequence[tuple[str, ...]]) -> list[int]:
        return list(accumulate(map(self.request.domain.cells, subsets), initial=0))

    def _packed(self, names: Sequence[str], codes: Sequence[str], start: int) -> str:
        # Short integers are packed and grouped sooner.
        most = max(self._ends([block.names for block in self.parts])[-1], self._ends(self._subsets())[-1])
        kind = "integer" if most < _MOST_SHORT else "bigint"
        steps = strides(self.request.shape(names))
        terms = [f"CAST({code} AS {kind}) * {step}" for code, step in zip(codes, steps, strict=True)]
        return " + ".join([f"CAST({start} AS {kind})", *(term.removesuffix(" * 1") for term in terms)])

    def _of_block(
        self, names: tuple[str, ...], subset: tuple[str, ...], first: int, end: int, start: int
    ) -> str:
        """Return the query from the groups of a block, whose keys start at `first`, to a marginal."""
        shape = self.request.shape(names)
        code = {
            name: f"(block - {first}) / {step} % {size}"
            for name, step, size in zip(names, strides(shape), shape, strict=True)
        }
        key = self._packed(subset, [code[name] for name in subset], start)
        inside = f"FROM blocks WHERE block >= {first} AND block < {end}"
        if len(subset) == len(names):
            return f"SELECT {key} AS cell, records {inside}"
        return f"SELECT {key} AS cell, CAST(sum(records) AS bigint) AS records {inside} GROUP BY 1"
