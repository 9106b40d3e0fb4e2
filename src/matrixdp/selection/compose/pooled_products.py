"""Weighted marginals whose attributes have a strategy each: from real matrices and precisions to a plan."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix
from matrixdp.noise import Noise
from matrixdp.plan import Block, Part, Plan, Pooled
from matrixdp.selection.compose.rounding import measured_factor

__all__ = ["pooled_products"]

Array = NDArray[np.float64]

#: The norm of the columns of a total that is measured only for the sake of an exact row space.
_FAINT = 2.0**-7
#: Squared share of the total that may lie outside the row space of a matrix that measures it.
_OUTSIDE = 1e-18


def pooled_products(
    domain: Domain,
    bases: Mapping[str, Array | None],
    precisions: Mapping[tuple[str, ...], float],
    noise: Noise,
) -> Plan:
    """Return the plan that measures products of one matrix for each attribute on many marginals.

    Parameters
    ----------
    domain : Domain
        The attributes.
    bases : mapping of str to ndarray or None
        For each attribute that is measured a strategy, shape (rows, size), whose largest column norm (that of
        the noise) is 1; None for the identity. One that does not determine the total of its attribute is
        given a faint row that does.
    precisions : mapping of tuple of str to float
        For each marginal that is measured, its attributes in domain order: the inverse variance, before the
        noise's variance factor, of every row. They are scaled so that the whole costs 1.
    noise : Noise
        The noise.

    Returns
    -------
    Plan
        A pooled plan of privacy cost 1.

    Raises
    ------
    NumericalError
        If a strategy does not fit its attribute, a marginal is not in domain order or a precision is not
        above 0.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> halves = np.array([[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]])
    >>> plan = pooled_products(
    ...     mdp.Domain({"a": 2, "b": 3}), {"a": halves, "b": None}, {("a", "b"): 0.25, ("a",): 0.25}, LAPLACE
    ... )
    >>> plan.cost, [part.variance for part in plan.parts]
    (1.0, [32.0, 32.0])
    """
    known: dict[Hashable, MeasuredMatrix] = {}
    matrices: dict[str, MeasuredMatrix] = {}
    for name in {name for names in precisions for name in names}:
        rows = bases[name]
        if rows is not None and (rows.ndim != 2 or rows.shape[1] != domain[name].size):
            raise NumericalError(f"attribute {name!r}: a strategy of shape {rows.shape} does not fit it")
        key = domain[name].size if rows is None else (rows.shape, rows.tobytes())
        if key not in known:
            known[key] = IdentityMatrix(domain[name].size) if rows is None else _measured(rows, noise)
        matrices[name] = known[key]
    parts = []
    shares = {names: own ** (noise.norm / 2.0) for names, own in precisions.items()}
    total = math.fsum(shares.values())
    for names, share in shares.items():
        if names != domain.sort(names) or not precisions[names] > 0.0:
            raise NumericalError(f"marginal {names}: expected domain order and a precision above 0")
        part = Part(names, tuple(Block((name,), matrices[name]) for name in names), 1.0)
        parts.append(part.at_cost(noise, share / total))
    return Pooled(domain, tuple(parts), noise)


def _measured(rows: Array, noise: Noise) -> MeasuredMatrix:
    """Return the integer matrix that measures a strategy, and the total if the strategy does not."""
    matrix = measured_factor(rows, noise)
    if matrix.measures_total:
        return matrix
    total = np.full((1, rows.shape[1]), _FAINT)
    return measured_factor(np.vstack([(1.0 - _FAINT) * rows, total]), noise)
