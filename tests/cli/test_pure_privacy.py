"""Pure differential privacy from end to end, and the comparison of mechanisms."""

import json
import struct
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app

EXAMPLES = Path(__file__).parents[2] / "examples"
RUNNER = CliRunner()
SMALL = """
data: DATA
domain:
  coinsurance: [0, 25, 50, 95, 100]
  health: [excellent, good, fair, poor]
  visits: {min: 0, max: 7}
workload:
  - marginals: [0, 1]
  - product: {visits: prefix, health: [identity, total]}
  - any: {health: {sets: [[poor]]}, visits: {ranges: [[0, 0], [5, 7]]}}
  - cells: [[{health: poor, visits: [0, 1]}, {health: good, coinsurance: 0}]]
    name: merged
privacy: {epsilon: 1.0}
"""


def run(*arguments: object):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pure") / "small.yaml"
    path.write_text(SMALL.replace("DATA", str(EXAMPLES / "randhie.parquet")))
    return path


@pytest.mark.slow
def test_a_release_of_the_bundled_table_under_pure_privacy(spec: Path, tmp_path: Path):
    out = tmp_path / "out"
    result = run("release", spec, "--mechanism", "residual", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "pure: delta is 0" in " ".join(result.stdout.split())
    written = json.loads((out / "release.json").read_text())
    assert written["privacy"]["noise"] == "laplace"
    guarantees = {row["definition"]: row["parameters"] for row in written["privacy"]["guarantees"]}
    assert 1 - 1e-9 < guarantees["pure DP"]["epsilon"] <= 1.0
    assert guarantees["zero-concentrated DP"]["rho"] == pytest.approx(0.5)
    assert "Laplace" in written["intervals"]
    assert written["strategy"]["noise"] == "laplace"
    answers = pq.read_table(out / "answers.parquet").to_pandas()
    workload = mdp.load_specification(spec).workload
    assert len(answers) == workload.queries
    assert (answers["stddev"] > 0).all()
    width = (answers["upper"] - answers["lower"]) / 2 / answers["stddev"]
    assert width.between(1.9, 2.17).all()
    total = answers.iloc[0]
    assert abs(total["estimate"] - 17_000) < 4_000
    again = mdp.load_release(out)
    assert again.statement.pure_epsilon == guarantees["pure DP"]["epsilon"]
    answered = run("answer", out, "product: {visits: {ranges: [[0, 4]]}}", "--json")
    assert answered.exit_code == 0, answered.stderr


@pytest.fixture(scope="module")
def few_cells(spec: Path) -> Path:
    """The same queries over 24 cells, on which the search under Laplace noise is short."""
    text = spec.read_text().replace("max: 7", "max: 2").replace("[5, 7]", "[2, 2]")
    path = spec.with_name("few.yaml")
    path.write_text(text.replace("[0, 25, 50, 95, 100]", "[0, 95]"))
    return path


@pytest.mark.slow
def test_validate_and_select_say_what_pure_privacy_is(few_cells: Path):
    spec = few_cells
    told = run("validate", spec, "--json")
    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["privacy"]["noise"] == "laplace"
    chosen = json.loads(run("select", spec, "--json").stdout)
    assert chosen["noise"] == "laplace"
    assert chosen["lower_bound_rmse"] < chosen["weighted_rmse"]
    for mechanism in ("opt-kron", "opt-m"):
        one = run("select", spec, "--json", "--mechanism", mechanism)
        assert one.exit_code == 0, one.stderr
        assert json.loads(one.stdout)["weighted_rmse"] >= chosen["weighted_rmse"] * (1 - 1e-9)
    refused = run("select", spec, "--mechanism", "dense")
    assert refused.exit_code == 2
    assert "gaussian noise alone" in refused.stderr
    refused = run("select", spec, "--noise", "gaussian")
    assert refused.exit_code == 2
    assert "Laplace" in refused.stderr


@pytest.mark.slow
def test_mechanisms_are_compared(spec: Path, tmp_path: Path):
    picture = tmp_path / "comparison.png"
    names = "opt-kron,opt-m,residual,dense"
    # each is selected in a process of its own, which takes long to start where many run
    limits = ["--time-limit", "900", "--time-limit-each", "300"]
    result = run("compare", spec, "--mechanisms", names, "--json", "--picture", picture, *limits)
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["mechanisms"]
    assert [row["mechanism"] for row in rows][-1] == "dense"
    assert "gaussian noise alone" in rows[-1]["note"]
    known = [row for row in rows if row["rmse"] is not None]
    assert len(known) == 3
    assert known[0]["ratio_to_best"] == 1.0
    assert [row["weighted_rmse"] for row in known] == sorted(row["weighted_rmse"] for row in known)
    assert all(row["ratio_to_lower_bound"] >= 1 for row in known if row["ratio_to_lower_bound"])
    content = picture.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) > (600, 100)
    shown = run("compare", spec, "--mechanisms", "opt-m", "--noise", "laplace", "--time-limit", "1")
    # a machine that is too slow for a second says so
    assert shown.exit_code == (2 if "(--time-limit" in shown.stdout else 0)


def test_comparisons_of_nothing_are_refused(spec: Path, tmp_path: Path):
    assert "did you mean 'opt-kron'" in run("compare", spec, "--mechanisms", "opt-korn").stderr
    assert run("compare", spec, "--mechanisms", ",").exit_code == 2
    assert "png" in run("compare", spec, "--picture", tmp_path / "x.doc").stderr
    assert "[no-place]" in run("compare", spec, "--picture", tmp_path / "no" / "x.png").stderr


def test_the_sub_solver_is_an_option(spec: Path):
    result = run("select", spec, "--mechanism", "residual", "--sub-solver", "fast", "--json")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            ["--mechanism", "opt-korn"],
            "--mechanism: found 'opt-korn'; expected a mechanism; did you mean",
        ),
        (
            ["--mechanism", "opt-m", "--sub-solver", "fast"],
            "--sub-solver: found an option that opt-m does not",
        ),
        (
            ["--mechanism", "opt-m", "--option", "restrats=3"],
            "seed or restarts; did you mean 'restarts'?",
        ),
        (["--mechanism", "opt-0", "--option", "seed=x"], "--option seed: found 'x'; expected a whole number"),
        (["--option", "seed"], "--option: found 'seed'; expected NAME=VALUE"),
        (["--sub-solver", "fsat"], "--sub-solver: found 'fsat'; expected one of auto, optimum"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["select", "release"])
def test_options_belong_to_their_mechanism(spec: Path, tmp_path: Path, command: str, given, told: str):
    out = ["--out", tmp_path / "out"] if command == "release" else []
    result = run(command, spec, *out, *given)
    assert result.exit_code == 2
    assert told in result.stderr


def test_options_are_given_by_name(spec: Path):
    restarts = ["--restarts", "1", "--seed", "4"]
    result = run("select", spec, "--mechanism", "opt-m", *restarts, "--json")
    assert json.loads(result.stdout)["mechanism"] == "opt-m"
