"""Strategies that are selected once, measured on tables and reused."""

from matrixdp.strategy.strategy import MeasuredStrategy, Strategy, select

__all__ = ["MeasuredStrategy", "Strategy", "select"]
