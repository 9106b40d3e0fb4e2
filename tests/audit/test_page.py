"""Every figure of docs/audit.md is computed from the constants that the audit runs with."""

from __future__ import annotations

import math
from pathlib import Path

from tests.audit.cases import CASES, COPIES, RATIO_COPIES
from tests.audit.controls import CONTROLS
from tests.audit.power import ALARM, LEVEL, POWER, TESTS
from tests.audit.settings import ROUNDS
from tests.audit.test_costs import BUDGETS, PAIRS
from tests.audit.test_pipeline import TIGHT

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
