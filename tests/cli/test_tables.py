"""Tables of answers from the command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import matrixdp as mdp
from matrixdp.cli.app import app


def run(*arguments: object, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def open_bins(tmp_path: Path) -> Path:
    domain = mdp.Domain(
        {"x": {"edges": ["-inf", 0, "inf"]}, "day": {"from": "2024-01-01", "to": "2024-01-02", "by": "day"}}
    )
    strategy = mdp.select(mdp.Workload(domain, mdp.marginals(1)), mechanism="residual")
    table = {"x": [1.0], "day": ["2024-01-02"]}
    return mdp.save_release(strategy.measure(table, mdp.Budget(rho=0.5)).reconstruct(), tmp_path / "out")


def test_json_has_null_for_open_ends_and_text_for_days(open_bins: Path) -> None:
    printed = json.loads(
        run("answer", open_bins, "marginals: 1", "--json").stdout, parse_constant=pytest.fail
    )
    rows = [{key: row[key] for key in row if key.endswith(("_from", "_to"))} for row in printed["answers"]]
    assert rows[0] == {"x_from": None, "x_to": 0.0, "day_from": None, "day_to": None}
    assert rows[3] == {"x_from": None, "x_to": None, "day_from": "2024-01-02", "day_to": "2024-01-02"}
    assert "x (-inf, 0)" in run("answer", open_bins, "marginals: 1").stdout
