"""Products of free bases with weighted rows, against the dense optimum and finite differences."""

import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.auto import select
from tests.limits import Override


def test_too_many_weighted_rows_are_refused(limits: Override) -> None:
    limits(max_table_rows=3)
    domain = mdp.Domain({"a": 4, "b": 4, "c": 3})
    sets = ("prefix", "identity"), ("identity", "prefix")
    crossing = [mdp.product(a=a, b=b, c="identity") for a, b in sets]
    with pytest.raises(TooLargeError, match="weighted-product: 48 rows, each with a weight; the limit is 3"):
        select(mdp.Workload(domain, *crossing), noise=GAUSSIAN, mechanism="weighted-product")
