"""SQL as a front end of the query language: statements, parsed and never executed on data, become groups."""

from matrixdp.statements.entry import SqlEntry, SqlFileEntry, read, read_all, sql
from matrixdp.statements.query import SqlQuery, Statement

__all__ = ["SqlEntry", "SqlFileEntry", "SqlQuery", "Statement", "read", "read_all", "sql"]
