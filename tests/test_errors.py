"""Problems as data on errors, and the one place where they become prose."""

import copy

import pytest

import matrixdp as mdp
from matrixdp.errors import EntryError, Problem, within


def test_prose_is_made_of_the_parts() -> None:
    assert str(Problem((), "1", "2")) == "found 1; expected 2"
    assert str(Problem((), "1", "2", position="line 3")) == "line 3: found 1; expected 2"
    problem = Problem(("a", 0, "b c"), "1", "2", ("x", "y"), "line 3")
    assert str(problem) == "a[0]['b c'] (line 3): found 1; expected 2; did you mean 'x' or 'y'?"
    assert (problem.place, problem.suggestion) == ("a[0]['b c']", "x")
    assert Problem((), "1", "2").suggestion is None


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
