"""Budgets that protect nobody: every command says so, and none is spent unless that was accepted."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
from scipy.special import ndtr

import matrixdp as mdp
from matrixdp.privacy.budget import weak_privacy
from tests.cli.commands import figures, run, spec

TEXT = "data: t.csv\ndomain: {sex: [f, m]}\nworkload: [{marginals: 1}]\n"
SERIES = """domain: {month: {from: 2025-01-01, to: 2025-03-31, by: month}}
workload: [{marginals: [[month]]}]
series: {attribute: month}
"""
WEAK = ["{epsilon: 11}", "{rho: 5}", "{mu: 4, neighbours: replace}", "{epsilon: 12, delta: 1.0e-6}"]
ACCEPTED = "--accept-weak-privacy"
TOLD = "a reader can guess with up to"


@pytest.fixture(autouse=True)
def table(here: Path) -> None:
    Path("t.csv").write_text("sex\n" + "f\nm\nm\n" * 20)


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ({"epsilon": 11}, 1 / (1 + math.exp(-11))),
        ({"epsilon": 10**400}, 1.0),
        ({"epsilon": 12, "delta": 1e-6}, 1 / (1 + math.exp(-12))),
        ({"mu": 3.01}, ndtr(1.505)),
        ({"mu": 4, "neighbours": "replace"}, ndtr(2.0)),
        ({"rho": 5, "unit": {"records": 7}}, ndtr(math.sqrt(10) / 2)),
        ({"rho": 10**400}, 1.0),
    ],
    ids=str,
)
def test_how_often_a_guess_is_right(given: dict[str, Any], right: float):
    [told] = weak_privacy(mdp.Budget(**given))
    [percent] = re.findall(r"up to (\d+)% accuracy", told)
    assert 0 <= int(percent) - 100 * right < 1
    assert ("which of two records" in told) == (given.get("neighbours") == "replace")


@pytest.mark.parametrize(
    "given", [{"epsilon": 10}, {"epsilon": 10, "delta": 1e-6}, {"mu": 3}, {"rho": 4.5}], ids=str
)
def test_budgets_at_the_limit(given: dict[str, Any]):
    assert weak_privacy(mdp.Budget(**given)) == ()
    name = next(iter(given))
    assert len(weak_privacy(mdp.Budget(**{**given, name: 1.001 * given[name]}))) == 1


@pytest.mark.parametrize("privacy", WEAK)
def test_a_weak_budget_is_told_everywhere_and_spent_only_if_accepted(privacy: str):
    file = spec(f"{TEXT}privacy: {privacy}\n")
    assert TOLD in run("validate", file).stderr
    assert any(TOLD in told for told in figures("validate", file)["warnings"])
    assert TOLD in run("select", file).stderr
    refused = run("release", file, "--out", "out", status=2).stderr
    assert ACCEPTED in refused
    assert "[out-of-range]" in refused
    assert not Path("out").exists()
    assert TOLD in run("release", file, "--out", "out", ACCEPTED).stderr
    assert any(TOLD in told for told in mdp.load_release("out").warnings)
    with pytest.raises(mdp.PrivacyError) as caught:
        mdp.release(file)
    assert (caught.value.code, caught.value.path) == ("out-of-range", ("privacy",))
    assert mdp.release(file, accept_weak_privacy=True).private


def test_seeded_noise_needs_no_acceptance():
    file = spec(f"{TEXT}privacy: {{rho: 100}}\n")
    assert TOLD in run("release", file, "--out", "out", "--seed-not-private", 1).stderr


def test_a_budget_that_meets_targets():
    written = TEXT + "targets: {sex: %s}\nprivacy: {minimize: rho}\n"
    file = spec(written % 0.2)
    assert TOLD not in run("validate", file).stderr
    refused = run("select", file, status=2).stderr
    assert TOLD in refused
    assert "targets 1.667 times as large, which rho 4.5" in refused
    assert ACCEPTED in run("release", file, "--out", "out", status=2).stderr
    run("release", file, "--out", "out", ACCEPTED)
    strong = spec(written % 20)
    assert TOLD not in run("select", strong).stderr
    run("release", strong, "--out", "strong")


def test_a_series():
    file = spec(f"{SERIES}privacy: {{mu: 4}}\n")
    assert ACCEPTED in run("series", "start", file, "--out", "care", status=2).stderr
    assert not Path("care").exists()
    with pytest.raises(mdp.PrivacyError) as caught:
        mdp.Series.start(file, "care")
    assert (caught.value.code, caught.value.path) == ("out-of-range", ("privacy",))
    assert TOLD in run("series", "start", file, "--out", "care", ACCEPTED).stderr
    run("series", "start", file, "--out", "seeded", "--seeds-not-private")
