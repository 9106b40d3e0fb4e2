"""The statement that counts many marginals: its cell numbers fit into the integers that hold them."""

import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.sources.base import Request
from matrixdp.sources.postgresql import Counting


@pytest.mark.parametrize(
    ("size", "subsets", "short"),
    [
        (2**31 - 1, [("a",)], True),
        (2**31, [("a",)], False),
        # the numbers of what is counted from a block are larger than those of the block
        (2**31 - 1, [("a",), ()], False),
        (2**30, [("a",), ("a", "b")], False),
    ],
)
def test_numbers_of_cells_are_short_where_all_of_them_fit(size, subsets, short):
    domain = Domain({"a": {"min": 0, "max": size - 1}, "b": 1})
    [counting] = Counting.of(Request(domain, tuple(subsets), OutOfDomain()))
    statement = counting.statement("SELECT 0 AS c0, 0 AS c1")
    assert ("AS integer)" in statement) is short
    assert ("CAST(0 AS bigint)" in statement) is not short
