"""Attributes, domains, and the encoding of raw values as codes.

Everything here is public and frozen: a domain is declared, never read off a table.
"""

from matrixdp.domain.amount import Amount
from matrixdp.domain.attribute import Attribute, Codebook, Level
from matrixdp.domain.domain import Domain, OutOfDomain
from matrixdp.domain.encoding import encode_value, parse_number, person_id
from matrixdp.domain.kinds import Bins, Categorical, Coded, Dates, Integers
from matrixdp.domain.parsing import attribute_from_spec
from matrixdp.domain.rules import canonical_text

__all__ = [
    "Amount",
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
