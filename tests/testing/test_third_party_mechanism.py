"""A third party's file adds mechanisms: to Python, to the commands, to comparisons."""

import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.selection.registry import MECHANISMS, Mechanism, register
from matrixdp.selection.rules import offered_rules
from matrixdp.testing import check_mechanism, dense_error, dense_gram, dense_measurement

FILE = '''
"""Cells and totals of every attribute."""

from dataclasses import dataclass

import numpy as np

from matrixdp.mechanisms import (
    DataDependent, KronSum, Mechanism, Options, Rule, Simulation, Task, option, product_of, register
)
from matrixdp.noise import LAPLACE


@dataclass(frozen=True)
class TotalsOptions(Options):
    heaviness: float = option(1.0, "of totals beside cells")


def select(task: Task[TotalsOptions]):
    terms = KronSum.of(task.workload.domain, task.workload.groups)
    total = task.options.heaviness
    rows = [np.vstack([np.eye(size), np.full((1, size), total)]) for size in terms.sizes]
    task.progress("adding totals", None)
    return product_of(task.workload, task.noise, terms, rows, "no bound: it is a third party's")


def simulate(workload, table, budget, simulations, out_of_domain):
    return Simulation(rmse=float(simulations), weighted_rmse=2.0, rmse_standard_error=0.5, max_rmse=9.0)


register(Mechanism("cells-and-totals", "A third party, 2031", (1, 2), TotalsOptions, select))
RULE = Rule("cells-and-totals", lambda facts: "" if facts.noise == LAPLACE else "made for Laplace noise")
register(DataDependent("guess", "A third party, 2032", (LAPLACE,), simulate))
'''
ENTRY_POINTS = """
[matrixdp.mechanisms]
cells-and-totals = their_mechanisms
guess = their_mechanisms
forgotten = their_mechanisms
"""
SPEC = """
data: no-such-table.parquet
domain: {sex: [female, male], age: {min: 0, max: 3}}
workload: [product: {sex: identity, age: prefix}, marginals: [0, 1]]
privacy: {epsilon: 1}
"""
DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 3}})
WORKLOAD = mdp.Workload(DOMAIN, mdp.product(sex="identity", age="prefix"), mdp.marginals([0, 1]))


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package installed beside ours."""
    (tmp_path / "their_mechanisms.py").write_text(FILE)
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "spec.yaml").write_text(SPEC)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    yield tmp_path
    # what an uninstalled package leaves behind must not be seen by other tests
    sys.modules.pop("their_mechanisms", None)
    offered_rules.cache_clear()
    for name in ("cells-and-totals", "guess"):
        MECHANISMS.registered.pop(name, None)


CANDIDATE = "\n[matrixdp.candidates]\ncells-and-totals = their_mechanisms:{}\n"


def offer(package: Path, rule: str) -> None:
    about = package / "theirs-1.0.dist-info" / "entry_points.txt"
    about.write_text(ENTRY_POINTS + CANDIDATE.format(rule))
    offered_rules.cache_clear()


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_it_is_selected_by_name_and_released(noise: str):
    strategy = mdp.select(WORKLOAD, noise=noise, mechanism="cells-and-totals", heaviness=2)
    plan = strategy.selection.plan
    assert strategy.mechanism == "cells-and-totals"
    # a total of weight 2 beside cells of weight 1, on each of two attributes
    [part] = plan.parts
    rows = dense_measurement(part, DOMAIN)
    assert np.unique((rows[:, 0] / rows[0, 0]).round(2)).tolist() == [0.0, 1.0, 2.0, 4.0]
    error = dense_error(dense_gram(WORKLOAD), rows / part.variance**0.5)
    assert strategy.selection.weighted_squared_error == pytest.approx(error, rel=1e-9)
    table = {"sex": ["male"] * 40, "age": [3] * 40}
    budget = mdp.Budget(rho=50) if noise == "gaussian" else mdp.Budget(epsilon=50)
    release = strategy.measure(table, budget).reconstruct()
    assert np.abs(release.answers["estimate"].to_numpy().sum() - 40 * 4) < 60


def test_it_keeps_the_contract():
    check_mechanism("cells-and-totals")
    check_mechanism("guess")


def test_its_options_are_its_own():
    with pytest.raises(mdp.WorkloadError, match="cells-and-totals does not have; expected heaviness"):
        mdp.select(WORKLOAD, mechanism="cells-and-totals", seed=1)
    with pytest.raises(mdp.WorkloadError, match="did you mean 'heaviness'"):
        mdp.select(WORKLOAD, mechanism="cells-and-totals", heavyness=1)
    with pytest.raises(mdp.WorkloadError, match="heaviness: found True; expected a number"):
        mdp.select(WORKLOAD, mechanism="cells-and-totals", heaviness=True)
    with pytest.raises(mdp.WorkloadError, match="did you mean 'cells-and-totals'"):
        mdp.select(WORKLOAD, mechanism="cels-and-totals")


def test_the_commands_take_it(package: Path):
    given = ["--mechanism", "cells-and-totals", "--option", "heaviness=0.5", "--json"]
    result = run("select", package / "spec.yaml", *given)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["mechanism"], found["noise"]) == ("cells-and-totals", "laplace")
    expected = mdp.select(WORKLOAD, noise="laplace", mechanism="cells-and-totals", heaviness=0.5)
    assert found["rmse"] == pytest.approx(expected.rmse(mdp.Budget(epsilon=1)))
    wrong = run("select", package / "spec.yaml", "--mechanism", "cells-and-totals", "--option", "heavines=1")
    assert wrong.exit_code == 2
    assert "--option heavines: found an option that cells-and-totals does not have" in wrong.stderr


def test_comparisons_show_it(package: Path):
    assert {"cells-and-totals", "guess"} < set(MECHANISMS)
    (package / "table.csv").write_text("sex,age\nmale,3\n")
    names = "identity,cells-and-totals,guess"
    result = run("compare", package / "spec.yaml", "--mechanisms", names, "--json",
                 "--time-limit", 9999, "--time-limit-each", 9999,
                 "--public-table", package / "table.csv", "--simulations", 7)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    rows = {row["mechanism"]: row for row in json.loads(result.stdout)["mechanisms"]}
    assert rows["cells-and-totals"]["rmse"] > 0
    assert rows["guess"]["rmse"] == 7.0
    assert rows["guess"]["data_dependent"]


def test_auto_tries_it_where_the_package_says_so(package: Path):
    assert "cells-and-totals" not in [one.mechanism for one in mdp.select(WORKLOAD).choice.candidates]
    offer(package, "RULE")
    told = {}
    for noise in ("gaussian", "laplace"):
        [said] = mdp.explain_choice(WORKLOAD, noise)
        found = mdp.select(WORKLOAD, noise=noise, heaviness=2).choice
        for one in (*said.candidates, *found.candidates):
            told[noise, one.mechanism, one.status] = one.loss
    assert told["laplace", "cells-and-totals", "tried"] is None
    assert told["laplace", "cells-and-totals", "compared"] > 0
    assert ("gaussian", "cells-and-totals", "skipped") in told
    offer(package, "TotalsOptions")
    with pytest.raises(mdp.WorkloadError, match="their_mechanisms:TotalsOptions is no Rule"):
        mdp.select(WORKLOAD)


def test_what_does_not_keep_its_word_is_told():
    with pytest.raises(mdp.WorkloadError, match="their_mechanisms does not register 'forgotten'"):
        mdp.select(WORKLOAD, mechanism="forgotten")
    with pytest.raises(mdp.WorkloadError, match="a second one called 'cells-and-totals'"):
        register(MECHANISMS["cells-and-totals"])
    with pytest.raises(mdp.WorkloadError, match="a second one called 'low-rank'"):
        register(Mechanism("low-rank", "", (), type(None), cast("Any", print)))
