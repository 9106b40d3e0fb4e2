"""Every statistic and SQL aggregate under every rule, on every face: the file says what is seen."""

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from openpyxl.reader.excel import load_workbook

import matrixdp as mdp
from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.titles import file_name
from matrixdp.report.highlights import key_figures
from matrixdp.report.tables import Column, shown_tables
from matrixdp.statistics.attributes import ALL_VALUES
from matrixdp.statistics.statistic import statistics
from tests.cli.commands import run

COUNTS = "{marginals: [[g]]}"
LOW = "{product: {g: identity, x: {sets: [[0, 1]]}}}"
#: What each asks, and between what its true figures are, as is public.
ASKED: dict[str, tuple[str, tuple[float, float]]] = {
    "counts": (COUNTS, (0, math.inf)),
    "share": ("{share: {marginals: [[g, x]]}, of: [g]}", (0, 1)),
    "ratio": (f"{{ratio: {{numerator: {LOW}, denominator: {COUNTS}}}}}", (0, math.inf)),
    "mean": ("{mean: x, by: [g]}", (0, 4)),
    "variance": ("{variance: x, by: [g]}", (0, 4)),
    "quantile": ("{quantile: {x: [0.5]}, by: [g]}", (0, 4)),
    "quantiles": ("{quantiles: {x: [0.5]}, by: [g]}", (0, 4)),
    "cdf": ("{cdf: x, by: [g]}", (0, math.inf)),
    "sum": ("{sum: x, by: [g]}", (0, math.inf)),
    "top": ("{top: {x: 2}, by: [g]}", (0, math.inf)),
    "difference": (
        f"{{difference: {{left: {COUNTS}, right: {{marginals: 0}}}}}}",
        (-math.inf, math.inf),
    ),
    "combination": (f"{{combination: [[[1, 1, 1], {COUNTS}]]}}", (0, math.inf)),
    "simultaneous": (f"{{simultaneous: {COUNTS}}}", (0, math.inf)),
    "percent_change": ("{percent_change: {marginals: [[m]]}}", (-100, math.inf)),
}
SQL: dict[str, tuple[str, tuple[float, float]]] = {
    "total": ("SUM(x)", (0, math.inf)),
    "average": ("AVG(x)", (0, 4)),
    "part": ("AVG(CASE WHEN x > 2 THEN 1 ELSE 0 END)", (0, 1)),
    "spread": ("STDDEV_POP(x)", (0, math.inf)),
    "sample": ("VAR_SAMP(x)", (0, math.inf)),
    "root": ("SQRT(AVG(x))", (-math.inf, math.inf)),
    "percent": ("100.0 * COUNT(*) FILTER (WHERE x > 2) / COUNT(*)", (-math.inf, math.inf)),
    "more": ("AVG(x) + 1", (-math.inf, math.inf)),
    "whole": ("ROUND(AVG(x))", (-math.inf, math.inf)),
    "tens": ("ROUND(COUNT(*), -1)", (-math.inf, math.inf)),
    "tenfold": ("ROUND(AVG(x) * 10) / 10", (-math.inf, math.inf)),
}
ASKED |= {
    name: (f'{{sql: "SELECT g, {text} AS a FROM t GROUP BY g"}}', limits)  # noqa: S608
    for name, (text, limits) in SQL.items()
}
#: Of sums and differences noise has a known size, whatever is counted.
CHANGES = {"difference", "percent_change"}
BOUNDED = {"counts", "sum", "top", "difference", "combination", "simultaneous", "total", "tens"}
RULES: dict[str, dict[str, Any]] = {
    "no rule": {},
    "suppressed": {"suppress_above": 0.33},
    "within range": {"within_range": True},
    "all": {"suppress_above": 0.33, "within_range": True, "round_to": 5},
}
WHOLE = {"counts", "cdf", "top", "difference", "combination", "simultaneous"}


