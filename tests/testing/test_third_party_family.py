"""A third party's file adds a family of predicates: to Python, specifications, releases and archives."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.answers.titles import title
from matrixdp.cli.app import app
from matrixdp.forms import key, record, whole
from matrixdp.language import KeyedPredicates, keyed_predicates
from matrixdp.language.predicates import KEYED_PREDICATES
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import Predicates
from matrixdp.selection.auto import Trials
from matrixdp.testing import check_predicates


@dataclass(frozen=True)
class Averages(Predicates):
    """The mean count of every window of this many values: entries that are neither 0 nor 1."""

    width: int

    def count(self, size):
        return size - self.width + 1

    def apply(self, matrix):
        sums = np.cumsum(np.vstack([np.zeros((1, matrix.shape[1])), matrix]), axis=0)
        return (sums[self.width :] - sums[: -self.width]) / self.width

    def describe(self, attribute):
        last = self.width - 1
        return [f"mean of {attribute.range_label(a, a + last)}" for a in range(self.count(attribute.size))]

    def title(self, size, say):
        return f"means of {self.width}"


@record
class AveragesForm(KeyedPredicates):
    sample = "{average: k}"
    average: int = key(whole("an integer of at least 1, the number of values", least=1))

    def on(self, attribute):
        return Averages(min(self.average, attribute.size))


def asking(size: int, ages: object) -> mdp.Workload:
    domain = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": size - 1}})
    return mdp.Workload(domain, mdp.product(sex="identity", age=ages))


SPEC = """
domain: {sex: [female, male], age: {min: 0, max: 23}}
workload: [product: {sex: identity, age: {average: 4}}]
privacy: {rho: 1}
"""


@pytest.fixture(autouse=True)
def registered():
    keyed_predicates(AveragesForm)
    yield
    KEYED_PREDICATES.pop("average", None)


@pytest.mark.parametrize("size", [3, 64, 600])
def test_it_keeps_the_contract(size: int):
    check_predicates(Averages(3), size)


def rows(size: int) -> np.ndarray:
    return np.array([(np.arange(size) >= a) & (np.arange(size) < a + 4) for a in range(size - 3)]) / 4


@pytest.mark.parametrize("mechanism", ["auto", "opt-m", "residual"])
def test_its_errors_are_those_of_its_rows(mechanism: str):
    workload, explicit = asking(24, {"average": 4}), asking(24, {"matrix": rows(24)})
    assert (workload.queries, workload.groups[0].name) == (42, "sex, age: identity x average")
    budget = mdp.Budget(rho=1)
    found, expected = (mdp.select(asked, mechanism=mechanism).rmse(budget) for asked in (workload, explicit))
    assert found == pytest.approx(expected, rel=1e-9)


def test_its_title_is_its_own(monkeypatch):
    [group] = asking(24, {"average": 4}).groups
    assert title(group) == "age means of 4 by sex"
    [group] = asking(24, ["total", {"average": 4}]).groups
    assert title(group) == "age total and means of 4 by sex"
    monkeypatch.delattr(Averages, "title")
    [group] = asking(24, {"average": 4}).groups
    assert title(group) == "sex by age in 21 groups"


@pytest.mark.parametrize("mechanism", ["identity", "opt-kron"])
def test_its_errors_on_many_values_are_those_of_its_rows(mechanism: str):
    errors = []
    for asked in (asking(600, {"average": 4}), asking(600, {"matrix": rows(600)})):
        assert asked.queries == 1194
        plan, _ = Trials(asked, GAUSSIAN, {}, bounded=False).choose(mechanism)
        errors.append(sum(plan.analysis.group(group).total for group in asked))
    assert errors[0] == pytest.approx(errors[1], rel=1e-9)
    if mechanism == "identity":
        assert errors[0] == pytest.approx(1194 * 4 / 16)


def test_it_is_measured_answered_and_saved(tmp_path):
    mdp.select(asking(24, {"average": 4})).save(tmp_path / "strategy.mdp")
    strategy = mdp.Strategy.load(tmp_path / "strategy.mdp")
    table: dict[str, Any] = {"sex": ["male", "female", "male"] * 100, "age": np.arange(300) % 7}
    counts = np.zeros((2, 24))
    np.add.at(counts, ((np.array(table["sex"]) == "male").astype(int), table["age"]), 1)
    answers = strategy.measure(table, mdp.Budget(mu=100)).reconstruct().answers
    assert answers["age"].to_pylist()[:2] == ["mean of 0-3", "mean of 1-4"]
    errors = answers["estimate"].to_numpy() - (counts @ rows(24).T).ravel()
    assert 0 < np.abs(errors).max() < 20 * answers["stddev"].to_numpy().max()


def test_specifications_have_it(tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    result = CliRunner().invoke(app, ["select", str(tmp_path / "spec.yaml"), "--json"])
    assert result.exit_code == 0, result.stderr
    specified = mdp.load_specification(tmp_path / "spec.yaml").workload
    expected = mdp.select(specified).rmse(mdp.Budget(rho=1))
    assert json.loads(result.stdout)["rmse"] == pytest.approx(expected, rel=1e-6)
    (tmp_path / "spec.yaml").write_text(SPEC.replace("average: 4", "avarage: 4"))
    refused = CliRunner().invoke(app, ["select", str(tmp_path / "spec.yaml")])
    assert refused.exit_code == 2
    assert "did you mean 'average'" in " ".join(refused.stderr.split())
