"""Domains and workloads of the published comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

import matrixdp as mdp
from matrixdp.queries import DenseGroup, Group
from matrixdp.queries.groups import MatrixRows

__all__ = [
    "ADULT",
    "CPS",
    "LOANS",
    "Kind",
    "adult",
    "all_ranges",
    "comparisons",
    "cps",
    "hybrid",
    "loans",
    "mix",
    "one_and_two_way",
    "random_one_and_two_way",
    "small_products",
    "two_way_kinds",
]

#: The sizes of categorical and of numeric attributes.
ADULT = ((42, 16, 15, 9, 7, 6, 5, 2, 2), (100, 100, 100, 99, 85))
CPS = ((7, 4, 2), (100, 50))
LOANS = ((51, 36, 15, 8, 6, 5, 4, 3), (101, 101, 101, 101))


def _domain(sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> mdp.Domain:
    categorical, numeric = sizes
    forms: dict[str, object] = {f"c{i}": [str(v) for v in range(n)] for i, n in enumerate(categorical)}
    forms |= {f"x{i}": range(n) for i, n in enumerate(numeric)}
    return mdp.Domain(forms)


def adult() -> mdp.Domain:
    """Return the Adult domain: nine categorical and five numeric attributes."""
    return _domain(ADULT)


def cps() -> mdp.Domain:
    """Return the CPS domain: three categorical and two numeric attributes."""
    return _domain(CPS)


def loans() -> mdp.Domain:
    """Return the Loans domain: eight categorical and four numeric attributes."""
    return _domain(LOANS)


def hybrid(domain: mdp.Domain, ways: list[int]) -> mdp.Workload:
    """Return every k-way product of identity on categorical and prefix on numeric attributes."""
    return mdp.Workload(domain, mdp.kway(ways, {"categorical": "identity", "numeric": "prefix"}))


def two_way_kinds(domain: mdp.Domain, numeric: str) -> mdp.Workload:
    """Return every 2-way product of identity on categorical and one kind of query on numeric attributes."""
    return mdp.Workload(domain, mdp.kway([2], {"categorical": "identity", "numeric": numeric}))


def small_products(domain: mdp.Domain, numeric: str) -> mdp.Workload:
    """Return the products over all sets of attributes of less than 5,000 cells together."""
    entries = []
    for ways in range(6):
        for names in combinations(domain.names, ways):
            if domain.cells(names) < 5_000:
                asked = {name: numeric if domain[name].numeric else "identity" for name in names}
                entries.append(mdp.product(asked) if asked else mdp.marginals(0))
    return mdp.Workload(domain, *entries)


def mix(size: int, attributes: int) -> mdp.Workload:
    """Return 1-way ranges, 2-way affine and 3-way prefixes."""
    domain = mdp.Domain({f"a{i}": range(size) for i in range(attributes)})
    return mdp.Workload(
        domain,
        mdp.kway(1, {"numeric": "range"}),
        mdp.pairwise("affine"),
        mdp.kway(3, {"numeric": "prefix"}),
    )


#: The kinds of queries of `one_and_two_way`.
Kind = Literal["identity", "prefix", "range", "circular", "affine", "abs"]


def one_and_two_way(
    kind: Kind, size: int = 10, attributes: int = 40, weights: Sequence[float] | None = None
) -> mdp.Workload:
    """Return the 1-way and 2-way queries of one kind; affine and abs are prefixes on one attribute.

    ``weights`` are those of the attributes and then of their pairs.
    """
    domain = mdp.Domain({f"a{i}": range(size) for i in range(attributes)})
    single = "prefix" if kind == "affine" or kind == "abs" else kind
    if weights is None:
        pairs = mdp.pairwise(kind) if kind == "affine" or kind == "abs" else mdp.kway(2, kind)
        return mdp.Workload(domain, mdp.kway(1, single), pairs)
    entries: list[Any] = []
    for names, weight in zip(_one_and_two(domain), weights, strict=True):
        if len(names) == 2 and (kind == "affine" or kind == "abs"):
            entries.append(mdp.pairwise(kind, names, weight=weight))
        else:
            entries.append(mdp.product(dict.fromkeys(names, single), weight=weight))
    return mdp.Workload(domain, *entries)


def _one_and_two(domain: mdp.Domain) -> list[tuple[str, ...]]:
    return [(name,) for name in domain.names] + list(combinations(domain.names, 2))


@dataclass(frozen=True, eq=False)
class _Shared:
    """An entry that asks explicit queries which other entries ask of other attributes, held once."""

    attributes: tuple[str, ...]
    content: MatrixRows
    weight: float

    def expand(self, domain: mdp.Domain) -> list[Group]:
        sizes = tuple(domain[name].size for name in self.attributes)
        return [DenseGroup(", ".join(self.attributes), self.attributes, self.content, sizes, self.weight)]

    def to_spec(self) -> dict[str, object]:
        return {"dense": self.content.values.tolist(), "attributes": list(self.attributes)}


def random_one_and_two_way(
    size: int, attributes: int = 40, weights: Sequence[float] | None = None
) -> mdp.Workload:
    """Return 3n random queries about each attribute and 3n^2 about each pair, the same for all."""
    domain = mdp.Domain({f"a{i}": range(size) for i in range(attributes)})
    random = np.random.default_rng(0)
    drawn = [
        MatrixRows(np.asarray(random.random((3 * cells, cells)) < 0.3, np.float64))
        for cells in (size, size**2)
    ]
    subsets = _one_and_two(domain)
    return mdp.Workload(
        domain,
        *(
            _Shared(names, drawn[len(names) - 1], weight)
            for names, weight in zip(subsets, weights or [1.0] * len(subsets), strict=True)
        ),
    )


def comparisons(
    sizes: tuple[tuple[int, ...], tuple[int, ...]], kind: Literal["affine", "abs"], crossed: bool = False
) -> mdp.Workload:
    """Return 1-way queries and comparisons of every pair of attributes, all of them taken as numeric.

    The 1-way queries are identity on the categorical and prefix on the numeric attributes. ``crossed``:
    pairs of two numeric ones have products of prefixes in place of a comparison.
    """
    categorical, numeric = sizes
    forms = {f"c{i}": range(n) for i, n in enumerate(categorical)}
    forms |= {f"x{i}": range(n) for i, n in enumerate(numeric)}
    entries: list[Any] = [mdp.product({name: "identity" if name[0] == "c" else "prefix"}) for name in forms]
    for first, second in combinations(forms, 2):
        if crossed and first[0] == second[0] == "x":
            entries.append(mdp.product({first: "prefix", second: "prefix"}))
        else:
            entries.append(mdp.pairwise(kind, [first, second]))
    return mdp.Workload(mdp.Domain(forms), *entries)


def all_ranges(size: int = 50, attributes: int = 40) -> mdp.Workload:
    """Return all 1-way and 2-way ranges."""
    domain = mdp.Domain({f"a{i}": range(size) for i in range(attributes)})
    return mdp.Workload(domain, mdp.kway([1, 2], "range"))


def cdf(size: int) -> mdp.Workload:
    """Return the cumulative counts of a number of many values: of all, and in each of two groups."""
    domain = mdp.Domain({"amount": range(size), "group": ["a", "b"]})
    return mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))


def windows(size: int) -> mdp.Workload:
    """Return all cells and all windows of an eighth of the values: a problem without structure."""
    domain = mdp.Domain({"x": range(size)})
    return mdp.Workload(domain, mdp.product(x={"sliding": size // 8}), mdp.product(x="identity"))
