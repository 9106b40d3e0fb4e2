"""SQL as a front end of the query language: statements, parsed and never executed on data, become groups."""

from matrixdp.statements.entry import SqlEntry, SqlFileEntry, sql
from matrixdp.statements.query import SqlQuery
from matrixdp.statements.statement import Statement, read, read_all

__all__ = ["SqlEntry", "SqlFileEntry", "SqlQuery", "Statement", "read", "read_all", "sql"]
