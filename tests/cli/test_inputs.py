"""What commands are given, and what of it is refused."""

import pytest

import matrixdp as mdp
from matrixdp.cli.options import reference_budget
from matrixdp.errors import SpecificationError

SPEC = "domain: {sex: [female, male]}\nworkload: [marginals: 1]\n"


def test_figures_need_a_budget():
    with pytest.raises(SpecificationError, match="privacy: found nothing; expected a budget"):
        reference_budget(mdp.load_specification(SPEC))
