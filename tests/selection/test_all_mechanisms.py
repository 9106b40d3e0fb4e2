"""Every mechanism keeps its contract; those of other papers are least squares of their dense matrices."""

import pytest

from matrixdp.noise import NOISES
from matrixdp.selection.mechanisms.table import MECHANISMS
from matrixdp.testing import check_mechanism


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_keep_their_contract(name, noise):
    check_mechanism(name, noise)
