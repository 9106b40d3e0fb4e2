"""Negative controls: faults made in the real code, which the audit must find as surely as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.controls import CONTROLS, small_sensitivity
from tests.audit.pipeline import collect, findings
from tests.audit.power import LEVEL, POWER

RUNS = {f"{c.fault.__name__}, {c.case.name}": (c.fault, c.case) for c in CONTROLS}


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "case"), RUNS.values(), ids=RUNS)
def test_the_audit_finds_a_fault(fault, case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fault(monkeypatch)
    evidence, found = collect(case, tmp_path)
    results = findings(evidence)
    asked = [c for c in CONTROLS if (c.fault, c.case) == (fault, case)]
    assert asked
    for control in asked:
        assert results[control.finding] < LEVEL, control.finding
    # a sensitivity that is not that of the matrices is seen without any noise, too
    assert found.agrees == (fault is not small_sensitivity)


@pytest.mark.parametrize("control", CONTROLS, ids=lambda c: f"{c.fault.__name__}, {c.case.name}, {c.finding}")
def test_the_power_is_what_is_stated(control):
    assert control.power(control.case) >= POWER
