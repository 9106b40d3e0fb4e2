"""Targets from the specification to the release."""

import json

import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app

SPEC = """
data: people.csv
domain:
  sex: [female, male]
  age: {min: 0, max: 9}
workload:
  - marginals: [0, 1]
  - product: {age: prefix}
    name: age CDF
"""


@pytest.fixture
def home(tmp_path):
    rows = "\n".join(f"{'female' if i % 2 else 'male'},{i % 10}" for i in range(200))
    (tmp_path / "people.csv").write_text("sex,age\n" + rows + "\n", encoding="utf-8")
    return tmp_path


def run(home, *arguments, text):
    (home / "spec.yaml").write_text(SPEC + text, encoding="utf-8")
    return CliRunner().invoke(app, [arguments[0], str(home / "spec.yaml"), *map(str, arguments[1:])])


def test_the_least_budget_is_selected_printed_and_spent(home):
    text = "targets: {age CDF: 5.0, all: 8.0}\nprivacy: {minimize: rho}\n"
    chosen = run(home, "select", "--json", text=text)
    assert chosen.exit_code == 0, chosen.stderr
    figures = json.loads(chosen.stdout)
    budget = figures["privacy"]["budget"]
    assert set(budget) == {"rho", "neighbours", "unit"}
    assert 0.999 < figures["target_ratio"] <= 1.0
    assert figures["lower_bound_target_ratio"] <= figures["target_ratio"]
    for group in figures["groups"]:
        assert group["max_stddev"] <= group["target"]
    shown = run(home, "select", text=text)
    assert "targets" in shown.stdout
    assert f"rho={budget['rho']}" in shown.stdout
    released = run(home, "release", "--out", home / "out", text=text)
    assert released.exit_code == 0, released.stderr
    assert f"which is spent: Budget(rho={budget['rho']}" in released.stderr
    release = mdp.load_release(home / "out")
    assert float(release.statement.rho) == pytest.approx(budget["rho"], rel=1e-6)
    assert max(release.answers["stddev"].to_pylist()) <= 8.0


def test_a_budget_beside_targets_is_a_limit(home):
    text = "targets: {age CDF: 5.0}\nprivacy: {epsilon: 0.01}\n"
    refused = run(home, "release", "--out", home / "out", text=text)
    assert refused.exit_code == 2
    assert "targets: meeting them takes Budget(epsilon=" in refused.stderr
    assert not (home / "out").exists()
    checked = run(home, "validate", text=text)
    assert "at most Budget(epsilon=0.01" in " ".join(checked.stdout.split())


def test_a_saved_strategy_spends_what_the_targets_take(home):
    text = "targets: {age CDF: 5.0}\nprivacy: {minimize: mu}\n"
    saved = home / "strategy.mdp"
    assert run(home, "select", "--save", saved, text=text).exit_code == 0
    looser = "targets: {age CDF: 10.0}\nprivacy: {minimize: mu}\n"
    released = run(home, "release", "--strategy", saved, "--out", home / "out", text=looser)
    assert released.exit_code == 0, released.stderr
    assert max(mdp.load_release(home / "out").answers["stddev"].to_pylist()[-10:]) <= 10.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("privacy: {minimize: rho}\n", "privacy.minimize"),
        ("targets: {age CDF: 5}\n", "privacy"),
        ("targets: {age CDF: 5}\nprivacy: {minimize: rho, rho: 1.0}\n", "privacy.rho"),
        ("targets: {age CDF: 5}\nprivacy: {minimize: mu, delta: 1.0e-6}\n", "delta"),
        ("targets: {age CFD: 5}\nprivacy: {minimize: mu}\n", "did you mean 'age CDF'"),
        ("targets: {age CDF: 0}\nprivacy: {minimize: mu}\n", "targets['age CDF']"),
        ("targets: {age CDF: five}\nprivacy: {minimize: mu}\n", "targets"),
        ("targets: {}\nprivacy: {minimize: mu}\n", "targets"),
        ("targets: {age CDF: 5}\nprivacy: {minimize: sigma}\n", "privacy.minimize"),
    ],
)
def test_wrong_targets_are_one_error(home, text, message):
    result = run(home, "validate", text=text)
    assert result.exit_code == 2, result.stdout
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_the_comparison_is_at_the_budget(home):
    text = "targets: {age CDF: 5.0}\nprivacy: {rho: 0.25}\n"
    figures = run(home, "compare", "--json", "--mechanisms", "residual", text=text)
    assert figures.exit_code == 0, figures.stderr
    chosen = json.loads(run(home, "select", "--json", "--ignore-targets", text=text).stdout)
    assert chosen["privacy"]["budget"]["rho"] == 0.25
    assert chosen["targets"] == {}
    [row] = json.loads(figures.stdout)["mechanisms"]
    assert row["rmse"] == pytest.approx(chosen["rmse"], rel=1e-3)
    refused = run(home, "compare", text="targets: {age CDF: 5.0}\nprivacy: {minimize: rho}\n")
    assert refused.exit_code == 2
    assert "privacy.minimize" in refused.stderr
