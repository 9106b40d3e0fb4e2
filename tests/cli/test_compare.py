"""What `compare` tries, in which order and for how long, and how it shows what came of it."""

import io
import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
import pytest
from rich.console import Console

import matrixdp as mdp
from matrixdp.cli import compare as command
from matrixdp.cli.compare import live, print_comparison
from matrixdp.selection.registry import MECHANISMS
from matrixdp.strategy import compare as comparison
from matrixdp.strategy.compare import Outcome, draw_comparison, limited, ratios
from tests.cli.commands import figures, run, words

LARGE = Outcome("residualplanner-plus", "gaussian", 123456.79, 654321.2, 987654.3, 100.0, seconds=115.6,
                peak_memory_mb=15301.1)  # fmt: skip
SMALL = Outcome("dawa", "laplace", 12.98, 14.25, 33.27, seconds=0.5, peak_memory_mb=153.1,
                data_dependent=True, note="20 simulations")  # fmt: skip
NONE = [
    Outcome("opt-0", "gaussian", note="too many cells"),
    Outcome("opt-0", "laplace", note="too many cells"),
    Outcome("coa", "laplace", note="gaussian noise alone"),
    Outcome("rotation", "gaussian", note="not within 1 s", unfinished=True),
]
EVEN = Outcome("hb", "laplace", 2.0, 2.0, 3.0)
SPEC = """
domain: {a: {min: 0, max: 127}, b: [x, y]}
workload: [WHAT]
privacy: {epsilon: 1.0}
"""


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
    printed = figures("compare", folder / "one.yaml", "--mechanisms", "identity,dawa", *options)
    assert printed["public_table"].endswith("public.csv")
    simulated, promised = printed["mechanisms"]
    assert (simulated["mechanism"], promised["mechanism"]) == ("dawa", "identity")
    assert simulated["data_dependent"]
    assert simulated["simulations"] == 4
    assert 0 < simulated["rmse_standard_error"] < simulated["rmse"] < simulated["max_stddev"]
    assert simulated["lower_bound_rmse"] is None
    assert simulated["ratio_to_lower_bound"] is None
    assert "NOT PRIVATE" in simulated["note"]
    assert promised["ratio_to_best"] == 1.0 <= promised["ratio_to_lower_bound"]
    assert 0 < promised["lower_bound_rmse"] <= promised["weighted_rmse"]
    assert simulated["ratio_to_best"] == pytest.approx(simulated["weighted_rmse"] / promised["weighted_rmse"])
    assert "<svg" in picture.read_text()


def test_privbayes_is_simulated_on_several_attributes(folder: Path):
    options = ("--public-table", folder / "public.csv", "--simulations", 4)
    printed = figures("compare", folder / "two.yaml", "--mechanisms", "identity,privbayes", *options)
    rows = {row["mechanism"]: row for row in printed["mechanisms"]}
    assert rows["privbayes"]["data_dependent"]
    # a quarter of the cells has 300 records, the others 2 or none
    assert 0.25 <= rows["identity"]["reliable"] < 0.45
    assert 0 < rows["privbayes"]["rmse_standard_error"] < rows["privbayes"]["rmse"]


def test_where_a_mechanism_does_not_apply_the_row_says_why(folder: Path):
    dawa = ("--mechanisms", "dawa")
    alone = run("compare", folder / "one.yaml", *dawa, status=2)
    assert "none that applies" in alone.stderr
    for name, options, says in (
        ("one", (), "needs a public one"),
        ("one", ("--noise", "gaussian"), "adds Laplace noise alone"),
        ("two", ("--public-table", folder / "public.csv"), "2 attributes; expected exactly one"),
    ):
        assert says in words("compare", folder / f"{name}.yaml", *dawa, *options, status=2)
    printed = run("compare", folder / "one.yaml", *dawa, "--json", status=2).stdout
    (row,) = json.loads(printed)["mechanisms"]
    assert row["rmse"] is None
    assert "NOT PRIVATE: never give a confidential table" in words("compare", "--help")


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


def test_mechanisms_that_take_long_come_last():
    names = list(MECHANISMS)
    assert (names[0], names[-3:]) == ("identity", ["coa", "dawa", "privbayes"])
    assert comparison.named(["coa", "auto", "hb", "hdmm"]) == ["hb", "hdmm", "coa", "auto"]
    approximate = mdp.Budget(epsilon=1, delta=1e-6)
    assert comparison._noises("auto", approximate) == ["gaussian", "laplace"]
    assert comparison._noises("both", mdp.Budget(epsilon=1)) == ["laplace"]


WORKLOAD = mdp.Workload(mdp.Domain({"a": 4}), mdp.marginals(1))
#: Seconds that mechanisms take.
TAKES = {"identity": 1.0, "hb": 20.0, "opt-plus": 25.0, "hdmm": 70.0, "auto": 40.0}


def timed(monkeypatch: pytest.MonkeyPatch, names: list[str], together: float):
    """Return the outcomes of mechanisms that take such times, and how long each attempt was given."""
    clock, given = [0.0], []

    def outcome(task, seconds, note):
        name, bounded = task.args[2], task.args[4]
        given.append((name, round(seconds, 1), bounded))
        finished = TAKES[name] <= seconds
        clock[0] += min(TAKES[name], seconds)
        found: dict[str, Any] = {"seconds": TAKES[name], "chosen": "opt-plus" * (name == "auto")}
        return found | (
            {"rmse": 1.0, "weighted_rmse": 1.0} if finished else {"note": note, "unfinished": True}
        )

    monkeypatch.setattr(comparison, "limited", outcome)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    contest = comparison._Contest(WORKLOAD, mdp.Budget(epsilon=1), together, 60.0, None, 2, mdp.OutOfDomain())
    rows = contest.run([(name, "laplace") for name in names], lambda _label, _found: None)
    return {row.mechanism: row for row in rows}, given


