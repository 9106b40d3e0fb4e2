"""What is measured: a list of parts, each an integer matrix on one marginal, with its share of the noise.

The noise of a part is given by its variance at privacy cost 1: mu = 1 for Gaussian noise, epsilon = 1 for
Laplace noise. Costs of parts add up: for Gaussian noise the squared L2 sensitivity over the variance (they
sum to mu squared), for Laplace noise the L1 sensitivity over the scale (they sum to epsilon).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, PrivacyError
from matrixdp.exact import IdentityMatrix, IntegerTensor, MeasuredMatrix, apply_kronecker

__all__ = ["RECONSTRUCTIONS", "Block", "Part", "Plan", "residual_weights"]

Array = NDArray[np.float64]

#: How answers follow from the parts; see `Plan`.
RECONSTRUCTIONS = ("direct", "split", "pooled", "local")


@dataclass(frozen=True)
class Block:
    """An integer matrix over the cells of some attributes of a part, row-major in the given order."""

    attributes: tuple[str, ...]
    matrix: MeasuredMatrix


@dataclass(frozen=True)
class _Transposed:
    """A nonnegative integer matrix, transposed: multiplies vectors of (squared) row multipliers."""

    entries: NDArray[np.int64]

    @property
    def max_entry(self) -> int:
        return int(self.entries.max())

    @property
    def max_row_sum(self) -> int:
        return int(self.entries.sum(axis=0).max())

    def multiply(self, array: Array) -> Array:
        return np.asarray(self.entries.T.astype(np.float64) @ array)


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
        Noise variance of each measured row at privacy cost 1, in squared counts times squared entries.
    multipliers : ndarray of int64, optional
        A positive integer for each row, in the shape (rows of block 1, rows of block 2, ...): rows that
        are measured more or less precisely than others.
    """

    attributes: tuple[str, ...]
    blocks: tuple[Block, ...]
    variance: float
    multipliers: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        listed = [name for block in self.blocks for name in block.attributes]
        if sorted(listed) != sorted(self.attributes):
            raise NumericalError(f"part {self.attributes}: its blocks cover {listed}")
        if not (math.isfinite(self.variance) and self.variance > 0):
            raise PrivacyError(f"part {self.attributes}: noise variance {self.variance}; expected > 0")
        self._check_multipliers()
        if self.squared_sensitivity < 1:
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

    @property
    def shape(self) -> tuple[int, ...]:
        """The rows of each block."""
        return tuple(block.matrix.rows for block in self.blocks)

    @property
    def cells(self) -> int:
        """The cells of the marginal."""
        return math.prod(block.matrix.columns for block in self.blocks)

    @property
    def max_entry(self) -> int:
        """The largest absolute entry of the measured matrix."""
        entry = math.prod(block.matrix.max_entry for block in self.blocks)
        return entry if self.multipliers is None else entry * int(self.multipliers.max())

    @cached_property
    def squared_sensitivity(self) -> int:
        """The largest squared norm of a column of the measured matrix: an exact integer."""
        if self.multipliers is None:
            return math.prod(block.matrix.squared_sensitivity for block in self.blocks)
        return self._largest_column_sum(2)

    @cached_property
    def sensitivity(self) -> int:
        """The largest sum of absolute entries over a column of the measured matrix: an exact integer."""
        if self.multipliers is None:
            return math.prod(block.matrix.sensitivity for block in self.blocks)
        return self._largest_column_sum(1)

    def _largest_column_sum(self, power: int) -> int:
        """Return the largest sum over a column of |entry|^power, row multipliers included."""
        assert self.multipliers is not None
        entries = [_Transposed(block.matrix.magnitudes() ** power) for block in self.blocks]
        weights = self.multipliers**power
        return max(apply_kronecker(entries, weights, int(weights.sum())).values())

    def share(self, noise: str) -> float:
        """Return what the part costs at its variance: its share of mu squared, or of epsilon."""
        if noise == "gaussian":
            return self.squared_sensitivity / self.variance
        return self.sensitivity * math.sqrt(2.0 / self.variance)

    def answers(self, marginal: NDArray[np.int64], max_records: int) -> IntegerTensor:
        """Return the exact answers on a marginal of shape (sizes of ``attributes``)."""
        order = [self.attributes.index(name) for block in self.blocks for name in block.attributes]
        cells = np.transpose(marginal, order).reshape([block.matrix.columns for block in self.blocks])
        matrices = [block.matrix for block in self.blocks]
        return apply_kronecker(matrices, cells, max_records, self.multipliers)

    def estimate(self, answers: Array, domain: Domain) -> Array:
        """Return the pseudo-inverse times the noisy answers, in the shape of the marginal."""
        tensor = answers.reshape(self.shape)
        if self.multipliers is not None:
            tensor = tensor / self.multipliers
        for axis, block in enumerate(self.blocks):
            moved = np.moveaxis(tensor, axis, 0)
            solved = block.matrix.solve(np.ascontiguousarray(moved).reshape(moved.shape[0], -1))
            tensor = np.moveaxis(solved.reshape(solved.shape[0], *moved.shape[1:]), 0, axis)
        listed = [name for block in self.blocks for name in block.attributes]
        tensor = tensor.reshape([domain[name].size for name in listed])
        return np.transpose(tensor, [listed.index(name) for name in self.attributes])


