"""What is read of a release: answers to queries, statistics and SQL, and its tables."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import matrixdp as mdp
from matrixdp.answers.shown import Shown
from matrixdp.cli.tables import Column, console, print_columns, print_table
from tests.cli.commands import figures, refused, run

QUANTILES = "quantile: {age: [0.25, 0.5, 0.75]}, by: [sex]"
QUARTILES = "quartiles of age by sex"
SPECIFICATION = """
data: t.csv
domain: {sex: [female, male], age: {min: 0, max: 9}, month: {from: 2013-01-01, to: 2013-06-30, by: month}}
workload:
  - marginals: [1, 2]
  - product: {age: range}
  - quantiles: {age: [0.25, 0.5]}
    by: [sex]
  - cdf: month
    name: when they came
privacy: {mu: 1}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("answers")
    lines = [f"{sex},{age},2013-0{1 + age % 6}-01" for sex in ("female", "male") for age in range(10)]
    (home / "t.csv").write_text("\n".join(["sex,age,month", *(lines * 30)]) + "\n")
    (home / "s.yaml").write_text(SPECIFICATION)
    (home / "printed").write_text(run("release", home / "s.yaml", "--out", home / "out").stdout)
    seeded = run("release", home / "s.yaml", "--out", home / "seeded", "--seed-not-private", "1")
    assert "NOT PRIVATE" in seeded.stdout
    return home


@pytest.fixture
def out(home: Path) -> Path:
    return home / "out"


def saved(folder: Path, domain: dict, table: dict, sizes: int = 1, seed: int | None = None) -> Path:
    """Release the marginals of a table, with their own noise."""
    strategy = mdp.select(mdp.Workload(mdp.Domain(domain), mdp.marginals(sizes)), mechanism="residual")
    measured = strategy.measure(table, mdp.Budget(rho=0.5), seed_not_private=seed)
    return mdp.save_release(measured.reconstruct(), folder / "saved")


def test_a_specification_asks_for_statistics_and_release_prints_them(home: Path, out: Path):
    shown = (home / "printed").read_text()
    asked = ["quantiles of age (0.25, 0.5) by sex", "when they came"]
    assert all(word in shown for text in (*asked, "statistics.parquet") for word in text.split())
    assert list(mdp.load_release(out).statistics) == asked
    run("verify", out)


def test_answer_needs_no_data(out: Path, tmp_path: Path):
    query = "product: {age: {ranges: [[0, 4]]}, sex: identity}"
    printed = figures("answer", out, query)
    assert printed["private"] is True
    assert [(row["sex"], row["age"]) for row in printed["answers"]] == [("female", "0-4"), ("male", "0-4")]
    assert all(row["lower"] < row["estimate"] < row["upper"] for row in printed["answers"])
    (tmp_path / "q.yaml").write_text(f"- {query}\n")
    assert figures("answer", out, tmp_path / "q.yaml") == printed
    assert "0-4" in run("answer", out, query).stdout
    lines = run("answer", out, query, "--csv").stdout.splitlines()
    assert lines[0] == '"group","sex","age","age_from","age_to","estimate","stddev","lower","upper"'
    assert len(lines) == 3
    wide = figures("answer", out, query, "--confidence", "0.999")["answers"]
    assert wide[0]["lower"] < printed["answers"][0]["lower"]
    np.save(tmp_path / "rows.npy", np.ones((1, 2)))
    (tmp_path / "dense.yaml").write_text("dense: rows.npy\nattributes: [sex]\n")
    run("answer", out, tmp_path / "dense.yaml")
    assert "50 of 55 rows shown" in run("answer", out, "product: {age: range}").stdout
    assert "rows shown" not in run("answer", out, "product: {age: range}", "--all").stdout


def test_answers_to_sql_have_the_shape_of_its_result(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "120")
    statement = "SELECT COUNT(*) AS n, sex, COUNT(*) FILTER (age < 5) AS young FROM people GROUP BY sex"
    printed = figures("answer", out, "--sql", statement)["answers"]
    columns = [f"{name}{end}" for name in ("n", "young") for end in ("", "_stddev", "_lower", "_upper")]
    assert list(printed[0]) == [*columns[:4], "sex", *columns[4:]]
    assert [row["sex"] for row in printed] == ["female", "male"]
    (tmp_path / "q.sql").write_text(f"{statement};\n")
    lines = run("answer", out, "--sql", tmp_path / "q.sql", "--csv").stdout.splitlines()
    assert (lines[0], len(lines)) == (",".join(f'"{name}"' for name in printed[0]), 3)
    shown = run("answer", out, "--sql", statement).stdout
    assert shown.count("95% interval") == 2
    for row in printed:
        for name in ("n", "young"):
            assert f"{math.floor(row[f'{name}_lower']):,} to {math.ceil(row[f'{name}_upper']):,}" in shown
    run("answer", out, "--sql", statement, "--out", tmp_path / "n.csv")
    assert pacsv.read_csv(tmp_path / "n.csv").column_names == list(printed[0])
    many = run("answer", out, "--sql", "SELECT age, month, COUNT(*) AS n FROM t GROUP BY ALL").stdout
    assert "50 of " in many


