"""Selection: from a workload to a strategy, without the data."""

from matrixdp.select.auto import MECHANISMS, select
from matrixdp.select.selection import Certificate, Selection

__all__ = ["MECHANISMS", "Certificate", "Selection", "select"]
