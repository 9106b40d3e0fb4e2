"""Strategies that are selected once, measured on tables and reused."""

from matrixdp.strategy.strategy import MeasuredStrategy as MeasuredStrategy
from matrixdp.strategy.strategy import Strategy as Strategy
from matrixdp.strategy.strategy import explain_choice as explain_choice
from matrixdp.strategy.strategy import select as select
