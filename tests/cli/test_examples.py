"""The examples that come with the package."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_the_bundled_table_is_released(tmp_path: Path) -> None:
    out = tmp_path / "released"
    done = CliRunner().invoke(app, ["release", str(EXAMPLES / "randhie.yaml"), "--out", str(out)])
    assert done.exit_code == 0, done.stderr
    release = mdp.load_release(out)
    assert pq.read_table(out / "answers.parquet").equals(release.answers)
    rows = release.answer(mdp.marginals([[], ["health"], ["limitation"]])).to_pylist()
    true = [20190, 11019, 7309, 1560, 302, 16751, 2387, 1052]
    assert all(abs(row["estimate"] - t) < 7 * row["stddev"] for row, t in zip(rows, true, strict=True))
    assert release.statement.epsilon == pytest.approx(1)


def test_the_bundled_table_is_small_and_says_where_it_is_from():
    assert (EXAMPLES / "randhie.parquet").stat().st_size < 500_000
    assert "public domain" in (EXAMPLES / "README.md").read_text()