def test_time_is_shared_and_half_of_it_kept_for_auto(monkeypatch: pytest.MonkeyPatch):
    rows, given = timed(monkeypatch, ["identity", "hb", "opt-plus", "hdmm", "auto"], 120.0)
    assert given[:4] == [("identity", 15.0, False), ("hb", 19.7, False), ("opt-plus", 19.7, False),
                         ("hdmm", 19.7, False)]  # fmt: skip
    assert given[4:] == [("auto", 60.0, True)]
    assert {name for name, row in rows.items() if row.rmse} == {"identity", "auto", "opt-plus"}
    assert (rows["opt-plus"].seconds, rows["opt-plus"].unfinished) == (40.0, False)
    assert rows["hdmm"].note == "not within 19.7 s, its share of 120 s for all"


def test_what_did_not_finish_is_tried_again_with_twice_its_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(TAKES, "auto", 5.0)
    rows, given = timed(monkeypatch, ["identity", "hb", "opt-plus", "hdmm", "auto"], 100.0)
    assert given[1:4] == [(name, 16.3, False) for name in ("hb", "opt-plus", "hdmm")]
    assert given[4:] == [("auto", 50.0, True), ("hb", 32.7, False)]
    assert {name for name, row in rows.items() if row.unfinished} == {"hdmm"}


def test_the_quickest_proves_the_bound_where_auto_is_not_asked_for(monkeypatch: pytest.MonkeyPatch):
    rows, given = timed(monkeypatch, ["identity", "hb"], 100.0)
    assert given == [("identity", 50.0, False), ("hb", 60.0, False), ("identity", 60.0, True)]
    late, _ = timed(monkeypatch, ["hdmm", "dawa"], 0.4)
    assert late["hdmm"].note == "not begun within 0.4 s for all mechanisms"
    assert (late["dawa"].data_dependent, rows["hb"].rmse) == (True, 1.0)


def test_what_takes_too_long_or_dies_is_told():
    late = limited(partial(time.sleep, 60), 0.5, "too long")
    assert (late["note"], late["unfinished"], late["seconds"] < 50) == ("too long", True, True)
    assert limited(os.abort, 600.0, "too long") == {"note": "out of memory, or killed"}
    failed = limited(partial(cast("Any", int), "a secret"), 600.0, "too long")
    assert failed["note"].startswith("unexpected ValueError (")
    assert limited(partial(dict, rmse=1.0), 600.0, "too long") == {"rmse": 1.0}


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_figures_are_never_cut(capsys, monkeypatch: pytest.MonkeyPatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    print_comparison(ratios([LARGE, SMALL, *NONE]), why=False)
    shown = capsys.readouterr().out
    for text in ("123,457", "654,321", "987,654", "115.6", "15301", "14.25", "gaussian", "6,543"):
        assert text in shown
    assert "\u2026" not in shown
    told = " ".join(shown.split())
    assert "did not finish (--why says why): rotation" in told
    assert "do not apply (--why says why): opt-0, coa (laplace)" in told
    assert "too many cells" not in told
    assert "dawa (laplace): 20 simulations" in told
    assert max(map(len, shown.splitlines())) <= max(80, int(columns))


def test_reasons_are_told_when_asked_for_and_one_error_where_weights_change_nothing(capsys):
    print_comparison(ratios([SMALL, *NONE]), why=True)
    told = " ".join(capsys.readouterr().out.split())
    assert "coa (laplace): gaussian noise alone" in told
    assert "--why" not in told
    print_comparison(ratios([EVEN]), why=False)
    assert "weighted" not in capsys.readouterr().out


def test_the_table_grows_at_a_terminal(monkeypatch: pytest.MonkeyPatch):
    screen = io.StringIO()

    def terminal(*_args, **_options):
        return Console(file=screen, force_terminal=True, width=100, highlight=False)

    monkeypatch.setattr(command, "Console", terminal)
    monkeypatch.setattr(command, "console", terminal)
    with live() as report:
        report("identity (gaussian), 1 of 2", [])
        report("hb (gaussian), 2 of 2", ratios([SMALL]))
    assert all(text in screen.getvalue() for text in ("hb (gaussian), 2 of 2", "14.25"))


def test_the_picture_says_which_error_it_shows(tmp_path: Path):
    path = tmp_path / "picture.svg"
    bounded = Outcome("residual", "gaussian", 12.98, 14.25, 33.0, 14.0, seconds=1.0, peak_memory_mb=1.0)
    draw_comparison(ratios([bounded, SMALL]), "title").savefig(path)
    for text in ("weighted RMSE in records", "RMSE, unweighted", "lower bound, gaussian noise"):
        assert f"<!-- {text}" in path.read_text()
    draw_comparison(ratios([EVEN]), "title").savefig(path)
    assert "weighted" not in path.read_text()


def test_arguments_of_python_are_rejected_by_their_names():
    workload = mdp.Workload(mdp.Domain({"age": 4}), mdp.marginals(1))
    table = duckdb.sql("SELECT 1 AS age")
    for given in (
        {"noise": "foo"},
        {"mechanisms": "identity"},
        {"mechanisms": ["dawa"], "public_table": table},
    ):
        with pytest.raises(mdp.MatrixDPError) as caught:
            mdp.compare(workload, mdp.Budget(epsilon=1), **given)
        assert caught.value.path[0] == [*given][-1]
