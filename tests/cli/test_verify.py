import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from tests.forging import forge_measurement, forge_record

RUNNER = CliRunner()


def run(*arguments: object):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def test_a_release_that_holds(released: Path):
    result = run("verify", released)
    assert result.exit_code == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert lines[-1] == f"{released}: all checks passed."
    assert any(line.startswith("ok           cost ") for line in lines)
    assert any(line.startswith("not checked  noise        whether the noise was random") for line in lines)
    printed = json.loads(run("verify", released, "--json").stdout)
    assert printed["holds"] is True
    assert {row["outcome"] for row in printed["findings"]} == {"ok", "not checked"}


def test_a_release_that_does_not(released: Path):
    forge_record(released, lambda record: record["privacy"].update(noise="none"))
    result = run("verify", released)
    assert result.exit_code == 1
    assert 'FAILED       statement    privacy.noise says "none"; "gaussian" follows' in result.stdout
    assert result.stdout.endswith("FAILED: the release is not what it says.\n")
    printed = run("verify", released, "--json")
    assert printed.exit_code == 1
    assert json.loads(printed.stdout)["holds"] is False


def test_wrong_use(released: Path, tmp_path: Path):
    result = run("verify", tmp_path / "none")
    assert result.exit_code == 2
    assert "no such folder; expected that of a release" in result.stderr
    assert run("verify").exit_code == 2
    # a ledger that is not there says nothing of the release
    result = run("verify", released, "--ledger", tmp_path / "none")
    assert (result.exit_code, "none: no such file; expected the ledger" in result.stderr) == (2, True)
    (tmp_path / "text").write_text("no ledger")  # one that cannot be read was to hold the debit all the same
    assert run("verify", released, "--ledger", tmp_path / "text").exit_code == 1


def test_names_of_files_write_no_lines_of_their_own(released: Path):
    (released / "x\nok           ledger       debited\x1b[2J").touch()
    result = run("verify", released)
    assert not any(line.startswith("ok           ledger") for line in result.stdout.splitlines())
    assert "\x1b" not in result.stdout
    assert json.loads(run("verify", released, "--json").stdout)["holds"] is True


@pytest.mark.parametrize("time", ["2026", "2026-01-01T00:00:00+00:00 with epsilon = 0.001", "\x1b[2J", ""])
def test_a_time_is_a_time(released: Path, time: str):
    forge_measurement(released, lambda header, _: header["authorization"].update(time=time))
    forge_record(released, lambda record: record["privacy"].update(time=time))
    forge_record(released, lambda record: record["authorization"].update(time=time))
    result = run("verify", released)
    assert result.exit_code == 1
    assert "the time of its authorization is none" in result.stdout


def test_names_in_answers_do_not_control_a_terminal(tmp_path: Path):
    name, value = "se\x1b[31mx", "fe\x1b[2Jmale"
    strategy = mdp.select(mdp.Workload(mdp.Domain({name: [value, "male"]}), mdp.marginals(1)))
    release = strategy.measure({name: ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    mdp.save_release(release, tmp_path / "out")
    result = run("answer", tmp_path / "out", "marginals: 1")
    assert result.exit_code == 0
    assert "[2Jmale" in result.stdout
    assert "\x1b" not in result.stdout
