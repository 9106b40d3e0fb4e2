"""Domains and workloads of the published comparisons."""

from __future__ import annotations

from typing import Literal

import matrixdp as mdp

__all__ = [
    "ADULT",
    "CPS",
    "LOANS",
    "Kind",
    "adult",
    "all_ranges",
    "cps",
    "cps_pairs",
    "hybrid",
    "loans",
    "mix",
    "one_and_two_way",
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
    kind: Kind,
    size: int = 10,
    attributes: int = 40,
) -> mdp.Workload:
    """Return the 1-way and 2-way queries of one kind; affine and abs are prefixes on one attribute."""
    domain = mdp.Domain({f"a{i}": range(size) for i in range(attributes)})
    if kind == "affine" or kind == "abs":
        return mdp.Workload(domain, mdp.kway(1, "prefix"), mdp.pairwise(kind))
    return mdp.Workload(domain, mdp.kway([1, 2], kind))


def cps_pairs(kind: Literal["affine", "abs"]) -> mdp.Workload:
    """Return 1-way prefixes and comparisons of every pair of CPS attributes, all of them taken as numeric."""
    domain = mdp.Domain({f"x{i}": range(size) for i, size in enumerate((*CPS[1], *CPS[0]))})
    return mdp.Workload(domain, mdp.kway(1, "prefix"), mdp.pairwise(kind))


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
    return mdp.Workload(domain, mdp.product(x={"width": size // 8}), mdp.product(x="identity"))
