"""Families of workloads on which the literature compares mechanisms.

Every function returns one entry, for `Workload`; `w_marginal` returns a list of them. Those that draw queries
at random write them out, so that a saved workload does not depend on how numbers are drawn; equal seeds give
equal queries. Arguments that make no sense raise WorkloadError, and too many numbers TooLargeError.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.language import (
    CellsEntry,
    DenseEntry,
    Entry,
    KwayEntry,
    ProductEntry,
    cells,
    dense,
    kway,
    product,
)
from matrixdp.mechanisms import generator
from matrixdp.queries import MAX_EXPLICIT_ENTRIES, Group, ProductGroup

__all__ = [
    "all_marginals",
    "every_predicate",
    "permuted_ranges",
    "prefixes",
    "random_predicates",
    "relative_error",
    "small_products",
    "w_discrete",
    "w_marginal",
    "w_range",
    "w_related",
    "width_ranges",
]

Array = NDArray[np.float64]


def width_ranges(attribute: str, width: int = 32) -> ProductEntry:
    """Return all ranges of this many values of an attribute.

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
    return product({attribute: {"sliding": width}})


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
            for name in _chosen(domain, attributes)
        }
    )


def small_products(
    domain: Domain,
    numeric: Literal["identity", "prefix", "range"] = "identity",
    max_cells: int = 5000,
    attributes: Iterable[str] | None = None,
) -> KwayEntry:
    """Return every marginal, prefix-marginal or range-marginal of at most this many cells.

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
    names = _chosen(domain, attributes)
    sizes = sorted(domain[name].size for name in names)
    most = max(k for k in range(len(names) + 1) if k == 0 or math.prod(sizes[:k]) <= max_cells)
    predicates = {"categorical": "identity", "numeric": numeric}
    return kway(range(most + 1), predicates, attributes=names, max_cells=max_cells)


def w_discrete(
    domain: Domain,
    queries: int,
    probability: float = 0.02,
    attributes: Iterable[str] | None = None,
    seed: int = 0,
) -> DenseEntry:
    """Return random queries with entries 1 and -1 (WDiscrete).

    Parameters
    ----------
    domain : Domain
        The attributes.
    queries : int
        How many, at least 1.
    probability : float
        The probability that an entry is 1; otherwise it is -1.
    attributes : list of str, optional
        The attributes over whose cells the queries are; all where it is left out.
    seed : int
        Equal seeds give equal queries.

    References
    ----------
    Yuan et al., Low-Rank Mechanism (VLDB 2012), experiments.

    Examples
    --------
    >>> domain = Domain({"age": 64})
    >>> entry = w_discrete(domain, 10, seed=1)
    >>> entry.matrix.shape, sorted(set(entry.matrix.ravel().tolist()))
    ((10, 64), [-1.0, 1.0])
    """
    entry = random_predicates(domain, queries, probability, attributes, seed)
    return dense(2.0 * entry.matrix - 1.0, entry.attributes, name="WDiscrete")


def random_predicates(
    domain: Domain,
    queries: int,
    probability: float = 0.5,
    attributes: Iterable[str] | None = None,
    seed: int = 0,
) -> DenseEntry:
    """Return random predicates over the cells: entries 0 and 1, each 1 with a given probability.

    Parameters
    ----------
    domain, queries, probability, attributes, seed
        As for `w_discrete`; an entry that is not 1 is 0.

    References
    ----------
    Li and Miklau, An Adaptive Mechanism (VLDB 2012): random predicate queries; Yuan et al., COA (KDD 2016).

    Examples
    --------
    >>> random_predicates(Domain({"age": 64}), 1000, 0.25, seed=1).matrix.mean().round(2)
    np.float64(0.25)
    """
    if isinstance(probability, bool) or not 0.0 <= probability <= 1.0:
        raise WorkloadError(f"probability: found {probability!r}; expected a number from 0 to 1")
    names, size = _over(domain, queries, attributes)
    chosen = generator(seed).random((queries, size)) < probability
    return dense(chosen, names, name="random predicates")


def w_range(
    domain: Domain, queries: int, attributes: Iterable[str] | None = None, seed: int = 0
) -> DenseEntry:
    """Return random ranges (WRange): the sum over the cells between two ends drawn uniformly.

    Parameters
    ----------
    domain, queries, attributes, seed
        As for `w_discrete`; the cells of several attributes are in row-major order.

    References
    ----------
    Yuan et al., Low-Rank Mechanism (VLDB 2012), experiments.

    Examples
    --------
    >>> w_range(Domain({"age": 5}), 2, seed=1).matrix
    array([[0., 0., 1., 0., 0.],
           [0., 0., 0., 1., 1.]])
    """
    names, size = _over(domain, queries, attributes)
    ends = np.sort(generator(seed).integers(0, size, (queries, 2)), axis=1)
    codes = np.arange(size)
    return dense((codes >= ends[:, :1]) & (codes <= ends[:, 1:]), names, name="WRange")


def w_related(
    domain: Domain,
    queries: int,
    ratio: float = 0.2,
    attributes: Iterable[str] | None = None,
    seed: int = 0,
) -> DenseEntry:
    """Return correlated queries of low rank (WRelated): W = C A with standard normal factors.

    Parameters
    ----------
    domain, queries, attributes, seed
        As for `w_discrete`.
    ratio : float
        The rank s is this part of the smaller of the numbers of queries and of cells, rounded down, at
        least 1: C has s columns and A has s rows.

    References
    ----------
    Yuan et al., Low-Rank Mechanism (VLDB 2012), experiments.

    Examples
    --------
    >>> int(np.linalg.matrix_rank(w_related(Domain({"age": 50}), 30, 0.2).matrix))
    6
    """
    if isinstance(ratio, bool) or not 0.0 < ratio <= 1.0:
        raise WorkloadError(f"ratio: found {ratio!r}; expected a number above 0 and at most 1")
    names, size = _over(domain, queries, attributes)
    rank = max(1, math.floor(ratio * min(queries, size) + 1e-9))
    random = generator(seed)
    mixing, base = random.standard_normal((queries, rank)), random.standard_normal((rank, size))
    return dense(mixing @ base, names, name="WRelated")


def w_marginal(
    domain: Domain, queries: int, ways: int = 2, attributes: Iterable[str] | None = None, seed: int = 0
) -> list[CellsEntry]:
    """Return queries drawn from all cells of the marginals on this many attributes (WMarginal).

    Parameters
    ----------
    domain, attributes, seed
        As for `w_discrete`.
    queries : int
        How many, drawn uniformly without replacement; at most as many as there are.
    ways : int
        The number of attributes of a marginal, at least 1.

    References
    ----------
    Yuan et al., COA (KDD 2016), experiments.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "age": 3, "code": 4})
    >>> from matrixdp.queries import Workload
    >>> Workload(domain, *w_marginal(domain, 7, seed=1)).queries
    7
    """
    names = _chosen(domain, attributes)
    if isinstance(ways, bool) or not isinstance(ways, int) or not 1 <= ways <= len(names):
        raise WorkloadError(f"ways: found {ways!r}; expected a number of attributes from 1 to {len(names)}")
    chosen = list(combinations(names, ways))
    shapes = [tuple(domain[name].size for name in group) for group in chosen]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    if isinstance(queries, bool) or not isinstance(queries, int) or not 1 <= queries <= ends[-1]:
        raise WorkloadError(f"queries: found {queries!r}; expected a number from 1 to {ends[-1]}")
    drawn = np.sort(generator(seed).choice(ends[-1], queries, replace=False))
    entries = []
    for group, shape, end in zip(chosen, shapes, ends, strict=True):
        own = drawn[(drawn >= end - math.prod(shape)) & (drawn < end)] - (end - math.prod(shape))
        codes = np.stack(np.unravel_index(own, shape), axis=1)
        boxes = [
            {name: domain[name].value(int(code)) for name, code in zip(group, row, strict=True)}
            for row in codes
        ]
        if boxes:
            entries.append(cells(boxes, name=f"WMarginal: {', '.join(group)}"))
    return entries


def every_predicate(attribute: str) -> ProductEntry:
    """Return few queries that stand for all predicates, 2^n of them on an attribute of n values.

    The predicates' Gram matrix is 2^(n-2) (I + 11'), which is also that of the n values and the total, each
    with the weight 2^(n-2). Strategies and errors depend on a workload through its Gram matrix alone. The
    weight here is 1/4, a 2^n-th: the weighted squared error is the mean squared error over all predicates.

    Parameters
    ----------
    attribute : str
        The attribute, of any size.

    References
    ----------
    Li, Hay, Rastogi, Miklau, McGregor: Optimizing linear counting queries under differential privacy, PODS
    2010, section 6.2 (W_01).

    Examples
    --------
    With noise of variance 1 on every value, a predicate about k values has the variance k, n / 2 on average.

    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.selection.auto import select
    >>> workload = mdp.Workload(mdp.Domain({"age": 500}), every_predicate("age"))
    >>> round(select(workload, mechanism="identity", noise=GAUSSIAN).weighted_squared_error, 6)
    250.0
    """
    return product({attribute: ["identity", "total"]}, weight=0.25, name="all predicates")


def relative_error(domain: Domain, *entries: Entry) -> tuple[Entry, ...]:
    """Return entries with every query weighted by the inverse of its squared share of the cells.

    A query that adds up the share s of all cells (its L1 norm over their number) is answered with s times
    the number of records if these are spread evenly over the cells. Its squared error counts by 1 / s^2 then,
    so that the weighted RMSE over the number of records is the root mean square of the relative errors. On
    other data it is not: no strategy that is chosen without them can know.

    Parameters
    ----------
    domain : Domain
        The attributes.
    *entries : Entry
        Each stands for one group. Weights that they have are multiplied.

    Raises
    ------
    WorkloadError
        If an entry stands for several groups, or a query is zero everywhere.

    References
    ----------
    McKenna et al., HDMM (VLDB 2018), section 9.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"age": range(4), "sex": ["f", "m"]})
    >>> [entry] = relative_error(domain, mdp.product(age="prefix"))
    >>> mdp.Workload(domain, entry).groups[0].query_weights.round(3).tolist()  # of 1/4, 1/2, 3/4 and all
    [16.0, 4.0, 1.778, 1.0]
    """
    weighted = []
    for place, entry in enumerate(entries):
        groups = entry.expand(domain)
        if len(groups) != 1:
            found = f"an entry that stands for {len(groups)} groups"
            raise WorkloadError.at(("entries", place), found, "one for each group, as `product` makes them")
        shares = _shares(groups[0])
        if not (shares > 0).all():
            raise WorkloadError.at(("entries", place), "a query that is zero everywhere", "none")
        known = 1.0 if groups[0].query_weights is None else groups[0].query_weights
        weighted.append(replace(entry, weights=known / shares**2))
    return tuple(weighted)


def _chosen(domain: Domain, attributes: Iterable[str] | None) -> tuple[str, ...]:
    """Return the attributes that a family of queries is about; all where none are named."""
    if attributes is None:
        return domain.names
    names = tuple(attributes)
    for name in names:
        if name not in domain:
            raise WorkloadError.at(("attributes",), repr(name), "an attribute of the domain")
        if names.count(name) > 1:
            raise WorkloadError.at(("attributes",), f"{name!r} a second time", "each attribute once")
    return names


def _over(domain: Domain, queries: int, attributes: Iterable[str] | None) -> tuple[tuple[str, ...], int]:
    """Return the attributes and the number of their cells, if this many queries fit."""
    if isinstance(queries, bool) or not isinstance(queries, int) or queries < 1:
        raise WorkloadError(f"queries: found {queries!r}; expected an integer of at least 1")
    names = _chosen(domain, attributes)
    size = math.prod(domain[name].size for name in names)
    if queries * size > MAX_EXPLICIT_ENTRIES:
        raise TooLargeError(
            f"queries: {queries} over {size} cells; the limit is {MAX_EXPLICIT_ENTRIES} entries. "
            "Ask fewer queries, or name fewer attributes"
        )
    return names, size


def _shares(group: Group) -> Array:
    """Return the mean of the absolute entries of every query, in the order of the answers."""
    if isinstance(group, ProductGroup):
        pairs = zip(group.predicates, group.sizes, strict=True)
        means = [np.abs(predicates.rows(size)).mean(axis=1) for predicates, size in pairs]
        return np.asarray(reduce(np.multiply.outer, means, np.ones(())), dtype=np.float64).ravel()
    return np.asarray(np.abs(group.rows()).mean(axis=1), dtype=np.float64)
