"""Global least squares of tables that share their one-way marginals.

The unknowns are the total and, for every attribute, the contrasts U_i' m_i of its one-way marginal m_i, with
U_i an orthonormal basis of the vectors that sum to zero: few, however many tables there are. A table alone
has the least-squares estimate y with covariance S. With A the map from its cells to its unknowns,

    y = e + G (A y),   G = S A' (A S A')^-1,

and e and A y are uncorrelated. So A y with its information (A S A')^-1 is all that a table says of the
unknowns; informations add up; and the best estimate of the table is e + G z at the best estimate of z.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact.linear import contrasts, kronecker
from matrixdp.plan.part import Part

__all__ = ["MAX_UNKNOWNS", "Shared", "SharedTable", "one_way_maps"]

Array = NDArray[np.float64]

#: Unknowns of the one-way marginals: their covariance is one dense matrix.
MAX_UNKNOWNS = 6_000


def one_way_maps(sizes: Sequence[int]) -> Array:
    """Return the map from a table's cells to the total and the contrasts of its one-way marginals."""
    rows = [np.ones((1, int(np.prod(sizes, dtype=int))))]
    for axis, size in enumerate(sizes):
        sums = [np.ones((1, count)) for count in sizes]
        rows.append(kronecker([*sums[:axis], contrasts(size).T, *sums[axis + 1 :]]))
    return np.vstack(rows)


def _inverse(matrix: Array) -> Array:
    """Return the inverse of a positive definite matrix."""
    try:
        factor = scipy.linalg.cho_factor(matrix)
    except (ValueError, np.linalg.LinAlgError):
        message = "one-way marginals do not follow from the measured tables in floating point"
        raise NumericalError(message) from None
    inverse = scipy.linalg.cho_solve(factor, np.eye(len(matrix)), overwrite_b=True)
    return np.asarray((inverse + inverse.T) / 2.0)


@dataclass(frozen=True, eq=False)
class SharedTable:
    """One measured table: its part, the noise variance, and what it says by itself.

    Attributes
    ----------
    part : Part
    noise : float
    maps : ndarray, shape (unknowns of the table, cells)
        A.
    """

    part: Part
    noise: float
    maps: Array

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the table's own estimate, shape (cells, cells)."""
        return np.asarray(self.noise * kronecker(block.matrix.covariance() for block in self.part.blocks))

    @cached_property
    def _of_maps(self) -> Array:
        return np.asarray(self.covariance @ self.maps.T)

    @cached_property
    def spread(self) -> Array:
        """A S A': the covariance of the unknowns as this table alone has them."""
        return np.asarray(self.maps @ self._of_maps)

    @cached_property
    def information(self) -> Array:
        """(A S A')^-1."""
        return _inverse(self.spread)

    @cached_property
    def lift(self) -> Array:
        """G, shape (cells, unknowns of the table)."""
        return np.asarray(self._of_maps @ self.information)


class Shared:
    """The tables of a plan, joined by the total and their one-way marginals.

    Parameters
    ----------
    domain : Domain
    parts : sequence of Part
        On one or two attributes each, every part of full column rank.
    noise : sequence of float
        The noise variance of each part.
    """

    def __init__(self, domain: Domain, parts: Sequence[Part], noise: Sequence[float]) -> None:
        self.domain = domain
        names = domain.sort({name for part in parts for name in part.attributes})
        self.slices: dict[str, slice] = {}
        count = 1
        for name in names:
            self.slices[name] = slice(count, count + domain[name].size - 1)
            count += domain[name].size - 1
        if count > MAX_UNKNOWNS:
            raise TooLargeError(
                f"tables that share one-way marginals of {count} unknowns; the limit is {MAX_UNKNOWNS}"
            )
        self.unknowns = count
        self.tables: dict[tuple[str, ...], SharedTable] = {}
        known: dict[Hashable, SharedTable] = {}
        for part, variance in zip(parts, noise, strict=True):
            sizes = tuple(domain[name].size for name in part.attributes)
            key = (sizes, tuple(block.matrix.digest() for block in part.blocks), variance)
            if key not in known:
                known[key] = SharedTable(part, variance, one_way_maps(sizes))
            self.tables[part.attributes] = known[key]

    def holds(self, attributes: tuple[str, ...]) -> bool:
        """Return whether a marginal is one of the tables or follows from one."""
        if len(attributes) > 1:
            return attributes in self.tables
        return all(name in self.slices for name in attributes)

    def places(self, attributes: Sequence[str]) -> NDArray[np.intp]:
        """Return where the unknowns of attributes are, the total first; others have none."""
        own = [np.arange(self.unknowns)[self.slices[name]] for name in attributes if name in self.slices]
        return np.concatenate([np.zeros(1, dtype=np.intp), *own])

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the best estimates of all unknowns."""
        information = np.zeros((self.unknowns, self.unknowns))
        for attributes, table in self.tables.items():
            places = self.places(attributes)
            information[np.ix_(places, places)] += table.information
        return _inverse(information)

    def solved(self, alone: Mapping[tuple[str, ...], Array]) -> Array:
        """Return the best estimates of the unknowns from those of each table alone, flat."""
        right = np.zeros(self.unknowns)
        for attributes, table in self.tables.items():
            right[self.places(attributes)] += table.information @ (table.maps @ alone[attributes])
        return np.asarray(self.covariance @ right)

    def marginal(
        self, attributes: tuple[str, ...], alone: Mapping[tuple[str, ...], Array], unknowns: Array
    ) -> Array:
        """Return the best estimate of a table or of what follows from one, in its shape."""
        places = self.places(attributes)
        if attributes in self.tables:
            table, own = self.tables[attributes], alone[attributes]
            flat = own + table.lift @ (unknowns[places] - table.maps @ own)
            return flat.reshape([self.domain[name].size for name in attributes])
        if not attributes:
            return np.asarray(unknowns[0])
        [name] = attributes
        return np.asarray(self.one_way(name, np.eye(self.domain[name].size)) @ unknowns[places])

    def one_way(self, name: str, rows: Array) -> Array:
        """Return queries on one attribute as coefficients of the total and of its contrasts."""
        size = self.domain[name].size
        return np.hstack([rows.sum(axis=1, keepdims=True) / size, rows @ contrasts(size)])
