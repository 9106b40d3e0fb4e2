"""Selection: from a workload to a strategy, without the data."""

from matrixdp.selection.auto import select
from matrixdp.selection.mechanisms import MECHANISMS
from matrixdp.selection.selection import Certificate, Selection

__all__ = ["MECHANISMS", "Certificate", "Selection", "select"]
