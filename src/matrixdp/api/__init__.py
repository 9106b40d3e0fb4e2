"""The Python face: strategies that are selected once, measured on tables and reused."""

from matrixdp.api.choice import select
from matrixdp.api.strategy import MeasuredStrategy, Strategy

__all__ = ["MeasuredStrategy", "Strategy", "select"]
