"""Every refusal of the tables: its code and place, and its message in one snapshot."""

from importlib import import_module
from pathlib import Path

import pytest

from matrixdp.errors import CODES, DomainError, MatrixDPError, WorkloadError, within
from tests.refusals import Refusal, refused

HERE = Path(__file__).parent
REFUSALS: dict[str, Refusal] = {
    f"{path.parent.name}: {refusal.name}": refusal
    for path in sorted(HERE.glob("*/refusals.py"))
    for refusal in import_module(f"tests.{path.parent.name}.refusals").REFUSALS
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_refusals(refusal: Refusal, tmp_path: Path, snapshot):
    assert refused(refusal, tmp_path) == snapshot


def test_every_class_and_refusal_has_a_listed_code():
    classes = [MatrixDPError]
    for one in classes:
        classes += one.__subclasses__()
    assert {one.code for one in classes} | {one.code for one in REFUSALS.values()} <= set(CODES)


def test_a_code_survives_being_placed():
    with pytest.raises(WorkloadError) as caught, within("workload", 0):
        raise WorkloadError.at(("kway",), "5", "at most 3", code="out-of-range")
    assert (caught.value.code, caught.value.path) == ("out-of-range", ("workload", 0, "kway"))
    with pytest.raises(DomainError) as plain, within("domain"):
        raise DomainError("nothing", code="empty")
    assert (plain.value.code, plain.value.path) == ("empty", ())