def test_every_statistic_is_tried() -> None:
    assert set(statistics()) <= set(ASKED)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("faces")
    many = ("many", 3000, "2025-01-05"), ("few", 3, "2025-02-05")
    rows = [f"{g},{place % 5},{day}" for g, number, day in many for place in range(number)]
    (home / "t.csv").write_text("\n".join(["g,x,m", *rows]))
    entries = "".join(f"  - {asked[:-1]}, name: {name}}}\n" for name, (asked, _) in ASKED.items())
    months = "{from: 2025-01-01, to: 2025-03-31, by: month}"
    domain = f"data: t.csv\ndomain: {{g: [many, few, none], x: {{min: 0, max: 4}}, m: {months}}}\n"
    (home / "s.yaml").write_text(f"{domain}workload:\n{entries}privacy: {{rho: 0.001}}\n")
    run("release", home / "s.yaml", "--out", home / "out", "--seed-not-private", 1)
    for name, rules in RULES.items():
        mdp.save_release(mdp.load_release(home / "out").presented(**rules), home / name)
    return home


Row = Mapping[str, Any]


def states(table: Any, rules: Mapping[str, Any], changes: bool = False) -> Iterator[tuple[Row, str, str]]:
    """Yield the rows of a file, each with its state and its letter, by the definition of these alone.

    Of changes those without bounds alone have a letter, whatever their size.
    """
    reach = json.loads((table.schema.metadata or {}).get(b"matrixdp", b"{}")).get("multiplier", math.nan)
    for row in table.to_pylist():
        free = row.get("warning") == ALL_VALUES
        bare = [row[name] is None for name in row if name.endswith(("lower", "upper"))]
        unbounded = row["estimate"] is not None and (free or any(bare))
        if row["estimate"] is None:
            yield row, "absent", ""
            continue
        halves = math.nan if unbounded else (row["upper"] - row["lower"]) / 2 / reach
        error = max(own for own in (row["stddev"], halves, 0.0) if own is not None and own == own)
        variation = math.inf if unbounded or (error and not row["estimate"]) else 0.0
        if changes and not unbounded:
            yield row, "known", ""
            continue
        if not unbounded and row["estimate"]:
            variation = error / abs(row["estimate"])
        hidden = variation > rules.get("suppress_above", math.inf)
        grades = (letter for letter, most in (("A", 0.05), ("B", 0.15), ("C", 1 / 3)) if variation <= most)
        letter = "F" if hidden else next(grades, "F")
        yield row, "hidden" if hidden else "unbounded" if unbounded else "known", letter


def number(text: str) -> float:
    return float(text.removesuffix("%").replace(",", "")) / (100 if text.endswith("%") else 1)


def agrees(text: str, row: Row, name: str, state: str, rules: Mapping[str, Any]) -> bool:
    """Return whether a text says the estimate of a row, as its state and the rules demand."""
    if state in ("hidden", "absent"):
        return text == {"hidden": "F", "absent": "-"}[state]
    text = text.removesuffix("%") if name == "percent_change" else text  # the file has per cent, too
    value, step = row["estimate"], 10.0 ** -len(text.strip("%").partition(".")[2])
    step *= 0.01 if text.endswith("%") else 1
    if rules.get("within_range") and state != "unbounded":
        value = min(max(value, ASKED[name][1][0]), ASKED[name][1][1])
    if name in WHOLE:
        step = rules.get("round_to", 1)
        if number(text) % step != 0:
            return False
    return abs(number(text) - value) <= max(step, 0.02 * abs(value))


def named(release: mdp.Release, name: str) -> PublishedTable:
    return next(own for own in release.tables if own.name in (name, f"{name}: g"))


def printed(text: str) -> list[dict[str, str]]:
    """Return the rows of a table on screen by their heads."""
    [heads] = [line for line in text.splitlines() if "┃" in line]
    lines = [line.split("│")[1:-1] for line in text.splitlines() if "│" in line]
    return [
        {head.strip(): cell.strip() for head, cell in zip(heads.split("┃")[1:-1], line, strict=True)}
        for line in lines
    ]


def cells_of(column: Column) -> list[tuple[str, str]]:
    return [(column.head, text) for text, _ in column.cells]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ASKED)
