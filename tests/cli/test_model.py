import json
from pathlib import Path

import polars as pl
import pytest

import matrixdp as mdp
from matrixdp.storage.archive import entry
from tests.cli.commands import figures, refused, run, spec, words

FEW = ("--components", "4", "--steps", "60", "--allow-poor-fit")


@pytest.fixture
def modelled(released: Path, tmp_path: Path) -> Path:
    said = words("model", released, "--out", tmp_path / "model", "--seed", "6", *FEW)
    assert all(text in said for text in ("method mixture", "BIASED", "synthesize"))
    return tmp_path / "model"


def test_a_model_and_its_records_follow_from_a_folder(released: Path, modelled: Path, tmp_path: Path):
    model = mdp.Model.load(modelled)
    assert (model.seed, model.made["components"]) == (6, 4)
    answers = pl.read_parquet(modelled / "answers_consistent.parquet")
    own = pl.read_parquet(released / "answers.parquet")
    assert answers.select(own.columns).equals(own)
    assert answers["modelled"].min() >= 0  # type: ignore[operator]
    people = tmp_path / "people.parquet"
    told = run("synthesize", modelled, "--rows", "50", "--out", people, "--seed", "1").stdout
    assert "SYNTHETIC" in told
    assert pl.read_parquet(people).rows() == [
        tuple(row.values()) for row in model.records(50, seed=1).to_pylist()
    ]
    record = json.loads((tmp_path / "people.parquet.json").read_text())
    assert record["files"]["people.parquet"] == entry(people)
    assert figures("synthesize", modelled, "--out", tmp_path / "all.csv")["rows"] == model.size


def test_records_in_the_form_of_the_data_are_released_again(modelled: Path, tmp_path: Path):
    people = tmp_path / "people.csv"
    run("synthesize", modelled, "--rows", "80", "--values", "data", "--out", people)
    strategy = mdp.select(mdp.Model.load(modelled).workload, mechanism="residual")
    measured = strategy.measure(str(people), mdp.Budget(mu=1e3), seed_not_private=1)
    assert measured.reconstruct().answers["estimate"][0].as_py() == pytest.approx(80, abs=1)


def test_a_model_is_verified(modelled: Path):
    told = run("verify", modelled).stdout
    assert "all checks passed" in told
    assert "what its own tests" not in told
    assert figures("verify", modelled)["findings"][-1]["subject"] == "fit"
    assert "neither debited nor signed" in refused("verify", modelled, "--key", modelled / "model.json")
    answers = pl.read_parquet(modelled / "answers_consistent.parquet")
    answers.with_columns(pl.col("modelled") + 1).write_parquet(modelled / "answers_consistent.parquet")
    assert "FAILED: the model is not what it says" in run("verify", modelled, status=1).stdout


def test_what_is_there_is_replaced_on_request_alone(released: Path, modelled: Path, tmp_path: Path):
    assert "found an earlier model" in run("model", released, "--out", modelled, *FEW, status=2).stderr
    assert figures("model", released, "--out", modelled, "--force", *FEW)["made"]["seed"] == 0
    people = ("synthesize", modelled, "--out", tmp_path / "people.csv")
    run(*people)
    assert "is there already" in run(*people, status=2).stderr
    run(*people, "--force")
    for arguments, message in (
        (("--rows", "many"), "--rows: found 'many'; expected auto, or a number of records"),
        (("--rows", "-1"), "--rows: found '-1'"),
        (("--rows", "2000000000"), "rows: found 2000000000"),
        (("--values", "codes"), "values: found 'codes'; expected labels or data"),
        (("--out", "people.xlsx"), "out: found 'people.xlsx'"),
    ):
        assert message in run(*people, "--force", *arguments, status=2).stderr


