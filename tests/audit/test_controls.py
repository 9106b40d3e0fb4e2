"""Negative controls: faults made in the real code, which the audit must find as surely as docs/audit.md says.

Every figure of that page is computed from the constants that the audit runs with.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from matrixdp.exact import ExplicitMatrix
from matrixdp.measure import measurement, noisy_answers
from matrixdp.noise import Noise, SystemSource
from matrixdp.noise.drawing import CHUNK
from tests.audit import power
from tests.audit.cases import CASES, COPIES, RATIO_COPIES, ROUNDS, Case
from tests.audit.pipeline import collect, findings
from tests.audit.power import ALARM, LEVEL, POWER, TESTS
from tests.audit.test_costs import BUDGETS, PAIRS
from tests.audit.test_pipeline import TIGHT

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
    honest = noisy_answers.noisy
    calls = []

    def noisy(answers, scale, source, shift=0, weight=1, **rest):
        calls.append(scale)
        if len(calls) % 2:
            return honest(answers, scale, source, shift, weight, **rest)
        return answers.split(scale.power + shift, weight)[0]

    patch.setattr(noisy_answers, "noisy", noisy)


def silent_cells(patch: Patch) -> None:
    """What is measured as 0, as where there are no records, is released as it is."""
    honest = noisy_answers.noisy

    def noisy(answers, scale, source, shift=0, weight=1, **rest):
        quotient, fraction, _ = answers.split(scale.power + shift, weight)
        empty = (quotient == 0) & (fraction == 0)
        return np.where(empty, quotient, honest(answers, scale, source, shift, weight, **rest))

    patch.setattr(noisy_answers, "noisy", noisy)


class Stream(SystemSource):
    """Words of the system's generator that are kept: reading from the beginning gives the same."""

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
    honest, words = noisy_answers.noisy, kept_words()
    patch.setattr(
        noisy_answers,
        "noisy",
        lambda a, scale, _, *more, **named: honest(a, scale, Stream(words), *more, **named),
    )


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
    # noise on integers is 0 half of the time at one step, and hits more often without a fault
    number = 2 * case.samples * ROWS[case.name]
    steps = 4096.0 if case.noise == "gaussian" else 1.0
    return power.hits_seen(case.noise, number, int(share * number), steps)


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
    Control(again_between_releases, laplace, "noise used again between releases", _signs),
]  # fmt: skip


RUNS = {f"{c.fault.__name__}, {c.case.name}": (c.fault, c.case) for c in CONTROLS}


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "case"), RUNS.values(), ids=RUNS)
def test_the_audit_finds_a_fault(fault, case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fault(monkeypatch)
    missed = {control.finding for control in CONTROLS if (control.fault, control.case) == (fault, case)}
    for run in range(3):  # one run misses some faults once in 200 times
        (tmp_path / str(run)).mkdir()
        evidence, found = collect(case, tmp_path / str(run))
        results = findings(evidence)
        missed = {finding for finding in missed if results[finding] >= LEVEL}
        if not missed:
            break
    assert missed == set()
    # a sensitivity that is not that of the matrices is seen without any noise, too
    assert found.agrees == (fault is not small_sensitivity)


PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")


def figure(power: float) -> str:
    """Write a probability with four digits, rounded down."""
    return f"{math.floor(power * 10_000) / 10_000:.4f}" if power < 0.9999 else "> 0.9999"


def test_the_power_of_every_control_is_on_the_page():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "0." in line.split("|")[-2]]
    assert len(rows) == len(CONTROLS)
    for row, control in zip(rows, CONTROLS, strict=True):
        *stated, probability = (cell.strip() for cell in row.strip("|").split("|"))
        assert stated == [str(control.fault.__doc__).rstrip("."), control.case.name, control.finding]
        power = control.power(control.case)
        assert power >= max(POWER, float(probability.lstrip("> ")))
        # a longer run has more
        assert ROUNDS > 1 or probability == figure(power)


def test_the_constants_are_on_the_page():
    for words in (
        f"Each of {len(CASES)} cases",
        f"{math.prod(COPIES):,} copies",
        f"({math.prod(RATIO_COPIES):,} in the case",
        f"There are {TESTS} of a case",
        f"at least {100 * TIGHT:.1f}%",
        f"at most {ALARM:.0e} a run",
        f"one part in {len(CASES) + 1} of that",
        f"one part in {TESTS} of the case's, {LEVEL:.3g}",
        f"probability of at least {POWER}",
        f"{len(PAIRS)} pairs of a mechanism and a noise",
        f"{BUDGETS} budgets each",
        f"{len(PAIRS) * BUDGETS} cases",
    ):
        assert words in PAGE, words
