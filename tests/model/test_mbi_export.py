"""What mbi is given, against what was measured; with mbi itself where it is installed."""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.model.mbi_export import measured_query
from matrixdp.testing import dense_measurement
from tests.apart import apart
from tests.model.builders import measured

DOMAIN = mdp.Domain({"a": 3, "b": 4, "c": 2})


@pytest.mark.parametrize("mechanism", ["residual", "opt-m", "opt-kron"])
def test_measured_queries_are_those_of_the_plan(mechanism):
    asked = mdp.Workload(DOMAIN, mdp.kway(2, "prefix" if mechanism != "opt-m" else "identity"))
    plan = mdp.select(asked, mechanism=mechanism).selection.plan
    counts = np.random.default_rng(3).integers(0, 50, DOMAIN.shape).astype(float)
    for part in plan.parts:
        others = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in part.attributes)
        factor = SimpleNamespace(datavector=counts.sum(axis=others).ravel)
        found = measured_query(part, DOMAIN)(factor)
        np.testing.assert_allclose(found, dense_measurement(part, DOMAIN) @ counts.ravel())


@pytest.mark.skipif(find_spec("mbi") is None, reason="mbi is not installed")
@pytest.mark.parametrize("mechanism", ["residual", "opt-m"])
def test_mbi_is_given_every_part_of_a_release(mechanism):
    apart(mbi_is_given_every_part_of_a_release, mechanism)


def mbi_is_given_every_part_of_a_release(mechanism):
    mbi = import_module("mbi")
    table = {"a": [0, 1, 2], "b": [0, 1, 3], "c": [0, 0, 1]}
    release = measured(DOMAIN, table, mdp.marginals([1, 2]), mechanism=mechanism).reconstruct()
    domain, made = release.to_mbi()
    held = release.measurement
    assert (domain.attributes, domain.shape) == (DOMAIN.names, DOMAIN.shape)
    counts = np.random.default_rng(3).integers(0, 50, DOMAIN.shape).astype(float)
    for one, part, scale, values in zip(made, held.plan.parts, held.scales, held.values, strict=True):
        assert one.clique == part.attributes
        assert one.stddev == pytest.approx(scale.variance**0.5)
        np.testing.assert_array_equal(one.noisy_measurement, values)
        others = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in part.attributes)
        factor = mbi.Factor(domain.project(one.clique), counts.sum(axis=others))
        expected = dense_measurement(part, DOMAIN) @ counts.ravel()
        np.testing.assert_allclose(one.query(factor), expected, rtol=1e-5, atol=1e-3)  # in single precision
    # from cells as they are mbi estimates the total
    residuals = [one for one in made if not isinstance(one.query, mbi.DatavectorQuery)]
    assert len(residuals) == {"residual": 6, "opt-m": 0}[mechanism]


def test_without_mbi_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mbi", None)
    release = measured(DOMAIN, {"a": [0], "b": [0], "c": [0]}, mdp.marginals(1)).reconstruct()
    with pytest.raises(UnsupportedQueryError, match=r"pip install '\.\[mbi\]'"):
        release.to_mbi()
