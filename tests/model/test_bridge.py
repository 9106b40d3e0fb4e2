"""What mbi is given, against what was measured; its two constructors' signatures stand in for mbi."""

import sys
import types
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.model.bridge import MeasuredQuery
from matrixdp.testing.plugins import dense_measurement


@dataclass
class LinearMeasurement:
    """As in mbi 2: noisy_measurement, clique, stddev, query."""

    noisy_measurement: Any
    clique: tuple[str, ...]
    stddev: float = 1.0
    query: Any = None


@dataclass
class StandInDomain:
    attributes: tuple[str, ...]
    shape: tuple[int, ...]


class Factor:
    def __init__(self, table):
        self.table = table

    def datavector(self):
        return self.table.ravel()


DOMAIN = mdp.Domain({"a": 3, "b": 4, "c": 2})


@pytest.mark.parametrize("mechanism", ["residual", "opt-m", "opt-kron"])
def test_measured_queries_are_those_of_the_plan(mechanism):
    asked = mdp.Workload(DOMAIN, mdp.kway(2, "prefix" if mechanism != "opt-m" else "identity"))
    plan = mdp.select(asked, mechanism=mechanism).selection.plan
    counts = np.random.default_rng(3).integers(0, 50, DOMAIN.shape).astype(float)
    for part in plan.parts:
        others = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in part.attributes)
        found = MeasuredQuery.of(part, DOMAIN)(Factor(counts.sum(axis=others)))
        np.testing.assert_allclose(found, dense_measurement(part, DOMAIN) @ counts.ravel())


def test_a_release_gives_every_part(monkeypatch):
    module: Any = types.ModuleType("mbi")
    module.LinearMeasurement, module.Domain = LinearMeasurement, StandInDomain
    monkeypatch.setitem(sys.modules, "mbi", module)
    table = {"a": [0, 1, 2], "b": [0, 1, 3], "c": [0, 0, 1]}
    strategy = mdp.select(mdp.Workload(DOMAIN, mdp.marginals([1, 2])), mechanism="opt-m")
    release = strategy.measure(table, mdp.Budget(mu=1), seed_not_private=1).reconstruct()
    domain, made = release.to_mbi()
    held = release.measurement
    assert (domain.attributes, domain.shape) == (DOMAIN.names, DOMAIN.shape)
    assert [one.clique for one in made] == [part.attributes for part in held.plan.parts]
    for one, scale, values in zip(made, held.scales, held.values, strict=True):
        assert one.query is None  # cells as they are: mbi estimates the total from them
        assert one.stddev == pytest.approx(scale.variance**0.5)
        np.testing.assert_array_equal(one.noisy_measurement, values)
    residual = mdp.select(mdp.Workload(DOMAIN, mdp.marginals([1, 2])), mechanism="residual")
    _, made = residual.measure(table, mdp.Budget(mu=1), seed_not_private=1).reconstruct().to_mbi()
    assert [one.query is None for one in made].count(False) == 6


def test_without_mbi_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "mbi", None)
    measured = mdp.select(mdp.Workload(DOMAIN, mdp.marginals(1))).measure(
        {"a": [0], "b": [0], "c": [0]}, mdp.Budget(mu=1), seed_not_private=1
    )
    with pytest.raises(UnsupportedQueryError, match=r"pip install 'matrixdp\[mbi\]'"):
        measured.reconstruct().to_mbi()
