"""What a user's type checker sees: mypy checks this file, and warns of an ignored error that is none."""
# mypy: strict-optional, disallow-untyped-defs

from typing import assert_type

import pytest

import matrixdp as mdp
from matrixdp.selection.selection import Certificate


def five_lines() -> mdp.Release:
    domain = assert_type(mdp.Domain({"sex": ["female", "male"], "age": 4}), mdp.Domain)
    workload = assert_type(mdp.Workload(domain, mdp.marginals(1), mdp.product(age="prefix")), mdp.Workload)
    strategy = assert_type(mdp.select(workload), mdp.Strategy)
    budget = assert_type(mdp.Budget(rho=1), mdp.Budget)
    measured = assert_type(strategy.measure({"sex": ["male"], "age": [3]}, budget), mdp.MeasuredStrategy)
    return assert_type(measured.reconstruct(), mdp.Release)


def test_every_value_on_the_way_has_its_type() -> None:
    release = five_lines()
    assert_type(release.private, bool)
    assert_type(release.workload, mdp.Workload)
    assert_type(release.covariance(mdp.marginals(0), 0, {"marginals": [["age"]]}, 0), float)
    strategy = mdp.select(release.workload)
    assert_type(strategy.rmse(mdp.Budget(mu=1)), float)
    assert_type(strategy.noise, str)
    assert_type(strategy.certificate, Certificate)
    assert_type(strategy.certificate.loss, float)
    assert_type(strategy.certificate.lower_bound, float | None)
    budget = mdp.Budget(epsilon=1, delta=1e-6)
    assert mdp.Budget(**budget.as_dict()) == budget


def test_wrong_uses_are_errors_to_a_checker_and_when_run() -> None:
    release = five_lines()
    with pytest.raises(AttributeError):
        mdp.selct  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(mdp.WorkloadError):
        mdp.select("age")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        mdp.Budget(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        release.covariance({"marginals": [["age"]]}, 0)  # type: ignore[call-arg]
    with pytest.raises(mdp.WorkloadError):
        release.answer("age")  # type: ignore[arg-type]
