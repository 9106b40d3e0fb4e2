import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.storage.archive import entry

RUNNER = CliRunner()
FEW = ("--components", "4", "--steps", "60", "--allow-poor-fit")


def run(*arguments: object) -> Result:
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def modelled(released: Path, tmp_path: Path) -> Path:
    result = run("model", released, "--out", tmp_path / "model", "--seed", "6", *FEW)
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "method mixture" in said
    assert "BIASED" in said
    assert "synthesize" in said
    return tmp_path / "model"


def test_a_model_and_its_records_follow_from_a_folder(released: Path, modelled: Path, tmp_path: Path):
    model = mdp.Model.load(modelled)
    assert (model.seed, model.made["components"]) == (6, 4)
    answers = pl.read_parquet(modelled / "answers_consistent.parquet")
    own = pl.read_parquet(released / "answers.parquet")
    assert answers.select(own.columns).equals(own)
    assert answers["modelled"].min() >= 0  # type: ignore[operator]
    result = run("synthesize", modelled, "--rows", "50", "--out", tmp_path / "people.parquet", "--seed", "1")
    assert result.exit_code == 0, result.stderr
    assert "SYNTHETIC" in result.stdout
    people = pl.read_parquet(tmp_path / "people.parquet")
    assert people.rows() == [tuple(row.values()) for row in model.records(50, seed=1).to_pylist()]
    record = json.loads((tmp_path / "people.parquet.json").read_text())
    assert record["files"]["people.parquet"] == entry(tmp_path / "people.parquet")
    result = run("synthesize", modelled, "--out", tmp_path / "all.csv", "--json")
    assert json.loads(result.stdout)["rows"] == model.size


def test_records_in_the_form_of_the_data_are_released_again(modelled: Path, tmp_path: Path):
    run("synthesize", modelled, "--rows", "80", "--values", "data", "--out", tmp_path / "people.csv")
    workload = mdp.Model.load(modelled).workload
    measured = mdp.select(workload, mechanism="residual").measure(
        str(tmp_path / "people.csv"), mdp.Budget(mu=1e3), seed_not_private=1
    )
    assert measured.reconstruct().answers["estimate"][0].as_py() == pytest.approx(80, abs=1)


def test_a_model_is_verified(modelled: Path):
    result = run("verify", modelled)
    assert result.exit_code == 0
    assert "all checks passed" in result.stdout
    found = json.loads(run("verify", modelled, "--json").stdout)
    assert [finding["subject"] for finding in found["findings"]][-1] == "fit"
    assert "what its own tests" not in result.stdout
    refused = run("verify", modelled, "--key", modelled / "model.json")
    assert refused.exit_code == 2
    assert "neither debited nor signed" in refused.stderr
    answers = pl.read_parquet(modelled / "answers_consistent.parquet")
    answers.with_columns(pl.col("modelled") + 1).write_parquet(modelled / "answers_consistent.parquet")
    result = run("verify", modelled)
    assert result.exit_code == 1
    assert "FAILED: the model is not what it says" in result.stdout


def test_what_is_there_is_replaced_on_request_alone(released: Path, modelled: Path, tmp_path: Path):
    assert "found an earlier model" in run("model", released, "--out", modelled, *FEW).stderr
    result = run("model", released, "--out", modelled, "--force", "--json", *FEW)
    assert json.loads(result.stdout)["made"]["seed"] == 0
    people = tmp_path / "people.csv"
    assert run("synthesize", modelled, "--out", people).exit_code == 0
    assert "is there already" in run("synthesize", modelled, "--out", people).stderr
    assert run("synthesize", modelled, "--out", people, "--force").exit_code == 0


def test_wrong_options_of_synthesize_are_told(modelled: Path):
    for arguments, message in (
        (("--rows", "many"), "--rows: found 'many'; expected auto, or a number of records"),
        (("--rows", "-1"), "--rows: found '-1'"),
        (("--rows", "2000000000"), "rows: found 2000000000"),
        (("--values", "codes"), "values: found 'codes'; expected labels or data"),
        (("--out", "people.xlsx"), "out: found 'people.xlsx'"),
    ):
        out = () if "--out" in arguments else ("--out", modelled.parent / "people.csv")
        result = run("synthesize", modelled, *out, *arguments)
        assert result.exit_code == 2
        assert message in result.stderr


def test_a_model_that_does_not_fit_is_refused(tmp_path: Path):
    workload = mdp.Workload(mdp.Domain({"a": 4, "b": 4}), mdp.marginals(2))
    table = {"a": [0, 1, 2, 3] * 50, "b": [0, 1, 2, 3] * 50}
    release = mdp.select(workload).measure(table, mdp.Budget(mu=5), seed_not_private=1).reconstruct()
    folder = mdp.save_release(release, tmp_path / "released")
    one = ("--components", "1", "--steps", "50")
    result = run("model", folder, "--out", tmp_path / "local", *one)
    said = " ".join(result.stdout.split())
    assert "method local" in said
    assert "not a mixture the tests of its fit reject it" in said
    assert "synthesize" not in said
    mixture = (*one, "--method", "mixture")
    result = run("model", folder, "--out", tmp_path / "model", *mixture)
    assert result.exit_code == 2
    assert "does not fit what was measured" in result.stderr
    assert not (tmp_path / "model").exists()
    result = run("model", folder, "--out", tmp_path / "model", *mixture, "--allow-poor-fit")
    assert result.exit_code == 0
    assert "NO: its tests reject it" in result.stdout
    assert "NOT PRIVATE" in result.stdout
    assert "it says that its own tests reject it" in run("verify", tmp_path / "model").stdout
    result = run("synthesize", tmp_path / "model", "--out", tmp_path / "people.csv")
    assert "REJECT" in result.stdout


def test_what_a_specification_says_is_known_is_kept(released: Path, tmp_path: Path):
    domain = mdp.load_release(released).domain.to_spec()
    spec = tmp_path / "known.yaml"
    spec.write_text(json.dumps({"domain": domain, "workload": [{"marginals": 0}], "invariants": 77}))
    result = run("model", released, "--out", tmp_path / "model", "--spec", spec, *FEW)
    assert result.exit_code == 0, result.stderr
    assert "kept exactly 1 invariants" in " ".join(result.stdout.split())
    model = mdp.Model.load(tmp_path / "model")
    assert (model.total, model.made["totals"]) == (77, [{"marginals": [0], "counts": 77.0}])
    spec.write_text(json.dumps({"domain": {"a": 2}, "workload": [{"marginals": 0}], "invariants": 77}))
    result = run("model", released, "--out", tmp_path / "other", "--spec", spec, *FEW)
    assert result.exit_code == 2
    assert "--spec: found a specification with another domain" in result.stderr
