"""Mechanisms that do not do what they say are found, and so are matrices that do not answer."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import NumericalError, WorkloadError
from matrixdp.selection.registry import MECHANISMS, DataDependent, Mechanism, Simulation
from matrixdp.testing import check_mechanism, dense_error
from matrixdp.testing import plugins as mechanisms
from matrixdp.testing.plugins import small_workloads

IDENTITY = cast("Mechanism[Any]", MECHANISMS["identity"])


def flattering(task):
    plan, certificate = IDENTITY.select(task)
    return plan, replace(certificate, loss=0.5 * certificate.loss)


def boasting(task):
    plan, certificate = IDENTITY.select(task)
    return plan, replace(certificate, lower_bound=2 * certificate.loss)


def refusing(task):
    raise WorkloadError("not today")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"select": flattering}, "the error is not what its certificate says"),
        ({"select": refusing}, "every workload is refused with gaussian noise"),
        ({"source": ""}, "source: expected the paper"),
    ],
)
def test_wrong_mechanisms_are_found(monkeypatch: pytest.MonkeyPatch, changes: dict, message: str) -> None:
    monkeypatch.setitem(MECHANISMS.registered, "identity", replace(IDENTITY, **changes))
    with pytest.raises(AssertionError, match=message):
        check_mechanism("identity", "gaussian")


def test_a_bound_above_the_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS.registered, "identity", replace(IDENTITY, select=boasting))
    with pytest.raises(NumericalError):
        check_mechanism("identity", "gaussian")


def test_another_mechanism_of_the_name_is_found() -> None:
    with pytest.raises(AssertionError, match="the name of another mechanism"):
        check_mechanism(replace(IDENTITY, source="A stranger"))


def test_noises_that_are_taken_unsaid_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mechanisms, "select", lambda workload, **_given: mdp.select(workload))
    with pytest.raises(AssertionError, match="dense: laplace noise, which it does not say"):
        check_mechanism("dense", "laplace")


def test_refusals_name_the_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(workload: mdp.Workload, **given: object) -> None:
        raise mdp.PrivacyError("no")

    monkeypatch.setattr(mechanisms, "select", refuse)
    with pytest.raises(AssertionError, match="a refusal that does not name it"):
        check_mechanism("dense", "laplace")


def test_simulations_of_nothing_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    guess = MECHANISMS["dawa"]
    assert isinstance(guess, DataDependent)
    nothing = Simulation(rmse=0.0, weighted_rmse=0.0, rmse_standard_error=0.0, max_rmse=0.0)
    monkeypatch.setitem(MECHANISMS.registered, "dawa", replace(guess, simulate=lambda *_given: nothing))
    with pytest.raises(AssertionError, match="it simulates"):
        check_mechanism("dawa")


def test_every_small_workload_leaves_an_attribute_unasked() -> None:
    for workload in small_workloads().values():
        assert all("unasked" not in group.attributes for group in workload)


def test_rows_that_do_not_determine_what_is_asked_have_no_error() -> None:
    with pytest.raises(AssertionError, match="do not determine"):
        dense_error(np.eye(3), np.eye(3)[:2])
