"""What one measured part says of the cells of its marginal: how far a table is from it, and which way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix
from matrixdp.exact.explicit import DeficientMatrix
from matrixdp.exact.merged import MergedMatrix

__all__ = ["Axis", "GramTerm", "RowTerm", "Term", "along", "gram_axis", "rank"]

Single = NDArray[np.float32]
Array = NDArray[np.float64]


def rank(matrix: MeasuredMatrix) -> int:
    """Return the number of linearly independent rows of a measured matrix."""
    if isinstance(matrix, CenteredMatrix):
        return matrix.size - 1
    return matrix.rank if isinstance(matrix, DeficientMatrix | MergedMatrix) else matrix.columns


@final
@dataclass(frozen=True, eq=False)
class Axis:
    """A square matrix along one axis: the identity, the projection that removes the mean, or explicit."""

    size: int
    removes_mean: bool = False
    matrix: Single | None = None
    digest: str = ""

    @property
    def key(self) -> tuple[int, bool, str]:
        """Equal for equal matrices."""
        return self.size, self.removes_mean, self.digest

    def apply(self, tensor: Single) -> Single:
        """Return the matrix times a tensor of shape (before, size, after) along its middle axis."""
        if self.matrix is not None:
            if tensor.shape[2] == 1:
                return np.asarray((tensor[:, :, 0] @ self.matrix.T)[:, :, None])
            return np.asarray(self.matrix @ tensor)
        return tensor - tensor.mean(axis=1, keepdims=True) if self.removes_mean else tensor


def gram_axis(matrix: MeasuredMatrix) -> tuple[Axis, float]:
    """Return B'B of a measured matrix B as a matrix along an axis and a number to multiply it with.

    Examples
    --------
    >>> axis, scale = gram_axis(CenteredMatrix(3))
    >>> axis.removes_mean, scale
    (True, 9.0)
    """
    size = matrix.columns
    if isinstance(matrix, IdentityMatrix):
        return Axis(size), 1.0
    if isinstance(matrix, CenteredMatrix):
        return Axis(size, removes_mean=True), float(size) ** 2
    rows = matrix.written()
    gram = rows.T @ rows
    scale = float(gram.max())
    return Axis(size, matrix=(gram / scale).astype(np.float32), digest=matrix.digest()), scale


def along(axes: Sequence[Axis], flat: Single, columns: int = 1) -> Single:
    """Return the Kronecker product of matrices times a matrix of so many columns, flat, row-major."""
    before, after = 1, columns * prod(axis.size for axis in axes)
    for axis in axes:
        after //= axis.size
        flat = axis.apply(flat.reshape(before, axis.size, after)).ravel()
        before *= axis.size
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
    def loss(self, cells: Single) -> tuple[float, Single]:
        """Return the loss of a table, flat, and its gradient."""


@final
@dataclass(frozen=True, eq=False)
class GramTerm(Term):
    """Half of (x - target)' B'B (x - target) / variance; the target is the pseudo-inverse of the answers.

    The same as half of |B x - y|^2 / variance, less the part of the noise that no table can fit.
    """

    axes: tuple[Axis, ...]
    scale: float
    target: Single
    free: int

    @property
    def degrees(self) -> int:
        """The rank of B."""
        return self.free

    @property
    def cells(self) -> int:
        """The size of the table."""
        return self.target.size

    def loss(self, cells: Single) -> tuple[float, Single]:
        """See `Term`."""
        off = cells - self.target
        gradient = along(self.axes, off) * np.float32(self.scale)
        return 0.5 * float(off @ gradient), gradient


@final
@dataclass(frozen=True, eq=False)
class RowTerm(Term):
    """Half of |B x - y|^2 / variance, for rows that are measured more or less precisely than others.

    The answers and the multipliers of rows are those over the standard deviation.
    """

    matrices: tuple[Single, ...]
    multipliers: Single
    answers: Single

    @property
    def degrees(self) -> int:
        """All rows: what no table can fit is part of the loss."""
        return self.answers.size

    @property
    def cells(self) -> int:
        """The size of the table."""
        return prod(matrix.shape[1] for matrix in self.matrices)

    def loss(self, cells: Single) -> tuple[float, Single]:
        """See `Term`."""
        off = self.multipliers * _product(self.matrices, cells) - self.answers
        gradient = _product([matrix.T for matrix in self.matrices], self.multipliers * off)
        return 0.5 * float(off @ off), gradient


def _product(matrices: Sequence[Single], flat: Single) -> Single:
    """Return the Kronecker product of matrices, of any shapes, times a vector."""
    before, after = 1, flat.size
    for matrix in matrices:
        after //= matrix.shape[1]
        flat = np.asarray(matrix @ flat.reshape(before, matrix.shape[1], after)).ravel()
        before *= matrix.shape[0]
    return flat