def residual_weights(size: int) -> Array:
    """Return the uniform weight vector of QuerySmasher: 1/n for each of n values."""
    return np.full(size, 1.0 / size)


@dataclass(frozen=True, eq=False)
class Plan:
    """The frozen plan of a measurement: parts, their noise, and how answers follow from them.

    Parameters
    ----------
    domain : Domain
        The attributes.
    parts : tuple of Part
        Their costs at ``variance`` add up to at most 1.
    weights : dict of str to ndarray, or None
        For each attribute a vector with sum 1, where the reconstruction is ``split``; all zeros where the
        attribute stays whole, and no piece of a query is contracted along it.
    noise : {"gaussian", "laplace"}
        The noise that every row is measured with.
    reconstruction : {"direct", "split", "pooled", "local"}, optional
        ``direct``: there is one part, on whose marginal every query is answered as it stands. ``split``: a
        query on attributes A splits into one piece for each subset A' of A by contracting it with the
        weights over A minus A' and removing its weighted mean along A'; there is one part for each
        marginal. ``pooled``: every part is the identity on a marginal of its own, and answers are their
        global least squares. ``local``: a query is estimated from each part that determines it, and the
        estimates are averaged by inverse variance. Without it: ``split`` with weights, else ``direct``.
    """

    domain: Domain
    parts: tuple[Part, ...]
    weights: dict[str, Array] | None
    noise: str = "gaussian"
    reconstruction: str = ""
    index: dict[tuple[str, ...], int] = field(init=False)
    positions: dict[tuple[str, ...], tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise PrivacyError("a plan without parts measures nothing")
        if self.noise not in ("gaussian", "laplace"):
            raise PrivacyError(f"noise: found {self.noise!r}; expected gaussian or laplace")
        kind = self.reconstruction or ("direct" if self.weights is None else "split")
        object.__setattr__(self, "reconstruction", kind)
        positions: dict[tuple[str, ...], tuple[int, ...]] = {}
        for i, part in enumerate(self.parts):
            positions[part.attributes] = (*positions.get(part.attributes, ()), i)
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "index", {attributes: places[0] for attributes, places in positions.items()})
        if kind not in RECONSTRUCTIONS or (kind == "split") != (self.weights is not None):
            raise NumericalError(f"a plan of kind {kind!r} with weights {self.weights is not None}")
        if kind == "direct" and len(self.parts) != 1:
            raise NumericalError("a direct plan has one part")
        if kind in ("split", "pooled") and len(positions) != len(self.parts):
            raise NumericalError("a plan has one part for each marginal")
        if kind == "pooled":
            for part in self.parts:
                if part.multipliers is not None or not all(
                    isinstance(block.matrix, IdentityMatrix) for block in part.blocks
                ):
                    raise NumericalError(f"part {part.attributes}: a pooled plan measures identities")

    @property
    def cost(self) -> float:
        """The privacy cost by which variances scale: mu squared, or epsilon squared.

        A float; the measurement recomputes it exactly.
        """
        total = math.fsum(part.share(self.noise) for part in self.parts)
        return total if self.noise == "gaussian" else total * total

    def rescaled(self, factor: float) -> Plan:
        """Return the plan with every noise variance multiplied by ``factor``."""
        return self.with_parts(tuple(replace(part, variance=part.variance * factor) for part in self.parts))

    def with_parts(self, parts: tuple[Part, ...]) -> Plan:
        """Return the plan with other parts."""
        return Plan(self.domain, parts, self.weights, self.noise, self.reconstruction)
