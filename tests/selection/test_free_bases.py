"""Products of free bases with weighted rows, against the dense optimum and finite differences."""

import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.auto import select
from tests.limits import Override


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("max_free_cells", "a x b has 16 cells that do not factor; the limit is 3 cells"),
        ("max_axis_values", "and 3 values of an attribute"),
        ("max_table_rows", "weighted-product: 48 rows, each with a weight; the limit is 3"),
    ],
)
def test_what_is_too_large_is_refused(limit: str, message: str, limits: Override) -> None:
    limits(**{limit: 3}, product_max_evaluations=5)
    domain = mdp.Domain({"a": 4, "b": 4, "c": 3})
    sets = ("prefix", "identity"), ("identity", "prefix")
    crossing = [mdp.product(a=a, b=b, c="identity") for a, b in sets]
    with pytest.raises(TooLargeError, match=message):
        select(mdp.Workload(domain, *crossing), noise=GAUSSIAN, mechanism="weighted-product")


def test_a_large_attribute_that_factors_out_is_refused(limits: Override) -> None:
    limits(max_axis_values=4)
    limits(product_max_evaluations=5)
    domain = mdp.Domain({"a": 4, "b": 4, "c": 5})
    sets = ("prefix", "identity"), ("identity", "prefix")
    crossing = [mdp.product(a=a, b=b, c="prefix") for a, b in sets]
    with pytest.raises(TooLargeError, match="c has 5 cells that do not factor; the limit is 4"):
        select(mdp.Workload(domain, *crossing), noise=GAUSSIAN, mechanism="weighted-product")
