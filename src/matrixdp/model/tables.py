"""What a model answers from: a mixture of products, or tables of attributes and of pairs of attributes.

Only attributes that do not follow from others, the free ones, have numbers of their own; marginals of derived
attributes are sums over those of the attributes that they follow from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, TooLargeError, UnsupportedQueryError
from matrixdp.exact.linear import Array, along_axes
from matrixdp.queries import Group, ProductGroup
from matrixdp.queries.groups import asked_attributes

Real = TypeVar("Real", np.float32, np.float64)

#: A marginal of a mixture has at most this many cells.
MAX_CELLS = 100_000_000
#: How far from 1 weights and factors may sum.
_SUM = 1e-4
#: What the sums of shares may be off after they were divided by them.
_ROUNDED = 1e-12
#: How far, relative to the total, the sums of tables may be from one another.
AGREE = 1e-6


# Attributes that follow from others.


def sources(domain: Domain, name: str) -> tuple[str, ...]:
    """Return the attributes that an attribute follows from; itself where it follows from no others.

    One that is read, at least in part, from columns of its own does not follow from the attributes.
    """
    derivation = domain[name].codebook.derivation
    if derivation is None or derivation.columns:
        return (name,)
    return derivation.of


def free_attributes(domain: Domain) -> tuple[str, ...]:
    """Return the attributes that do not follow from others, in domain order."""
    return tuple(name for name in domain.names if sources(domain, name) == (name,))


def codes_of(domain: Domain, name: str, codes: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the codes of an attribute, given those of the free attributes that it follows from.

    Examples
    --------
    >>> adult = {"of": ["age"], "map": {0: "no", 1: "no", 2: "yes"}}
    >>> domain = Domain({"age": {"min": 0, "max": 2}, "adult": adult})
    >>> codes_of(domain, "adult", {"age": np.array([2, 0])})
    array([1, 0])
    """
    derivation = domain[name].codebook.derivation
    if derivation is None or derivation.columns:
        return codes[name]
    sizes = [domain[parent].size for parent in derivation.of]
    place = np.ravel_multi_index([codes[parent] for parent in derivation.of], sizes)
    return np.asarray(derivation.codes, dtype=np.intp)[place]


def cells_of(domain: Domain, names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.intp] | None]:
    """Return the free attributes of a marginal, and its cell for each of their cells, flat and row-major.

    None instead of cells where the marginal is that of the free attributes itself.

    Examples
    --------
    >>> adult = {"of": ["age"], "map": {0: "no", 1: "no", 2: "yes"}}
    >>> domain = Domain({"age": {"min": 0, "max": 2}, "adult": adult})
    >>> cells_of(domain, ("adult", "age"))
    (('age',), array([0, 1, 5]))
    >>> cells_of(domain, ("age",))
    (('age',), None)
    """
    found = [sources(domain, name) for name in names]
    if all(own == (name,) for name, own in zip(names, found, strict=True)):
        return tuple(names), None
    free = domain.sort({source for own in found for source in own})
    grid = np.indices([domain[name].size for name in free], dtype=np.intp).reshape(len(free), -1)
    codes = dict(zip(free, grid, strict=True))
    places = [codes_of(domain, name, codes) for name in names]
    return free, np.ravel_multi_index(places, [domain[name].size for name in names])


def _sum_cells(table: Array, cells: NDArray[np.intp], sizes: Sequence[int]) -> Array:
    """Return the marginal to whose cells the cells of a table of free attributes belong."""
    return np.bincount(cells, table.ravel(), math.prod(sizes)).reshape(sizes).astype(np.float64)


def _checked_total(what: str, total: float) -> float:
    if not (math.isfinite(total) and total > 0):
        raise NumericalError(f"{what}: found a total of {total}; expected a number above 0", "out-of-range")
    return float(total)


# Mixtures of products.


