"""What one measured part says of the cells of its marginal: how far a table is from it, and which way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact import MeasuredMatrix

__all__ = ["Axis", "GramTerm", "RowTerm", "Term", "along", "gram_axis"]

Single = NDArray[np.float32]
Array = NDArray[np.float64]
Real = TypeVar("Real", np.float32, np.float64)

#: Singular values below this share of the norm are rounding errors.
_ROUNDING = 1e-12


@final
@dataclass(frozen=True, eq=False)
class Axis:
    """A matrix along one axis: the identity, the projection that removes the mean, or explicit."""

    size: int
    removes_mean: bool = False
    matrix: NDArray[Any] | None = None
    digest: str = ""

    @property
    def key(self) -> tuple[int, bool, str]:
        """Equal for equal matrices."""
        return self.size, self.removes_mean, self.digest

    def apply(self, tensor: NDArray[Real]) -> NDArray[Real]:
        """Return the matrix times a tensor of shape (before, size, after) along its middle axis."""
        if self.matrix is not None:
            if tensor.shape[2] == 1:
                return np.asarray((tensor[:, :, 0] @ self.matrix.T)[:, :, None])
            return np.asarray(self.matrix @ tensor)
        return tensor - tensor.mean(axis=1, keepdims=True) if self.removes_mean else tensor


def gram_axis(matrix: MeasuredMatrix) -> tuple[Axis, Axis, float]:
    """Return B'B of a measured matrix B along an axis, a root R of it in double precision, and a multiplier.

    B'B is the multiplier times R'R. Of directions that are measured too weakly nothing is said: what is left
    of B are the residuals of a least-squares fit that moves freely along them.

    Examples
    --------
    >>> from matrixdp.exact import CenteredMatrix
    >>> axis, root, scale = gram_axis(CenteredMatrix(3))
    >>> axis.removes_mean, root.removes_mean, scale
    (True, True, 9.0)
    """
    size, weak, known = matrix.columns, matrix.outside, matrix.symmetric_gram
    if known is not None and weak is None and known[1] * size in (0.0, -known[0]):
        # a multiple of the identity, or of what removes the mean
        return Axis(size, known[1] != 0), Axis(size, known[1] != 0), known[0]
    rows = matrix.written()
    if weak is not None:
        left, values, _ = np.linalg.svd(rows @ weak.T, full_matrices=False)
        left = left[:, values > _ROUNDING * np.linalg.norm(rows)]
        rows = rows - left @ (left.T @ rows)
    scale = float(np.square(rows).sum(axis=0).max())
    root = rows / sqrt(scale)
    gram = (root.T @ root).astype(np.float32)
    return Axis(size, matrix=gram, digest=matrix.digest()), Axis(size, matrix=root), scale


def along(axes: Sequence[Axis], flat: NDArray[Real], columns: int = 1) -> NDArray[Real]:
    """Return the Kronecker product of matrices times a matrix of so many columns, flat, row-major."""
    before, after = 1, columns * prod(axis.size for axis in axes)
    for axis in axes:
        after //= axis.size
        flat = axis.apply(flat.reshape(before, axis.size, after)).ravel()
        before = flat.size // after
    return flat


class Term(ABC):
    """The loss of a table against one measured part: half its squared residuals over the variance."""

    @property
    @abstractmethod
    def degrees(self) -> int:
        """Twice the loss of the true table, on average: what the noise leaves of it."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """The size of the table."""

    @abstractmethod
    def loss(self, cells: Array) -> float:
        """Return the loss of a table, flat: a sum of squares in double precision."""

    @abstractmethod
    def gradient(self, cells: Single) -> Single:
        """Return the gradient of the loss of a table, flat, in single precision."""


@final
@dataclass(frozen=True, eq=False)
class GramTerm(Term):
    """Half of (x - target)' B'B (x - target) / variance; the target is the pseudo-inverse of the answers.

    The same as half of |B x - y|^2 / variance, less the part of the noise that no table can fit.
    """

    axes: tuple[Axis, ...]
    roots: tuple[Axis, ...]
    scale: float
    target: Array
    free: int

    @property
    def degrees(self) -> int:
        """The rank of B."""
        return self.free

    @property
    def cells(self) -> int:
        """The size of the table."""
        return self.target.size

    @cached_property
    def _rounded(self) -> Single:
        return self.target.astype(np.float32)

    def loss(self, cells: Array) -> float:
        """See `Term`."""
        off = along(self.roots, cells - self.target)
        return 0.5 * self.scale * float(off @ off)

    def gradient(self, cells: Single) -> Single:
        """See `Term`."""
        return along(self.axes, cells - self._rounded) * np.float32(self.scale)


@final
@dataclass(frozen=True, eq=False)
class RowTerm(Term):
    """Half of |B x - y|^2 / variance, for rows that are measured more or less precisely than others.

    The answers and the multipliers of rows are those over the standard deviation.
    """

    matrices: tuple[Array, ...]
    multipliers: Array
    answers: Array

    @property
    def degrees(self) -> int:
        """All rows: what no table can fit is part of the loss."""
        return self.answers.size

    @property
    def cells(self) -> int:
        """The size of the table."""
        return prod(matrix.shape[1] for matrix in self.matrices)

    @cached_property
    def _rounded(self) -> tuple[list[Single], Single, Single]:
        matrices = [matrix.astype(np.float32) for matrix in self.matrices]
        return matrices, self.multipliers.astype(np.float32), self.answers.astype(np.float32)

    def loss(self, cells: Array) -> float:
        """See `Term`."""
        off = self.multipliers * _product(self.matrices, cells) - self.answers
        return 0.5 * float(off @ off)

    def gradient(self, cells: Single) -> Single:
        """See `Term`."""
        matrices, multipliers, answers = self._rounded
        off = multipliers * _product(matrices, cells) - answers
        return _product([matrix.T for matrix in matrices], multipliers * off)


def _product(matrices: Sequence[NDArray[Real]], flat: NDArray[Real]) -> NDArray[Real]:
    """Return the Kronecker product of matrices, of any shapes, times a vector."""
    before, after = 1, flat.size
    for matrix in matrices:
        after //= matrix.shape[1]
        flat = np.asarray(matrix @ flat.reshape(before, matrix.shape[1], after)).ravel()
        before *= matrix.shape[0]
    return flat
