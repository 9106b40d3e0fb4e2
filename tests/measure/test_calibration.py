"""Scales that noise cannot have, and plans whose noise would not fit what they cost."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from matrixdp.domain import Domain
from matrixdp.errors import PrivacyError
from matrixdp.exact import IntegerMatrix
from matrixdp.measure import measurement as calibration
from matrixdp.measure.measurement import NoiseScale, calibrate, plan_cost
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.plan import Block, Direct, Part

ONE = Cost(Fraction(1), GAUSSIAN)


def plan(variance: float, noise=GAUSSIAN) -> Direct:
    block = Block(("a",), IntegerMatrix(np.array([[1, 1], [0, 1]])))
    return Direct(Domain({"a": 2}), (Part(("a",), (block,), variance),), noise)


def test_the_cost_is_met_and_never_exceeded():
    scales, cost = calibrate(plan(2.0), ONE, 100)
    assert cost <= ONE
    assert cost.value > Fraction(999_999, 1_000_000)
    assert plan_cost(plan(2.0), scales) == cost


@pytest.mark.parametrize("allowed", [Fraction(10) ** 400, Fraction(1, 10**400)])
def test_a_cost_out_of_range_is_refused(allowed: Fraction):
    with pytest.raises(PrivacyError, match="leaves floating-point range"):
        calibrate(plan(2.0), Cost(allowed, GAUSSIAN), 100)


def test_a_scale_that_is_no_number_is_refused():
    with pytest.raises(PrivacyError, match="noise scale inf; expected a finite number above 0"):
        calibrate(plan(1e308, LAPLACE), Cost(Fraction(1, 10**300), LAPLACE), 100)


def test_answers_that_leave_62_bits_are_refused():
    with pytest.raises(PrivacyError, match="exceed 62 bits"):
        calibrate(plan(2.0), Cost(Fraction(10) ** 12, GAUSSIAN), 2**50)


def test_noise_shared_for_another_sensitivity_never_fits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calibration, "plan_cost", lambda *_: Cost(Fraction(2), GAUSSIAN))
    with pytest.raises(PrivacyError, match="do not fit its sensitivities"):
        calibrate(plan(2.0), ONE, 100)


def test_a_part_is_never_measured_without_noise():
    (scale,), _ = calibrate(plan(2.0), ONE, 100)
    for steps in (Fraction(0), Fraction(-1)):
        with pytest.raises(PrivacyError, match="would be measured without noise"):
            plan_cost(plan(2.0), (dataclasses.replace(scale, steps=steps),))
    with pytest.raises(PrivacyError, match="laplace noise in a plan for gaussian noise"):
        plan_cost(plan(2.0), (NoiseScale(scale.steps, scale.power, LAPLACE),))
