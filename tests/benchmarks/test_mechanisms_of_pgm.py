"""The mechanisms of private-pgm are told the marginals that mbi itself would give."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from mechanisms_of_pgm import eliminated

from tests.apart import apart


@pytest.mark.skipif(find_spec("mbi") is None, reason="mbi is not installed")
def test_marginals_are_those_of_mbi() -> None:
    apart(marginals_are_those_of_mbi)


def marginals_are_those_of_mbi() -> None:
    jax: Any = import_module("jax")
    mbi: Any = import_module("mbi")
    jax.config.update("jax_enable_x64", True)
    sizes = {"a": 3, "b": 2, "c": 4, "d": 2, "e": 3}
    domain = mbi.Domain(list(sizes), list(sizes.values()))
    random = np.random.default_rng(1)
    cliques = [("a", "b"), ("c", "b"), ("d",), ("b", "d", "c")]
    tables = {
        own: mbi.Factor(domain.project(own), random.normal(0, 3, [sizes[n] for n in own])) for own in cliques
    }
    potentials = mbi.CliqueVector(domain, cliques, tables)
    for names in (("c", "a"), ("a",), ("d", "a", "c"), ("e", "a"), ("b",)):
        found = eliminated(potentials, names, 70.0)
        expected = mbi.marginal_oracles.variable_elimination(potentials, names, 70.0)
        assert found.domain.attributes == names
        np.testing.assert_allclose(
            np.asarray(found.datavector()), np.asarray(expected.datavector()), rtol=1e-9
        )
