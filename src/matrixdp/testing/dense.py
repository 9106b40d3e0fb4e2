"""The dense oracle: queries, measurements and errors as whole matrices, straight from their definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.plan import Part
from matrixdp.queries import Group, Workload

__all__ = ["dense_error", "dense_gram", "dense_measurement", "dense_queries"]

Array = NDArray[np.float64]


def _spread(rows: Array, own: Sequence[str], domain: Domain, attributes: Sequence[str] | None) -> Array:
    """Return rows over the cells of ``own``, in that order, as rows over the cells of ``attributes``."""
    wanted = domain.names if attributes is None else tuple(attributes)
    sizes = {name: domain[name].size for name in (*own, *wanted)}
    tensor = rows.reshape(-1, *(sizes[name] for name in own))
    tensor = np.transpose(tensor, [0, *(1 + list(own).index(name) for name in wanted if name in own)])
    tensor = tensor.reshape(-1, *(sizes[name] if name in own else 1 for name in wanted))
    shape = (len(tensor), *(sizes[name] for name in wanted))
    return np.broadcast_to(tensor, shape).reshape(len(tensor), math.prod(shape[1:])).copy()


def dense_queries(group: Group, domain: Domain, attributes: Sequence[str] | None = None) -> Array:
    """Return the queries of a group over the cells of a table.

    Parameters
    ----------
    group : Group
        The group.
    domain : Domain
        The attributes.
    attributes : sequence of str, optional
        Those of the table, among them those of the group; all of the domain where they are left out.

    Returns
    -------
    ndarray
        Shape (queries, cells), row-major cells; weights are left aside.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"sex": ["f", "m"], "age": 3})
    >>> [group] = mdp.marginals([["age"]]).expand(domain)
    >>> dense_queries(group, domain)
    array([[1., 0., 0., 1., 0., 0.],
           [0., 1., 0., 0., 1., 0.],
           [0., 0., 1., 0., 0., 1.]])
    """
    return _spread(group.rows(), group.attributes, domain, attributes)


def dense_gram(workload: Workload, attributes: Sequence[str] | None = None) -> Array:
    """Return the Gram matrix W' D W of a workload, D holding the weights of its queries.

    Parameters
    ----------
    workload : Workload
        The workload.
    attributes : sequence of str, optional
        Those of the table, among them all that are asked about; all of the domain where they are left out.

    Returns
    -------
    ndarray
        Shape (cells, cells).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> dense_gram(mdp.Workload(mdp.Domain({"age": 2}), mdp.product(age="prefix", weight=3.0)))
    array([[6., 3.],
           [3., 3.]])
    """
    total: Array = np.zeros(())
    for group in workload:
        rows = dense_queries(group, workload.domain, attributes)
        weights = np.ones(len(rows)) if group.query_weights is None else group.query_weights
        total = np.asarray(total + group.weight * (rows.T * weights) @ rows)
    return total


def dense_measurement(part: Part, domain: Domain, attributes: Sequence[str] | None = None) -> Array:
    """Return what a part of a plan measures as rows over the cells of a table, before noise.

    Parameters
    ----------
    part : Part
        The part.
    domain : Domain
        The attributes.
    attributes : sequence of str, optional
        Those of the table, among them those of the part; all of the domain where they are left out.

    Returns
    -------
    ndarray
        Shape (measured queries, cells), integers, the queries in the order in which they are measured.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.exact import IdentityMatrix
    >>> from matrixdp.plan import Block
    >>> part = Part(("sex",), (Block(("sex",), IdentityMatrix(2)),), 1.0)
    >>> dense_measurement(part, mdp.Domain({"sex": ["f", "m"], "age": 2}))
    array([[1., 1., 0., 0.],
           [0., 0., 1., 1.]])
    """
    rows: Array = np.ones((1, 1))
    for block in part.blocks:
        rows = np.asarray(np.kron(rows, block.matrix.written()), dtype=float)
    if part.multipliers is not None:
        rows = rows * part.multipliers.reshape(-1, 1)
    own = [name for block in part.blocks for name in block.attributes]
    return _spread(rows, own, domain, attributes)


def dense_error(gram: Array, rows: Array) -> float:
    """Return the weighted sum of the variances of a workload's least-squares answers.

    Parameters
    ----------
    gram : ndarray
        Shape (cells, cells), the Gram matrix of the workload (see `dense_gram`).
    rows : ndarray
        Shape (measured queries, cells): each divided by the standard deviation of its noise.

    Returns
    -------
    float
        The trace of A^+' W'W A^+, A being the rows.

    Raises
    ------
    AssertionError
        If the rows do not determine what is asked.

    Examples
    --------
    >>> dense_error(np.ones((2, 2)), np.eye(2) / 3)
    18.0
    """
    inverse = np.linalg.pinv(rows, rcond=1e-11)
    lost = gram - gram @ inverse @ rows
    if np.abs(lost).max() > 1e-6 * np.abs(gram).max():
        raise AssertionError("the measured rows do not determine what is asked")
    return float(np.einsum("ia,ij,ja->", inverse, gram, inverse))