def test_a_model_that_does_not_fit_is_refused(tmp_path: Path):
    workload = mdp.Workload(mdp.Domain({"a": 4, "b": 4}), mdp.marginals(2))
    table = {"a": [0, 1, 2, 3] * 50, "b": [0, 1, 2, 3] * 50}
    release = mdp.select(workload).measure(table, mdp.Budget(mu=5), seed_not_private=1).reconstruct()
    folder = mdp.save_release(release, tmp_path / "released")
    one = ("model", folder, "--components", "1", "--steps", "50", "--out")
    said = words(*one, tmp_path / "local")
    assert "method local" in said
    assert "not a mixture the tests of its fit reject it" in said
    assert "synthesize" not in said
    mixture = (*one, tmp_path / "model", "--method", "mixture")
    assert "does not fit what was measured" in run(*mixture, status=2).stderr
    assert not (tmp_path / "model").exists()
    said = words(*mixture, "--allow-poor-fit")
    assert "NO: its tests reject it" in said
    assert "NOT PRIVATE" in said
    assert "it says that its own tests reject it" in run("verify", tmp_path / "model").stdout
    assert "REJECT" in run("synthesize", tmp_path / "model", "--out", tmp_path / "people.csv").stdout


def test_what_a_specification_says_is_known_is_kept(released: Path, tmp_path: Path):
    spec = tmp_path / "known.yaml"

    def model(domain: object, out: str, status: int = 0):
        spec.write_text(json.dumps({"domain": domain, "workload": [{"marginals": 0}], "invariants": 77}))
        return run("model", released, "--out", tmp_path / out, "--spec", spec, *FEW, status=status)

    told = model(mdp.load_release(released).domain.to_spec(), "model").stdout
    assert "kept exactly 1 invariant answers" in " ".join(told.split())
    made = mdp.Model.load(tmp_path / "model")
    assert (made.total, made.made["invariants"]) == (77, [{"marginals": [0], "counts": 77.0}])
    assert "--spec: found a specification with another domain" in model({"a": 2}, "other", status=2).stderr


def test_integers_add_up_from_tracts_to_the_nation(here: Path):
    spec(
        """
data: people.csv
domain:
  tract: {levels_from: areas.csv}
  sex: [f, m]
  age: {min: 0, max: 3}
workload:
  - {product: {sex: identity, age: identity}, at: {tract: [total, state, county, tract]}}
  - {marginals: [1], at: {tract: county}}
privacy: {epsilon: 1, delta: 1e-6}
"""
    )
    areas = [(f"t{n}", "" if n == 7 else f"c{n * n % 5}", f"s{n * n % 5 % 2}") for n in range(20)]
    lines = [",".join(own) for own in [("tract", "county", "state"), *areas]]
    Path("areas.csv").write_text("\n".join(lines) + "\n")
    records = [f"t{n * n % 20},{'fm'[n % 2]},{n % 7 % 4}" for n in range(900)]
    Path("people.csv").write_text("\n".join(["tract,sex,age", *records]) + "\n")
    run("release", "s.yaml", "--out", "released")
    said = words("model", "released", "--out", "integers", "--method", "integers")
    assert "tract below 0: +" in said
    assert "clipped: +" in said
    assert "synthesize" not in said
    assert "all checks passed" in words("verify", "integers")
    answers = pl.read_parquet("integers/answers_consistent.parquet")
    full = answers.filter(pl.col("sex").is_not_null() & pl.col("age").is_not_null())
    cells = {(own["tract"], own["sex"], own["age"]): own["modelled"] for own in full.to_dicts()}
    assert min(cells.values()) >= 0
    for sex in "fm":
        for age in "0123":
            for level in (1, 2):
                for area in dict.fromkeys(own[level] for own in areas if own[level]):
                    tracts = [own[0] for own in areas if own[level] == area]
                    assert cells[area, sex, age] == sum(cells[tract, sex, age] for tract in tracts)
            whole = sum(cells[tract, sex, age] for tract, *_ in areas)
            assert cells[None, sex, age] == whole
