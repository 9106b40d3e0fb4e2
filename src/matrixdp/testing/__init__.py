"""What every implementation of an interface must do, as plain functions for any test suite.

``check_predicates`` and its like raise AssertionError where an implementation breaks its contract, so a test
of a new family, mechanism, noise or source is one call::

    from matrixdp.testing import check_predicates

    def test_my_predicates():
        for size in (3, 64, 600):
            check_predicates(MyPredicates(), size)

The figures they compare with are made by dense matrices, in the plainest way there is: the same functions
(``dense_queries``, ``dense_gram``, ``dense_measurement``, ``dense_error``) serve tests of one's own. NumPy is
all that is needed.
"""

from matrixdp.testing.plugins import (
    check_mechanism,
    check_noise,
    check_plan,
    check_predicates,
    dense_error,
    dense_gram,
    dense_measurement,
    dense_queries,
)
from matrixdp.testing.tables import check_neighbours, check_source

__all__ = [
    "check_mechanism",
    "check_neighbours",
    "check_noise",
    "check_plan",
    "check_predicates",
    "check_source",
    "dense_error",
    "dense_gram",
    "dense_measurement",
    "dense_queries",
]
