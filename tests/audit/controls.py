"""Faults that the audit must find, each made in the real code, and how surely it finds them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from matrixdp.exact import ExplicitMatrix
from matrixdp.measure import measurement
from matrixdp.noise import Noise, SystemSource
from matrixdp.noise.drawing import CHUNK
from tests.audit import power
from tests.audit.cases import CASES, Case

FACTOR = 0.98
#: More words than any release of the audit draws at once.
WORDS = 1 << 22

Patch = pytest.MonkeyPatch
BY_NAME = {case.name: case for case in CASES}
#: The rows of each part in every copy.
ROWS = {"gaussian": 3, "gaussian, two parts": 2, "laplace": 1, "laplace, tree": 3, "laplace, two parts": 2}


def small_noise(patch: Patch) -> None:
    """Noise has 98% of the scale that it is said to have."""
    honest = Noise.draw_rounded

    def draw(self, scale, size, **rest):
        return honest(self, scale * Fraction(49, 50), size, **rest)

    patch.setattr(Noise, "draw_rounded", draw)


def small_sensitivity(patch: Patch) -> None:
    """The largest column of an explicit matrix is one short, before noise is calibrated."""
    honest = ExplicitMatrix.column_power_sum
    patch.setattr(ExplicitMatrix, "column_power_sum", lambda self, norm: honest(self, norm) - 1)


def silent_part(patch: Patch) -> None:
    """Every second part is released as it is."""
    honest = measurement.noisy
    calls = []

    def noisy(answers, scale, source, shift=0):
        calls.append(scale)
        if len(calls) % 2:
            return honest(answers, scale, source, shift)
        return answers.split(scale.power + shift)[0]

    patch.setattr(measurement, "noisy", noisy)


def silent_cells(patch: Patch) -> None:
    """What is measured as 0, as where there are no records, is released as it is."""
    honest = measurement.noisy

    def noisy(answers, scale, source, shift=0):
        quotient, fraction, _ = answers.split(scale.power + shift)
        empty = (quotient == 0) & (fraction == 0)
        return np.where(empty, quotient, honest(answers, scale, source, shift))

    patch.setattr(measurement, "noisy", noisy)


class Stream(SystemSource):
    """Words of the system's generator that are kept: whoever starts at the beginning gets the same."""

    def __init__(self, words):
        self._words, self._place = words, 0

    def bits64(self, count):
        self._place += count
        return self._words[self._place - count : self._place].copy()


class Restarting(Stream):
    """A stream that starts anew with every request."""

    def bits64(self, count):
        return self._words[:count].copy()


def kept_words() -> np.ndarray:
    return np.frombuffer(os.urandom(8 * WORDS), dtype=np.uint64)


def again_in_a_part(patch: Patch) -> None:
    """Every chunk of a part's samples is made of the same words."""
    patch.setattr(measurement, "random_source", lambda _seed: Restarting(kept_words()))


def again_between_parts(patch: Patch) -> None:
    """Every part has the noise of the first."""
    honest, words = measurement.noisy, kept_words()
    patch.setattr(measurement, "noisy", lambda a, scale, _, shift=0: honest(a, scale, Stream(words), shift))


def again_between_releases(patch: Patch) -> None:
    """Every release of the process has the noise of the first."""
    words = kept_words()
    patch.setattr(measurement, "random_source", lambda _seed: Stream(words))


@dataclass(frozen=True)
class Control:
    """A fault, the case that it is made in, the test that must find it, and with what probability it does."""

    fault: Callable[[Patch], None]
    case: Case
    finding: str
    power: Callable[[Case], float]


def _small(case: Case) -> float:
    return power.small_noise_seen(case.noise, 2 * case.samples * ROWS[case.name], FACTOR)


def _signs(case: Case) -> float:
    return power.same_signs_seen(2 * case.samples)


def _silent(case: Case, share: float = 1.0) -> float:
    # the scale is at least 4096 steps: fewer would hit more often without a fault
    number = 2 * case.samples * ROWS[case.name]
    return power.hits_seen(case.noise, number, int(share * number), 4096.0)


gaussian, laplace, tree = BY_NAME["gaussian"], BY_NAME["laplace"], BY_NAME["laplace, tree"]
gaussian_parts, laplace_parts = BY_NAME["gaussian, two parts"], BY_NAME["laplace, two parts"]
MU, LARGER = 3.0, 3.0 * 2**0.5
CONTROLS = [
    Control(small_noise, gaussian, "noise too small", _small),
    Control(small_noise, gaussian, "advantage", lambda c: power.advantage_seen(c.samples, MU, MU / FACTOR)),
    Control(small_noise, laplace, "noise too small", _small),
    Control(small_noise, laplace, "ratio", lambda c: power.ratio_seen(c.samples, 1, 2.0, 2.0 / FACTOR)),
    # squared column norms of 1 for 2, L1 norms of 1 for 2
    Control(small_sensitivity, gaussian, "shift", lambda c: power.shift_seen(c.samples, MU, LARGER)),
    Control(small_sensitivity, gaussian, "advantage", lambda c: power.advantage_seen(c.samples, MU, LARGER)),
    Control(small_sensitivity, tree, "ratio", lambda c: power.ratio_seen(c.samples, 2, 2.0, 4.0)),
    Control(silent_cells, gaussian, "rows without noise", lambda c: _silent(c, 0.1)),
    Control(
        again_in_a_part, gaussian, "noise used again in a part",
        lambda c: power.same_signs_seen(c.samples * 3 - CHUNK),
    ),
    Control(silent_part, laplace_parts, "noise too small", lambda _: 1.0),
    Control(silent_part, laplace_parts, "rows without noise", _silent),
    Control(again_between_parts, gaussian_parts, "noise used again between parts", _signs),
    Control(again_between_releases, laplace_parts, "noise used again between releases", _signs),
]  # fmt: skip
