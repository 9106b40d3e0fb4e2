"""Attributes, domains, and the encoding of raw values as codes.

Everything here is public and frozen: a domain is declared, never read off a table.
"""

from matrixdp.domain.amount import Amount as Amount
from matrixdp.domain.attribute import Attribute as Attribute
from matrixdp.domain.attribute import Codebook as Codebook
from matrixdp.domain.attribute import Discovered as Discovered
from matrixdp.domain.attribute import Level as Level
from matrixdp.domain.domain import Domain as Domain
from matrixdp.domain.domain import OutOfDomain as OutOfDomain
from matrixdp.domain.encoding import encode_value as encode_value
from matrixdp.domain.encoding import person_id as person_id
from matrixdp.domain.kinds import Bins as Bins
from matrixdp.domain.kinds import Categorical as Categorical
from matrixdp.domain.kinds import Coded as Coded
from matrixdp.domain.kinds import Dates as Dates
from matrixdp.domain.kinds import Integers as Integers
from matrixdp.domain.parsing import attribute_from_spec as attribute_from_spec
from matrixdp.domain.rules import canonical_text as canonical_text
