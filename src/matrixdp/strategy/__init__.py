"""The Python face: strategies that are selected once, measured on tables and reused."""

from matrixdp.strategy.choice import select
from matrixdp.strategy.strategy import MeasuredStrategy, Strategy

__all__ = ["MeasuredStrategy", "Strategy", "select"]
