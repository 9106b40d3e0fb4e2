"""The tables that a workload asks for: statistics are among them, counts that only serve them are not."""

import csv
from pathlib import Path

import pytest
from openpyxl.reader.excel import load_workbook
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.errors import UnsupportedQueryError, WorkloadError

DOMAIN = mdp.Domain({"sex": ["female", "male"], "income": {"edges": [0, 10, 50, 100]}, "age": range(8)})
SHARE = mdp.ask.share(mdp.marginals([["sex", "age"]]), of=["sex"], name="Ages of each sex")
TITLES = ["sex", "mean of income by sex", "Ages of each sex", "quartiles of age", "CDF of age"]
UNITS = ["records", "income", "share", "age", "records"]


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    workload = mdp.Workload(
        DOMAIN,
        mdp.marginals([["sex"]]),
        mdp.ask.mean("income", by=["sex"]),
        SHARE,
        mdp.ask.quantile("age"),
        mdp.ask.cdf("age"),
    )
    table = {"sex": ["female", "male"] * 400, "income": [5, 20, 60, 5] * 200, "age": [0, 1, 3, 7] * 200}
    measured = mdp.select(workload).measure(table, mdp.Budget(mu=5), seed_not_private=1)
    return measured.reconstruct()


@pytest.fixture(scope="module")
def folder(release: mdp.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.save(tmp_path_factory.mktemp("release") / "out")


def test_every_entry_has_its_table_and_helpers_are_apart(release: mdp.Release) -> None:
    assert [one.title for one in release.tables] == TITLES
    assert [one.unit for one in release.tables] == UNITS
    assert [one.rows for one in release.tables] == [2, 2, 16, 3, 8]
    counted = sum(one.group is not None for one in release.tables)
    assert counted + len(release.helpers) == len(release.workload.groups)
    assert all(one.group is not None for one in release.helpers)


def test_a_statistic_is_found_by_its_title(release: mdp.Release) -> None:
    assert release.table("MEAN of income by sex").equals(release.mean("income", by=["sex"]))
    shares = release.table("ages of each sex")
    assert "group" not in shares.column_names
    assert shares["estimate"].equals(release.statistics["Ages of each sex"]["estimate"])
    with pytest.raises(WorkloadError) as caught:
        release.table("Ages of sexes")
    assert "Ages of each sex" in str(caught.value)
    with pytest.raises(WorkloadError):
        release.table("quartiles of age", pivot="age")
    for one in release.helpers:
        assert release.table(one.title).num_rows == one.rows


@pytest.mark.parametrize("title", TITLES[1:])
def test_a_statistic_is_drawn(release: mdp.Release, title: str) -> None:
    figure = release.plot(title)
    assert figure.axes[0].get_xlabel() or figure.get_supxlabel()
    assert figure.axes[0].lines


def test_files_have_the_figures_with_the_digits_of_their_errors(release: mdp.Release, tmp_path: Path) -> None:
    tables = release.save_tables(tmp_path / "tables")
    names = sorted(path.name for path in tables.glob("*.csv"))
    assert len(names) == len(TITLES)
    [path] = tables.glob("*mean-of-income-by-sex.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    for row, exact in zip(rows, release.mean("income", by=["sex"]).to_pylist(), strict=True):
        assert abs(float(row["estimate"]) - exact["estimate"]) <= exact["stddev"] / 10
        assert float(row["lower"]) <= exact["lower"] < exact["upper"] <= float(row["upper"])
        assert len(row["stddev"].strip("0.")) <= 3
    [path] = tables.glob("*quartiles-of-age.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert all(row["estimate"].isdigit() for row in rows)
    every = release.save_tables(tmp_path / "every", helpers=True, format="parquet")
    assert len(list(every.glob("*.parquet"))) == len(TITLES) + len(release.helpers)


def test_a_workbook_has_a_sheet_for_each_table(release: mdp.Release, tmp_path: Path) -> None:
    folder = release.save_tables(tmp_path / "book", format="xlsx", helpers=True)
    [path] = folder.iterdir()
    book = load_workbook(path)
    every = (*release.tables, *release.helpers)
    assert (book.sheetnames[0], book.sheetnames[-1]) == ("Contents", "Notes")
    assert len(book.sheetnames) == len(every) + 2
    for one, sheet in zip(every, book.worksheets[1:-1], strict=True):
        assert sheet["A1"].value == one.title
        head, *rows = list(sheet.iter_rows(min_row=5, values_only=True))
        assert len(rows) == one.rows
        place = next(i for i, name in enumerate(head) if str(name).endswith("estimate"))
        exact = release.table(one)
        for row, value, stddev in zip(rows, exact["estimate"], exact["stddev"], strict=True):
            assert isinstance(row[place], int | float)
            assert abs(row[place] - value.as_py()) <= (stddev.as_py() or 1.0) / 10
        assert sheet.freeze_panes is not None
    assert "NOT PRIVATE" in str(book["Contents"]["A2"].value)
    assert path.name.startswith("NOT-PRIVATE")


def test_texts_of_the_domain_are_no_formulas(tmp_path: Path) -> None:
    names = ["=1+1", "@SUM(A1)", "http://example.org"]
    workload = mdp.Workload(mdp.Domain({"a/b": names}), mdp.marginals(1), mdp.marginals([["a/b"]]))
    measured = mdp.select(workload).measure({"a/b": names}, mdp.Budget(mu=1))
    folder = measured.reconstruct().save_tables(tmp_path / "book", format="xlsx")
    sheet = load_workbook(folder / "tables.xlsx").worksheets[1]
    assert [(cell.value, cell.data_type) for cell in sheet["A"][5:8]] == [(name, "s") for name in names]


def test_the_page_shows_statistics_and_no_internal_sums(folder: Path, release: mdp.Release) -> None:
    page = mdp.report_release(folder)
    for title in TITLES:
        assert page.count(f">{title}</h3>") == 1
    for one in release.helpers:
        assert f">{one.title}</h3>" not in page or one.title in TITLES
    assert "sum of income less" not in page
    shares = release.table("Ages of each sex")
    assert f"<td>{round(shares['estimate'][0].as_py(), 2)}" in page


def test_the_command_lists_and_shows_statistics(folder: Path) -> None:
    run = CliRunner().invoke
    listed = run(app, ["show", str(folder)]).stdout
    assert "mean of income" in listed
    assert "less" not in listed
    assert "less" in run(app, ["show", str(folder), "--helpers"]).stdout
    shown = run(app, ["show", str(folder), "Ages of each sex", "--csv"]).stdout
    assert shown.splitlines()[0].startswith('"sex","age"')


def test_a_statistic_that_is_not_determined_says_why(release: mdp.Release) -> None:
    other = mdp.Workload(DOMAIN, mdp.marginals([["sex"]]), mdp.ask.mean("income", by=["age"]))
    again = release.reconstruct(other)
    one = again.tables[1]
    assert one.statistic is not None
    assert (one.rows, one.statistic.table) == (0, None)
    with pytest.raises(UnsupportedQueryError):
        again.table(one.title)