def test_a_statistic_is_answered_as_it_is_written_on_one_line(out: Path):
    printed = figures("answer", out, QUANTILES)
    assert printed["made"]["statistic"] == "quantile of age"
    assert [(row["sex"], row["quantile"]) for row in printed["answers"]] == [
        (sex, q) for sex in ("female", "male") for q in (0.25, 0.5, 0.75)
    ]
    assert all(row["lower"] <= row["estimate"] <= row["upper"] for row in printed["answers"])
    shown = run("answer", out, QUANTILES).stdout
    assert shown.startswith(f"{QUARTILES}\n")
    assert "95% interval" in shown
    assert "stddev" not in shown  # there is none
    assert "50% interval" in run("answer", out, QUANTILES, "--confidence", "0.5").stdout


def test_several_questions_at_once(out: Path, tmp_path: Path):
    (tmp_path / "q.yaml").write_text("- cdf: month\n- marginals: [[sex]]\n")
    questions = ("answer", out, QUANTILES, tmp_path / "q.yaml")
    tables = {table["name"]: len(table["answers"]) for table in figures(*questions)["tables"]}
    assert tables == {QUARTILES: 6, "CDF of month": 6, "marginals [[sex]]": 2}
    shown = run(*questions).stdout
    assert all(title in shown for title in tables)
    lines = run(*questions, "--csv").stdout.splitlines()
    assert lines[0].startswith('"table","sex","quantile","month"')
    assert len(lines) == 1 + 6 + 6 + 2


def contents(path: Path) -> list[int]:
    """Return how many rows each table of a file has, in order."""
    if path.suffix == ".json":
        return [len(table["answers"]) for table in json.loads(path.read_text())["tables"]]
    table = pacsv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    names = table["table"].to_pylist()
    return [names.count(name) for name in (QUARTILES, "marginals [[sex]]")]


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_answers_are_written_to_a_file(out: Path, tmp_path: Path, ending: str):
    path = tmp_path / f"answers.{ending}"
    result = run("answer", out, QUANTILES, "marginals: [[sex]]", "--out", path)
    assert result.stdout == f"8 answers written to {path}.\n"
    assert ([found.name for found in tmp_path.iterdir()], contents(path)) == ([path.name], [6, 2])
    assert ending != "parquet" or pq.read_schema(path).metadata == {b"matrixdp": b"private"}
    before = path.read_bytes()
    assert refused("answer", out, "marginals: 0", "--out", path).endswith("[file-exists]")
    assert path.read_bytes() == before
    run("answer", out, "marginals: 0", "--out", path, "--force")
    assert path.read_bytes() != before


def test_a_seeded_release_is_labelled_everywhere(home: Path, tmp_path: Path):
    seeded, query = home / "seeded", "marginals: 0"
    assert json.loads((seeded / "release.json").read_text())["private"] is False
    assert "NOT PRIVATE" in run("answer", seeded, query).stdout
    assert figures("answer", seeded, query)["private"] is False
    assert "NOT PRIVATE" in run("answer", seeded, query, "--csv").stderr
    assert "NOT PRIVATE" in run("answer", seeded, QUANTILES, "--out", tmp_path / "q.parquet").stderr
    said = pq.read_schema(tmp_path / "q.parquet").metadata
    assert json.loads(said[b"statistic"])["by"] == ["sex"]
    kept = pq.read_schema(seeded / "statistics.parquet").metadata
    assert all(text[b"matrixdp"].startswith(b"NOT PRIVATE") for text in (said, kept))


def test_names_in_answers_do_not_control_a_terminal(tmp_path: Path):
    name = "se\x1b[31mx"
    folder = saved(tmp_path, {name: ["fe\x1b[2Jmale", "male"]}, {name: ["male"]})
    shown = run("answer", folder, "marginals: 1").stdout
    assert "[2Jmale" in shown
    assert "\x1b" not in shown


def test_json_has_null_for_open_ends_and_text_for_days(tmp_path: Path):
    days = {"from": "2024-01-01", "to": "2024-01-02", "by": "day"}
    domain = {"x": {"edges": ["-inf", 0, "inf"]}, "day": days}
    folder = saved(tmp_path, domain, {"x": [1.0], "day": ["2024-01-02"]})
    text = run("answer", folder, "marginals: 1", "--json").stdout
    printed = json.loads(text, parse_constant=pytest.fail)["answers"]
    rows = [{key: row[key] for key in row if key.endswith(("_from", "_to"))} for row in printed]
    assert rows[0] == {"x_from": None, "x_to": 0.0, "day_from": None, "day_to": None}
    assert rows[3] == {"x_from": None, "x_to": None, "day_from": "2024-01-02", "day_to": "2024-01-02"}
    shown = run("answer", folder, "marginals: 1").stdout
    assert all(text in shown for text in ("under 0", "0 or more", "2 January 2024"))


