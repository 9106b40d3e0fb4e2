"""Integer records of a mixture of products, stratified: every component and every value has its share.

The numbers of records of the components, and in each component those of the values of each attribute, are
the mixture's, rounded up or down. Within a component the columns are permuted independently, which is what a
product is. A table that is counted on such records is integer, non-negative and consistent with every other,
and nearer to the mixture than one of records that are drawn independently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import SpecificationError
from matrixdp.forms import describe_value
from matrixdp.model.derived import sources
from matrixdp.model.mixture import Mixture
from matrixdp.selection.starting_points import Generator, generator

__all__ = ["CHUNK_ROWS", "MAX_ROWS", "StratifiedRecords", "systematic"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Codes = NDArray[Any]

#: Records that are made at once.
CHUNK_ROWS = 1 << 18
#: More are not made; it is the most that NumPy draws from without replacement.
MAX_ROWS = 999_999_999


def systematic(shares: Array, totals: Counts, offsets: Array) -> Counts:
    """Return whole numbers with given sums: each share of its total, rounded up or down.

    Parameters
    ----------
    shares : ndarray, shape (rows, n)
        Non-negative; those of a row sum to 1.
    totals : ndarray, shape (rows,)
        What the whole numbers of a row sum to.
    offsets : ndarray, shape (rows,)
        Where rounding begins, from 0 up to but not 1. If they are uniform, the expected numbers are the
        shares' own (systematic sampling).

    Examples
    --------
    >>> systematic(np.array([[0.5, 0.25, 0.25]]), np.array([10]), np.array([0.6]))
    array([[5, 3, 2]])
    """
    edges = np.cumsum(shares, axis=1)
    edges *= (totals / edges[:, -1])[:, None]
    np.floor(edges + offsets[:, None], out=edges)
    np.minimum(edges, totals[:, None], out=edges)
    edges[:, -1] = totals
    ends: Counts = edges.astype(np.int64)
    ends[:, 1:] -= ends[:, :-1].copy()
    return ends


@final
class StratifiedRecords:
    """Records of a mixture: their codes, in chunks, in a random order.

    Parameters
    ----------
    mixture : Mixture
    rows : int
        How many, from 0 to `MAX_ROWS`.
    seed : int
        Of the rounding and of the order: the same seed, the same records.

    Raises
    ------
    SpecificationError
        If the number of records or the seed is none.

    References
    ----------
    W. G. Madow, On the theory of systematic sampling II, Annals of Mathematical Statistics, 1949.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> factors = {"sex": np.eye(2), "smokes": np.array([[0.75, 0.25], [0.5, 0.5]])}
    >>> mixture = Mixture(domain, 100.0, np.array([0.6, 0.4]), factors)
    >>> [chunk] = StratifiedRecords(mixture, 100, seed=0).chunks()
    >>> np.histogram2d(chunk["sex"], chunk["smokes"], bins=2)[0]
    array([[45., 15.],
           [20., 20.]])
    """

    def __init__(self, mixture: Mixture, rows: int, seed: int) -> None:
        if type(rows) is not int or not 0 <= rows <= MAX_ROWS:
            raise SpecificationError.at(
                ("rows",),
                describe_value(rows),
                f"a number of records, from 0 to {MAX_ROWS:,}",
                code="out-of-range",
            )
        check_seed(seed)
        self.mixture, self.rows, self.seed = mixture, rows, seed

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.mixture.domain

    @cached_property
    def sizes(self) -> Counts:
        """The number of records of each component, shape (K,)."""
        offset = generator(self.seed).spawn(3)[0].random(1)
        return np.asarray(systematic(self.mixture.weights[None], np.array([self.rows]), offset)[0])

    @cached_property
    def values(self) -> Mapping[str, Counts]:
        """For each attribute that is free the number of records with each value, each of shape (K, size)."""
        random = generator(self.seed).spawn(3)[1]
        return {
            name: systematic(shares, self.sizes, random.random(len(shares)))
            for name, shares in self.mixture.factors.items()
        }

    def chunks(self, most: int = CHUNK_ROWS) -> Iterator[dict[str, Codes]]:
        """Yield the records, at most so many at once: for each attribute their codes, in domain order.

        All of them together are in a uniformly random order: what a chunk gets of a component, and of its
        values, is drawn without replacement from what is left.
        """
        random = generator(self.seed).spawn(3)[2]
        sizes, values = self.sizes.copy(), {name: own.copy() for name, own in self.values.items()}
        left = self.rows
        while left:
            rows = min(most, left)
            taken = sizes.copy() if rows == left else random.multivariate_hypergeometric(sizes, rows)
            order = random.permutation(rows)
            codes = {}
            for name, own in values.items():
                part = own if rows == left else _drawn(own, taken, random)
                codes[name] = _permuted(part, taken, random)[order]
                values[name] = own - part
            sizes -= taken
            left -= rows
            yield {
                name: codes[name] if name in codes else self._derived(name, codes)
                for name in self.domain.names
            }

    def _derived(self, name: str, codes: Mapping[str, Codes]) -> Codes:
        """Return the codes of an attribute that follows from others."""
        parents = sources(self.domain, name)
        derivation = self.domain[name].codebook.derivation
        assert derivation is not None
        place = np.ravel_multi_index(
            [codes[parent].astype(np.intp) for parent in parents],
            [self.domain[parent].size for parent in parents],
        )
        return np.asarray(np.asarray(derivation.codes, dtype=_code_type(self.domain[name].size))[place])


def check_seed(seed: object) -> None:
    """Refuse what is no seed."""
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise SpecificationError.at(
            ("seed",), describe_value(seed), "an integer from 0 to 2^63 - 1", code="out-of-range"
        )


def _drawn(values: Counts, taken: Counts, random: Generator) -> Counts:
    """Return how many records of each value a chunk gets, given how many of each component."""
    found = np.zeros_like(values)
    for component in np.flatnonzero(taken):
        found[component] = random.multivariate_hypergeometric(values[component], taken[component])
    return found


def _permuted(values: Counts, taken: Counts, random: Generator) -> Codes:
    """Return codes, one component after the other, in a random order within each."""
    size = values.shape[1]
    codes = np.repeat(np.tile(np.arange(size), len(values)), values.ravel())
    end = 0
    for count in taken[taken > 0].tolist():
        random.shuffle(codes[end : end + count])
        end += count
    return codes.astype(_code_type(size))


def _code_type(size: int) -> type[np.signedinteger[Any]]:
    return np.int16 if size < 2**15 else np.int32
