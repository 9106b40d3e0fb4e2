"""The comparison with mechanisms whose error depends on the table."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from matrixdp.cli.app import app
from matrixdp.cli.compare import Outcome, ratios
from matrixdp.selection.mechanisms.table import MECHANISMS, DataDependent

SPEC = """
domain: {a: {min: 0, max: 127}, b: [x, y]}
workload: [WHAT]
privacy: {epsilon: 1.0}
"""


def run(*arguments: object):
    return CliRunner().invoke(app, ["compare", *[str(argument) for argument in arguments]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("public")
    (folder / "one.yaml").write_text(SPEC.replace("WHAT", "{product: {a: range}}"))
    (folder / "two.yaml").write_text(SPEC.replace("WHAT", "{marginals: [2]}"))
    ages = np.repeat(np.arange(128), np.repeat([2, 300], 64))
    (folder / "public.csv").write_text("a,b\n" + "".join(f"{age},x\n" for age in ages))
    return folder


def test_dawa_is_simulated_on_the_public_table(folder: Path):
    picture = folder / "picture.svg"
    options = ("--public-table", folder / "public.csv", "--simulations", 4, "--picture", picture)
    result = run(folder / "one.yaml", "--mechanisms", "identity,dawa", *options, "--json")
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert printed["public_table"].endswith("public.csv")
    simulated, promised = printed["mechanisms"]
    assert (simulated["mechanism"], promised["mechanism"]) == ("dawa", "identity")
    assert simulated["data_dependent"]
    assert simulated["simulations"] == 4
    assert 0 < simulated["rmse_standard_error"] < simulated["rmse"] < simulated["max_stddev"]
    assert simulated["lower_bound_rmse"] is None
    assert simulated["ratio_to_lower_bound"] is None
    assert "NOT PRIVATE" in simulated["note"]
    assert promised["ratio_to_best"] == 1.0
    assert simulated["ratio_to_best"] == pytest.approx(simulated["weighted_rmse"] / promised["weighted_rmse"])
    assert "<svg" in picture.read_text()


def test_without_a_public_table_the_row_says_so(folder: Path):
    shown = run(folder / "one.yaml", "--mechanisms", "dawa")
    assert shown.exit_code == 2
    assert "none that applies" in shown.stderr
    assert "needs a public one (--public-table FILE)" in " ".join(shown.stdout.split())
    (row,) = json.loads(run(folder / "one.yaml", "--mechanisms", "dawa", "--json").stdout)["mechanisms"]
    assert row["rmse"] is None
    gaussian = run(folder / "one.yaml", "--mechanisms", "dawa", "--noise", "gaussian")
    assert "adds Laplace noise alone" in gaussian.stdout


def test_where_it_does_not_apply_the_row_says_why(folder: Path):
    result = run(folder / "two.yaml", "--mechanisms", "dawa", "--public-table", folder / "public.csv")
    assert result.exit_code == 2
    assert "2 attributes; expected exactly one" in " ".join(result.stdout.split())
    missing = run(folder / "one.yaml", "--mechanisms", "dawa", "--public-table", folder / "none.csv")
    assert missing.exit_code == 2
    assert "none.csv" in missing.stderr


def test_errors_that_depend_on_the_table_set_no_standard():
    rows = ratios(
        [
            Outcome("hb", "laplace", weighted_rmse=2.0, lower_bound_rmse=1.0),
            Outcome("dawa", "laplace", weighted_rmse=0.5, data_dependent=True),
        ]
    )
    assert [(row.label, row.ratio_to_best, row.ratio_to_lower_bound) for row in rows] == [
        ("dawa (data-dependent, simulated)", 0.25, None),
        ("hb", 1.0, 2.0),
    ]


def test_the_commands_know_every_mechanism_and_warn():
    assert [name for name, found in MECHANISMS.items() if isinstance(found, DataDependent)] == ["dawa"]
    told = " ".join(run("--help").stdout.split())
    assert "NOT PRIVATE: never give a confidential table" in told
