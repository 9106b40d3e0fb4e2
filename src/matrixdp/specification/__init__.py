"""Specification files: a domain, a workload and a budget as YAML, and one clear error if any is wrong."""

from matrixdp.specification.load import (
    Document,
    GivenEntry,
    Specification,
    bases_on,
    entry_from_spec,
    given_entries,
    json_schema,
    load_given,
    load_specification,
    parse_yaml,
    read_bases,
    strategy_schema,
)

__all__ = [
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
