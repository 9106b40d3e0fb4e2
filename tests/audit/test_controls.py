"""Negative controls: faults made in the real code, which the audit must find as surely as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.controls import CONTROLS, small_sensitivity
from tests.audit.pipeline import collect, findings
from tests.audit.power import LEVEL

RUNS = {f"{c.fault.__name__}, {c.case.name}": (c.fault, c.case) for c in CONTROLS}


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "case"), RUNS.values(), ids=RUNS)
def test_the_audit_finds_a_fault(fault, case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fault(monkeypatch)
    evidence, found = collect(case, tmp_path)
    results = findings(evidence)
    for control in CONTROLS:
        if (control.fault, control.case) == (fault, case):
            assert results[control.finding] < LEVEL, control.finding
    # a sensitivity that is not that of the matrices is seen without any noise, too
    assert found.agrees == (fault is not small_sensitivity)
