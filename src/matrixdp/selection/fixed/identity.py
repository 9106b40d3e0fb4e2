"""Noise on every cell."""

from __future__ import annotations

from matrixdp.noise import Noise
from matrixdp.queries import Workload
from matrixdp.selection.direct import check_table
from matrixdp.selection.fixed.products import Choice, product_of
from matrixdp.selection.hdmm.terms import product_terms
from matrixdp.selection.options import Options
from matrixdp.selection.table import Mechanism, register

__all__ = ["select_identity"]


def select_identity(workload: Workload, noise: Noise) -> Choice:
    """Select the table of all attributes that are asked about, cell by cell.

    Parameters
    ----------
    workload : Workload
    noise : Noise

    Returns
    -------
    plan : Plan
        One part.
    certificate : Certificate
        Without a bound.

    Raises
    ------
    TooLargeError
        If the table has too many cells.

    References
    ----------
    Dwork, McSherry, Nissim, Smith: Calibrating noise to sensitivity in private data analysis, TCC 2006,
    section 3 (histograms).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": range(64)}), mdp.product(a="prefix"))
    >>> _, certificate = select_identity(workload, LAPLACE)
    >>> round((certificate.loss / workload.queries) ** 0.5, 2)  # McKenna et al. 2018, Table 4
    8.06
    """
    terms = product_terms(workload.domain, workload.groups)
    check_table(workload, terms.attributes, "identity")
    return product_of(workload, noise, terms, [None] * len(terms.sizes))


register(
    Mechanism(
        "identity",
        "Dwork et al. 2006: noise on every cell",
        (1, 2),
        Options,
        lambda task: select_identity(task.workload, task.noise),
    )
)
