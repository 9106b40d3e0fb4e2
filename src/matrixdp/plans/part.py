"""Parts: an integer matrix on one marginal each, with its share of the noise.

The noise of a part is given by its variance at privacy cost 1, under which the costs of all parts sum to 1;
what a part costs is the noise's own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, PrivacyError
from matrixdp.exact import (
    CenteredMatrix,
    IdentityMatrix,
    IntegerTensor,
    MeasuredMatrix,
    MergedMatrix,
    RangeMatrix,
    apply_kronecker,
)
from matrixdp.exact.linear import Array, along
from matrixdp.noise import Noise, Walk
from matrixdp.privacy.unit import Unit


@dataclass(frozen=True)
class Block:
    """An integer matrix over the cells of some attributes of a part, row-major in the given order."""

    attributes: tuple[str, ...]
    matrix: MeasuredMatrix


def _inner(matrix: MeasuredMatrix) -> MeasuredMatrix:
    """Return what is measured of cells, or of groups of them."""
    return matrix.matrix if isinstance(matrix, MergedMatrix) and matrix.within is None else matrix


@dataclass(frozen=True, eq=False)
class Part:
    """The Kronecker product of blocks on one marginal, measured with one noise variance.

    Parameters
    ----------
    attributes : tuple of str
        The marginal, in domain order; empty for the total.
    blocks : tuple of Block
        They partition the attributes.
    variance : float
        Noise variance of each measured row at privacy cost 1, in squared counts times squared entries; where
        rows share the noise of a walk, that which Laplace noise of the same scale would have.
    multipliers : ndarray of int64, optional
        A positive integer for each row, in the shape (rows of block 1, rows of block 2, ...): rows that
        are measured more or less precisely than others.
    width : int, optional
        Of a part that shares one radius of noise with others (`matrixdp.noise.Radius`), in parts of 1024 of
        the scale. Its variance is that which Laplace noise of the same scale would have.
    """

    attributes: tuple[str, ...]
    blocks: tuple[Block, ...]
    variance: float
    multipliers: NDArray[np.int64] | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        listed = self.listed
        if listed != self.attributes and sorted(listed) != sorted(self.attributes):
            raise NumericalError(f"part {self.attributes}: its blocks cover {list(listed)}")
        if not (math.isfinite(self.variance) and self.variance > 0):
            raise PrivacyError(f"part {self.attributes}: noise variance {self.variance}; expected > 0")
        self._check_multipliers()
        self._check_walks()
        self._check_width()
        if self.column_power_sum(2) < 1:
            raise PrivacyError(f"part {self.attributes}: nothing is measured")

    def _check_multipliers(self) -> None:
        """Refuse multipliers whose squares 64 bits do not hold: sensitivities would wrap to small ones."""
        if self.multipliers is None:
            return
        if self.multipliers.dtype != np.int64 or self.multipliers.shape != self.shape:
            raise PrivacyError(f"part {self.attributes}: expected an integer multiplier for each row")
        if int(self.multipliers.min()) < 1:
            raise PrivacyError(f"part {self.attributes}: a row multiplier below 1")
        if self.multipliers.size * int(self.multipliers.max()) ** 2 >= 2**62:
            raise PrivacyError(f"part {self.attributes}: row multipliers too large for exact sensitivities")

    def _check_walks(self) -> None:
        """Reject what the proof of a walk does not cover: several along one row, or weights along it."""
        walks = sum(block.matrix.walk is not None for block in self.blocks)
        if walks > 1 or (walks and self.multipliers is not None):
            told = f"part {self.attributes}: a walk beside another, or with row multipliers"
            raise PrivacyError(f"{told}; expected one walk for each row of the other matrices")

    def _check_width(self) -> None:
        """Reject what the proof of one radius does not cover."""
        if self.width is None:
            return
        kinds = [_inner(block.matrix) for block in self.blocks]
        sizes = [own.rows for own in kinds if not isinstance(own, IdentityMatrix)]
        centred = all(isinstance(own, IdentityMatrix | CenteredMatrix | RangeMatrix) for own in kinds)
        fits = centred and min(sizes, default=2) >= 2 and sum(size > 2 for size in sizes) <= 1
        if not fits or self.multipliers is not None:
            told = f"part {self.attributes}: under one radius with others"
            expected = "centred tables, at most one of them of more than two cells"
            raise PrivacyError(f"{told}; expected {expected}, and no row multipliers")

    @property
    def copied(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Under one radius: attributes and matrices of which each cell has noise of its own."""
        return tuple((b.attributes, b.matrix.digest()) for b in self.blocks if self._copies(b))

    @property
    def copies(self) -> int:
        """How many cells these have together."""
        return math.prod(block.matrix.rows for block in self.blocks if self._copies(block))

    @staticmethod
    def _copies(block: Block) -> bool:
        return isinstance(_inner(block.matrix), IdentityMatrix)

    @property
    def _moved(self) -> list[int]:
        """The places of the other blocks, that with the most values first: all others make signs."""
        places = [place for place, block in enumerate(self.blocks) if not self._copies(block)]
        return sorted(places, key=lambda place: -self.shape[place])

    @property
    def cells(self) -> int:
        """Under one radius: how many cells a record moves one of, the signs that two values make aside."""
        return self.shape[self._moved[0]] if self._moved else 2

    @property
    def ranged(self) -> bool:
        """Under one radius: whether the norm of these is their range."""
        return any(isinstance(_inner(block.matrix), RangeMatrix) for block in self.blocks)

    def alike_for(self, unit: Unit) -> bool:
        """Return whether all records of a person move the range by no more than those in one value do.

        They lie in values of `per` beside the one of the matrix that nobody is in, with one sign and in one
        copy.
        """
        own = [b.attributes for b in self.blocks if isinstance(b.matrix, RangeMatrix)]
        others = set(self.attributes).difference(*own, unit.constant)
        return len(own) == 1 and set(own[0]) == set(unit.per) and not others

    @property
    def radius_factor(self) -> int:
        """The variance of independent noise that has the errors of centred noise of variance 1 on `cells`."""
        return self.cells**2 * 2 ** (len(self._moved) - 1) if self._moved else 2

    @property
    def _order(self) -> list[int]:
        """The places of the blocks: those of copies, then the others."""
        return [place for place, block in enumerate(self.blocks) if self._copies(block)] + self._moved

    def radius_noise(self, drawn: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the noise of the rows, flat, from that of the cells, shape (copies, cells)."""
        drawn = drawn.reshape(self.copies, self.cells)
        if not self._moved:
            return drawn[:, 0] - drawn[:, 1]
        found = self.cells * drawn - drawn.sum(axis=1, keepdims=True)
        for _ in self._moved[1:]:
            found = np.multiply.outer(found, np.array([1, -1]))
        rows = found.reshape([self.shape[place] for place in self._order])
        return np.asarray(rows.transpose(np.argsort(self._order)).ravel())

    def leaves(self, rows: NDArray[np.int64]) -> bool:
        """Return whether rows, flat, are what noise of one radius leaves: signs times centred integers."""
        if not self._moved:
            return True
        table = rows.reshape(self.shape).transpose(self._order).reshape(self.copies, self.cells, -1)[:, :, 0]
        return np.array_equal(self.radius_noise((table - table[:, :1]) // self.cells), rows)

    @cached_property
    def walk(self) -> Walk | None:
        """The joint noise of the rows; None where the noise of every row is its own."""
        for place, block in enumerate(self.blocks):
            widths, parents = block.matrix.walk, block.matrix.parents
            if widths is not None:
                before, after = math.prod(self.shape[:place]), math.prod(self.shape[place + 1 :])
                return Walk(widths, before, after, parents)
        return None

    @property
    def spread(self) -> float:
        """The mean variance of the rows' noise over that of its scale: 1 but where noise is joint."""
        if self.width is not None:
            return self.cells * (self.cells - 1) / self.radius_factor
        if self.walk is None:
            return 1.0
        return float(self.walk.own_covariance.diagonal().mean())

    @property
    def shape(self) -> tuple[int, ...]:
        """The rows of each block."""
        return tuple(block.matrix.rows for block in self.blocks)

    @property
    def rows(self) -> int:
        """The number of measured rows."""
        return math.prod(self.shape)

    @property
    def listed(self) -> tuple[str, ...]:
        """The attributes in the order of the blocks."""
        return tuple([name for block in self.blocks for name in block.attributes])

    @property
    def max_entry(self) -> int:
        """The largest absolute entry of the measured matrix."""
        entry = math.prod(block.matrix.max_entry for block in self.blocks)
        return entry if self.multipliers is None else entry * int(self.multipliers.max())

    @cached_property
    def divisor(self) -> int:
        """A number that divides every entry, and so every exact answer on integers."""
        own = math.prod(block.matrix.divisor for block in self.blocks)
        return own if self.multipliers is None else own * int(np.gcd.reduce(self.multipliers, axis=None))

    def column_power_sum(self, power: int) -> int:
        """Return the largest sum over a column of |entry|^power, an exact integer; the power is 1 or 2.

        Under one radius a record costs 1, by its theorem, once for all parts under it.
        """
        if self.width is not None and power == 1:
            return 1
        if self.multipliers is None:
            return math.prod([block.matrix.column_power_sum(power) for block in self.blocks])
        if power not in self._sums:
            weights = self.multipliers**power
            maps = [block.matrix.column_map(power) for block in self.blocks]
            self._sums[power] = max(apply_kronecker(maps, weights, int(weights.sum())).values())
        return self._sums[power]

    @cached_property
    def _sums(self) -> dict[int, int]:
        return {}

    def at_cost(self, noise: Noise, share: float = 1.0) -> Part:
        """Return the part with the variance at which it has a share of the privacy cost."""
        return replace(self, variance=noise.variance(self, share))

    def key(self, attributes: tuple[str, ...]) -> Hashable:
        """Return a value equal for parts with equal matrices that lie alike to given attributes."""
        blocks = tuple([(block.matrix.digest(), len(block.attributes)) for block in self.blocks])
        places = tuple([attributes.index(n) if n in attributes else -1 for n in self.listed])
        return self._multipliers, blocks, places

    @cached_property
    def _multipliers(self) -> bytes | None:
        return None if self.multipliers is None else self.multipliers.tobytes()

    def answers(self, marginal: NDArray[Any], max_records: int) -> IntegerTensor:
        """Return the exact answers on a marginal of integers, shape (sizes of ``attributes``)."""
        order = [self.attributes.index(name) for name in self.listed]
        cells = np.transpose(marginal, order).reshape([block.matrix.columns for block in self.blocks])
        matrices = [block.matrix for block in self.blocks]
        return apply_kronecker(matrices, cells, max_records, self.multipliers)

    def estimate(self, answers: Array, domain: Domain) -> Array:
        """Return the pseudo-inverse times the noisy answers, in the shape of the marginal."""
        tensor = answers.reshape(self.shape)
        if self.multipliers is not None:
            tensor = tensor / self.multipliers
        for axis, block in enumerate(self.blocks):
            tensor = along(tensor, axis, block.matrix.solve)
        tensor = tensor.reshape([domain[name].size for name in self.listed])
        return np.transpose(tensor, [self.listed.index(name) for name in self.attributes])
