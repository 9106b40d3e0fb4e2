"""Every kind of statistic over few records: figures without bounds, on every surface and under every rule."""

import csv
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from openpyxl.reader.excel import load_workbook

import matrixdp as mdp
from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.titles import file_name
from matrixdp.report.tables import key_figures, shown_tables
from matrixdp.statistics.statistic import statistics
from tests.cli.commands import run

COUNTS = "{marginals: [[g]]}"
LOW = "{product: {g: identity, x: {sets: [[0, 1]]}}}"
ASKED = {
    "share": "{share: {marginals: [[g, x]]}, of: [g]}",
    "ratio": f"{{ratio: {{numerator: {LOW}, denominator: {COUNTS}}}}}",
    "mean": "{mean: x, by: [g]}",
    "variance": "{variance: x, by: [g]}",
    "quantile": "{quantile: {x: [0.5]}, by: [g]}",
    "quantiles": "{quantiles: {x: [0.5]}, by: [g]}",
    "cdf": "{cdf: x, by: [g]}",
    "sum": "{sum: x, by: [g]}",
    "top": "{top: {x: 2}, by: [g]}",
    "difference": f"{{difference: {{left: {COUNTS}, right: {{marginals: 0}}}}}}",
    "percent_change": "{percent_change: {marginals: [[g, m]]}}",
    "combination": f"{{combination: [[[1, 1, 1], {COUNTS}]]}}",
    "simultaneous": f"{{simultaneous: {COUNTS}}}",
    "average": '{sql: "SELECT g, AVG(x) AS a FROM t GROUP BY g"}',
    "root": '{sql: "SELECT g, SQRT(AVG(x)) AS a FROM t GROUP BY g"}',
}
#: Of sums and differences noise has a known size, whatever is counted.
BOUNDED = {"sum", "top", "difference", "combination", "simultaneous"}
RULES = {
    "no rule": [],
    "suppressed": ["--suppress-above", "0.33"],
    "within range": ["--within-range"],
    "both": ["--suppress-above", "0.33", "--within-range"],
}


def test_every_statistic_is_tried() -> None:
    assert set(statistics()) == set(ASKED) - {"average", "root"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("unbounded")
    rows = [
        f"{g},{place % 5},2025-0{1 + place % 2}-01"
        for g, number in (("many", 3000), ("few", 3))
        for place in range(number)
    ]
    (home / "t.csv").write_text("\n".join(["g,x,m", *rows]))
    entries = "".join(f"  - {asked[:-1]}, name: {name}}}\n" for name, asked in ASKED.items())
    months = "{from: 2025-01-01, to: 2025-02-28, by: month}"
    domain = f"data: t.csv\ndomain: {{g: [many, few, none], x: {{min: 0, max: 4}}, m: {months}}}\n"
    (home / "s.yaml").write_text(f"{domain}workload:\n{entries}privacy: {{rho: 0.001}}\n")
    run("release", home / "s.yaml", "--out", home / "out", "--seed-not-private", 1)
    return home / "out"


def presented(home: Path, rule: str) -> tuple[mdp.Release, bool]:
    """Return the release under a rule, and whether that suppresses figures."""
    suppressed, within = "--suppress-above" in RULES[rule], "--within-range" in RULES[rule]
    release = mdp.load_release(home)
    return release.presented(suppress_above=0.33 if suppressed else None, within_range=within), suppressed


def known(release: mdp.Release, name: str) -> tuple[PublishedTable, pa.Table, list[bool]]:
    """Return the table of a statistic, and which of its rows have no bounds, by what its file holds."""
    one = next(own for own in release.tables if own.name in (name, f"{name}: g"))
    table = release.table(one).to_arrow()
    ends = [own for own in table.column_names if own.endswith("lower")]
    missing = [[value is None for value in table[own].to_pylist()] for own in ends]
    found = [any(row) for row in zip(*missing, strict=True)]
    if name.startswith("quantile"):
        found = [
            pair == (0.0, 4.0)
            for pair in zip(*(table[e].to_pylist() for e in ("lower", "upper")), strict=True)
        ]
    return one, table, found


def number(text: str) -> float:
    return float(text.replace(",", ""))


def columns(text: str) -> list[list[str]]:
    """Return the rows of a table on screen."""
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]


def judged(found: str, exact: float, suppressed: bool) -> bool:
    """Return whether an unbounded figure is hidden, or shown as it was estimated but for its last digit."""
    step = 10.0 ** -len(found.partition(".")[2])
    return found == "F" if suppressed else math.isclose(number(found), exact, rel_tol=0, abs_tol=step)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ASKED)
