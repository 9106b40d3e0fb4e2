"""Models of a release: non-negative, consistent, integer estimates, and records."""

from matrixdp.model.model import Model
from matrixdp.model.tables import IntegerTable, LocalTables, Mixture

__all__ = ["IntegerTable", "LocalTables", "Mixture", "Model"]
