import json
import re
import subprocess
import sys
import time
from dataclasses import fields
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import _MODULES, app
from matrixdp.selection.mechanisms.table import MECHANISMS, DataDependent

SPEC = """
data: people.parquet
domain:
  sex: [female, male]
  age: {min: 0, max: 19}
  code: 6
workload:
  - marginals: [0, 1, 2]
  - product: {sex: identity, age: prefix}
    weight: 2
    name: age CDF by sex
  - dense: queries.npy
    attributes: [code]
privacy: {epsilon: 1.0, delta: 1.0e-6}
"""
KEYS = {
    "mechanism", "noise", "queries", "rmse", "rmse_before_rounding", "weighted_rmse", "total_squared_error",
    "max_stddev", "lower_bound_rmse", "gap", "groups", "privacy", "seconds", "peak_memory_mb",
}  # fmt: skip
RUNNER = CliRunner()


def run(*arguments: object):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    ages = np.arange(300) * 7 % 23  # some are out of domain
    table = {"sex": ["female", "male", "male"] * 100, "age": ages, "code": ages % 6}
    pl.DataFrame(table).write_parquet(folder / "people.parquet")
    np.save(folder / "queries.npy", np.tri(6))
    (folder / "people.yaml").write_text(SPEC)
    return folder


@pytest.fixture(scope="module")
def released(home: Path) -> Path:
    result = run("release", home / "people.yaml", "--noise", "gaussian", "--out", home / "out", "--csv")
    assert result.exit_code == 0, result.stderr
    assert "adding or removing one record" in " ".join(result.stdout.split())
    assert "95% interval" in result.stdout
    assert "answers.parquet" in result.stdout
    # both would tell how many records there are
    assert not re.search(r"time|memory|\d MB|\d s\b", result.stdout)
    return home / "out"


def test_select_prints_one_json_object_with_all_keys(home: Path):
    result = run("select", home / "people.yaml", "--noise", "gaussian", "--json")
    assert result.exit_code == 0
    figures = json.loads(result.stdout)
    assert set(figures) >= KEYS
    workload = mdp.load_specification(home / "people.yaml").workload
    assert figures["queries"] == workload.queries
    assert [group["name"] for group in figures["groups"]] == [group.name for group in workload]
    assert set(figures["groups"][0]) == {
        "name", "attributes", "queries", "rmse", "max_stddev", "target"
    }  # fmt: skip
    total = sum(group["rmse"] ** 2 * group["queries"] for group in figures["groups"])
    assert figures["rmse"] == pytest.approx((total / figures["queries"]) ** 0.5)
    assert (
        (1 - 1e-6) * figures["rmse_before_rounding"]
        <= figures["rmse"]
        <= 1.005 * figures["rmse_before_rounding"]
    )
    assert figures["total_squared_error"] == pytest.approx(figures["weighted_rmse"] ** 2 * figures["queries"])
    assert figures["lower_bound_rmse"] <= figures["weighted_rmse"]
    assert figures["gap"] < 0.01
    budget = {"epsilon": 1.0, "delta": 1e-06, "neighbours": "add_remove", "unit": {"records": 1}}
    assert figures["privacy"]["budget"] == budget
    assert figures["seconds"] > 0
    assert figures["peak_memory_mb"] > 10


def test_select_certifies(home: Path):
    options = ("--noise", "gaussian", "--mechanism", "residual", "--json")
    plain, certified = (
        json.loads(run("select", home / "people.yaml", *options, *more).stdout)
        for more in ([], ["--certify"])
    )
    assert certified["lower_bound_rmse"] >= plain["lower_bound_rmse"] * (1 - 1e-9)
    assert certified["lower_bound_rmse"] <= certified["weighted_rmse"]


def test_select_draws_the_strategy(home: Path):
    picture = home / "strategy.svg"
    options = ("--noise", "gaussian", "--mechanism", "identity")
    assert run("select", home / "people.yaml", *options, "--picture", picture).exit_code == 0
    assert "by share of the privacy cost" in picture.read_text()
    for wrong, says in ((home / "strategy.txt", "--picture: "), (home / "no" / "s.png", "[no-place]")):
        refused = run("select", home / "people.yaml", *options, "--picture", wrong)
        assert (refused.exit_code, says in refused.stderr) == (2, True)


