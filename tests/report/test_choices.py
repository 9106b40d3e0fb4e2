"""What a publisher chooses of a page: main points, key figures, order, what is hidden, footnotes."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openpyxl.reader.excel import load_workbook

import matrixdp as mdp
from matrixdp.errors import MatrixDPError
from matrixdp.report import report_release
from tests.cli.commands import refused, run
from tests.pages import Page

SPECIFICATION = """
data: t.csv
domain:
  month: {from: 2025-01-01, to: 2025-06-30, by: month}
  place: {labels: {n: {en: North, fr: Nord}, s: {en: South, fr: Sud}}, note: Where it happened}
workload:
  - marginals: [[month], [month, place]]
  - product: {month: [year_to_date, {sliding: 3}]}
  - {percent_change: {marginals: [[month]]}, over: period}
  - {share: {marginals: [[place]]}, name: shares}
privacy: {mu: 3}
publication:
  title: Thefts
"""
CHOICES: dict[str, Any] = {
    "summary": {"en": "Thefts fell in June.\nMost were in the north.", "fr": "Moins de vols en juin."},
    "key_figures": [
        "month",
        {"table": "shares", "where": {"place": "North"}, "title": {"en": "In the north", "fr": "Au nord"}},
        {"table": "month, place", "where": {"place": "North", "month": "2025-02"}},
    ],
    "order": ["shares"],
    "hide_from_page": ["month year to date and ranges of 3"],
    "footnotes": [
        {"table": "month, place", "text": "Reported to the police."},
        {
            "table": "month, place",
            "where": {"place": "South"},
            "text": {"en": "But the port.", "fr": "Sans le port."},
        },
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("chosen")
    months = [month for month in range(1, 7) for _ in range(month)]  # the sixth has most
    rows = [f"2025-{months[i % 21]:02d}-03,{'nnns'[i // 21 % 4]}" for i in range(4_200)]
    (home / "t.csv").write_text("\n".join(["month,place", *rows]), encoding="utf-8")
    (home / "s.yaml").write_text(SPECIFICATION, encoding="utf-8")
    run("release", home / "s.yaml", "--out", home / "out", "--seed-not-private", 1)
    return home / "out"


def keys_of(page: str) -> list[str]:
    found = re.findall(r'<li><span dir="auto">(.*?)</span><strong>(.*?)</strong>', page)
    return [f"{label}: {text}" for label, text in found]


def test_without_choices_the_newest_period_the_total_and_the_largest_change_are_key_figures(folder: Path):
    release = mdp.load_release(folder)
    newest = release.table("month")["estimate"].to_pylist()[-1]
    found = keys_of(report_release(folder))
    assert found[0] == f"month, June 2025: {newest:,.0f}"
    assert [own.split(":")[0] for own in found[1:]] == [
        "shares, North",
        "shares, South",
        "per cent change of month on the previous period, June 2025",
    ]


def test_a_publisher_chooses_what_a_page_begins_with_and_what_it_has(folder: Path):
    release = mdp.load_release(folder)
    found = report_release(folder, publication=CHOICES)
    page = Page(found)
    assert re.findall(r'<li dir="auto">(.*?)</li>', found.split("</section>")[0]) == [
        "Thefts fell in June.",
        "Most were in the north.",
    ]
    month, share, both = keys_of(found)
    assert month.startswith("month, June 2025: ")
    assert share.startswith("In the north: 7")
    assert share.endswith("%")
    table = release.table("month, place").to_pylist()
    [own] = [row["estimate"] for row in table if (row["month"], row["place"]) == ("2025-02", "North")]
    assert both == f"month by place, February 2025, North: {own:.0f}"
    titles = re.findall(r'<h3 id="([^"]+)" dir="auto">(.*?)(?: ?<| <a)', found)
    assert [title for _, title in titles][:2] == ["shares", "month"]
    assert 'id="month-year-to-date-and-ranges-of-3"' not in found
    assert 'id="month-year-to-date-and-ranges-of-3"' in report_release(folder)
    # the whole table, and the column of one place, have footnotes
    assert re.search(r'month by place<sup class="note"><a href="#note-1">1</a></sup>', found)
    assert found.count('South<sup class="note"><a href="#note-2">2</a></sup>') == 1
    assert found.count('2025<sup class="note"><a href="#note-2">2</a></sup>') == 6
    assert page.text.count("Reported to the police.") == page.text.count("But the port.") == 1
    french = report_release(folder, publication=CHOICES, language="fr")
    assert "Moins de vols en juin." in french
    assert keys_of(french)[1].startswith("Au nord: 7")
    assert 'Sud<sup class="note"><a href="#note-2">2</a></sup>' in french


def test_links_to_tables_and_rows_lead_there(folder: Path):
    page = Page(report_release(folder))
    names = [own["id"] for _, own in page.elements if "id" in own]
    assert len(set(names)) == len(names)
    assert {"month", "shares", "month.june-2025", "shares.north"} <= set(names)
    targets = {str(own["href"])[1:] for _, own in page.elements if str(own.get("href", "")).startswith("#")}
    assert targets <= set(names)


def test_notes_stand_beside_the_tables_that_they_are_about(folder: Path):
    found = report_release(folder)
    sections = dict(zip(*[iter(re.split(r'<h3 id="([^"]+)"', found)[1:])] * 2, strict=True))
    assert "place: Where it happened" in sections["shares"]
    assert "Where it happened" not in sections["month"].split("</section>")[0]


def test_the_command_takes_a_publication_from_a_file(folder: Path):
    path = folder.parent / "texts.yaml"
    path.write_text("publication: {summary: All is well., order: [shares]}", encoding="utf-8")
    out = folder.parent / "page.html"
    run("report", folder, "--out", out, "--publication", path)
    assert "All is well." in out.read_text(encoding="utf-8")
    book = folder.parent / "book"
    run("show", folder, "--export", book, "--format", "xlsx", "--publication", path)
    read = load_workbook(next(book.glob("*.xlsx")))
    assert read.sheetnames[1] == "shares"
    path.write_text("[summary]", encoding="utf-8")
    assert "[wrong-type]" in refused("report", folder, "--out", out, "--force", "--publication", path)


def test_a_workbook_prints_whole_tables(folder: Path, tmp_path: Path):
    release = mdp.load_release(folder).presented(publication=CHOICES)
    read = load_workbook(next(release.save_tables(tmp_path / "book", format="xlsx").glob("*.xlsx")))
    for sheet in read:
        assert sheet.page_setup.fitToHeight == 0  # as many pages as it takes, one after the other
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
        assert sheet.print_title_rows == "$1:$5"
        assert "&P" in sheet.oddFooter.right.text
    lines = [str(sheet["A2"].value) for sheet in read]
    assert any("South: But the port." in line and "Reported to the police." in line for line in lines)


@pytest.mark.parametrize(
    ("told", "place", "code"),
    [
        ({"order": ["months"]}, "publication.order[0]", "unknown-name"),
        ({"order": ["month", "month"]}, "publication.order[1]", "duplicate"),
        ({"hide_from_page": ["nothing"]}, "publication.hide_from_page[0]", "workload"),
        ({"key_figures": ["nothing"]}, "publication.key_figures[0]", "workload"),
        ({"key_figures": [{"table": "none"}]}, "publication.key_figures[0].table", "workload"),
        ({"key_figures": [{"where": {}}]}, "publication.key_figures[0].table", "missing-key"),
        ({"footnotes": [{"table": "month"}]}, "publication.footnotes[0].text", "missing-key"),
        ({"footnotes": [{"table": "none", "text": "x"}]}, "publication.footnotes[0].table", "workload"),
    ],
)
def test_a_table_that_does_not_exist_is_named_before_anything_is_spent(
    folder: Path, tmp_path: Path, told: dict[str, Any], place: str, code: str
):
    with pytest.raises(MatrixDPError) as caught:
        report_release(folder, publication=told)
    assert str(caught.value).startswith(place)
    assert caught.value.code == code
    text = SPECIFICATION.replace("title: Thefts", "title: Thefts\n  " + repr(told)[1:-1].replace("'", ""))
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "t.csv").write_text("month,place\n2025-01-02,n\n", encoding="utf-8")
    ledger = tmp_path / "ledger"
    run("ledger", "init", ledger, "--total", "mu=9", "--dataset", "x")
    before = ledger.read_bytes()
    for command in (["validate"], ["release", "--out", tmp_path / "out", "--ledger", ledger]):
        assert f"[{code}]" in refused(command[0], tmp_path / "s.yaml", *command[1:])
    assert not (tmp_path / "out").exists()
    assert ledger.read_bytes() == before


@pytest.mark.parametrize(
    ("where", "place"),
    [({"sex": "n"}, "where.sex"), ({"place": "x"}, "where"), ({"month": "2024-01"}, "where")],
)
def test_rows_that_do_not_exist_are_named(folder: Path, where: dict[str, str], place: str):
    for key, own in (("key_figures", {}), ("footnotes", {"text": "x"})):
        with pytest.raises(MatrixDPError) as caught:
            report_release(folder, publication={key: [{"table": "month, place", "where": where, **own}]})
        assert str(caught.value).startswith(f"publication.{key}[0].{place}")
        assert caught.value.code == "unknown-name"


def test_time_runs_from_left_to_right(folder: Path):
    release = mdp.load_release(folder)
    for title in ("month", "month by place", "per cent change of month on the previous period"):
        for axes in release.plot(title).axes:
            for line in axes.lines:
                assert (
                    np.diff(np.asarray(line.get_xdata(), dtype="datetime64[D]")) > np.timedelta64(0, "D")
                ).all(), title
    figure = release.plot("month year to date and ranges of 3")
    to_date, sliding = (np.asarray(line.get_ydata()) for line in figure.axes[0].lines)
    table = release.table("month year to date and ranges of 3")["estimate"].to_pylist()
    assert to_date.tolist() == table[:6]
    assert sliding[2:].tolist() == table[6:]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["year to date", "ranges of 3"]


def test_margins_of_a_list_are_those_of_the_file(folder: Path, tmp_path: Path):
    page = Page(report_release(folder))
    out = mdp.load_release(folder).save_tables(tmp_path / "tables")
    path = next(own for own in out.iterdir() if own.name.endswith("month.csv"))
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    for row, margin in zip(rows, page.margins["month"][1:], strict=True):
        half = (float(row["upper"]) - float(row["lower"])) / 2
        assert abs(float(margin[1].removeprefix("± ")) - half) <= 1


def test_a_change_that_noise_explains_is_no_key_figure(tmp_path: Path):
    domain = mdp.Domain({"month": {"from": "2025-01-01", "to": "2025-03-31", "by": "month"}})
    workload = mdp.Workload(domain, mdp.marginals(1), mdp.ask.percent_change(mdp.marginals(1)))
    table = {"month": ["2025-01-05"] * 500 + ["2025-02-07"] * 700 + ["2025-03-09"] * 700}
    release = mdp.select(workload).measure(table, mdp.Budget(mu=0.5), seed_not_private=1).reconstruct()
    assert [label.split(",")[0] for label in keys_of(report_release(release.save(tmp_path / "out")))] == [
        "month"
    ]


@pytest.mark.parametrize("names", [("n", "s"), ("North", "South"), ("Nord", "Sud")])
def test_a_map_finds_areas_by_codes_and_by_names_in_any_language(
    folder: Path, tmp_path: Path, names: tuple[str, str]
):
    squares = [
        {"type": "Polygon", "coordinates": [[[x, 0], [x + 1, 0], [x + 1, 1], [x, 0]]]} for x in range(2)
    ]
    features = [
        {"type": "Feature", "properties": {"own": name}, "geometry": square}
        for name, square in zip(names, squares, strict=True)
    ]
    path = tmp_path / "areas.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    page = report_release(folder, language="fr", maps={"place": str(path)})
    assert "carte de place" in Page(page).text or "carte de place" in page
