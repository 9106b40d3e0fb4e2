"""Noise on every cell."""

from __future__ import annotations

from matrixdp.mechanisms import (
    Choice,
    KronSum,
    Mechanism,
    Options,
    Task,
    check_table,
    product_of,
    register,
)


def _identity(task: Task[Options]) -> Choice:
    """Select the table of all attributes that are asked about, cell by cell.

    References
    ----------
    Dwork, McSherry, Nissim, Smith: Calibrating noise to sensitivity in private data analysis, TCC 2006,
    section 3 (histograms).
    """
    terms = KronSum.of(task.workload.domain, task.workload.groups)
    check_table(task.workload, terms.attributes, "identity")
    return product_of(task.workload, task.noise, terms, [None] * len(terms.sizes))


register(Mechanism("identity", "Dwork et al. 2006: noise on every cell", (1, 2), Options, _identity))
