"""All predicates on an attribute, of which there are 2^n: the workload of arbitrary counting queries."""

from __future__ import annotations

from matrixdp.language import ProductEntry, product

__all__ = ["every_predicate"]


def every_predicate(attribute: str) -> ProductEntry:
    """Return few queries that stand for all predicates, 2^n of them on an attribute of n values.

    The predicates' Gram matrix is 2^(n-2) (I + 11'), which is also that of the n values and the total, each
    with the weight 2^(n-2). Strategies and errors depend on a workload through its Gram matrix alone. The
    weight here is 1/4, a 2^n-th: the weighted squared error is the mean squared error over all predicates.

    Parameters
    ----------
    attribute : str
        The attribute, of any size.

    References
    ----------
    Li, Hay, Rastogi, Miklau, McGregor: Optimizing linear counting queries under differential privacy, PODS
    2010, section 6.2 (W_01).

    Examples
    --------
    With noise of variance 1 on every value, a predicate about k values has the variance k, n / 2 on average.

    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.selection.auto import select
    >>> workload = mdp.Workload(mdp.Domain({"age": 500}), every_predicate("age"))
    >>> round(select(workload, mechanism="identity", noise=GAUSSIAN).weighted_squared_error, 6)
    250.0
    """
    return product({attribute: ["identity", "total"]}, weight=0.25, name="all predicates")
