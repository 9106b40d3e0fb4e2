"""Strategies that are selected once, measured on tables and reused."""

from matrixdp.strategy.strategy import MeasuredStrategy, Strategy, explain_choice, select

__all__ = ["MeasuredStrategy", "Strategy", "explain_choice", "select"]
