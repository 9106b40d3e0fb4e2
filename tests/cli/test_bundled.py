"""Releases of the table that comes with the package."""

import json
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


@pytest.mark.slow
def test_the_bundled_table_is_released(tmp_path: Path):
    out = tmp_path / "released"
    told = figures("release", EXAMPLES / "randhie.yaml", "--out", out)
    assert set(told["files"]) == {"release.json", "answers.parquet", "measurement.mdp"}
    assert (told["private"], told["warnings"], told["size"]["total"]["stddev"] > 0) == (True, [], True)
    release = mdp.load_release(out)
    assert release.answers.equals(pq.read_table(out / "answers.parquet"))
    rows = release.answer(mdp.marginals([[], ["health"], ["limitation"]])).to_pylist()
    true = [20190, 11019, 7309, 1560, 302, 16751, 2387, 1052]
    assert all(abs(row["estimate"] - t) < 7 * row["stddev"] for row, t in zip(rows, true, strict=True))
    assert release.statement.epsilon == pytest.approx(1)
    assert (EXAMPLES / "randhie.parquet").stat().st_size < 500_000
    assert "public domain" in (EXAMPLES / "README.md").read_text()


@pytest.mark.slow
def test_a_release_of_the_bundled_table_under_pure_privacy(tmp_path: Path):
    spec = tmp_path / "small.yaml"
    spec.write_text(SMALL)
    out = tmp_path / "out"
    assert "pure: delta is 0" in words("release", spec, "--out", out)
    written = json.loads((out / "release.json").read_text())
    assert written["privacy"]["noise"] == written["strategy"]["noise"] == "laplace"
    guarantees = {row["definition"]: row["parameters"] for row in written["privacy"]["guarantees"]}
    assert 1 - 1e-9 < guarantees["pure DP"]["epsilon"] <= 1.0
    assert guarantees["zero-concentrated DP"]["rho"] == pytest.approx(0.5)
    assert "2.169" in written["intervals"]  # the bound for all combinations of pure noise
    answers = pq.read_table(out / "answers.parquet").to_pandas()
    assert len(answers) == mdp.load_specification(spec).workload.queries
    assert (answers["stddev"] > 0).all()
    width = (answers["upper"] - answers["lower"]) / 2 / answers["stddev"]
    assert width.between(1.9, 2.17).all()
    assert abs(answers.iloc[0]["estimate"] - 17_000) < 4_000
    assert mdp.load_release(out).statement.pure_epsilon == guarantees["pure DP"]["epsilon"]
    run("answer", out, "product: {visits: {ranges: [[0, 4]]}}")


def test_the_bundled_series_is_published(tmp_path: Path):
    out, table = tmp_path / "series", EXAMPLES / "interviews.parquet"
    run("series", "start", EXAMPLES / "interviews.yaml", "--out", out)
    told = figures("series", "publish", out, "--data", table, "--through", "2024-12")
    assert (told["published"], told["private"]) == (list(mdp.Series.open(out).published), True)
    assert 0 < told["new"] <= told["queries"]
    quarters = {
        "product": {"month": {"ranges": [[f"2024-{m:02}", f"2024-{m + 2:02}"] for m in (1, 4, 7, 10)]}}
    }
    rows = mdp.load_release(out).answer(quarters).to_pylist()
    dates = pq.read_table(table)["date"].to_pylist()
    true = [
        sum(day.year == 2024 and (day.month - 1) // 3 == quarter for day in dates) for quarter in range(4)
    ]
    assert len(rows) == 4
    assert all(abs(row["estimate"] - t) < 7 * row["stddev"] for row, t in zip(rows, true, strict=True))
