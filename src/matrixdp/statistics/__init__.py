"""Statistics of counts, each one class: its form, its query groups, and its figures with their errors."""

from matrixdp.statistics import ask
from matrixdp.statistics.statistic import Column, StatisticEntry, in_words, statistic_of, statistics

__all__ = ["Column", "StatisticEntry", "ask", "in_words", "statistic_of", "statistics"]