def test_select_shows_every_group_of_a_small_workload(home: Path):
    result = run("select", home / "people.yaml", "--noise", "gaussian")
    assert result.exit_code == 0
    for text in ("age CDF by sex", "RMSE", "lower bound", "mechanism", "largest stddev"):
        assert text in result.stdout
    for mechanism in ("dense", "residual", "querysmasher", "fourier"):
        result = run(
            "select", home / "people.yaml", "--noise", "gaussian", "--mechanism", mechanism, "--json"
        )
        assert json.loads(result.stdout)["mechanism"] == mechanism


def test_select_joins_many_groups_and_says_how_to_see_them_all(tmp_path: Path):
    domain = "\n".join(f"  a{i}: 3" for i in range(8))
    text = f"domain:\n{domain}\nworkload:\n  - marginals: [1, 2]\nprivacy: {{mu: 1}}\n"
    (tmp_path / "s.yaml").write_text(text)
    result = run("select", tmp_path / "s.yaml")
    assert "36 query groups, joined; --all" in " ".join(result.stdout.split())
    assert "a0, a1" not in result.stdout
    assert "a0, a1" in run("select", tmp_path / "s.yaml", "--all").stdout


def test_mechanisms_are_those_of_selection():
    told = "".join(run("select", "--help").stdout.split())
    written = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    for name, mechanism in MECHANISMS.items():
        assert f"`{name}`" in written or f"`--mechanism {name}`" in written
        assert name in told or isinstance(mechanism, DataDependent)


def test_the_options_of_mechanisms_are_those_of_the_documentation():
    written = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    table = written[written.index("| option | | of |") :].split("\n\n", 1)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "|" in line
    ]
    told = {
        (name.strip("`"), mechanism.strip("`"), text)
        for name, text, owners in rows[2:]
        for mechanism in owners.split(", ")
    }
    listed = {
        (option.name, name, str(option.metadata["description"]).split(";")[0])
        for name, mechanism in MECHANISMS.items()
        if not isinstance(mechanism, DataDependent)
        for option in fields(mechanism.options)
    }
    assert told == listed


def test_a_saved_strategy_is_released(home: Path, tmp_path: Path):
    saved = tmp_path / "strategy.mdp"
    assert run("select", home / "people.yaml", "--noise", "gaussian", "--save", saved).exit_code == 0
    out = tmp_path / "out"
    result = run("release", home / "people.yaml", "--strategy", saved, "--out", out)
    assert result.exit_code == 0
    assert (
        mdp.load_release(out).answers.num_rows
        == mdp.load_specification(home / "people.yaml").workload.queries
    )


def test_release_writes_what_it_says(home: Path, released: Path):
    names = {path.name for path in released.iterdir()}
    assert names == {"answers.csv", "answers.parquet", "measurement.mdp", "release.json"}
    written = json.loads((released / "release.json").read_text())
    asked = written["privacy"]["guarantees"][-1]
    assert asked["definition"] == "approximate DP"
    assert asked["parameters"]["epsilon"] == 1.0
    assert asked["parameters"]["delta"] <= 1e-6
    answers = pq.read_table(released / "answers.parquet")
    assert written["answers"]["rows"] == answers.num_rows
    assert not [path for path in home.iterdir() if path.name.startswith(".")]


def test_release_takes_data_and_options_from_the_command_line(home: Path, tmp_path: Path, monkeypatch):
    asked, select = [], mdp.select

    def noted(workload, **options):
        asked.append(options["certify"])
        return select(workload, **options)

    monkeypatch.setattr("matrixdp.strategy.pipeline.select", noted)
    pl.read_parquet(home / "people.parquet").write_csv(tmp_path / "other.csv")
    options = ("--data", tmp_path / "other.csv", "--confidence", "0.5", "--max-answers", "3")
    result = run(
        *("release", home / "people.yaml", "--noise", "gaussian", "--certify", "--out", tmp_path / "out"),
        *options,
    )
    assert result.exit_code == 0, result.stderr
    assert asked == [True]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"measurement.mdp", "release.json"}
    assert "matrixdp answer" in result.stdout
    assert mdp.load_release(tmp_path / "out").confidence == 0.5


