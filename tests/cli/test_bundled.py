"""Releases of the table that comes with the package, and mechanisms that are compared on its domain."""

import json
import struct
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from tests.cli.commands import figures, run, words

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = f"""
data: {EXAMPLES / "randhie.parquet"}
domain:
  coinsurance: [0, 25, 50, 95, 100]
  health: [excellent, good, fair, poor]
  visits: {{min: 0, max: 7}}
workload:
  - marginals: [0, 1]
  - product: {{visits: prefix, health: [identity, total]}}
  - any: {{health: {{sets: [[poor]]}}, visits: {{ranges: [[0, 0], [5, 7]]}}}}
  - cells: [[{{health: poor, visits: [0, 1]}}, {{health: good, coinsurance: 0}}]]
    name: merged
privacy: {{epsilon: 1.0}}
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pure") / "small.yaml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def few_cells(spec: Path) -> Path:
    """The same queries over 24 cells, on which the search under Laplace noise is short."""
    text = SMALL.replace("max: 7", "max: 2").replace("[5, 7]", "[2, 2]")
    path = spec.with_name("few.yaml")
    path.write_text(text.replace("[0, 25, 50, 95, 100]", "[0, 95]"))
    return path


@pytest.mark.slow
def test_the_bundled_table_is_released(tmp_path: Path):
    out = tmp_path / "released"
    run("release", EXAMPLES / "randhie.yaml", "--out", out)
    release = mdp.load_release(out)
    assert pq.read_table(out / "answers.parquet").equals(release.answers)
    rows = release.answer(mdp.marginals([[], ["health"], ["limitation"]])).to_pylist()
    true = [20190, 11019, 7309, 1560, 302, 16751, 2387, 1052]
    assert all(abs(row["estimate"] - t) < 7 * row["stddev"] for row, t in zip(rows, true, strict=True))
    assert release.statement.epsilon == pytest.approx(1)
    assert (EXAMPLES / "randhie.parquet").stat().st_size < 500_000
    assert "public domain" in (EXAMPLES / "README.md").read_text()


@pytest.mark.slow
def test_a_release_of_the_bundled_table_under_pure_privacy(spec: Path, tmp_path: Path):
    out = tmp_path / "out"
    assert "pure: delta is 0" in words("release", spec, "--mechanism", "residual", "--out", out)
    written = json.loads((out / "release.json").read_text())
    assert written["privacy"]["noise"] == written["strategy"]["noise"] == "laplace"
    guarantees = {row["definition"]: row["parameters"] for row in written["privacy"]["guarantees"]}
    assert 1 - 1e-9 < guarantees["pure DP"]["epsilon"] <= 1.0
    assert guarantees["zero-concentrated DP"]["rho"] == pytest.approx(0.5)
    assert "Laplace" in written["intervals"]
    answers = pq.read_table(out / "answers.parquet").to_pandas()
    assert len(answers) == mdp.load_specification(spec).workload.queries
    assert (answers["stddev"] > 0).all()
    width = (answers["upper"] - answers["lower"]) / 2 / answers["stddev"]
    assert width.between(1.9, 2.17).all()
    assert abs(answers.iloc[0]["estimate"] - 17_000) < 4_000
    assert mdp.load_release(out).statement.pure_epsilon == guarantees["pure DP"]["epsilon"]
    run("answer", out, "product: {visits: {ranges: [[0, 4]]}}")


@pytest.mark.slow
def test_validate_and_select_say_what_pure_privacy_is(few_cells: Path):
    assert figures("validate", few_cells)["privacy"]["noise"] == "laplace"
    chosen = figures("select", few_cells)
    assert chosen["noise"] == "laplace"
    assert chosen["lower_bound_rmse"] < chosen["weighted_rmse"]
    for options in (
        ["opt-kron"],
        ["opt-m", "--restarts", "1", "--seed", "4"],
        ["residual", "--sub-solver", "fast"],
    ):
        one = figures("select", few_cells, "--mechanism", *options)
        assert one["mechanism"] == options[0]
        assert one["weighted_rmse"] >= chosen["weighted_rmse"] * (1 - 1e-9)
    for options, says in (
        (["--mechanism", "dense"], "gaussian noise alone"),
        (["--noise", "gaussian"], "Laplace"),
    ):
        assert says in run("select", few_cells, *options, status=2).stderr


@pytest.mark.slow
def test_mechanisms_are_compared(spec: Path, tmp_path: Path):
    picture = tmp_path / "comparison.png"
    # each is selected in a process of its own, which takes long to start where many run
    limits = ["--time-limit", "900", "--time-limit-each", "300"]
    names = "opt-kron,opt-m,residual,dense"
    rows = figures("compare", spec, "--mechanisms", names, "--picture", picture, *limits)["mechanisms"]
    *known, last = rows
    assert (last["mechanism"], last["rmse"], len(known)) == ("dense", None, 3)
    assert "gaussian noise alone" in last["note"]
    assert known[0]["ratio_to_best"] == 1.0
    assert [row["weighted_rmse"] for row in known] == sorted(row["weighted_rmse"] for row in known)
    assert all(row["ratio_to_lower_bound"] >= 1 for row in known if row["ratio_to_lower_bound"])
    content = picture.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) > (600, 100)
