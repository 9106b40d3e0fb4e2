"""One file of a stranger's adds a noise: it is selected for, measured, released and saved by its name.

Logistic noise of scale b has the density 1 / (4 b cosh^2(x / 2b)), whose logarithm has a slope of at most
1 / b: it is epsilon-differentially private as Laplace noise is, with lighter shoulders.
"""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.noise import NOISES, Distribution, PureNoise, register_noise
from matrixdp.testing import check_noise


def logistic_tail(point: Fraction) -> arb:
    return 1 / (1 + arb(fmpq(point.numerator, point.denominator)).exp())


class Logistic(PureNoise):
    name = "logistic"
    variance_factor = math.pi**2 / 3
    distribution = Distribution(
        upper_tail=logistic_tail, guess=lambda logarithm: math.log(math.expm1(-logarithm) or 1e-300)
    )

    def largest_quantile(self, confidence):
        return 1 / math.sqrt(1 - confidence)  # Chebyshev


LOGISTIC = Logistic()
DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 7}})
WORKLOAD = mdp.Workload(DOMAIN, mdp.product(sex="identity", age="prefix"), mdp.marginals([0, 1]))
TABLE: dict[str, list[Any]] = {"sex": ["male"] * 300 + ["female"] * 100, "age": [3, 5, 7, 0] * 100}
SPEC = """
domain: {sex: [female, male], age: {min: 0, max: 7}}
workload: [product: {sex: identity, age: prefix}, marginals: [0, 1]]
privacy: {epsilon: 1}
"""


@pytest.fixture(autouse=True)
def registered():
    register_noise(LOGISTIC)
    yield
    NOISES.pop("logistic")


def exact_answers():
    counts = np.zeros((2, 8))
    np.add.at(counts, ([["female", "male"].index(v) for v in TABLE["sex"]], TABLE["age"]), 1)
    marginals = [[counts.sum()], counts.sum(axis=1), counts.sum(axis=0)]
    return np.concatenate([counts.cumsum(axis=1).ravel(), *marginals])


def test_it_keeps_the_contract():
    check_noise(LOGISTIC)


@pytest.mark.parametrize("mechanism", ["auto", "opt-m", "identity", "hb"])
def test_it_is_selected_for_measured_and_released(mechanism):
    strategy = mdp.select(WORKLOAD, noise="logistic", mechanism=mechanism)
    assert strategy.noise == "logistic"
    assert {one.mechanism: one.status for one in strategy.selection.candidates}.get(
        "walk", "skipped"
    ) == "skipped"
    laplace = mdp.select(WORKLOAD, noise="laplace", mechanism=strategy.mechanism)
    budget = mdp.Budget(epsilon=2)
    # the same strategies, with the variance of another distribution; noise on integers is for Laplace alone
    small = mdp.Budget(epsilon=0.1)
    assert strategy.rmse(small) == pytest.approx(laplace.rmse(small) * math.pi / math.sqrt(6), rel=1e-9)
    assert strategy.rmse(budget) == pytest.approx(strategy.rmse(small) / 20, rel=1e-9)
    release = strategy.measure(TABLE, budget).reconstruct()
    answers = release.answers
    errors = np.abs(answers["estimate"].to_numpy() - exact_answers())
    assert (errors < 30 * answers["stddev"].to_numpy()).all()
    assert errors.max() > 0
    spent = release.measurement.authorization.cost
    assert spent.noise == LOGISTIC
    assert 2 - 1e-6 < spent.value <= 2
    assert release.statement.noise == "logistic"
    assert release.statement.pure_epsilon <= 2
    assert "Logistic" in release.intervals.description


def test_mechanisms_for_another_norm_refuse_it():
    with pytest.raises(mdp.PrivacyError, match="found logistic"):
        mdp.select(WORKLOAD, noise="logistic", mechanism="dense")


def test_it_is_saved_by_its_name(tmp_path):
    strategy = mdp.select(WORKLOAD, noise="logistic", mechanism="opt-m")
    strategy.save(tmp_path / "strategy.mdp")
    assert mdp.Strategy.load(tmp_path / "strategy.mdp").noise == "logistic"
    NOISES.pop("logistic")
    with pytest.raises(mdp.StorageError, match=r"noise: found 'logistic'; expected gaussian or laplace"):
        mdp.Strategy.load(tmp_path / "strategy.mdp")
    register_noise(LOGISTIC)


def test_the_commands_take_it(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    rows = [f"{sex},{age}\n" for sex, age in zip(TABLE["sex"], TABLE["age"], strict=True)]
    (tmp_path / "table.csv").write_text("".join(["sex,age\n", *rows]))

    def run(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    released = run(
        *("release", tmp_path / "spec.yaml", "--data", tmp_path / "table.csv"),
        *("--noise", "logistic", "--out", tmp_path / "out"),
    )
    assert released.exit_code == 0, released.stderr
    written = json.loads((tmp_path / "out" / "release.json").read_text())
    assert written["privacy"]["noise"] == "logistic"
    refused = run("select", tmp_path / "spec.yaml", "--noise", "logistik")
    assert refused.exit_code == 2
    assert "did you mean 'logistic'" in " ".join(refused.stderr.replace("│", " ").split())


def test_a_budget_that_leaves_a_choice_considers_it():
    budget = mdp.Budget(epsilon=8, delta=1e-9)
    errors = {name: mdp.select(WORKLOAD, noise=name, mechanism="identity").rmse(budget) for name in NOISES}
    chosen = mdp.select(WORKLOAD, budget=budget, mechanism="identity").noise
    assert chosen == min(errors, key=errors.__getitem__)
