"""What domains refuse."""

from matrixdp import Domain
from tests.refusals import Refusal

REFUSALS = [
    Refusal("no attributes", "empty", "", lambda: Domain({})),
]
