"""Noise on every cell."""

from __future__ import annotations

from matrixdp.selection.mechanisms.options import Options
from matrixdp.selection.mechanisms.products import product_of
from matrixdp.selection.mechanisms.table import Mechanism, Task, register
from matrixdp.selection.mechanisms.trials import Choice
from matrixdp.selection.view.product_terms import product_terms
from matrixdp.selection.view.table_shape import check_table


def _identity(task: Task[Options]) -> Choice:
    """Select the table of all attributes that are asked about, cell by cell.

    References
    ----------
    Dwork, McSherry, Nissim, Smith: Calibrating noise to sensitivity in private data analysis, TCC 2006,
    section 3 (histograms).
    """
    terms = product_terms(task.workload.domain, task.workload.groups)
    check_table(task.workload, terms.attributes, "identity")
    return product_of(task.workload, task.noise, terms, [None] * len(terms.sizes))


register(Mechanism("identity", "Dwork et al. 2006: noise on every cell", (1, 2), Options, _identity))
