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

from matrixdp.testing.plugins import check_mechanism as check_mechanism
from matrixdp.testing.plugins import check_noise as check_noise
from matrixdp.testing.plugins import check_plan as check_plan
from matrixdp.testing.plugins import check_predicates as check_predicates
from matrixdp.testing.plugins import dense_error as dense_error
from matrixdp.testing.plugins import dense_gram as dense_gram
from matrixdp.testing.plugins import dense_measurement as dense_measurement
from matrixdp.testing.plugins import dense_queries as dense_queries
from matrixdp.testing.tables import check_neighbours as check_neighbours
from matrixdp.testing.tables import check_source as check_source