@pytest.mark.parametrize("said", [False, True])
def test_quotes_that_hold_line_ends_are_told(tmp_path: Path, said: bool):
    (tmp_path / "t.csv").write_text('sex,note\nmale,"x\nmale,y"\n')
    spec = "data: t.csv\ndomain: {sex: [female, male]}\nworkload: [{marginals: 1}]\nprivacy: {mu: 1000}\n"
    (tmp_path / "spec.yaml").write_text(spec + "quoted_newlines: true\n" * said)
    result = run("release", tmp_path / "spec.yaml", "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert ("closes the quotes" in " ".join(result.stdout.split())) == said
    promise = json.loads((tmp_path / "out" / "release.json").read_text())["privacy"]
    assert ("closes the quotes" in promise["text"]) == any(
        clause["id"] == "quotes-closed" and "closes the" in clause["text"] for clause in promise["assumed"]
    )
    assert ("closes the quotes" in promise["text"]) == said
    estimates = pq.read_table(tmp_path / "out" / "answers.parquet")["estimate"].to_pylist()
    assert estimates == pytest.approx([0, 1 if said else 2], abs=0.1)


def test_a_seeded_release_is_labelled_everywhere(home: Path, tmp_path: Path):
    out = tmp_path / "out"
    result = run(
        "release", home / "people.yaml", "--noise", "gaussian", "--out", out, "--seed-not-private", "3"
    )
    assert "NOT PRIVATE" in result.stdout
    assert json.loads((out / "release.json").read_text())["private"] is False
    query = "marginals: 0"
    assert "NOT PRIVATE" in run("answer", out, query).stdout
    assert json.loads(run("answer", out, query, "--json").stdout)["private"] is False
    assert "NOT PRIVATE" in run("answer", out, query, "--csv").stderr


def test_answer_needs_no_data(released: Path, tmp_path: Path):
    query = "product: {age: {ranges: [[0, 9]]}, sex: identity}"
    printed = json.loads(run("answer", released, query, "--json").stdout)
    assert printed["private"] is True
    assert [(row["sex"], row["age"]) for row in printed["answers"]] == [("female", "0-9"), ("male", "0-9")]
    assert all(row["lower"] < row["estimate"] < row["upper"] for row in printed["answers"])
    (tmp_path / "q.yaml").write_text(f"- {query}\n")
    from_file = json.loads(run("answer", released, tmp_path / "q.yaml", "--json").stdout)
    assert from_file == printed
    assert "0-9" in run("answer", released, query).stdout
    lines = run("answer", released, query, "--csv").stdout.splitlines()
    assert lines[0] == '"group","sex","age","age_from","age_to","estimate","stddev","lower","upper"'
    assert len(lines) == 3
    wide = json.loads(run("answer", released, query, "--json", "--confidence", "0.999").stdout)["answers"]
    assert wide[0]["lower"] < printed["answers"][0]["lower"]
    np.save(tmp_path / "rows.npy", np.ones((1, 6)))
    (tmp_path / "dense.yaml").write_text("dense: rows.npy\nattributes: [code]\n")
    assert run("answer", released, tmp_path / "dense.yaml").exit_code == 0


def test_answers_to_sql_have_the_shape_of_its_result(released: Path, tmp_path: Path):
    statement = "SELECT COUNT(*) AS n, sex, COUNT(*) FILTER (age < 5) AS young FROM people GROUP BY sex"
    printed = json.loads(run("answer", released, "--sql", statement, "--json").stdout)["answers"]
    figures = [f"{name}{end}" for name in ("n", "young") for end in ("", "_stddev", "_lower", "_upper")]
    assert list(printed[0]) == [*figures[:4], "sex", *figures[4:]]
    assert [row["sex"] for row in printed] == ["female", "male"]
    (tmp_path / "q.sql").write_text(f"{statement};\n")
    from_file = run("answer", released, "--sql", tmp_path / "q.sql", "--csv").stdout.splitlines()
    assert from_file[0] == ",".join(f'"{name}"' for name in printed[0])
    assert len(from_file) == 3
    shown = run("answer", released, "--sql", statement).stdout
    assert shown.count("95% interval") == 2
    for row in printed:
        for name in ("n", "young"):
            assert f"{row[f'{name}_lower']:,.1f} to {row[f'{name}_upper']:,.1f}" in shown
    many = run("answer", released, "--sql", "SELECT age, code, COUNT(*) AS n FROM t GROUP BY ALL").stdout
    assert "50 of " in many


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "found neither QUERY nor --sql; expected one of the two"),
        (("marginals: 0", "--sql", "SELECT COUNT(*) FROM t"), "found QUERY and --sql; expected one"),
        (("--sql", "SELECT COUNT(*) FROM t WHERE height > 3"), "line 1, column"),
        (
            ("--sql", "SELECT sex, age, code, COUNT(*) FROM t GROUP BY ALL"),
            "What works now: the same without",
        ),
    ],
)
def test_statements_that_are_refused(released: Path, arguments: tuple[str, ...], says: str):
    result = run("answer", released, *arguments)
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())


