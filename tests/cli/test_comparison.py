"""What `compare` tries, in which order and for how long, and how it shows what came of it."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from matrixdp.cli import compare as comparison
from matrixdp.cli.compare import Comparison, Live, Outcome, draw_comparison, limited, print_comparison, ratios
from matrixdp.selection.mechanisms.table import MECHANISMS

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


def test_mechanisms_that_take_long_come_last():
    names = list(MECHANISMS)
    assert names[0] == "identity"
    assert names[-3:] == ["min-error", "coa", "dawa"]
    assert comparison._mechanisms("coa, auto,hb,hdmm") == ["hb", "hdmm", "coa", "auto"]


def test_time_for_all_together_is_kept(monkeypatch: pytest.MonkeyPatch):
    clock, given = [0.0], []

    def outcome(_function, arguments, seconds, _note):
        given.append((arguments[1], seconds))
        clock[0] += 40.0
        return {"rmse": 1.0, "weighted_rmse": 1.0}

    monkeypatch.setattr(comparison, "limited", outcome)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    names = ["identity", "residual", "hdmm", "dawa"]
    seen = []
    compared = Comparison(Path("none"), names, ["laplace"], 100.0, 60.0, None, 2)
    rows = compared.run(lambda label, found: seen.append((label.split(" ")[0], len(found))))
    assert given == [("identity", 60.0), ("residual", 60.0), ("hdmm", 20.0)]
    assert seen == [("identity", 0), ("residual", 1), ("hdmm", 2), ("dawa", 3)]
    (late,) = [row for row in rows if row.unfinished]
    assert (late.mechanism, late.data_dependent) == ("dawa", True)
    assert late.note == "not begun within 100 s for all mechanisms (--time-limit)"


def test_what_takes_too_long_or_dies_is_told():
    late = limited(time.sleep, (60,), 0.5, "too long")
    assert (late["note"], late["unfinished"]) == ("too long", True)
    assert late["seconds"] < 30
    assert limited(os.abort, (), 60.0, "too long") == {"note": "out of memory, or killed"}
    assert limited(cast("Any", int), ("a secret",), 60.0, "too long")["note"].startswith(
        "unexpected ValueError ("
    )
    assert limited(dict, ([("rmse", 1.0)],), 60.0, "too long") == {"rmse": 1.0}


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_figures_are_never_cut(capsys, monkeypatch: pytest.MonkeyPatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    print_comparison(ratios([LARGE, SMALL, *NONE]), why=False)
    shown = capsys.readouterr().out
    for text in ("123,457", "654,321", "987,654", "115.6", "15301", "14.25", "gaussian", "6543.212"):
        assert text.replace("6543.212", "6,543") in shown
    assert "\u2026" not in shown
    words = " ".join(shown.split())
    assert "did not finish (--why says why): rotation" in words
    assert "do not apply (--why says why): opt-0, coa (laplace)" in words
    assert "too many cells" not in words
    assert "dawa (laplace): 20 simulations" in words
    if columns == "80":
        assert max(map(len, shown.splitlines())) <= 80


def test_reasons_are_told_when_asked_for(capsys):
    print_comparison(ratios([SMALL, *NONE]), why=True)
    words = " ".join(capsys.readouterr().out.split())
    assert "coa (laplace): gaussian noise alone" in words
    assert "--why" not in words


def test_one_error_is_shown_where_weights_change_nothing(capsys):
    print_comparison(ratios([Outcome("hb", "laplace", 2.0, 2.0, 3.0)]), why=False)
    assert "weighted" not in capsys.readouterr().out


def test_the_table_grows_at_a_terminal(monkeypatch: pytest.MonkeyPatch):
    screen = io.StringIO()

    def terminal(*_args, **_options):
        return Console(file=screen, force_terminal=True, width=100, highlight=False)

    monkeypatch.setattr(comparison, "Console", terminal)
    monkeypatch.setattr(comparison, "console", terminal)
    with Live() as live:
        live.report("identity (gaussian), 1 of 2", [])
        live.report("hb (gaussian), 2 of 2", ratios([SMALL]))
        live._screen.refresh()
    assert "hb (gaussian), 2 of 2" in screen.getvalue()
    assert "14.25" in screen.getvalue()


def test_the_picture_says_which_error_it_shows(tmp_path: Path):
    path = tmp_path / "picture.svg"
    bounded = Outcome("residual", "gaussian", 12.98, 14.25, 33.0, 14.0, seconds=1.0, peak_memory_mb=1.0)
    draw_comparison(ratios([bounded, SMALL]), path, "title")
    text = path.read_text()
    for words in ("weighted RMSE in records", "RMSE, unweighted", "lower bound, gaussian noise"):
        assert f"<!-- {words}" in text
    draw_comparison(ratios([Outcome("hb", "laplace", 2.0, 2.0, 3.0)]), path, "title")
    assert "weighted" not in path.read_text()
