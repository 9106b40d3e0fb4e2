"""A statistical audit of the real pipeline, from a table to written answers, on worst-case neighbours.

Every case measures two tables that one person makes different, with the noise of a true release, and tests
what was written. Nothing is seeded: a sound engine fails in at most one of a million runs of the whole audit
(`ALARM` in power.py, from which the levels follow). docs/audit.md says what is tested, and with which power.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.audit.cases import CASES, Case
from tests.audit.pipeline import collect, findings
from tests.audit.power import LEVEL, TESTS

#: A person of a case costs at least this share of what is claimed: the neighbours are the worst.
TIGHT = 0.992


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_release_shows_no_more_of_a_person_than_is_claimed(case: Case, tmp_path: Path):
    evidence, found = collect(case, tmp_path)
    assert found.agrees
    # exactly: what the matrices and scales in the file say of this person
    assert evidence.claimed * TIGHT <= evidence.distance <= evidence.claimed * (1 + 1e-12)
    assert {power > 0 for power in evidence.powers} == {case.above}
    # and by the noise that was drawn
    results = findings(evidence)
    assert len(results) <= TESTS
    assert {name: value for name, value in results.items() if value < LEVEL} == {}


def test_the_cases_are_all_combinations():
    """Both noises, lattice steps above and below one record, both kinds of neighbours, one record and two."""
    seen = Counter((case.noise, case.above, case.budget.neighbours) for case in CASES)
    assert len(seen) == 8
    assert {(case.noise, case.budget.neighbours, case.budget.unit.records) for case in CASES} == {
        (noise, neighbours, records)
        for noise in ("gaussian", "laplace")
        for neighbours in ("add_remove", "replace")
        for records in (1, 2)
    }
    assert {case.table for case in CASES} == {"csv", "parquet", "pandas", "polars", "arrow", "arrays"}