def test_what_is_seen_follows_from_the_file(
    home: Path, name: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    release, rules = mdp.load_release(home / rule), RULES[rule]
    one = named(release, name)
    table = release.table(one).to_arrow()
    every = list(states(table, rules, name in CHANGES))
    assert any(state == "unbounded" for _, state, _ in states(table, {})) == (name not in BOUNDED)
    assert not all(state == "unbounded" for _, state, _ in states(table, {}))

    [page] = [own for own in shown_tables(release) if own.published.name == one.name]
    lists = {
        "show": printed(run("show", home / rule, one.name).stdout),
        "page": [dict(line) for line in zip(*(cells_of(own) for own in page.columns()), strict=True)],
    }
    if name not in SQL:
        lists["answer"] = printed(run("answer", home / rule, ASKED[name][0][1:-1]).stdout)
    for face, rows in lists.items():
        for row, (own, state, letter) in zip(rows, every, strict=True):
            assert row.get("quality", "") == letter, (face, own)
            estimate = row["estimate"].split(" ")[0]
            assert agrees(estimate, own, name, state, rules), (face, row, own)
            if state == "unbounded" and face != "page":
                interval = row.get("95% interval", row.get("95% from"))
                assert (interval == "-") == (own["lower"] is None), (face, row)
        if name == "cdf":
            parts = [row["share estimate"] for row in rows]
            assert [part == "F" for part in parts] == [state == "hidden" for _, state, _ in every]
            assert all(part == "F" or part.endswith("%") for part in parts)
    # key figures and pictures have none that is unreliable
    keys = {(key.label, key.text) for key in key_figures(release, [page])}
    assert not {text for _, text in keys} & {"F", "-"}
    assert len(keys) <= sum(letter != "F" for *_, letter in every)
    if page.picture is not None:
        drawn = np.isfinite(page.picture.estimates.ravel()).tolist()
        assert drawn == [state == "known" for _, state, _ in every]
    # the notebook, which knows no rules
    assert ("quality" in repr(release.table(one.name))) == (name not in BOUNDED)
    # rows by columns
    if name not in ("cdf", "top", "combination"):
        cells = [cell for p in release.cross_table(one.name).panels for row in p.rows for cell in row.cells]
        shown = [(cell.text, cell.grade) for cell in cells]
        for own, state, letter in every:
            assert any(grade == letter and agrees(text, own, name, state, rules) for text, grade in shown), (
                own
            )


@pytest.mark.parametrize("rule", RULES)
def test_files_for_readers_and_their_statuses_follow_from_the_file(
    home: Path, rule: str, tmp_path: Path
) -> None:
    release, rules = mdp.load_release(home / rule), RULES[rule]
    book = load_workbook(next(release.save_tables(tmp_path / "x", format="xlsx").glob("*.xlsx")))
    release.save_tables(tmp_path / "sdmx", format="sdmx")
    for name in ASKED:
        one = named(release, name)
        titles = [t for t in book.sheetnames if re.fullmatch(rf"{name}(  ?g)?( \(list\))?", t)]
        [*_, title] = sorted(titles, key=len)
        rows = [list(row) for row in book[title].iter_rows(min_row=5, values_only=True)]
        lines = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
        with (tmp_path / "sdmx" / f"NOT-PRIVATE-{file_name(one.name, set())}.csv").open() as read:
            observed = list(csv.DictReader(read))
        every = zip(
            lines, observed, states(release.table(one).to_arrow(), rules, name in CHANGES), strict=True
        )
        for line, observation, (own, state, letter) in every:
            assert (line.get("quality") or "") == letter, (name, own)
            assert agrees(str(line["estimate"]), own, name, state, rules), (line, own)
            statuses = {"hidden": "Q", "unbounded": "UNBOUNDED", "absent": "O"}
            status = statuses.get(state, "U" if letter == "F" else "A")
            assert observation["OBS_STATUS"] == status
            assert (observation["OBS_VALUE"] == "") == (state in ("hidden", "absent"))


def test_no_axis_reaches_to_what_has_no_bounds(home: Path) -> None:
    release = mdp.load_release(home / "out")
    assert min(release.table("mean")["estimate"].to_pylist()) < -1
    [axes] = release.plot("mean").axes
    assert 1.5 < axes.get_xlim()[0] < axes.get_xlim()[1] < 2.5
    assert [text.get_text() for text in axes.texts] == ["F", "F"]


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT a, SQRT(COUNT(*)) AS n FROM t GROUP BY a",
        "SELECT a, ROUND(SQRT(COUNT(*))) AS n FROM t GROUP BY a",
        "SELECT a, EXP(-COUNT(*) * 1000) AS n FROM t GROUP BY a",
    ],
)
def test_no_figure_is_exact_as_noise_went_beyond_what_a_function_takes(asked: str) -> None:
    """The root of an interval below 0, and what is too small to be told from 0, show no error."""
    workload = mdp.Workload(mdp.Domain({"a": range(400)}), mdp.marginals(1))
    strategy = mdp.select(workload)
    release = strategy.measure({"a": [0]}, mdp.Budget(rho=0.5), seed_not_private=1).reconstruct()
    table = release.sql(asked).to_arrow()
    assert not pc.any(pc.equal(table["n_stddev"], 0.0)).as_py()


