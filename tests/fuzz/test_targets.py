"""Every target of ``make fuzz``, with a modest number of cases that hypothesis makes of its seeds."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from matrixdp.errors import MatrixDPError
from tests.fuzz import oracle
from tests.fuzz.oracle import Case, Finding, judge
from tests.fuzz.run import ROOT
from tests.fuzz.targets import TARGETS

CASES = 40


@pytest.fixture(params=TARGETS)
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[bytes], Case]:
    monkeypatch.chdir(tmp_path)
    target = TARGETS[request.param]
    return target.seeds(), target.opened(tmp_path)


def test_what_is_changed_is_taken_or_refused(opened: tuple[list[bytes], Case]):
    seeds, case = opened
    judged = [judge(case, seed) for seed in seeds]
    assert any(judged), "no seed of the target is taken"

    @settings(
        max_examples=CASES, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(st.data())
    def changed(data: st.DataObject) -> None:
        seed = bytearray(data.draw(st.sampled_from(seeds)))
        places = st.integers(0, max(0, len(seed) - 1))
        for place, byte in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4)):
            seed[place : place + 1] = bytes([byte])
        judge(case, bytes(seed) + data.draw(st.binary(max_size=60)))

    changed()


def raises(error: BaseException) -> Case:
    def case(data: bytes) -> None:
        raise error

    return case


def test_the_oracle_tells_findings_from_refusals(monkeypatch: pytest.MonkeyPatch):
    assert judge(lambda data: None, b"")
    assert not judge(raises(MatrixDPError("found 3; expected 4")), b"")
    errors = KeyError("x"), MemoryError(), RecursionError(), RuntimeWarning("overflow"), MatrixDPError("")
    for error in errors:
        with pytest.raises(Finding):
            judge(raises(error), b"")
    monkeypatch.setattr(oracle, "LONGEST_MESSAGE", 10)
    with pytest.raises(Finding, match="a message of 11 characters"):
        judge(raises(MatrixDPError("x" * 11)), b"")
    monkeypatch.setattr(oracle, "MOST_SECONDS", 0.05)

    def hangs(data: bytes) -> None:
        while True:
            pass

    with pytest.raises(Finding, match="of processor"):
        judge(hangs, b"")


def test_the_limit_of_memory_holds():
    """In a process of its own, as it cannot be taken back."""
    code = "from tests.fuzz.oracle import judge, limit_memory\nlimit_memory(10**8)\n"
    code += "judge(lambda data: bytearray(10**9), b'')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Finding: MemoryError" in done.stderr
