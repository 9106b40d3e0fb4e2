"""SQL as a front end of the query language: statements, parsed and never executed on data, become groups."""

from matrixdp.statements.entry import SqlEntry as SqlEntry
from matrixdp.statements.entry import SqlFileEntry as SqlFileEntry
from matrixdp.statements.entry import read as read
from matrixdp.statements.entry import read_all as read_all
from matrixdp.statements.entry import sql as sql
from matrixdp.statements.query import SqlQuery as SqlQuery
from matrixdp.statements.query import Statement as Statement
