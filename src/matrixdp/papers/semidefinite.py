"""Semidefinite programs in the words of a conic solver, and the rank that convex iteration gives a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, WorkloadError, needing
from matrixdp.exact.linear import Array

Variables = NDArray[np.intp]

#: In the place of a variable: the entry of a matrix is constant.
NONE = -1
#: How the solver ends when its answer can be used.
_SOLVED = ("Solved", "AlmostSolved")


class Program:
    """A linear objective over variables, with linear inequalities and positive semidefinite matrices.

    Solved by Clarabel, an interior-point solver.

    Raises
    ------
    WorkloadError
        If Clarabel is not installed.

    References
    ----------
    P. Goulart and Y. Chen, Clarabel: an interior-point solver for conic programs with quadratic objectives,
    2024.

    Examples
    --------
    >>> program = Program()
    >>> [x] = program.variables(1)
    >>> matrix = np.array([[0.0, 1.0], [1.0, 4.0]])  # x >= 1 / 4 with the x in the corner
    >>> program.positive(matrix, np.array([[x, NONE], [NONE, NONE]]))
    >>> program.minimize(np.array([1.0])).round(6).tolist()
    [0.25]
    """

    def __init__(self) -> None:
        with needing("Clarabel", "sdp", "mechanism", error=WorkloadError):
            import clarabel
        self._solver: Any = clarabel
        self.size = 0
        self._entries: list[tuple[Variables, Variables, Array]] = []
        self._limits: list[Array] = []
        self._cones: list[Any] = []

    def variables(self, *shape: int) -> Variables:
        """Return fresh variables, which are numbered from 0."""
        first, self.size = self.size, self.size + int(np.prod(shape))
        return np.arange(first, self.size).reshape(shape)

    def symmetric(self, size: int) -> Variables:
        """Return a symmetric matrix of fresh variables."""
        upper = np.triu_indices(size)
        matrix = np.zeros((size, size), dtype=np.intp)
        matrix[upper] = matrix.T[upper] = self.variables(len(upper[0]))
        return matrix

    def at_most(self, variables: Variables, coefficients: Array, limits: Array) -> None:
        """Require weighted sums of variables to be at most some limits.

        Parameters
        ----------
        variables : ndarray of int, shape (k, t)
            Those of each sum.
        coefficients : ndarray, broadcast to (k, t)
        limits : ndarray, broadcast to (k,)
        """
        rows = np.repeat(np.arange(len(variables)), variables.shape[1])
        self._entries.append(
            (rows, variables.ravel(), np.broadcast_to(coefficients, variables.shape).ravel().astype(float))
        )
        self._limits.append(np.broadcast_to(limits, len(variables)).astype(float))
        self._cones.append(self._solver.NonnegativeConeT(len(variables)))

    def positive(self, constant: Array, variables: Variables) -> None:
        """Require a symmetric matrix to be positive semidefinite.

        Parameters
        ----------
        constant, variables : ndarray, shape (k, k)
            Their upper triangles are added; `NONE` is no variable.
        """
        # the solver has upper triangles column by column, entries off the diagonal times the root of 2
        columns, rows = np.tril_indices(len(constant))
        scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
        chosen = variables[rows, columns]
        held = np.flatnonzero(chosen != NONE)
        self._entries.append((held, chosen[held], -scale[held]))
        self._limits.append(constant[rows, columns] * scale)
        self._cones.append(self._solver.PSDTriangleConeT(len(constant)))

    def minimize(self, costs: Array) -> Array:
        """Return the values of the variables at which their sum, each times its cost, is least.

        Raises
        ------
        NumericalError
            If the solver finds none: what is required cannot hold, or the objective has no least value.
        """
        import scipy.sparse

        starts = np.cumsum([0, *(len(limits) for limits in self._limits)])
        rows = np.concatenate(
            [own + first for (own, _, _), first in zip(self._entries, starts[:-1], strict=True)]
        )
        columns, values = (np.concatenate([entry[part] for entry in self._entries]) for part in (1, 2))
        matrix = scipy.sparse.csc_matrix((values, (rows, columns)), shape=(int(starts[-1]), self.size))
        settings = self._solver.DefaultSettings()
        settings.verbose = False
        nothing = scipy.sparse.csc_matrix((self.size, self.size))
        limits = np.concatenate(self._limits)
        found = self._solver.DefaultSolver(nothing, costs, matrix, limits, self._cones, settings).solve()
        if str(found.status) not in _SOLVED:
            raise NumericalError(f"a semidefinite program has no solution: the solver ends {found.status}")
        return np.asarray(found.x)


def rank_direction(matrix: Array, rank: int) -> Array:
    """Return the projection onto the eigenvectors of a matrix beyond its largest ones, ``rank`` of them.

    Its inner product with a positive semidefinite matrix is 0 if and only if they leave nothing of it: the
    second program of convex iteration, in closed form.

    References
    ----------
    J. Dattorro, Convex Optimization & Euclidean Distance Geometry, section 4.4 (constraining rank via convex
    iteration).

    Examples
    --------
    >>> rank_direction(np.diag([3.0, 1.0, 2.0]), 2)
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 0.]])
    """
    vectors = np.linalg.eigh(matrix)[1][:, : len(matrix) - rank]
    return np.asarray(vectors @ vectors.T)