def test_a_file_of_sql_that_is_no_text(released: Path, tmp_path: Path):
    (tmp_path / "q.sql").write_bytes(b"SELECT \xff")
    assert "cannot be read as text" in run("answer", released, "--sql", tmp_path / "q.sql").stderr
    assert "'no.sql', which is no file; expected a SQL" in run("answer", released, "--sql", "no.sql").stderr


def test_answer_shows_a_part_of_many(released: Path):
    result = run("answer", released, "product: {age: range}")
    assert "50 of 210 answers shown" in result.stdout
    assert "answers shown" not in run("answer", released, "product: {age: range}", "--all").stdout


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("marginals: 3", "which was not measured|asks more"),
        ("marginals: 4", "at most 3"),
        ("product: {agee: prefix}", "did you mean 'age'"),
        ("product: {age: {ranges: [[0, 99]]}}", r"product\.age\.ranges\[0\]"),
        ("nothing", "no file and no entry"),
        ("a: [", "query|line"),
        ("[]: 1", "."),
        ("a: 1", "expected"),
        ("'a: 1'", "found a str; expected a workload entry"),
        ("[marginals: 0, []]", "found a list; expected a workload entry"),
    ],
)
def test_wrong_queries_are_refused_with_the_reason(released: Path, query: str, says: str):
    result = run("answer", released, query)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert re.match(r"Error: [^:]", result.stderr)
    assert len(result.stderr.splitlines()) == 1
    assert re.search(says, result.stderr), result.stderr


