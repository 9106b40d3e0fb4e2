"""Specification files: a domain, a workload and a budget as YAML, and one clear error if any is wrong."""

from matrixdp.specification.load import (
    Specification,
    entry_from_spec,
    json_schema,
    load_given,
    load_specification,
    parse_yaml,
    strategy_schema,
)

__all__ = [
    "Specification",
    "entry_from_spec",
    "json_schema",
    "load_given",
    "load_specification",
    "parse_yaml",
    "strategy_schema",
]
