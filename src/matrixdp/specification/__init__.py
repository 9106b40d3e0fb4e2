"""Specification files: a domain, a workload and a budget as YAML, and one clear error if any is wrong."""

from matrixdp.specification.bases import bases_on, read_bases
from matrixdp.specification.given import GivenEntry, given_entries, load_given, strategy_schema
from matrixdp.specification.load import Specification, entry_from_spec, json_schema, load_specification
from matrixdp.specification.written import DEFAULT_MAX_RECORDS
from matrixdp.specification.yaml_text import Document, parse_yaml

__all__ = [
    "DEFAULT_MAX_RECORDS",
    "Document",
    "GivenEntry",
    "Specification",
    "bases_on",
    "entry_from_spec",
    "given_entries",
    "json_schema",
    "load_given",
    "load_specification",
    "parse_yaml",
    "read_bases",
    "strategy_schema",
]