def test_a_query_in_a_file_that_is_no_text(released: Path, tmp_path: Path):
    (tmp_path / "q.yaml").write_bytes(b"marginals: \xff")
    result = run("answer", released, tmp_path / "q.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "query: found a file that cannot be read as text" in result.stderr


def test_a_release_needs_a_table(tmp_path: Path):
    (tmp_path / "s.yaml").write_text("domain: {code: 3}\nworkload: [{marginals: 1}]\nprivacy: {mu: 1}\n")
    result = run("release", tmp_path / "s.yaml", "--out", tmp_path / "out")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "data: found nothing; expected the path of a table, here or by --data" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


def test_answer_refuses_what_is_no_release(tmp_path: Path, released: Path):
    for folder in (tmp_path, tmp_path / "absent"):
        result = run("answer", folder, "marginals: 0")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "release" in result.stderr
    assert run("answer", released, "marginals: 0", "--json", "--csv").exit_code == 2
    assert run("answer", released, "marginals: 0", "--confidence", "95").exit_code == 2


def test_validate_checks_without_the_data(home: Path, tmp_path: Path):
    result = run("validate", home / "people.yaml")
    assert result.exit_code == 0
    for text in ("valid", "queries", "groups", "marginals", "memory", "time", "mu 0.2367", "is there"):
        assert text in " ".join(result.stdout.split())
    printed = json.loads(run("validate", home / "people.yaml", "--json").stdout)
    assert printed["valid"] is True
    assert printed["cells"] == 240
    (tmp_path / "s.yaml").write_text("data: absent.csv\ndomain: {code: 3}\nworkload: [{marginals: 1}]\n")
    result = run("validate", tmp_path / "s.yaml")
    assert result.exit_code == 0
    assert "not there yet" in result.stdout
    assert "no budget" in result.stdout
    (tmp_path / "s.yaml").write_text("domain: {code: 3}\nworkload: [{marginals: 1}]\n")
    assert "--data" in run("validate", tmp_path / "s.yaml").stdout


WRONG = [
    ("marginals: [0, 1, 2]", "marginals: [[sex, agee]]", "'agee'"),
    ("age: {min: 0, max: 19}", "age: {edges: [0, 10, 5]}", "overlap"),
    ("[female, male]", "[female, male, female]", "second time"),
    ("age: prefix", "age: {ranges: [[0, 99]]}", "ranges"),
    ("weight: 2", "weight: .nan", "weight"),
    ("weight: 2", "weight: -1", "weight"),
    ("weight: 2", "weight: 0", "weight"),
    ("privacy: {epsilon: 1.0, delta: 1.0e-6}", "", "privacy"),
    ("delta: 1.0e-6", "delta: 1.5", "privacy.delta"),
    ("{epsilon: 1.0, delta: 1.0e-6}", "{epsilon: -1.0}", "privacy.epsilon"),
    ("{epsilon: 1.0, delta: 1.0e-6}", "{delta: 1.0e-6}", "delta"),
    ("{epsilon: 1.0, delta: 1.0e-6}", "{rho: 0}", "privacy.rho"),
    ("{epsilon: 1.0, delta: 1.0e-6}", "{mu: .inf}", "privacy.mu"),
    ("dense: queries.npy", "dense: absent.npy", "no such file"),
    ("sex: identity, age: prefix", "sex: identity, sex: prefix", "twice|duplicate|second"),
    (SPEC.split("workload:")[1].split("privacy:")[0], " []\n", "workload"),
]


@pytest.mark.parametrize("command", ["select", "release"])
@pytest.mark.parametrize(
    ("old", "new", "says"), WRONG, ids=[new.strip() or "no budget" for _, new, _ in WRONG]
)
def test_wrong_specifications_are_one_clear_error(
    home: Path, tmp_path: Path, command: str, old: str, new: str, says: str
):
    assert old in SPEC
    (tmp_path / "queries.npy").write_bytes((home / "queries.npy").read_bytes())
    (tmp_path / "people.parquet").write_bytes((home / "people.parquet").read_bytes())
    (tmp_path / "s.yaml").write_text(SPEC.replace(old, new))
    before = {path.name for path in tmp_path.iterdir()}
    options = ["--out", tmp_path / "out"] if command == "release" else ["--save", tmp_path / "saved.mdp"]
    result = run(command, tmp_path / "s.yaml", *options)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert re.search(says, result.stderr), result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("command", ["validate", "release"])
def test_columns_are_checked_before_anything_is_selected(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
):
    def select(*_: object, **__: object) -> None:
        raise AssertionError("selected for a table that cannot be read")

    monkeypatch.setattr("matrixdp.strategy.select", select)
    days = pl.DataFrame({"sex": ["male"], "age": [date(2020, 1, 31)], "code": [1]})
    days.write_parquet(tmp_path / "days.parquet")
    for text, says in (
        (SPEC.replace("  age:", "  Age:").replace("age:", "Age:"), "the table has no column 'Age'"),
        (SPEC.replace("people", str(tmp_path / "days")), "column 'age' holds dates"),
    ):
        (home / "wrong.yaml").write_text(text)
        options = ["--out", tmp_path / "out"] if command == "release" else []
        result = run(command, home / "wrong.yaml", *options)
        assert (result.exit_code, result.stdout) == (2, "")
        assert says in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["validate", "select"])
def test_a_large_delta_is_a_warning(home: Path, tmp_path: Path, command: str):
    text = SPEC.replace("1.0e-6", "2.0e-4").partition("  - product")[0]
    spec = tmp_path / "s.yaml"
    spec.write_text(f"{text}privacy: {{epsilon: 1.0, delta: 2.0e-4}}\nmax_records: 10000\n")
    quick = ("--mechanism", "residual", "--noise", "gaussian") if command == "select" else ()
    result = run(command, spec, "--json", *quick)
    assert result.exit_code == 0, result.stderr
    says = "above 1 / 10,000, one over the number of records and above 0.0001"
    told = result.stderr if command == "select" else json.loads(result.stdout)["warnings"][0]
    assert says in told
    if command == "validate":
        assert "Warning: delta is 0.0002" in run(command, spec).stderr


