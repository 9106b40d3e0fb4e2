"""The command ``answer`` on several questions, on statistics, and with a file to write to."""

import json
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.errors import SpecificationError

QUANTILES = "quantile: {age: [0.25, 0.5, 0.75]}, by: [sex]"
SPECIFICATION = """
data: t.csv
domain: {sex: [female, male], age: {min: 0, max: 9}, month: {from: 2013-01-01, to: 2013-06-30, by: month}}
workload:
  - marginals: 1
  - quantiles: {age: [0.25, 0.5]}
    by: [sex]
  - cdf: month
    name: when they came
privacy: {mu: 10}
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("answers")
    lines = [f"{sex},{age},2013-0{1 + age % 6}-01" for sex in ("female", "male") for age in range(10)]
    (home / "t.csv").write_text("\n".join(["sex,age,month", *(lines * 30)]) + "\n")
    (home / "s.yaml").write_text(SPECIFICATION)
    result = run("release", home / "s.yaml", "--out", home / "out")
    assert result.exit_code == 0, result.output
    (home / "printed").write_text(result.stdout)
    return home


def test_a_specification_asks_for_statistics_and_release_prints_them(home: Path) -> None:
    shown = (home / "printed").read_text()
    assert "quantiles of age (0.25, 0.5) by sex" in shown
    assert "when they came" in shown
    assert "statistics.parquet" in shown
    found = run("verify", home / "out", "--json")
    assert found.exit_code == 0, found.output
    assert list(mdp.load_release(home / "out").statistics) == [
        "quantiles of age (0.25, 0.5) by sex",
        "when they came",
    ]


def test_a_statistic_is_answered_as_it_is_written_on_one_line(home: Path) -> None:
    printed = json.loads(run("answer", home / "out", QUANTILES, "--json").stdout)
    assert printed["made"]["statistic"] == "quantile of age"
    assert [(row["sex"], row["quantile"]) for row in printed["answers"]] == [
        (sex, q) for sex in ("female", "male") for q in (0.25, 0.5, 0.75)
    ]
    assert all(row["lower"] <= row["estimate"] <= row["upper"] for row in printed["answers"])
    shown = run("answer", home / "out", QUANTILES).stdout
    assert shown.startswith("quartiles of age by sex\n")
    assert "95% interval" in shown
    assert "stddev" not in shown  # there is none
    wide = run("answer", home / "out", QUANTILES, "--confidence", "0.5").stdout
    assert "50% interval" in wide


def test_several_questions_at_once(home: Path, tmp_path: Path) -> None:
    (tmp_path / "q.yaml").write_text("- cdf: month\n- marginals: [[sex]]\n")
    printed = json.loads(run("answer", home / "out", QUANTILES, tmp_path / "q.yaml", "--json").stdout)
    assert [(table["name"], len(table["answers"])) for table in printed["tables"]] == [
        ("quartiles of age by sex", 6),
        ("CDF of month", 6),
        ("marginals [[sex]]", 2),
    ]
    shown = run("answer", home / "out", QUANTILES, tmp_path / "q.yaml").stdout
    assert [title in shown for title in ("quartiles of age by sex", "CDF of month", "marginals [[sex]]")]
    lines = run("answer", home / "out", QUANTILES, tmp_path / "q.yaml", "--csv").stdout.splitlines()
    assert lines[0].startswith('"table","sex","quantile","month"')
    assert len(lines) == 1 + 6 + 6 + 2


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_answers_are_written_to_a_file(home: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"answers.{ending}"
    result = run("answer", home / "out", QUANTILES, "marginals: [[sex]]", "--out", out)
    assert result.stdout == f"8 answers written to {out}.\n"
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    if ending == "csv":
        assert pacsv.read_csv(out)["table"].to_pylist()[5:7] == [
            "quartiles of age by sex",
            "marginals [[sex]]",
        ]
    elif ending == "json":
        assert [len(table["answers"]) for table in json.loads(out.read_text())["tables"]] == [6, 2]
    else:
        assert pq.read_table(out).num_rows == 8
        assert pq.read_schema(out).metadata == {b"matrixdp": b"private"}
    before = out.read_bytes()
    again = run("answer", home / "out", "marginals: 0", "--out", out)
    assert (again.exit_code, out.read_bytes()) == (2, before)
    assert again.stderr.endswith("[file-exists]\n")
    assert run("answer", home / "out", "marginals: 0", "--out", out, "--force").exit_code == 0
    assert out.read_bytes() != before


def test_a_file_says_how_a_statistic_was_made_and_that_noise_was_seeded(home: Path, tmp_path: Path) -> None:
    seeded = tmp_path / "seeded"
    run("release", home / "s.yaml", "--out", seeded, "--seed-not-private", "1")
    result = run("answer", seeded, QUANTILES, "--out", tmp_path / "q.parquet")
    assert "NOT PRIVATE" in result.stderr
    said = pq.read_schema(tmp_path / "q.parquet").metadata
    assert said[b"matrixdp"].startswith(b"NOT PRIVATE")
    assert json.loads(said[b"statistic"])["by"] == ["sex"]
    assert pq.read_schema(seeded / "statistics.parquet").metadata[b"matrixdp"].startswith(b"NOT PRIVATE")
    sql = run("answer", seeded, "--sql", "SELECT COUNT(*) AS n FROM t", "--out", tmp_path / "n.csv")
    assert sql.exit_code == 0
    assert pacsv.read_csv(tmp_path / "n.csv").column_names == ["n", "n_stddev", "n_lower", "n_upper"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("mean: month",), "Error: mean.month: found 'month', whose values are dates; expected numbers"),
        (("cdf: age", "cdf: sex"), "query 2.cdf.sex: found 'sex', which lists categories"),
        (("cdf: age", "cdff: age"), "query 2: found a mapping with the keys cdff"),
        (("quantile: {age: 2}",), "query.quantile.age: found 2; expected a number above 0 and below 1"),
        (("marginals: 0", "--out", "answers.xlsx"), "'answers.xlsx'; expected a file that ends in .csv"),
        (("marginals: 0", "--out", "no/answers.csv"), "[no-place]"),
        (("marginals: 0", "--out", "folder.csv", "--force"), "[no-place]"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_written(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    result = run("answer", home / "out", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_a_text_that_is_neither_yaml_nor_the_inside_of_a_mapping() -> None:
    from matrixdp.cli.options import entries_of

    with pytest.raises(SpecificationError, match="line 1"):
        entries_of("cdf: age, by: [sex")
