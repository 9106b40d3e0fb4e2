"""Mixtures of products: non-negative tables that agree with one another, all from a few vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.model.derived import cells_of, free_attributes, sources, sum_cells
from matrixdp.model.products import khatri_rao, sum_of_products
from matrixdp.queries import Group
from matrixdp.queries.groups import DenseGroup

__all__ = ["MAX_CELLS", "Mixture"]

Array = NDArray[np.float64]

#: A marginal of a mixture has at most this many cells.
MAX_CELLS = 100_000_000
#: How far from 1 weights and factors may sum.
_SUM = 1e-4
#: What the sums of shares may be off after they were divided by them.
_ROUNDED = 1e-12


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

    domain: Domain
    total: float
    weights: Array
    factors: Mapping[str, Array]

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        factors = {name: np.array(own, dtype=np.float64) for name, own in self.factors.items()}
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "factors", factors)
        object.__setattr__(self, "total", float(self.total))
        if not (math.isfinite(self.total) and self.total > 0):
            raise NumericalError(
                f"mixture: found a total of {self.total}; expected a number above 0", "out-of-range"
            )
        free = free_attributes(self.domain)
        if tuple(factors) != free:
            raise NumericalError(
                f"mixture: factors of {list(factors)}; expected those of {list(free)}", "unknown-name"
            )
        shapes = {name: (len(weights), self.domain[name].size) for name in free}
        if weights.ndim != 1 or any(own.shape != shapes[name] for name, own in factors.items()):
            raise NumericalError(
                "mixture: the shapes of its factors do not fit its weights and its domain", "wrong-size"
            )
        for shares in (weights, *factors.values()):
            if not (shares >= 0).all() or not (abs(shares.sum(axis=-1) - 1) < _SUM).all():
                raise NumericalError("mixture: shares that are below 0 or do not sum to 1", "out-of-range")
            sums = shares.sum(axis=-1, keepdims=True)
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
        shares = khatri_rao([self.factors[own] for own in free], np.ones(self.components))
        assert cells is not None
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
        if self._disjoint(names):
            return sum_of_products([self.factor(name) for name in names], self.total * self.weights)
        free, cells = cells_of(self.domain, names)
        assert cells is not None
        self._check_size(free)
        table = sum_of_products([self.factors[own] for own in free], self.total * self.weights)
        return sum_cells(table, cells, sizes)

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
        if isinstance(group, DenseGroup):
            return group.answers(self.marginal(names))
        if self._disjoint(names):
            asked = [group.sets[name].apply(np.ascontiguousarray(self.factor(name).T)) for name in names]
            return sum_of_products([own.T for own in asked], self.total * self.weights).ravel()
        tensor = self.marginal(names)
        for axis, name in enumerate(names):
            moved = np.moveaxis(tensor, axis, 0)
            out = group.sets[name].apply(np.ascontiguousarray(moved).reshape(moved.shape[0], -1))
            tensor = np.moveaxis(out.reshape(out.shape[0], *moved.shape[1:]), 0, axis)
        return np.asarray(tensor.ravel())

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
        shares = totals / totals.sum()
        weights = [share * mixture.weights for share, mixture in zip(shares, mixtures, strict=True)]
        factors = {
            name: np.concatenate([mixture.factors[name] for mixture in mixtures]) for name in first.factors
        }
        return Mixture(first.domain, float(totals.mean()), np.concatenate(weights), factors)

    def _disjoint(self, names: Sequence[str]) -> bool:
        """Return whether attributes are independent in each component: none follows from another's parent."""
        listed = [own for name in names for own in sources(self.domain, name)]
        return len(set(listed)) == len(listed)

    def _check_size(self, names: Sequence[str]) -> tuple[int, ...]:
        sizes = tuple(self.domain[name].size for name in names)
        if math.prod(sizes) > MAX_CELLS:
            raise TooLargeError(
                f"the marginal of {', '.join(names)} has {math.prod(sizes)} cells; a model makes at most "
                f"{MAX_CELLS}. Ask for fewer attributes, or for a part of them"
            )
        return sizes
