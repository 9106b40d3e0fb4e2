"""Exports: the tables of a release in formats that people publish.

A file here is one format, or several that share what they write; it ends with `register_export`.
"""

from matrixdp.exports.registry import EXPORTS as EXPORTS
from matrixdp.exports.registry import export_tables as export_tables
from matrixdp.exports.registry import file_mark as file_mark
from matrixdp.exports.registry import register_export as register_export