def khatri_rao(factors: Sequence[NDArray[Real]], weights: NDArray[Real]) -> NDArray[Real]:
    """Return weights_k times the outer product of row k of each factor, flat, shape (K, cells).

    Examples
    --------
    >>> khatri_rao([np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])], np.ones(1))
    array([[3., 4., 6., 8.]])
    """
    product = weights[:, None]
    for factor in factors:
        product = (product[:, :, None] * factor[:, None, :]).reshape(len(product), -1)
    return product


def split_at(sizes: Sequence[int]) -> int:
    """Return where to cut a list of sizes in two so that the products of both sides add up to the least.

    Examples
    --------
    >>> split_at([5, 6, 42]), split_at([9]), split_at([])
    (2, 0, 0)
    """
    cuts = range(len(sizes)) or range(1)
    return min(cuts, key=lambda cut: math.prod(sizes[:cut]) + math.prod(sizes[cut:]))


def sum_of_products(factors: Sequence[Array], weights: Array) -> Array:
    """Return the sum over k of weights_k times the outer product of row k of each factor.

    Parameters
    ----------
    factors : sequence of ndarray, each of shape (K, n_i)
    weights : ndarray, shape (K,)

    Returns
    -------
    ndarray, shape (n_1, n_2, ...)

    Examples
    --------
    >>> first, second = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> sum_of_products([first, second], np.array([4.0, 6.0]))
    array([[2., 2.],
           [0., 6.]])
    """
    sizes = [factor.shape[1] for factor in factors]
    cut = split_at(sizes)
    left = khatri_rao(factors[:cut], weights)
    right = khatri_rao(factors[cut:], np.ones_like(weights))
    return np.asarray((left.T @ right).reshape(sizes))