def test_show_lists_tables_shows_one_and_writes_all(released: Path, tmp_path: Path):
    listed = run("show", released).stdout
    assert all(title in listed for title in ("total", "sex by code", "Records in the domain"))
    table = run("show", released, "code by sex").stdout
    assert "female" in table
    assert "±" in table
    head, *rows = run("show", released, "sex by code", "--cross", "code, sex", "--csv").stdout.splitlines()
    assert head == "code,Total,female,male"
    assert [line.split(",")[0] for line in rows] == ["Total", "0", "1", "2"]
    crossed = run("show", released, "sex by code", "--cross", "auto", "--margins", "--round-to", "5").stdout
    assert "code by sex" in crossed
    assert all(int(text) % 5 == 0 for text in re.findall(r"(-?\d+) ±", crossed))
    printed = run("show", released, "--export", tmp_path / "tables", "--format", "parquet").stdout
    assert "4 tables in 6 files." in printed.replace("\n", "")
    assert len(list((tmp_path / "tables").glob("*.parquet"))) == 4


def test_programs_read_json(released: Path, tmp_path: Path):
    release = mdp.load_release(released)
    told = figures("show", released)
    assert [one["name"] for one in told["tables"]] == [one.name for one in release.tables]
    assert [one["rows"] for one in told["tables"]] == [1, 2, 3, 6]
    assert (told["privacy"], told["size"]) == (release.statement.as_dict(), release.size.as_dict())
    one = figures("show", released, "code by sex")
    assert (one["name"], one["private"], one["confidence"]) == ("sex by code", True, 0.95)
    assert {"answers": one["answers"]} == release.table("sex by code").as_dict()
    written = figures("show", released, "--export", tmp_path / "book", "--format", "xlsx")
    assert (written["tables"], written["files"]) == (4, ["tables.xlsx"])
    page = figures("report", released)
    assert Path(page["file"]).stat().st_size == page["bytes"]
    for conflict in (["--csv"], ["--cross", "auto"]):
        assert "conflict" in run("show", released, "sex", "--json", *conflict, status=2).stderr
    assert "conflict" in run("report", released, "--markdown", "--json", status=2).stderr


def test_show_says_what_is_seeded_and_what_is_cut(tmp_path: Path):
    names = [f"a{place}" for place in range(11)]
    folder = saved(tmp_path, dict.fromkeys(names, 2), {name: [0] for name in names}, sizes=2, seed=1)
    found = run("show", folder)
    assert "NOT PRIVATE" in found.stderr
    assert "Warning: " in found.stderr
    assert "50 of 55 tables shown" in found.stdout
    assert "tables shown" not in run("show", folder, "--all").stdout


def test_show_has_half_of_each_interval_as_it_is(capsys: pytest.CaptureFixture[str]):
    # half of 51.4 is 25.7; of the ends rounded outward, 74 and 127, it is 26.5
    row = {"estimate": [100.6], "stddev": [13.11], "lower": [74.9], "upper": [126.3]}
    print_table(console(), Shown(pa.table(row), "records"), 0.95)
    assert "101 ± 26 " in capsys.readouterr().out


def test_figures_have_the_digits_of_their_errors_and_words_are_whole(capsys: pytest.CaptureFixture[str]):
    row = {"estimate": [44.974653], "stddev": [0.00014712], "lower": [44.974363], "upper": [44.974943]}
    words = {"neighborhood": ["Bryn - Mawr"], "citationIssued": ["YES"]}
    fields = [pa.field(name, pa.float64(), metadata={"figure": name, "of": ""}) for name in row]
    names = [pa.field(name, pa.utf8()) for name in words]
    told = pa.table(words | row, schema=pa.schema(names + fields, metadata={"matrixdp": "{}"}))
    screen = Console(width=80, highlight=False)
    print_table(screen, Shown(told, "lat"), 0.95)
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("44.97465", "44.97436", "44.97495", "citationIssued"))
    sums = pa.table({name: [value[0] * 1e6] for name, value in row.items()})
    print_table(screen, Shown(sums, "lat"), 0.95)
    assert "44,974,650" in capsys.readouterr().out
    print_table(Console(width=30, highlight=False), Shown(told, "lat"), 0.95)
    shown = capsys.readouterr().out.partition("Quality")[0]
    assert max(map(len, shown.splitlines())) <= 30
    assert all(word in shown for word in ("neighborhood", "citationIssued", "44.97465"))


def test_wide_tables_go_below_one_another_and_no_word_is_broken(capsys: pytest.CaptureFixture[str]):
    heads = ["personSearch", "citationIssued", "neighborhood", "problem", "vehicleSearch"]
    keys = [Column(head, ["a long value", "another"]) for head in heads]
    numbers = [Column(f"precinct {place}", [f"1,23{place} ± 19", "12"], number=True) for place in range(9)]
    for columns, width in (([*keys[:2], *numbers], 60), ([*keys, *numbers[:2]], 80), (numbers, 40)):
        print_columns(Console(width=width, highlight=False), columns)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        words = {word for column in columns for text in (column.head, *column.texts) for word in text.split()}
        assert words <= {word.strip(",") for line in lines for word in line.split()}
        assert all(any(column.texts[0] in line for line in lines) for column in columns if column.number)