@pytest.mark.parametrize("rule", RULES)
def test_each_figure_of_a_sql_result_is_judged_by_itself(
    home: Path, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    asked = "SELECT g, COUNT(*) AS n, AVG(x) AS mean FROM t GROUP BY g"
    release = mdp.load_release(home / rule)
    exact = release.sql(asked).to_pylist()
    shown = printed(run("answer", home / rule, "--sql", asked).stdout)
    assert [row["g"] for row in shown] == ["many", "few", "none"]
    assert [row["mean"][-1] for row in shown] == ["A", "F", "F"]
    assert shown[0]["n"].endswith(" A")
    hidden = "suppress_above" in RULES[rule]
    for row, own in zip(shown[1:], exact[1:], strict=True):
        assert (row["mean"] == "F") == hidden
        assert hidden or math.isclose(number(row["mean"].split(" ")[0]), own["mean"], rel_tol=0.02)
        assert (row["n"] == "F") == (hidden and own["n_stddev"] > 0.33 * abs(own["n"]))
    assert re.findall("<td[^>]*>-", release.sql(asked)._repr_html_())


def test_attributes_may_be_called_as_figures_and_their_columns_are(tmp_path: Path) -> None:
    """What is a kind, or a word of ours, is no attribute's name."""
    domain = {"share": {"min": 0, "max": 4}, "records": {"min": 0, "max": 4}, "left": ["a", "b"], "rank": 2}
    means = [{"mean": "share"}, {"mean": "records"}]
    spec = {
        "domain": domain,
        "workload": [*means, {"marginals": [["left", "rank"]]}],
        "privacy": {"rho": 500},
    }
    table = {"share": [2, 3] * 500, "records": [1, 2] * 500, "left": ["a"] * 1000, "rank": [0] * 1000}
    mdp.release(
        {**spec, "publication": {"within_range": True}},
        tmp_path / "out",
        table=table,
        accept_weak_privacy=True,
    )
    shares, records, heads = (
        run("show", tmp_path / "out", own).stdout
        for own in ("mean of share", "mean of records", "left, rank")
    )
    assert re.search(r"│ +2\.[45]\d", shares)
    assert re.search(r"│ +1\.[45]\d", records)
    assert re.search(r"┃ left ┃ rank ┃", heads)
    assert [one.unit for one in mdp.load_release(tmp_path / "out").tables] == ["share", "records", "records"]


def test_rules_that_answers_tell_are_those_of_their_figures(home: Path) -> None:
    told = run("answer", home / "all", f"difference: {{left: {COUNTS}, right: {{marginals: 0}}}}").stdout
    shown = run("show", home / "all", "difference").stdout
    for words in ("multiples of 5", "below 0"):
        assert (words in told) == (words in shown)


def test_a_map_of_cells_tells_estimates_with_half_their_intervals() -> None:
    domain = mdp.Domain({"a": 6, "b": 5})
    workload = mdp.Workload(domain, mdp.marginals([["a", "b"]]))
    table = {"a": [*range(6)] * 100, "b": [place % 5 for place in range(600)]}
    release = mdp.select(workload).measure(table, mdp.Budget(rho=0.05)).reconstruct()
    [shown] = [one for one in shown_tables(release) if one.picture is not None]
    assert all(text.startswith("± ") for text in shown.picture.figures.margins())