def test_errors_of_counts_and_of_sums_are_not_averaged(tmp_path: Path):
    spec = tmp_path / "s.yaml"
    text = "domain: {{pay: {{min: 0, max: 90000, bins: 9}}}}\nworkload: [{{marginals: 1}}{}]\n"
    text += "privacy: {{rho: 0.5}}\n"
    overall = []
    for more in ("", ", {mean: pay}"):
        spec.write_text(text.format(more))
        printed = run("select", spec, "--mechanism", "identity").stdout
        (line,) = [line for line in printed.splitlines() if line.startswith("largest stddev")]
        overall.append(float(line.split()[2].replace(",", "")))
    assert overall[1] < 5 * overall[0]


def test_a_single_value_and_a_column_read_twice_are_warnings(tmp_path: Path):
    spec = tmp_path / "s.yaml"
    spec.write_text("""
domain: {month: [Jan-2018], age: 90, band: {column: age, min: 0, max: 89, bins: 9}, sex: [f, m]}
workload: [{marginals: 1}]
privacy: {rho: 0.1}
""")
    told = json.loads(run("validate", spec, "--json").stdout)["warnings"]
    assert ["domain.month" in told[0], "age, band" in told[1], len(told)] == [True, True, 2]
    assert run("select", spec, "--mechanism", "identity", "--json").stderr.count("Warning: domain") == 2


@pytest.mark.slow
def test_release_refuses_before_it_reads_anything(home: Path, tmp_path: Path, released: Path):
    spec = home / "people.yaml"
    (tmp_path / "other.yaml").write_text(
        SPEC.replace("max: 19", "max: 18").replace("people", str(home / "people"))
    )
    (tmp_path / "queries.npy").write_bytes((home / "queries.npy").read_bytes())
    saved = tmp_path / "other.mdp"
    assert run("select", tmp_path / "other.yaml", "--mechanism", "residual", "--save", saved).exit_code == 0
    ones = tmp_path / "ones.mdp"
    mdp.select(mdp.Workload(mdp.load_specification(spec).domain, mdp.marginals(1))).save(ones)
    out = tmp_path / "out"
    for says, options in (
        (r"earlier release.*spends another Budget\(epsilon=1.*matrixdp answer", ("--out", released)),
        ("no file", ("--out", out, "--data", tmp_path / "absent.csv")),
        ("table", ("--out", out, "--data", home / "people.parquet", "--table", "people")),
        ("confidence", ("--out", out, "--confidence", "95")),
        ("another domain", ("--out", out, "--strategy", saved)),
        ("no such file", ("--out", out, "--strategy", tmp_path / "absent.mdp")),
        ("not measured|asks more", ("--out", out, "--strategy", ones)),
        ("--certify: found a saved strategy", ("--out", out, "--strategy", ones, "--certify")),
    ):
        result = run("release", spec, *options)
        assert result.exit_code == 2, says
        assert re.search(says, result.stderr), result.stderr
        assert not out.exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_select_refuses_to_save_where_it_cannot(home: Path, tmp_path: Path):
    for path in (tmp_path, tmp_path / "absent" / "s.mdp"):
        result = run("select", home / "people.yaml", "--noise", "gaussian", "--save", path)
        assert result.exit_code == 2
        assert "folder" in result.stderr


def test_help_teaches_and_the_version_is_told():
    for command in ([], *([name] for name in _MODULES), *(["ledger", name] for name in ("init", "recover"))):
        result = run(*command, "--help")
        assert result.exit_code == 0
        assert len(result.stdout) > 200
        assert "\\b" not in result.stdout
    assert run("--version").stdout.splitlines()[0] == f"matrixdp {mdp.__version__}"
    assert run("relase").exit_code == 2


