"""Answers as tables: their columns, the ends of their intervals, one estimate with its error."""

from matrixdp.answers.columns import BATCH_ROWS, BOUND, FIGURES, AnswerColumns, plain_schema
from matrixdp.answers.estimated import Estimated
from matrixdp.answers.intervals import MAX_EXACT_QUERIES, Intervals
from matrixdp.answers.titles import find_group, title, titles

__all__ = [
    "BATCH_ROWS",
    "BOUND",
    "FIGURES",
    "MAX_EXACT_QUERIES",
    "AnswerColumns",
    "Estimated",
    "Intervals",
    "find_group",
    "plain_schema",
    "title",
    "titles",
]
