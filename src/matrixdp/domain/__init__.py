"""Attributes, domains, and the encoding of raw values as codes.

Everything here is public and frozen: a domain is declared, never read off a table.
"""

from matrixdp.domain.attributes import Attribute, Bins, Categorical, Coded, Dates, Integers
from matrixdp.domain.canonical import canonical_text
from matrixdp.domain.codebook import Codebook
from matrixdp.domain.domain import Domain
from matrixdp.domain.encoding import encode_value, parse_number, person_id
from matrixdp.domain.levels import Level
from matrixdp.domain.out_of_domain import OutOfDomain
from matrixdp.domain.parsing import attribute_from_spec

__all__ = [
    "Attribute",
    "Bins",
    "Categorical",
    "Codebook",
    "Coded",
    "Dates",
    "Domain",
    "Integers",
    "Level",
    "OutOfDomain",
    "attribute_from_spec",
    "canonical_text",
    "encode_value",
    "parse_number",
    "person_id",
]
