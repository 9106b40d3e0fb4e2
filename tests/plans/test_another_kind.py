"""A kind of plan that this file alone adds: measured, analysed, saved and read like any other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import matrixdp as mdp
from matrixdp.exact import IdentityMatrix
from matrixdp.measure.measurement import measure
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Block, Part, Plan, TableAnalysis
from matrixdp.sources import open_source
from matrixdp.storage.formats import load_measurement, save_measurement
from matrixdp.testing import check_plan


@dataclass(frozen=True, eq=False)
class Weighed(Plan, kind="weighed"):
    """One table, measured several times and averaged with given weights."""

    words: ClassVar[str] = "one table, several times"
    weights: dict[str, np.ndarray]

    def analysed(self, noise: Sequence[float]) -> TableAnalysis:
        return WeighedAnalysis(self, noise)


class WeighedAnalysis(TableAnalysis):
    def __init__(self, plan: Weighed, noise: Sequence[float]) -> None:
        self.own = plan.weights["parts"]
        super().__init__(plan.domain, plan.parts[0], float(self.own**2 @ np.array(noise)))

    def estimates(self, values):
        return super().estimates([np.tensordot(self.own, np.stack(values), axes=1)])


DOMAIN = mdp.Domain({"a": 4})
WORKLOAD = mdp.Workload(DOMAIN, mdp.product(a="prefix"))


def weighed() -> Weighed:
    blocks = (Block(("a",), IdentityMatrix(4)),)
    parts = (Part(("a",), blocks, 3.0), Part(("a",), blocks, 1.5))
    return Weighed(DOMAIN, parts, GAUSSIAN, {"parts": np.array([0.25, 0.75])})


def test_it_keeps_the_contract():
    check_plan(weighed(), WORKLOAD)


def test_it_is_measured_and_read_back(tmp_path):
    measured = measure(weighed(), open_source({"a": [0, 1, 1, 3]}), mdp.Budget(mu=100))
    save_measurement(tmp_path / "m.mdp", measured, WORKLOAD)
    again, workload = load_measurement(tmp_path / "m.mdp")
    assert type(again.plan) is Weighed
    answers = mdp.Release(again, workload).answers
    assert answers.equals(mdp.Release(measured, WORKLOAD).answers)
    np.testing.assert_allclose(answers.column("estimate"), [1, 3, 3, 4], atol=0.2)
