"""The figures that papers print, one module a paper."""

from __future__ import annotations

from published import coa, hdmm, hdmm_conference, matrix_mechanism, querysmasher
from published.tables import BOUND, NOT_RUN, Column, Omitted, Paper, Quantity, Row, Table

__all__ = ["BOUND", "NOT_RUN", "PAPERS", "TABLES", "Column", "Omitted", "Paper", "Quantity", "Row", "Table"]

PAPERS: tuple[Paper, ...] = (
    matrix_mechanism.PAPER,
    coa.PAPER,
    hdmm_conference.PAPER,
    hdmm.PAPER,
    querysmasher.PAPER,
)
TABLES: tuple[Table, ...] = tuple(table for paper in PAPERS for table in paper.tables)