def test_what_has_no_bounds_is_unreliable_on_every_surface(
    home: Path, name: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    release, suppressed = presented(home, rule)
    one, table, unbounded = known(release, name)
    assert any(unbounded) == (name not in BOUNDED)
    assert not all(unbounded)
    exact = table["estimate"].to_pylist()

    # the terminal
    printed = run("show", home, one.name, *RULES[rule]).stdout
    heads = [head.strip() for head in next(x for x in printed.splitlines() if "┃" in x).split("┃")[1:-1]]
    shown = [dict(zip(heads, row, strict=True)) for row in columns(printed)]
    assert ("without bounds" in printed) or not any(unbounded)
    # the list of a page, its key figures, its picture
    [page] = [own for own in shown_tables(release, release.presentation) if own.published.name == one.name]
    lines = [dict(zip(page.heads("95"), line, strict=True)) for line in page.lines()]
    for rows in (shown, lines):
        for row, value, gone in zip(rows, exact, unbounded, strict=True):
            if gone:
                assert row["quality"] == "F", rule
                assert judged(row["estimate"], value, suppressed), (row, value)
        if name == "cdf":
            shares = zip(rows, table["share"].to_pylist(), unbounded, strict=True)
            assert all(
                judged(row["share estimate"], value, suppressed) for row, value, gone in shares if gone
            )
    keys = [(key.label, key.text) for key in key_figures([page])]
    labels = [", ".join([page.title, *of]) for of, _ in page.keyed()]
    assert not {label for label, gone in zip(labels, unbounded, strict=True) if gone} & {k for k, _ in keys}
    assert "F" not in {text for _, text in keys}
    if page.picture is not None:
        assert np.isnan(page.picture.estimates.ravel()[unbounded]).all()
    # the notebook, which knows no rules
    assert ("quality" in repr(release.table(one.name))) == any(unbounded)
    # rows by columns
    crossed = release.cross_table(one.name) if name not in ("cdf", "top", "combination") else None
    if crossed is not None:
        cells = [cell for panel in crossed.panels for row in panel.rows for cell in row.cells]
        letters = sorted((cell.grade, cell.text) for cell in cells)
        assert sum(letter == "F" for letter, _ in letters) >= sum(unbounded)
        found = {cell.value for cell in cells}
        for value, gone in zip(exact, unbounded, strict=True):
            if gone:
                assert suppressed or any(math.isclose(value, own, abs_tol=0.06) for own in found)
        assert not (suppressed and any(cell.grade == "F" and cell.text != "F" for cell in cells))


@pytest.mark.parametrize("rule", RULES)
def test_what_has_no_bounds_is_unreliable_in_files(home: Path, rule: str, tmp_path: Path) -> None:
    release, suppressed = presented(home, rule)
    book = load_workbook(next(release.save_tables(tmp_path / "x", format="xlsx").glob("*.xlsx")))
    release.save_tables(tmp_path / "sdmx", format="sdmx")
    for name in ASKED:
        one, table, unbounded = known(release, name)
        title = next(
            t
            for t in book.sheetnames
            if re.fullmatch(rf"{name}(  ?g)?( \(list\))?", t)
            and (t.endswith("(list)") or f"{t} (list)" not in book.sheetnames)
        )
        rows = [list(row) for row in book[title].iter_rows(min_row=5, values_only=True)]
        lines = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
        with (tmp_path / "sdmx" / f"NOT-PRIVATE-{file_name(one.name, set())}.csv").open() as read:
            observed = list(csv.DictReader(read))
        every = zip(lines, observed, table["estimate"].to_pylist(), unbounded, strict=True)
        for line, observation, value, gone in every:
            if gone:
                assert line["quality"] == "F"
                assert judged(str(line["estimate"]), value, suppressed)
                assert observation["OBS_STATUS"] == ("Q" if suppressed else "U")
                assert judged(observation["OBS_VALUE"] or "F", value, suppressed)


def test_no_axis_reaches_to_what_has_no_bounds(home: Path) -> None:
    release = mdp.load_release(home)
    assert max(map(abs, release.table("mean")["estimate"].to_pylist())) > 20
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


def test_results_of_sql_are_shown_wherever_figures_have_no_bounds(home: Path) -> None:
    release = mdp.load_release(home)
    result = release.sql("SELECT g, COUNT(*) AS n, AVG(x) AS mean FROM t GROUP BY g")
    shown = [row.split() for row in str(result).splitlines()]
    assert [row[-1] for row in shown if row[0] in ("few", "none")] == ["F", "F"]
    assert "F" in re.findall("<td[^>]*>([^<]*)</td>", result._repr_html_())
