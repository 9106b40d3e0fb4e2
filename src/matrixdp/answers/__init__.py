"""Answers as tables: their columns, the ends of their intervals, one estimate with its error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrixdp.answers.titles import find_group, title, titles
from matrixdp.faces import loaded_when_used

if TYPE_CHECKING:
    from matrixdp.answers.columns import BATCH_ROWS, BOUND, FIGURES, AnswerColumns, plain_schema
    from matrixdp.answers.estimated import Estimated
    from matrixdp.answers.intervals import MAX_EXACT_QUERIES, Intervals

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


if not TYPE_CHECKING:  # so that a misspelt name is an error to a checker, too
    __getattr__ = loaded_when_used(
        __name__,
        {
            "columns": ("BATCH_ROWS", "BOUND", "FIGURES", "AnswerColumns", "plain_schema"),
            "estimated": ("Estimated",),
            "intervals": ("MAX_EXACT_QUERIES", "Intervals"),
        },
    )