@final
@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of products: x = total * sum over k of weights_k * the product over attributes of factors.

    Each of K components is a table in which the attributes are independent. Every marginal is non-negative,
    and all of them are marginals of the same table, so they agree with one another.

    Parameters
    ----------
    domain : Domain
        The attributes.
    total : float
        The number of records, above 0.
    weights : ndarray, shape (K,)
        The shares of the components, which sum to 1.
    factors : mapping of str to ndarray, each of shape (K, size)
        For each attribute and component the shares of its values, which sum to 1. Attributes that follow
        from others in the domain have none: theirs follow, and a table holds no cell that cannot be.

    Raises
    ------
    NumericalError
        If they are not shares, or do not fit the domain.

    References
    ----------
    The mixture inference of Private-PGM; for products in place of one table: R. McKenna, D. Sheldon and
    G. Miklau, Graphical-model based estimation and inference for differential privacy, ICML 2019; T. Liu,
    G. Vietri and Z. S. Wu, Iterative methods for private synthetic data, NeurIPS 2021 (RAP).

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> factors = {"sex": np.eye(2), "smokes": np.array([[0.75, 0.25], [0.5, 0.5]])}
    >>> mixture = Mixture(domain, 100.0, np.array([0.6, 0.4]), factors)
    >>> mixture.marginal(["sex", "smokes"])
    array([[45., 15.],
           [20., 20.]])
    >>> mixture.marginal(["smokes"])
    array([65., 35.])
    """

    method: ClassVar[str] = "mixture"

    domain: Domain
    total: float
    weights: Array
    factors: Mapping[str, Array]

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        factors = {name: np.array(own, dtype=np.float64) for name, own in self.factors.items()}
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "total", _checked_total("mixture", self.total))
        free = free_attributes(self.domain)
        if tuple(factors) != free:
            found = f"mixture: factors of {list(factors)}; expected those of {list(free)}"
            raise NumericalError(found, "unknown-name")
        shapes = {name: (len(weights), self.domain[name].size) for name in free}
        if weights.ndim != 1 or any(own.shape != shapes[name] for name, own in factors.items()):
            found = "mixture: the shapes of its factors do not fit its weights and its domain"
            raise NumericalError(found, "wrong-size")
        for shares in (weights, *factors.values()):
            sums = shares.sum(axis=-1, keepdims=True)
            if not (shares >= 0).all() or not (abs(sums - 1) < _SUM).all():
                raise NumericalError("mixture: shares that are below 0 or do not sum to 1", "out-of-range")
            if not (abs(sums - 1) < _ROUNDED).all():  # what was read back stays as it was, to the last digit
                shares /= sums
            shares.setflags(write=False)

    @property
    def components(self) -> int:
        """The number of components, K."""
        return len(self.weights)

    def factor(self, name: str) -> Array:
        """Return the shares of an attribute's values in each component, shape (K, size)."""
        if name in self.factors:
            return self.factors[name]
        free, cells = cells_of(self.domain, [name])
        self._check_size(free)
        assert cells is not None
        shares = khatri_rao([self.factors[own] for own in free], np.ones(self.components))
        summed = np.zeros((self.domain[name].size, self.components))
        np.add.at(summed, cells, shares.T)
        return np.asarray(summed.T)

    def marginal(self, names: Sequence[str]) -> Array:
        """Return a marginal.

        Parameters
        ----------
        names : sequence of str
            The attributes, in any order.

        Returns
        -------
        ndarray
            Numbers of records, of the shape of the attributes' sizes, in their order.

        Raises
        ------
        TooLargeError
            If it has more than `MAX_CELLS` cells, or follows from a marginal that has.
        """
        sizes = self._check_size(names)
        if self._independent(names):
            return sum_of_products([self.factor(name) for name in names], self.total * self.weights)
        free, cells = cells_of(self.domain, names)
        table = self.marginal(free)
        return table if cells is None else _sum_cells(table, cells, sizes)

    def answers(self, group: Group) -> Array:
        """Return the answers to a group's queries, flat, row-major.

        Raises
        ------
        TooLargeError
            If they follow from a marginal of more than `MAX_CELLS` cells.

        Examples
        --------
        >>> from matrixdp.queries.groups import ProductGroup
        >>> from matrixdp.queries.predicates import Prefix
        >>> domain = Domain({"age": 3})
        >>> mixture = Mixture(domain, 10.0, np.ones(1), {"age": np.array([[0.2, 0.3, 0.5]])})
        >>> mixture.answers(ProductGroup("CDF", ("age",), (Prefix(),), (3,)))
        array([ 2.,  5., 10.])
        """
        names = group.attributes
        if not isinstance(group, ProductGroup) or not self._independent(names):
            return group.answers(self.marginal(names)).ravel()
        asked = [group.sets[name].apply(np.ascontiguousarray(self.factor(name).T)).T for name in names]
        return sum_of_products(asked, self.total * self.weights).ravel()

    @staticmethod
    def average(mixtures: Sequence[Mixture]) -> Mixture:
        """Return the mixture whose tables are the means of those of several.

        Parameters
        ----------
        mixtures : sequence of Mixture
            At least one, all over one domain. The result has all their components.

        Examples
        --------
        >>> domain = Domain({"sex": ["female", "male"]})
        >>> all_of = [Mixture(domain, 10.0, np.ones(1), {"sex": np.eye(2)[[code]]}) for code in (0, 1)]
        >>> Mixture.average(all_of).marginal(["sex"])
        array([5., 5.])
        """
        first = mixtures[0]
        totals = np.array([mixture.total for mixture in mixtures])
        weights = [share * own.weights for share, own in zip(totals / totals.sum(), mixtures, strict=True)]
        factors = {name: np.concatenate([own.factors[name] for own in mixtures]) for name in first.factors}
        return Mixture(first.domain, float(totals.mean()), np.concatenate(weights), factors)

    def _independent(self, names: Sequence[str]) -> bool:
        """Return whether attributes are independent in each component: none follows from another's parent."""
        listed = [own for name in names for own in sources(self.domain, name)]
        return len(set(listed)) == len(listed)

    def _check_size(self, names: Sequence[str]) -> tuple[int, ...]:
        sizes = tuple(self.domain[name].size for name in names)
        if math.prod(sizes) > MAX_CELLS:
            found = f"the marginal of {', '.join(names)} has {math.prod(sizes)} cells"
            limit = f"a model makes at most {MAX_CELLS}. Ask for fewer attributes, or for a part of them"
            raise TooLargeError(f"{found}; {limit}")
        return sizes


