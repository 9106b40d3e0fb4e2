"""The tables that a workload asks for: statistics are among them, counts that only serve them are not."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from openpyxl.reader.excel import load_workbook
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.answers.figures import Figures
from matrixdp.answers.shown import Shown
from matrixdp.cli.app import app
from matrixdp.errors import UnsupportedQueryError, WorkloadError
from matrixdp.texts import Publication

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


def test_a_workbook_has_each_table_as_rows_by_columns_and_as_a_list(
    release: mdp.Release, tmp_path: Path
) -> None:
    presented = release.presented(suppress_above=0.2, round_to=5)
    folder = presented.save_tables(tmp_path / "book", format="xlsx", helpers=True)
    [path] = folder.iterdir()
    assert path.name.startswith("NOT-PRIVATE")
    book = load_workbook(path)
    assert (book.sheetnames[0], book.sheetnames[-1]) == ("Contents", "Notes")
    assert "NOT PRIVATE" in str(book["Contents"]["A2"].value)
    for cell in (own for row in book["Contents"].iter_rows(min_row=4) for own in row if own.hyperlink):
        assert cell.hyperlink.location.split("'")[1] in book.sheetnames
    notes = " ".join(str(cell.value) for cell in book["Notes"]["A"])
    assert all(words in notes for words in presented.presentation.words)
    sheets = iter(book.worksheets[1:-1])
    crossed = 0
    for one in (*release.tables, *release.helpers):
        sheet = next(sheets)
        assert (sheet["A1"].value, bool(sheet.freeze_panes)) == (one.title, True)
        if not str(sheet["A2"].value).endswith("confidence."):
            crossed += 1
            cross = presented.cross_table(one)
            labels = [cell.value for cell in sheet[5]]
            assert labels == [cross.stub, *cross.columns]
            for row, own in zip(sheet.iter_rows(min_row=6), cross.panels[0].rows, strict=True):
                assert [cell.value for cell in row] == [
                    own.label,
                    *(c.text if c.value is None else c.value for c in own.cells),
                ]
                for found, cell in zip(row[1:], own.cells, strict=True):
                    assert found.number_format.endswith(f'" {cell.grade}"') or found.value in ("F", "-")
            sheet = next(sheets)
        head, *rows = list(sheet.iter_rows(min_row=5, values_only=True))
        place = head.index("estimate")
        exact = release.table(one).to_arrow()
        texts = Shown(exact, one.measures, presented.presentation).texts("estimate")
        shown = [row[place] if isinstance(row[place], str) else float(row[place]) for row in rows]
        plain = [text.replace(",", "").removesuffix("%") for text in texts]
        scale = 0.01 if one.measures == "share" else 1.0
        assert shown == [t if t in ("F", "-") else pytest.approx(float(t) * scale) for t in plain]
    assert crossed == 3


def test_texts_of_the_domain_are_no_formulas(tmp_path: Path) -> None:
    names = ["=1+1", "@SUM(A1)", "http://example.org"]
    workload = mdp.Workload(mdp.Domain({"a/b": names}), mdp.marginals(1), mdp.marginals([["a/b"]]))
    measured = mdp.select(workload).measure({"a/b": names}, mdp.Budget(mu=1))
    folder = measured.reconstruct().save_tables(tmp_path / "book", format="xlsx")
    sheet = load_workbook(folder / "tables.xlsx").worksheets[1]
    assert [(cell.value, cell.data_type) for cell in sheet["A"][5:8]] == [(name, "s") for name in names]


def test_sheets_and_notes_of_the_workbook_say_what_readers_are_told(tmp_path: Path) -> None:
    book = mdp.Domain({"age": {"min": 0, "max": 3, "clip": True, "title": "Age"}})
    asked = mdp.Workload(book, mdp.marginals(1, note="Of arrival", source="Register"))
    told = Publication.read({"publisher": "Office", "next_release": "2027", "round_to": 5})
    measured = mdp.select(asked).measure({"age": [0, 1, 9]}, mdp.Budget(mu=1))
    release = measured.reconstruct(publication=told)
    sheets = load_workbook(release.save_tables(tmp_path / "book", format="xlsx") / "tables.xlsx")
    assert str(sheets.worksheets[1]["A2"].value).endswith(" Of arrival. Source: Register.")
    notes = [cell.value for cell in sheets["Notes"]["A"]]
    assert {"Publisher: Office", "Next release: 2027"} < set(notes)
    assert "Age: Numbers below 0 count as 0, above 3 as 3." in notes
    package = json.loads((release.save_tables(tmp_path / "csv") / "datapackage.json").read_bytes())
    assert package["presentation"] == release.presentation.words


def test_the_page_shows_statistics_and_no_internal_sums(folder: Path, release: mdp.Release) -> None:
    page = mdp.report_release(folder)
    for title in TITLES:
        assert page.count(f'dir="auto">{title} <a class="link"') == 1
    for one in release.helpers:
        assert f">{one.title} <a" not in page or one.title in TITLES
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


def test_declared_rules_are_in_the_record_and_change_no_file_for_machines(tmp_path: Path) -> None:
    told = {"round_to": 5, "suppress": {"cv_above": 0.5}, "within_range": True}
    specification = {
        "domain": {"sex": ["female", "male"]},
        "workload": [{"marginals": [1]}],
        "privacy": {"mu": 1},
        "publication": told,
    }
    made = mdp.release(specification, tmp_path / "out", table={"sex": ["male"] * 903})
    again = mdp.load_release(tmp_path / "out")
    assert again.publication.to_spec() == told
    assert again.presentation == made.presentation
    [_, women, men] = again.reconstruct().cross_table("sex").panels[0].rows
    assert (women.cells[0].text, men.cells[0].value % 5) in (("F", 0), ("0", 0), ("5", 0))
    assert again.presented(round_to=100).cross_table("sex").panels[0].rows[2].cells[0].text == "900"
    assert again.table("sex").equals(made.table("sex"))
    assert again.table("sex")["estimate"][1].as_py() % 5 != 0


def test_differences_below_0_are_shown_as_they_are(tmp_path: Path) -> None:
    sexes = {"product": {"sex": {"sets": [["male"]]}}}, {"product": {"sex": {"sets": [["female"]]}}}
    specification = {
        "domain": {
            "sex": ["female", "male"],
            "month": {"from": "2024-01-01", "to": "2025-03-31", "by": "month"},
        },
        "workload": [
            {"product": {"month": "same_period_last_year"}},
            {"product": {"month": "year_to_date", "sex": "identity"}},
            {"product": {"month": {"sliding": 12}}},
            {"difference": {"left": sexes[0], "right": sexes[1]}},
            {"combination": [[1, sexes[0]], [-1, sexes[1]]]},
        ],
        "privacy": {"mu": 100},
        "publication": {"within_range": True, "round_to": 5},
    }
    table = {"sex": ["female"] * 300 + ["male"] * 100, "month": ["2024-02-03"] * 300 + ["2025-01-31"] * 100}
    made = mdp.release(specification, tmp_path / "out", table=table, accept_weak_privacy=True)
    release = mdp.load_release(tmp_path / "out")
    assert [one.measures for one in release.tables] == [
        "difference", "records", "records", "difference", "difference"
    ]  # fmt: skip
    assert {one.unit for one in release.tables} == {"records"}
    changes = release.presented().cross_table("month change over 12")
    texts = [row.cells[0].text for row in changes.panels[0].rows]
    assert texts[-3:] == ["100", "-300", "0"]
    answers = made.table("month change over 12").to_pylist()
    assert [row["month"] for row in answers] == [f"2025-{m:02} less 2024-{m:02}" for m in (1, 2, 3)]
    assert [round(row["estimate"], -1) for row in answers] == [100, -300, 0]
    for name in ("difference", "combination"):
        asked = [one for one in release.tables if one.statistic is not None]
        [one] = [one for one in asked if one.statistic.entry.kind == name]
        none, values = np.zeros(1, dtype=bool), np.full((4, 1), -200.0)
        shown = Figures(values, one.measures, 0, none, rules=release.presentation).shown
        assert shown[0].tolist() == [-200.0]
    assert mdp.verify_release(tmp_path / "out").failed == ()
    report = CliRunner().invoke(app, ["report", str(tmp_path / "out"), "--out", str(tmp_path / "page.html")])
    assert report.exit_code == 0, report.stderr
    assert "February 2025 less February 2024" in (tmp_path / "page.html").read_text()
