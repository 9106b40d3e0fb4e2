"""Families of workloads on which the literature compares mechanisms.

Every function returns one entry, for `Workload`; `w_marginal` returns a list of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from matrixdp.domain import Domain
from matrixdp.errors import WorkloadError
from matrixdp.language import KwayEntry, ProductEntry, kway, product
from matrixdp.papers.random_queries import (
    chosen_names,
    random_predicates,
    w_discrete,
    w_marginal,
    w_range,
    w_related,
)

__all__ = [
    "all_marginals",
    "permuted_ranges",
    "prefixes",
    "random_predicates",
    "small_products",
    "w_discrete",
    "w_marginal",
    "w_range",
    "w_related",
    "width_ranges",
]


def width_ranges(attribute: str, width: int = 32) -> ProductEntry:
    """Return all ranges of so many values of an attribute.

    Parameters
    ----------
    attribute : str
        The attribute.
    width : int
        The number of values of a range.

    References
    ----------
    McKenna et al., HDMM (VLDB 2018), table 3: width-32 ranges.

    Examples
    --------
    >>> width_ranges("age").expand(Domain({"age": 64}))[0].queries
    33
    """
    return product({attribute: {"width": width}})


def permuted_ranges(attribute: str, seed: int = 0) -> ProductEntry:
    """Return all ranges of an attribute whose values were put into a random order.

    Parameters
    ----------
    attribute : str
        The attribute.
    seed : int
        Equal seeds give equal orders.

    References
    ----------
    McKenna et al., HDMM (VLDB 2018), table 3: permuted ranges.

    Examples
    --------
    >>> permuted_ranges("age").expand(Domain({"age": 64}))[0].queries
    2080
    """
    return product({attribute: {"permuted": "range", "seed": seed}})


def prefixes(*attributes: str) -> ProductEntry:
    """Return the product of the prefixes of some attributes: 2-d or 3-d prefixes on two or three.

    Parameters
    ----------
    *attributes : str
        The attributes.

    References
    ----------
    McKenna et al., HDMM (VLDB 2018), table 4: prefix 2D and prefix 3D.

    Examples
    --------
    >>> prefixes("x", "y").expand(Domain({"x": 64, "y": 64}))[0].queries
    4096
    """
    return product(dict.fromkeys(attributes, "prefix"))


def all_marginals(
    domain: Domain,
    numeric: Literal["identity", "prefix", "range"] = "identity",
    attributes: Iterable[str] | None = None,
) -> ProductEntry:
    """Return the cells of all marginals as one product; or prefix-marginals, or range-marginals.

    Categorical attributes are asked by identity and total. So are numeric ones with ``identity``; ``prefix``
    and ``range`` hold the total already.

    Parameters
    ----------
    domain : Domain
        The attributes.
    numeric : {"identity", "prefix", "range"}
        How numeric attributes are asked.
    attributes : list of str, optional
        The attributes; all where it is left out.

    Returns
    -------
    ProductEntry
        One entry, whose Gram matrix is a single Kronecker product.

    Raises
    ------
    WorkloadError
        If an attribute is unknown, or `numeric` is none of these.

    References
    ----------
    McKenna et al., HDMM, journal version, tables 6 and 7: all marginals and all prefix-marginals.

    Examples
    --------
    >>> domain = Domain({"income": 100, "sex": ["female", "male"]})
    >>> [all_marginals(domain, how).expand(domain)[0].queries for how in ("identity", "prefix")]
    [303, 300]
    """
    if numeric not in ("identity", "prefix", "range"):
        raise WorkloadError(f"numeric: found {numeric!r}; expected identity, prefix or range")
    both: Sequence[str] = ["identity", "total"]
    return product(
        {
            name: numeric if domain[name].numeric and numeric != "identity" else both
            for name in chosen_names(domain, attributes)
        }
    )


def small_products(
    domain: Domain,
    numeric: Literal["identity", "prefix", "range"] = "identity",
    max_cells: int = 5000,
    attributes: Iterable[str] | None = None,
) -> KwayEntry:
    """Return every marginal, prefix-marginal or range-marginal of at most so many cells.

    Parameters
    ----------
    domain : Domain
        The attributes.
    numeric : {"identity", "prefix", "range"}
        How numeric attributes are asked; categorical ones are asked by identity.
    max_cells : int
        The most cells of a marginal.
    attributes : list of str, optional
        The attributes; all where it is left out.

    Returns
    -------
    KwayEntry
        One entry that stands for many groups, the total among them.

    Raises
    ------
    WorkloadError
        If an attribute is unknown, or `numeric` is none of these.

    References
    ----------
    McKenna et al., HDMM, journal version: small marginals and small prefix-marginals of Adult and Loans.

    Examples
    --------
    >>> domain = Domain({"income": 100, "age": 60, "sex": ["female", "male"]})
    >>> [group.name for group in small_products(domain, "prefix", 200).expand(domain)]
    ['total', 'income: prefix', 'age: prefix', 'sex: identity', 'income, sex: prefix x identity', \
'age, sex: prefix x identity']
    """
    if numeric not in ("identity", "prefix", "range"):
        raise WorkloadError(f"numeric: found {numeric!r}; expected identity, prefix or range")
    names = chosen_names(domain, attributes)
    sizes = sorted(domain[name].size for name in names)
    most = max(k for k in range(len(names) + 1) if k == 0 or math.prod(sizes[:k]) <= max_cells)
    predicates = {"categorical": "identity", "numeric": numeric}
    return kway(range(most + 1), predicates, attributes=names, max_cells=max_cells)