# Tables of pairs.


@final
@dataclass(frozen=True, eq=False)
class LocalTables:
    """Non-negative tables of one and two attributes that agree in every sum they share.

    There need be no table of all attributes that has them all as its marginals.

    Parameters
    ----------
    domain : Domain
    total : float
        The number of records, above 0.
    tables : mapping of tuple of str to ndarray
        For each attribute that does not follow from others its table, and those of pairs, in domain order.

    Raises
    ------
    NumericalError
        If tables are negative, do not fit the domain, or disagree.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> shares = {("sex",): np.array([60.0, 40.0]), ("smokes",): np.array([75.0, 25.0])}
    >>> LocalTables(domain, 100.0, shares).marginal(["sex", "smokes"])
    array([[45., 15.],
           [30., 10.]])
    """

    method: ClassVar[str] = "local"

    domain: Domain
    total: float
    tables: Mapping[tuple[str, ...], Array]

    def __post_init__(self) -> None:
        tables = {tuple(names): np.array(own, dtype=np.float64) for names, own in self.tables.items()}
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "total", _checked_total("local tables", self.total))
        free = free_attributes(self.domain)
        singles = {(name,) for name in free}
        if not singles <= set(tables) <= singles | set(combinations(free, 2)):
            expected = "expected one of each attribute, and of pairs of them"
            raise NumericalError(f"local tables: {expected}", "unknown-name")
        for names, own in tables.items():
            if own.shape != tuple(self.domain[name].size for name in names) or not (own >= 0).all():
                found = f"local tables: {', '.join(names)}: numbers below 0, or of another shape"
                raise NumericalError(found, "out-of-range")
            pair = list(enumerate(names)) if len(names) == 2 else []
            shared_sums = [(own.sum(axis=1 - axis), tables[(name,)]) for axis, name in pair]
            for sums, shared in shared_sums or [(own.sum(), np.array(self.total))]:
                if not float(np.max(np.abs(sums - shared))) <= AGREE * self.total:
                    found = f"local tables: {', '.join(names)}: other sums than the others have"
                    raise NumericalError(found, "conflict")
            own.setflags(write=False)

    def marginal(self, names: Sequence[str]) -> Array:
        """Return a marginal of at most two attributes (or of the attributes that these follow from).

        Parameters
        ----------
        names : sequence of str
            The attributes, in any order.

        Returns
        -------
        ndarray
            Numbers of records, of the shape of the attributes' sizes, in their order. A pair of which nothing
            was measured is taken for independent.

        Raises
        ------
        UnsupportedQueryError
            If it needs the table of more than two attributes.
        """
        free, cells = cells_of(self.domain, names)
        check_few(free)
        if cells is not None:
            return _sum_cells(self.marginal(free), cells, [self.domain[name].size for name in names])
        if free in self.tables:
            return self.tables[free]
        if free[::-1] in self.tables:
            return self.tables[free[::-1]].T
        if not free:
            return np.array(self.total)
        return np.multiply.outer(self.tables[free[:1]], self.tables[free[1:]]) / self.total

    def answers(self, group: Group) -> Array:
        """Return the answers to a group's queries, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If they need the table of more than two attributes.

        Examples
        --------
        >>> from matrixdp.queries.predicates import Prefix
        >>> tables = LocalTables(Domain({"age": 3}), 10.0, {("age",): np.array([2.0, 3.0, 5.0])})
        >>> tables.answers(ProductGroup("CDF", ("age",), (Prefix(),), (3,)))
        array([ 2.,  5., 10.])
        """
        return _answers_of(self, group)


def _answers_of(tables: LocalTables | IntegerTable, group: Group) -> Array:
    """Return the answers to a group's queries from the marginal of the attributes that they ask about."""
    asked = asked_attributes(group)
    table = tables.marginal(asked)
    if not isinstance(group, ProductGroup):
        return group.answers(table).ravel()
    return along_axes(table, (group.sets[name].apply for name in asked)).ravel()


