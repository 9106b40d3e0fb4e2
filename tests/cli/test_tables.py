"""Tables of answers from the command line."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.cli.tables import console, print_answers, print_statistic, print_table


def run(*arguments: object, status: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def open_bins(tmp_path: Path) -> Path:
    domain = mdp.Domain(
        {"x": {"edges": ["-inf", 0, "inf"]}, "day": {"from": "2024-01-01", "to": "2024-01-02", "by": "day"}}
    )
    strategy = mdp.select(mdp.Workload(domain, mdp.marginals(1)), mechanism="residual")
    table = {"x": [1.0], "day": ["2024-01-02"]}
    return mdp.save_release(strategy.measure(table, mdp.Budget(rho=0.5)).reconstruct(), tmp_path / "out")


def test_json_has_null_for_open_ends_and_text_for_days(open_bins: Path) -> None:
    printed = json.loads(
        run("answer", open_bins, "marginals: 1", "--json").stdout, parse_constant=pytest.fail
    )
    rows = [{key: row[key] for key in row if key.endswith(("_from", "_to"))} for row in printed["answers"]]
    assert rows[0] == {"x_from": None, "x_to": 0.0, "day_from": None, "day_to": None}
    assert rows[3] == {"x_from": None, "x_to": None, "day_from": "2024-01-02", "day_to": "2024-01-02"}
    assert "x (-inf, 0)" in run("answer", open_bins, "marginals: 1").stdout


def test_show_lists_tables_and_shows_one(released: Path) -> None:
    listed = run("show", released)
    assert all(title in listed.stdout for title in ("total", "sex by code", "Records in the domain"))
    table = run("show", released, "code by sex")
    assert "female" in table.stdout
    assert "±" in table.stdout
    wide = run("show", released, "sex by code", "--pivot", "sex", "--csv").stdout.splitlines()
    assert wide[0].startswith('"code","code_from","code_to","female","female_stddev","female_lower"')
    assert len(wide) == 4
    assert [line.split(",")[1] for line in wide[1:]] == ["0", "1", "2"]


def test_show_has_half_of_each_interval_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    # half of 51.4 is 25.7; of the ends rounded outward, 74 and 127, it is 26.5
    figures = {"estimate": [100.6], "stddev": [13.11], "lower": [74.9], "upper": [126.3]}
    print_table(console(), pa.table(figures), 0.95, 5)
    assert "101 ± 26 " in capsys.readouterr().out


def test_show_writes_tables(released: Path, tmp_path: Path) -> None:
    printed = run("show", released, "--tables", tmp_path / "tables", "--format", "parquet").stdout
    assert "4 tables, datapackage.json, croissant.json." in printed.replace("\n", "")
    assert len(list((tmp_path / "tables").glob("*.parquet"))) == 4


def test_show_says_what_is_seeded_and_what_is_cut(tmp_path: Path) -> None:
    domain = mdp.Domain({f"a{place}": 2 for place in range(11)})
    strategy = mdp.select(mdp.Workload(domain, mdp.marginals(2)), mechanism="residual")
    table = {name: [0] for name in domain.names}
    measured = strategy.measure(table, mdp.Budget(rho=0.5), seed_not_private=1)
    folder = measured.reconstruct().save(tmp_path / "out")
    found = run("show", folder)
    assert "NOT PRIVATE" in found.stderr
    assert "50 of 55 tables shown" in found.stdout
    assert "Warning: " in found.stderr
    assert "tables shown" not in run("show", folder, "--all").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sexx",), "did you mean 'sex'"),
        (("--csv",), "table: found none; expected the title of a table"),
        (("--pivot", "sex"), "table: found none"),
        (("sex", "--tables", "x"), "--export: found a single table too; expected one of the two"),
        (("sex", "--pivot", "code"), "pivot: found 'code'; expected an attribute of the table 'sex'"),
    ],
)
def test_show_refuses(released: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in run("show", released, *arguments, status=2).stderr


def test_figures_have_the_digits_of_their_errors_and_words_are_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = {"estimate": [44.974653], "stddev": [0.00014712], "lower": [44.974363], "upper": [44.974943]}
    told = pa.table({"neighborhood": ["Bryn - Mawr"], "citationIssued": ["YES"], **figures})
    screen = Console(width=80, highlight=False)
    print_statistic(screen, told, 0.95, 10)
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("44.97465", "44.97436", "44.97494", "citationIssued"))
    sums = pa.table({name: [value[0] * 1e6] for name, value in figures.items()})
    print_statistic(screen, sums, 0.95, 10)
    assert "44,974,650" in capsys.readouterr().out
    small = pa.table({"group": ["g"], **{name: [value[0] / 40] for name, value in figures.items()}})
    print_answers(screen, small, 0.95, 10)
    assert "1.1243663" in capsys.readouterr().out
    narrow = Console(width=30, highlight=False)
    print_statistic(narrow, told, 0.95, 10)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 30
