"""Errors: their problems as data and in prose, and every refusal of the tables in one snapshot."""

import copy
import re
from importlib import import_module
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.errors import EntryError, MatrixDPError, Problem, within
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


def test_every_class_and_refusal_has_a_code_that_troubleshooting_lists():
    text = (HERE.parent / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    codes = re.findall(r"^\| `([\w-]+)` \| .+ \| .+ \|$", text[text.index("## By code") :], re.MULTILINE)
    source = "".join(file.read_text(encoding="utf-8") for file in Path(mdp.__path__[0]).rglob("*.py"))
    assert codes == sorted({code for code in codes if f'"{code}"' in source})
    classes = [MatrixDPError]
    for one in classes:
        classes += one.__subclasses__()
    assert {one.code for one in classes} | {one.code for one in REFUSALS.values()} <= set(codes)


def test_a_code_survives_being_placed():
    with pytest.raises(mdp.WorkloadError) as caught, within("workload", 0):
        raise mdp.WorkloadError.at(("kway",), "5", "at most 3", code="out-of-range")
    assert (caught.value.code, caught.value.path) == ("out-of-range", ("workload", 0, "kway"))
    with pytest.raises(mdp.DomainError) as plain, within("domain"):
        raise mdp.DomainError("nothing", code="empty")
    assert (plain.value.code, plain.value.path) == ("empty", ())


def test_prose_is_made_of_the_parts() -> None:
    assert str(Problem((), "1", "2")) == "found 1; expected 2"
    assert str(Problem((), "1", "2", position="line 3")) == "line 3: found 1; expected 2"
    problem = Problem(("a", 0, "b c"), "1", "2", ("x", "y"), "line 3")
    assert str(problem) == "a[0]['b c'] (line 3): found 1; expected 2; did you mean 'x' or 'y'?"
    assert (problem.place, problem.suggestions) == ("a[0]['b c']", ("x", "y"))


def test_errors_carry_their_problem() -> None:
    with pytest.raises(mdp.PrivacyError) as refused:
        mdp.Budget(rho=-1)
    assert refused.value.problem == Problem(("budget", "rho"), "-1", "a finite number above 0")
    assert mdp.DomainError("a sentence").problem is None


def test_errors_survive_a_copy() -> None:
    error = EntryError.at(("kway",), "5", "at most 3")
    again = copy.copy(error)
    assert (type(again), again.problem, str(again)) == (EntryError, error.problem, str(error))


def test_messages_quote_no_more_than_an_excerpt() -> None:
    name = "a" * 10_000
    with pytest.raises(mdp.DomainError) as caught:
        mdp.Domain({name: None})
    assert caught.value.path == (name,)
    told = str(caught.value)
    assert len(told) < 1_100
    assert (told[:4], told[-9:]) == ("aaaa", "or a size")


def test_errors_are_placed_from_outside() -> None:
    with pytest.raises(mdp.TooLargeError, match=r"^workload\[1\]: too much$"), within("workload", 1):
        raise mdp.TooLargeError("too much")
    with pytest.raises(ValueError, match=r"^not ours$"), within("workload", 1):
        raise ValueError("not ours")
