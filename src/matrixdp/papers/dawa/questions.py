"""A workload that asks about exactly one attribute, as mechanisms on one axis need it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.papers.simulating import group_weights
from matrixdp.queries import Group, ProductGroup, Workload

#: The most values of the attribute: the tree over the buckets is chosen with dense matrices.
MOST_CELLS = 4_096


@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked about one attribute; all others are totals.

    Attributes
    ----------
    workload : Workload
    attribute : str
    cells : int
        The number of its values, n.
    """

    workload: Workload
    attribute: str
    cells: int

    def answers(self, counts: Array) -> Array:
        """Return the answers of all queries, shape (queries,), in the order of the workload."""
        return np.concatenate([_answers(group, counts) for group in self.workload])

    def gram(self) -> Array:
        """Return the weighted Gram matrix of all queries, shape (n, n)."""
        total = np.zeros((self.cells, self.cells))
        for group in self.workload:
            if not group.attributes:
                total += float(group_weights(group).sum())
            elif isinstance(group, ProductGroup) and group.query_weights is None:
                total += group.weight * group.predicates[0].gram(self.cells)
            else:
                rows = group.rows()
                total += rows.T @ (group_weights(group)[:, None] * rows)
        return total


def questions_of(workload: Workload, name: str) -> Questions:
    """Return the queries of a workload about its one attribute.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 4, "b": 9}), mdp.product(a="prefix"), mdp.marginals(0))
    >>> questions = questions_of(workload, "dawa")
    >>> questions.attribute, questions.answers(np.array([1.0, 2.0, 3.0, 4.0]))
    ('a', array([ 1.,  3.,  6., 10., 10.]))
    """
    asked = workload.domain.sort({attribute for group in workload for attribute in group.attributes})
    if len(asked) != 1:
        found = "no attribute" if not asked else f"{len(asked)} attributes"
        raise WorkloadError(f"{name}: the workload asks about {found}; expected exactly one")
    cells = workload.domain[asked[0]].size
    if cells > MOST_CELLS:
        raise TooLargeError(f"{name}: attribute {asked[0]!r} has {cells} values; the limit is {MOST_CELLS}")
    return Questions(workload, asked[0], cells)


def _answers(group: Group, counts: Array) -> Array:
    if not group.attributes:
        return np.asarray(counts.sum(keepdims=True))
    if isinstance(group, ProductGroup):
        return np.asarray(group.predicates[0].apply(counts[:, None])[:, 0])
    return np.asarray(group.rows() @ counts)