def test_help_is_light():
    code = (
        "import sys, matrixdp.cli.app; "
        "print(sorted({'numpy', 'scipy', 'pyarrow', 'duckdb', 'pydantic', 'rich'} & set(sys.modules)))"
    )
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("data", ["people.csv", "people.parquet"])
def test_validate_loads_only_what_it_needs(home: Path, tmp_path: Path, data: str):
    table = pq.read_table(home / "people.parquet")
    if data.endswith("csv"):
        pacsv.write_csv(table, tmp_path / data)
    else:
        pq.write_table(table, tmp_path / data)
    np.save(tmp_path / "queries.npy", np.tri(6))
    (tmp_path / "people.yaml").write_text(SPEC.replace("people.parquet", data))
    code = (
        "import atexit, sys; from matrixdp.cli.app import main; "
        "atexit.register(lambda: print(' '.join(sys.modules))); "
        "sys.argv[1:] = ['validate', 'people.yaml']; main()"
    )
    python = [sys.executable, "-c", code]
    done = subprocess.run(python, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "with every column (no record was read)" in " ".join(done.stdout.split())
    loaded = set(done.stdout.splitlines()[-1].split())
    rooms = {"plan", "ledger", "storage", "strategy", "release", "measure.measurement"}
    heavy = {
        "scipy.linalg",
        "scipy.sparse",
        "scipy.special",
        "duckdb",
        "narwhals",
        "rich",
        "sqlglot",
        "sqlite3",
        "joblib",
        "matrixdp.cli.release",
    }
    heavy |= {"pyarrow"} if data.endswith("csv") else {"pyarrow.csv", "pyarrow.dataset"}
    assert loaded & (heavy | {f"matrixdp.{room}" for room in rooms}) == set()
    assert "numpy" in loaded


def test_selecting_a_few_marginals_loads_no_scipy(home: Path, tmp_path: Path):
    lines = "domain: {sex: 2, age: 20, code: 6}\nworkload: [{marginals: [0, 1, 2]}]\nprivacy: {rho: 0.1}\n"
    (tmp_path / "few.yaml").write_text(lines)
    code = (
        "import atexit, sys; from matrixdp.cli.app import main; "
        "atexit.register(lambda: print(' '.join(sys.modules))); "
        "sys.argv[1:] = ['select', 'few.yaml', '--json']; main()"
    )
    python = [sys.executable, "-c", code]
    done = subprocess.run(python, capture_output=True, text=True, check=True, cwd=tmp_path)
    figures, modules = done.stdout.splitlines()
    assert json.loads(figures)["gap"] < 0.05
    heavy = {f"scipy.{part}" for part in ("optimize", "sparse", "special", "fft", "spatial")}
    heavy |= {"pyarrow", "duckdb", "narwhals", "sqlglot", "rich"}
    heavy |= {"matrixdp.releases", "matrixdp.model", "matrixdp.cli.specification"}
    assert heavy.isdisjoint(modules.split())


def test_the_program_ends_with_the_status(home: Path, tmp_path: Path):
    # DuckDB, which other commands load, says at the end what it finds not freed
    program = [sys.executable, "-c", "import duckdb; from matrixdp.cli.app import main; main()"]
    good = subprocess.run([*program, "validate", home / "people.yaml"], capture_output=True, text=True)
    assert (good.returncode, good.stderr) == (0, "")
    bad = subprocess.run([*program, "validate", tmp_path / "absent.yaml"], capture_output=True, text=True)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "no such file" in bad.stderr


def test_a_strategy_that_is_given_is_evaluated_saved_and_released(home: Path, tmp_path: Path) -> None:
    spec, given, out = tmp_path / "few.yaml", tmp_path / "own.yaml", tmp_path / "out"
    spec.write_text(
        f"data: {home / 'people.parquet'}\n"
        "domain: {sex: [female, male], code: 6}\n"
        "workload: [marginals: [0, 1, 2]]\n"
        "privacy: {rho: 0.5}\n"
    )
    given.write_text(
        "strategy:\n"
        "  - product: {sex: identity, code: {width: 3}}\n"
        "  - marginals: [[code], [sex, code]]\n"
        "    share: 3\n"
    )
    result = run("select", spec, "--strategy-file", given, "--json", "--save", tmp_path / "own.mdp")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["mechanism"] == "given"
    assert figures["lower_bound_rmse"] <= figures["weighted_rmse"]
    assert figures["reason"] == "a strategy that was given, not selected"
    result = run("release", spec, "--strategy", tmp_path / "own.mdp", "--out", out)
    assert result.exit_code == 0, result.output
    assert run("verify", out).exit_code == 0
    for arguments in (["--mechanism", "residual"], ["--option", "seed=1"], ["--certify"]):
        refused = run("select", spec, "--strategy-file", given, *arguments)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("Error: --strategy-file: ")
    given.write_text("strategy:\n  - product: {sex: identity}\n")
    refused = run("select", spec, "--strategy-file", given)
    assert refused.exit_code == 2
    assert "not measured" in refused.stderr


def test_the_schema_of_given_strategies_names_shares() -> None:
    assert "share" in run("schema", "strategy").stdout
