import pytest

from matrixdp.errors import NumericalError
from matrixdp.exact import IdentityMatrix
from matrixdp.plan.pencils import Pencil


def test_two_matrices_on_one_attribute_have_as_many_columns():
    with pytest.raises(NumericalError, match="different numbers of columns"):
        Pencil.of(IdentityMatrix(2), IdentityMatrix(3))
