"""Selecting, checking and releasing; the help; and how little a short command loads."""

import gzip
import json
import re
import subprocess
import sys
from dataclasses import fields
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
import typer

import matrixdp as mdp
from matrixdp.cli.app import _COMMANDS, app
from matrixdp.selection.registry import MECHANISMS, DataDependent
from tests.cli.commands import figures, refused, run, spec, words

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
TINY = "domain: {code: 3}\nworkload: [{marginals: 1}]\n"
DOCUMENTED = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
GAUSSIAN = ("--noise", "gaussian")
MAIN = "from matrixdp.cli.app import main; main()"
LOADED = "import atexit, sys; atexit.register(lambda: print('|', *sys.modules)); "


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    ages = np.arange(300) * 7 % 23  # some are out of domain
    table = pl.DataFrame({"sex": ["female", "male", "male"] * 100, "age": ages, "code": ages % 6})
    table.write_parquet(folder / "people.parquet")
    table.write_csv(folder / "people.csv")
    np.save(folder / "queries.npy", np.tri(6))
    (folder / "people.yaml").write_text(SPEC)
    (folder / "text.yaml").write_text(SPEC.replace("parquet", "csv"))
    return folder


@pytest.fixture
def people(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The specification of the folder, to which it goes."""
    monkeypatch.chdir(home)
    return "people.yaml"


def test_select_prints_one_json_object_with_all_keys(people: str):
    told = figures("select", people, *GAUSSIAN)
    assert {"mechanism", "noise", "gap", "groups", "privacy"} <= set(told)
    workload = mdp.load_specification(people).workload
    assert told["queries"] == workload.queries
    groups = told["groups"]
    assert [group["name"] for group in groups] == [group.name for group in workload]
    assert set(groups[0]) == {"name", "attributes", "queries", "rmse", "max_stddev", "target", "share"}
    total = sum(group["rmse"] ** 2 * group["queries"] for group in groups)
    assert told["rmse"] == pytest.approx((total / told["queries"]) ** 0.5)
    assert 1 - 1e-6 <= told["rmse"] / told["rmse_before_rounding"] <= 1.005
    assert told["total_squared_error"] == pytest.approx(told["weighted_rmse"] ** 2 * told["queries"])
    assert told["lower_bound_rmse"] <= told["weighted_rmse"]
    assert told["gap"] < 0.01
    budget = {"epsilon": 1.0, "delta": 1e-06, "neighbours": "add_remove", "unit": {"records": 1}}
    assert told["privacy"]["budget"] == budget
    assert told["seconds"] > 0
    assert told["peak_memory_mb"] > 10


def test_select_certifies(people: str):
    plain, certified = (
        figures("select", people, *GAUSSIAN, "--mechanism", "residual", *more) for more in ([], ["--certify"])
    )
    assert certified["lower_bound_rmse"] >= plain["lower_bound_rmse"] * (1 - 1e-9)
    assert certified["lower_bound_rmse"] <= certified["weighted_rmse"]


def test_select_shows_every_group_of_a_small_workload_and_draws_the_strategy(people: str, tmp_path: Path):
    picture = tmp_path / "strategy.svg"
    told = words("select", people, *GAUSSIAN, "--mechanism", "identity", "--picture", picture)
    for text in ("age CDF by sex", "RMSE", "lower bound", "mechanism", "largest stddev"):
        assert text in told
    assert "by share of the privacy cost" in picture.read_text()
    for mechanism in ("dense", "querysmasher", "fourier"):
        assert figures("select", people, *GAUSSIAN, "--mechanism", mechanism)["mechanism"] == mechanism


@pytest.mark.usefixtures("here")
def test_select_joins_many_groups_and_says_how_to_see_them_all():
    domain = "".join(f"  a{i}: 3\n" for i in range(8))
    many = spec(f"domain:\n{domain}workload: [marginals: [1, 2]]\nprivacy: {{mu: 1}}\n")
    told = words("select", many)
    assert "36 query groups, joined; --all" in told
    assert "a0, a1" not in told
    assert "a0, a1" in words("select", many, "--all")


@pytest.mark.usefixtures("here")
def test_errors_of_counts_and_of_sums_are_not_averaged():
    overall = []
    for more in ("", ", {mean: pay}"):
        asked = f"workload: [{{marginals: 1}}{more}]\nprivacy: {{rho: 0.5}}\n"
        paid = spec(f"domain: {{pay: {{min: 0, max: 90000, bins: 9}}}}\n{asked}")
        printed = run("select", paid, "--mechanism", "identity").stdout
        overall.append(float(re.findall(r"^largest stddev +(\S+)", printed, re.M)[0].replace(",", "")))
    assert overall[1] < 5 * overall[0]


def test_mechanisms_and_their_options_are_documented():
    told = "".join(run("select", "--help").stdout.split())
    chosen = {name: one for name, one in MECHANISMS.items() if not isinstance(one, DataDependent)}
    for name in MECHANISMS:
        assert f"`{name}`" in DOCUMENTED or f"`--mechanism {name}`" in DOCUMENTED
        assert name in told or name not in chosen
    table = DOCUMENTED[DOCUMENTED.index("| option | | of |") :].split("\n\n", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    documented = {
        (name.strip("`"), mechanism.strip("`"), text)
        for name, text, owners in rows[2:]
        for mechanism in owners.split(", ")
    }
    assert documented == {
        (option.name, name, str(option.metadata["description"]).split(";")[0])
        for name, mechanism in chosen.items()
        for option in fields(mechanism.options)
    }


def test_release_writes_what_it_says(people: str, home: Path, tmp_path: Path):
    saved, out = tmp_path / "strategy.mdp", tmp_path / "out"
    run("select", people, *GAUSSIAN, "--save", saved)
    told = words("release", people, "--strategy", saved, "--out", out, "--csv")
    for text in ("adding or removing one record", "95% interval", "answers.parquet"):
        assert text in told
    # both would tell how many records there are
    assert not re.search(r"time|memory|\d MB|\d s\b", told)
    assert {path.name for path in out.iterdir()} == {
        "answers.csv", "answers.parquet", "measurement.mdp", "release.json"
    }  # fmt: skip
    written = json.loads((out / "release.json").read_text())
    approximate = written["privacy"]["guarantees"][-1]
    assert (approximate["definition"], approximate["parameters"]["epsilon"]) == ("approximate DP", 1.0)
    assert approximate["parameters"]["delta"] <= 1e-6
    queries = mdp.load_specification(people).workload.queries
    assert written["answers"]["rows"] == pq.read_table(out / "answers.parquet").num_rows == queries
    assert not [path for path in home.iterdir() if path.name.startswith(".")]


def test_release_takes_data_and_options_from_the_command_line(people: str, tmp_path: Path, monkeypatch):
    certified, select = [], mdp.select

    def noted(workload, **options):
        certified.append(options["certify"])
        return select(workload, **options)

    monkeypatch.setattr("matrixdp.strategy.pipeline.select", noted)
    options = ("--data", "people.csv", "--confidence", "0.5", "--max-answers", "3", "--certify")
    told = words("release", people, *GAUSSIAN, "--out", tmp_path / "out", *options)
    assert certified == [True]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"measurement.mdp", "release.json"}
    assert "matrixdp answer" in told
    assert mdp.load_release(tmp_path / "out").confidence == 0.5


@pytest.mark.parametrize("said", [False, True])
def test_quotes_that_hold_line_ends_are_told(here: Path, said: bool):
    Path("t.csv").write_text('sex,note\nmale,"x\nmale,y"\n')
    text = "data: t.csv\ndomain: {sex: [female, male]}\nworkload: [{marginals: 1}]\nprivacy: {mu: 1000}\n"
    given = spec(text + "quoted_newlines: true\n" * said)
    told = words("release", given, "--out", "out", "--accept-weak-privacy")
    promise = json.loads(Path("out/release.json").read_text())["privacy"]
    assumed = "quotes-closed" in [clause["id"] for clause in promise["assumed"]]
    assert ["every quoted field" in text for text in (told, promise["text"])] == [said, said]
    assert assumed == said
    estimates = pq.read_table("out/answers.parquet")["estimate"].to_pylist()
    assert estimates == pytest.approx([0, 1 if said else 2], abs=0.1)


def test_validate_checks_without_the_data(people: str):
    told = words("validate", people)
    assert "Budget(" not in told
    assert "add_remove neighbours" in told
    for text in ("valid", "queries", "groups", "marginals", "memory", "time", "0.2368-GDP", "is there"):
        assert text in told
    printed = figures("validate", people)
    assert (printed["valid"], printed["cells"]) == (True, 240)
    told = words("validate", spec(f"data: absent.csv\n{TINY}", "tiny.yaml"))
    assert "not there yet" in told
    assert "no budget" in told
    told = words("validate", spec(f"{TINY}privacy: {{epsilon: 1}}\n", "tiny.yaml"))
    assert "epsilon 1, add_remove neighbours (pure), which implies 1" in told
    assert "--data" in told
    rho = spec(f"{TINY}privacy: {{rho: 0.5}}\n", "tiny.yaml")
    assert "by epsilon 1 (pure), which implies 1.233-GDP" in words("select", rho, "--noise", "laplace")


@pytest.mark.usefixtures("here")
def test_validate_rejects_a_file_that_is_there_and_cannot_be_read():
    Path("t.csv").write_bytes(gzip.compress(b"sex,age\nm,1\n"))
    assert "compressed" in refused("validate", spec(f"data: t.csv\n{TINY}", "tiny.yaml"))


@pytest.mark.parametrize("command", [["validate"], ["release", "--out", "new"]])
def test_columns_are_checked_before_anything_is_selected(
    people: str, monkeypatch: pytest.MonkeyPatch, command: list[str]
):
    monkeypatch.setattr("matrixdp.strategy.pipeline.select", None)
    days = pl.DataFrame({"sex": ["male"], "age": [date(2020, 1, 31)], "code": [1]})
    days.write_parquet("days.parquet")
    for text, says in (
        (SPEC.replace("  age:", "  Age:").replace("age:", "Age:"), "the table has no column 'Age'"),
        (SPEC.replace("people", "days"), "column 'age' holds dates"),
    ):
        assert says in refused(*command, spec(text, "wrong.yaml"))
    assert not Path("new").exists()


@pytest.mark.parametrize("command", ["validate", "select"])
def test_doubts_are_warnings(here: Path, command: str):
    doubtful = spec("""
domain: {month: [Jan-2018], age: 90, band: {column: age, min: 0, max: 89, bins: 9}, sex: [f, m]}
workload: [{marginals: 1}]
privacy: {epsilon: 1.0, delta: 2.0e-4}
max_records: 10000
""")
    quick = ("--mechanism", "residual", *GAUSSIAN) if command == "select" else ()
    warned = run(command, doubtful, *quick).stderr.split("Warning: ")[1:]
    for starts, says in (
        ("delta is 0.0002", "above 1 / 10,000, one over the number of records and above 0.0001"),
        ("domain.month", ""),
        ("domain", "age, band"),
    ):
        assert any(line.startswith(starts) and says in line for line in warned), warned
    assert len(warned) == 3
    if command == "validate":
        assert len(figures(command, doubtful)["warnings"]) == 3


def test_a_strategy_that_is_given_is_evaluated_saved_and_released(home: Path, here: Path):
    few = spec(
        f"data: {home / 'people.parquet'}\ndomain: {{sex: [female, male], code: 6}}\n"
        "workload: [marginals: [0, 1, 2]]\nprivacy: {rho: 0.5}\n"
    )
    parts = "[product: {sex: identity, code: {sliding: 3}}, {marginals: [[code], [sex, code]], share: 3}]"
    given = spec(f"strategy: {parts}\n", "own.yaml")
    told = figures("select", few, "--strategy-file", given, "--save", "own.mdp")
    assert told["lower_bound_rmse"] <= told["weighted_rmse"]
    assert told["mechanism"] == "given"
    assert told["reason"] == "a strategy that was given, not selected"
    run("release", few, "--strategy", "own.mdp", "--out", "out")
    run("verify", "out")
    assert "share" in run("schema", "strategy").stdout


def test_help_teaches_and_the_version_is_told():
    for command in ([], *([name] for name in _COMMANDS), *(["ledger", name] for name in ("init", "recover"))):
        told = run(*command, "--help").stdout
        assert len(told) > 200
        assert "\\b" not in told
    assert run("--version").stdout.splitlines()[0] == f"matrixdp {mdp.__version__}"
    run("relase", status=2)


@pytest.mark.parametrize("argument", ["", "--help", "-h", "--version"])
def test_the_list_of_commands_loads_none_of_them(argument: str):
    done = python(LOADED + MAIN, *([argument] if argument else ()), status=0 if argument else 2)
    told, _, modules = (done.stderr + done.stdout).rpartition("|")
    assert {"numpy", "scipy", "pyarrow", "duckdb", "pydantic", "rich"}.isdisjoint(modules.split())
    assert argument == "--version" or _COMMANDS.keys() <= {*told.split()}


def test_the_list_of_commands_says_what_the_help_of_each_begins_with():
    whole = typer.main.get_command(app)
    assert isinstance(whole, typer.core.TyperGroup)
    own = {name: one.get_short_help_str(1000) for name, one in whole.commands.items()}
    assert [*own.items()] == [(name, told) for name, (_, told) in _COMMANDS.items()]


def python(code: str, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done


def loaded(*arguments: str) -> tuple[str, set[str]]:
    """Return what a command prints in a process of its own, and the modules that it loads."""
    told, _, modules = python(LOADED + MAIN, *arguments).stdout.rpartition("|")
    return told, set(modules.split())


@pytest.mark.parametrize(
    ("name", "more"), [("text.yaml", {"pyarrow"}), ("people.yaml", {"pyarrow.csv", "pyarrow.dataset"})]
)
def test_validate_loads_only_what_it_needs(people: str, name: str, more: set[str]):
    told, modules = loaded("validate", name)
    assert "with every column (no record was read)" in " ".join(told.split())
    own = ("ledger", "storage", "strategy", "release", "measure.measurement", "cli.release")
    heavy = {"duckdb", "narwhals", "rich", "sqlglot", "sqlite3", "joblib"}
    heavy |= {f"scipy.{part}" for part in ("linalg", "sparse", "special")}
    assert modules & (heavy | more | {f"matrixdp.{package}" for package in own}) == set()
    assert "numpy" in modules


@pytest.mark.usefixtures("here")
def test_selecting_a_few_marginals_loads_no_scipy():
    few = "domain: {sex: 2, age: 20, code: 6}\nworkload: [{marginals: [0, 1, 2]}]\nprivacy: {rho: 0.1}\n"
    told, modules = loaded("select", spec(few), "--json")
    assert json.loads(told)["gap"] < 0.05
    heavy = {f"scipy.{part}" for part in ("optimize", "sparse", "special", "fft", "spatial")}
    heavy |= {"pyarrow", "duckdb", "narwhals", "sqlglot", "rich"}
    heavy |= {"matrixdp.releases", "matrixdp.model", "matrixdp.cli.specification"}
    assert heavy.isdisjoint(modules)


@pytest.mark.parametrize(("name", "status", "says"), [("people", 0, ""), ("absent", 2, "no such file")])
def test_the_program_ends_with_the_status(people: str, name: str, status: int, says: str):
    # DuckDB, which other commands load, says at the end what it finds not freed
    done = python(f"import duckdb; {MAIN}", "validate", f"{name}.yaml", status=status)
    assert (bool(done.stdout), bool(done.stderr)) == (not status, bool(status))
    assert says in done.stderr


@pytest.mark.usefixtures("here")
def test_commands_say_when_the_answers_of_a_series_come():
    file = spec(
        "domain: {sex: [f, m], month: {from: 2025-01-01, to: 2026-12-31, by: month}}\n"
        "workload:\n"
        "  - marginals: [[sex, month]]\n"
        "  - product: {month: {sliding: 12}}\n"
        "  - product: {month: same_period_last_year}\n"
        "  - marginals: [[sex]]\n"
        "  - quantile: {month: 0.5}\n"
        "privacy: {rho: 1}\n"
        "series: month\n"
    )
    for command in ("validate", "select"):
        shown = words(command, file)
        assert "Answers come each month when it is over: sex, month." in shown
        assert "Answers come first after 12 months, then each month: month: sliding 12." in shown
        assert "first after 13 months, then each month: month: same_period_last_year." in shown
        assert "when the series ends (2026-12): sex; " in shown
        assert figures(command, file)["answers_come"]["when the series ends (2026-12)"][0] == "sex"
    assert "Answers come" not in words("validate", spec(Path(file).read_text().replace("series: month", "")))