def check_few(
    names: Sequence[str],
    rule: str = "has tables of at most two attributes, and this needs {} together",
    remedy: str = "ask for at most two, or make the model with method='mixture'",
    most: int = 2,
) -> None:
    """Refuse more attributes than tables of pairs serve, with a rule that names them."""
    if len(names) > most:
        told = f"method 'local' {rule.format(', '.join(names))}: {remedy}"
        raise UnsupportedQueryError(told, "not-supported")


def check_answered(domain: Domain, group: Group) -> None:
    """Check that a group's queries need no table of more than two attributes.

    Raises
    ------
    UnsupportedQueryError
        If they do; it names the attributes.
    """
    check_few(domain.sort({source for name in asked_attributes(group) for source in sources(domain, name)}))


# One table of integers.


@final
@dataclass(frozen=True, eq=False)
class IntegerTable:
    """One table of some attributes, of non-negative integers.

    Parameters
    ----------
    domain : Domain
    attributes : tuple of str
        Those of the table.
    counts : ndarray of int64
        Of the shape of their sizes.

    Raises
    ------
    NumericalError
        If counts are negative, or do not fit the domain.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"], "age": 99})
    >>> table = IntegerTable(domain, ("sex", "smokes"), np.array([[45, 15], [30, 10]]))
    >>> table.total, table.marginal(["smokes"])
    (100.0, array([75., 25.]))
    """

    method: ClassVar[str] = "integers"

    domain: Domain
    attributes: tuple[str, ...]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not set(self.attributes) <= set(self.domain.names):
            raise NumericalError(
                "a table of integers: attributes that the domain does not have", "unknown-name"
            )
        shape = tuple(self.domain[name].size for name in self.attributes)
        if self.counts.dtype != np.int64 or self.counts.shape != shape or not (self.counts >= 0).all():
            raise NumericalError("a table of integers: numbers below 0, or of another shape", "out-of-range")
        self.counts.setflags(write=False)

    @property
    def total(self) -> float:
        """The number of records."""
        return float(self.counts.sum())

    def marginal(self, names: Sequence[str]) -> Array:
        """Return a marginal of attributes of the table, or of those that follow from them.

        Parameters
        ----------
        names : sequence of str
            The attributes, in any order.

        Raises
        ------
        UnsupportedQueryError
            If the table does not have one of them.
        """
        check_has(self.domain, self.attributes, names)
        if set(names) <= set(self.attributes):
            summed = tuple(axis for axis, name in enumerate(self.attributes) if name not in names)
            kept = [name for name in self.attributes if name in names]
            table = self.counts.sum(axis=summed).astype(np.float64)
            return np.transpose(table, [kept.index(name) for name in names])
        free, cells = cells_of(self.domain, names)
        assert cells is not None
        return _sum_cells(self.marginal(free), cells, [self.domain[name].size for name in names])

    def answers(self, group: Group) -> Array:
        """Return the answers to a group's queries, flat, row-major: integers, unless queries are weighted.

        Raises
        ------
        UnsupportedQueryError
            If the table does not have an attribute that they need.

        Examples
        --------
        >>> from matrixdp.queries.predicates import Prefix
        >>> table = IntegerTable(Domain({"age": 3}), ("age",), np.array([2, 3, 5]))
        >>> table.answers(ProductGroup("CDF", ("age",), (Prefix(),), (3,)))
        array([ 2.,  5., 10.])
        """
        return _answers_of(self, group)


def check_has(domain: Domain, table: Sequence[str], names: Sequence[str]) -> None:
    """Check that a table of integers has attributes, or those that they follow from.

    Raises
    ------
    UnsupportedQueryError
        If it does not; it names them.
    """
    lacking = [name for name in names if name not in table and not set(sources(domain, name)) <= set(table)]
    if lacking:
        told = f"method 'integers' makes one table, of {', '.join(table)}, which has no {', '.join(lacking)}"
        raise UnsupportedQueryError(f"{told}: ask for no other attributes", "not-supported")


Tables = Mixture | LocalTables | IntegerTable
"""What a model answers from."""
