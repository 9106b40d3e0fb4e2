"""The page says what the folder holds, no more and no less, and nothing in it is obeyed."""

import base64
import csv
import datetime as dt
import hashlib
import html
import json
import math
import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.display import printable
from matrixdp.errors import SpecificationError
from matrixdp.language import read_entry
from matrixdp.privacy.conversions import odds
from matrixdp.report import accuracy, highlights, report_release, tables
from matrixdp.report.accuracy import aim
from matrixdp.verification import explain_release
from tests.pages import HOSTILE, Page


def numbers(cells):
    return [float(cell.replace(",", "")) for cell in cells]


def test_every_answer_of_the_folder_stands_in_its_table(folder: Path, page: str):
    answers = pq.read_table(folder / "answers.parquet").to_pylist()
    others = ("accuracy", "quartiles", "cross")
    found = Page(page)
    names = [name for name in found.tables if not name.startswith(others)]
    rows = [row for name in names for row in found.tables[name][1:]]
    margins = [row[-2] for name in names for row in found.margins[name][1:]]
    total, *listed = answers
    assert f"{total['estimate']:,.0f}" in found.text.split("Tables")[-1]  # one figure needs no table
    assert len(rows) == len(listed)
    for row, margin, answer in zip(rows, margins, listed, strict=True):
        half = (answer["upper"] - answer["lower"]) / 2
        [value] = numbers(row[-2:-1])
        assert abs(value - answer["estimate"]) <= 0.5
        assert value == int(value)
        assert abs(float(margin.removeprefix("± ")) - half) <= 1
        asked = [answer[name] for name in ("name", "age", "old", "code", "query") if answer[name] is not None]
        assert sorted(row[:-2]) == sorted(printable(text) for text in asked)


def test_quartiles_are_those_of_the_release(release: mdp.Release, page: str):
    head, *rows = Page(page).tables["quartiles age by old"]
    assert head == ["old", "share of records", "estimate", "95% from", "to", "quality"]
    expected = release.quantile("age", by="old").to_pylist()
    assert len(rows) == len(expected) == 6
    for row, own in zip(rows, expected, strict=True):
        assert row[0] == own["old"]
        assert row[1] == f"{100 * own['quantile']:g}%"
        assert numbers(row[2:-1]) == [own[name] for name in ("estimate", "lower", "upper")]


def test_accuracy_is_that_of_the_record(release: mdp.Release, page: str):
    head, *rows = Page(page).tables["accuracy"]
    assert head[:5] == ["table", "answers", "RMSE", "largest standard error", "lower bound"]
    names = np.array(release.answers["group"].to_pylist())
    for row, group in zip(rows, release.workload, strict=False):
        stddev = release.answers["stddev"].to_numpy()[names == group.name]
        assert float(row[2]) == pytest.approx(np.sqrt((stddev**2).mean()), rel=0.006)
        assert float(row[3]) == pytest.approx(stddev.max(), rel=0.006)
        assert float(row[4]) <= float(row[2]) * 1.006
    assert rows[-1][0] == "all"


def test_a_page_without_lower_bounds_has_no_column_for_them(tmp_path: Path):
    workload = mdp.Workload(mdp.Domain({"a": 2, "b": 2, "c": 3}), mdp.marginals([0, 1]))
    strategy = mdp.select(workload, mechanism="radius", noise="laplace")
    release = strategy.measure({"a": [0, 1], "b": [0, 1], "c": [0, 2]}, mdp.Budget(epsilon=1)).reconstruct()
    folder = mdp.save_release(release, tmp_path / "out")
    head, *rows = Page(report_release(folder)).tables["accuracy"]
    assert head[3:5] == ["largest standard error", "noise on the workload"]
    assert {len(row) for row in rows} == {len(head)}


def test_what_is_certified_is_named(tmp_path: Path):
    def made(weight: float, objective: str) -> mdp.Release:
        workload = mdp.Workload(mdp.Domain({"a": 3}), mdp.marginals(1, weight=weight), mdp.marginals(0))
        strategy = mdp.select(workload, mechanism="residual", noise="gaussian", objective=objective)
        return strategy.measure({"a": [0, 1, 2]}, mdp.Budget(rho=0.5)).reconstruct()

    assert aim(made(1, "sum")) == "RMSE"
    assert aim(made(1, "max")) == "aim_largest"
    weighted = made(9, "sum")
    assert aim(weighted) == "aim_weighted"
    text = html.unescape(report_release(weighted.save(tmp_path / "out")))
    assert "minimizes the RMSE with the workload's weights, which is certified to be within" in text
    assert "This RMSE is certified" not in text


def test_names_are_text_and_nothing_else(page: str):
    found = Page(page)
    tags = [tag for tag, _ in found.elements]
    assert (tags.count("script"), tags.count("b")) == (1, 0)
    named = {name for _, attributes in found.elements for name in attributes}
    assert not [name for name in named if name.startswith("on") or name == "style"]
    assert "\x1b" not in page
    for name in HOSTILE:
        assert any(printable(name) in row for row in found.tables["name"])


def test_the_policy_allows_what_is_in_the_page_and_nothing_else(page: str):
    (policy,) = (a["content"] for _, a in Page(page).elements if a.get("http-equiv"))
    digests = []
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.S)
        digests.append(base64.b64encode(hashlib.sha256(content.encode()).digest()).decode())
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert re.findall(r"https?://[^\s\"'<]+", page) == []
    images = [a for tag, a in Page(page).elements if tag == "img"]
    assert len(images) == 9
    assert all(image["alt"] for image in images)
    phones = [a["srcset"] for tag, a in Page(page).elements if tag == "source"]
    assert len(phones) == len(images)
    for address in (*phones, *(image["src"] for image in images)):
        head, _, content = str(address).partition(",")
        assert head == "data:image/svg+xml;base64"
        drawn = base64.b64decode(content).decode()
        assert "<script" not in drawn
        assert set(re.findall(r'href="([^#"]{5})', drawn)) <= {"data:"}


def test_it_says_how_the_release_came_about(folder: Path, page: str, tmp_path: Path):
    for line in explain_release(folder).splitlines():
        if line.startswith("## ") and line != "## The promise":
            assert f"<summary>{line[3:]}</summary>" in page
    strategy = mdp.select(mdp.Workload(mdp.Domain({"code": 3}), mdp.marginals(1)))
    release = strategy.measure({"code": [0, 1]}, mdp.Budget(epsilon=1.0, delta=1e-6)).reconstruct()
    other = report_release(mdp.save_release(release, tmp_path / "out"))
    section = other.split("<summary>What that means in each definition</summary>")[1].split("</details>")[0]
    listed = re.findall(r"<tr>.*?</tr>", section, re.DOTALL)
    assert len(listed) == len(set(listed)) > 2  # an approximate guarantee may be that of the budget, too


def test_names_of_elements_are_unique_and_links_lead_to_them(page: str):
    names = [a["id"] for _, a in Page(page).elements if "id" in a]
    assert len(set(names)) == len(names)
    targets = {a["href"] for _, a in Page(page).elements if str(a.get("href", "")).startswith("#")}
    assert targets <= {f"#{name}" for name in names}


def test_the_promise_is_in_plain_words_and_rounded_up(release: mdp.Release, page: str):
    text = Page(page).text
    assert "3,000 were expected" in text  # what looks like a mistake
    assert release.statement.text in text
    assert "they are right at most 69.2% of the time" in text  # Phi(1 / 2) = 0.69146, rounded up


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 4])
def test_the_odds_are_at_least_those_of_pure_privacy(epsilon):
    strategy = mdp.select(mdp.Workload(mdp.Domain({"a": 2}), mdp.marginals(1)), noise="laplace")
    release = strategy.measure({"a": [0]}, mdp.Budget(epsilon=epsilon)).reconstruct()
    best = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert best <= odds(release.statement.mu) <= best + 0.002


def test_unreliable_figures_are_graded_and_suppressed_on_request(tmp_path: Path):
    workload = mdp.Workload(mdp.Domain({"code": 4}), mdp.marginals(1))
    table = {"code": [0] * 5000 + [1] * 250 + [2] * 40}
    measured = mdp.select(workload).measure(table, mdp.Budget(mu=0.1), seed_not_private=1)
    out = mdp.save_release(measured.reconstruct(), tmp_path / "out")
    rows = Page(report_release(out)).tables["code"][1:]
    answers = pq.read_table(out / "answers.parquet").to_pylist()
    for row, answer in zip(rows, answers, strict=True):
        variation = answer["stddev"] / abs(answer["estimate"])
        assert row[-1] == (
            "A" if variation <= 0.05 else "B" if variation <= 0.15 else "C" if variation <= 1 / 3 else "F"
        )
    other = report_release(out, suppress_above=0.1)
    hidden = [answer["stddev"] > 0.1 * abs(answer["estimate"]) for answer in answers]
    assert 0 < sum(hidden) < len(hidden)
    assert [row[1:] == ["F", "F"] for row in Page(other).tables["code"][1:]] == hidden
    drawn = re.findall(
        r'(?:src|srcset)="data:image/svg\+xml;base64,([^"]+)"', other.split('id="accuracy"')[0]
    )
    assert len(drawn) == 2
    for picture in drawn:
        assert len(re.findall(">F</text>", base64.b64decode(picture).decode())) == sum(hidden)
    with pytest.raises(SpecificationError):
        report_release(out, suppress_above=-1)


def test_every_figure_is_that_of_the_exported_file(published: Path, tmp_path: Path):
    release = mdp.load_release(published)
    exported = release.save_tables(tmp_path / "tables")
    page = report_release(published, exported=exported)
    found = Page(page)
    resources = json.loads((exported / "datapackage.json").read_text(encoding="utf-8"))["resources"]
    assert len(resources) == len(release.tables)
    attributes, crossed = set(release.domain.names), 0
    for one, resource in zip(release.tables, resources, strict=True):
        assert f'href="tables/{resource["path"]}"' in page
        rows = list(csv.DictReader((exported / resource["path"]).read_text(encoding="utf-8").splitlines()))
        if one.rows == 1:
            assert f"<strong>{round(float(rows[0]['estimate'])):,}" in page
            continue
        head, *shown = found.tables[one.title]
        for own, row in zip(rows, shown, strict=True):
            for name, text in zip(head, row, strict=True):
                if (value := own.get(name)) is not None:
                    assert _same(text, value), (one.title, name)
        keys = [place for place, name in enumerate(head) if name in attributes]
        figures = {frozenset(row[place] for place in keys): own for own, row in zip(rows, shown, strict=True)}
        cross = found.tables.get(f"cross {one.title}")
        crossed += 0 if cross is None else _checked(cross, figures)
    assert crossed == 87 * 2 + 12 * 3 + 3 * 10 * 2 + 12 * 2 + 3 * 2


def _same(text: str, value: str) -> bool:
    """Return whether a text of the page is a value of a file: the same number to the last digit it has."""
    if ".." in value:
        return all(map(_same, text.split(" to "), value.split("..")))
    scale, plain = (100, text[:-1]) if text.endswith("%") else (1, text.replace(",", ""))
    try:
        return abs(float(plain) - scale * float(value)) < 1.0 / 10 ** len(plain.partition(".")[2])
    except ValueError:
        if (spoken := re.fullmatch(r"(\d+ )?([A-Z][a-z]+ \d{4})", text)) is not None:
            day = dt.datetime.strptime(f"{spoken[1] or '1 '}{spoken[2]}", "%d %B %Y").date().isoformat()
            return value == (day if spoken[1] else day[:7])
        return text == value or (text, value) == ("-", "")


def _checked(cross: list[list[str]], figures: dict[frozenset[str], dict[str, str]]) -> int:
    """Compare the cells of a cross table with the rows of a list, and return how many there are in both."""
    (stub, *_), heads, *rows = cross
    group, outer = "", {label for label, *_ in rows if "," in stub and label in ("one", "two", "three")}
    checked = 0
    for label, *texts in rows:
        group = label if label in outer else group
        for column, text in zip(heads, texts, strict=True):
            own = figures.get(frozenset({group, label, column} - {""}))
            if own is not None:
                found = re.match(r"[-,.\d]+%?", text)
                assert found is not None
                assert _same(found[0], own["estimate"])
                checked += 1
    return checked


def test_pictures_of_statistics_have_an_axis_for_each_attribute(published: Path):
    release = mdp.load_release(published)
    drawn = {one.title: one.picture for one in tables.shown_tables(release)}
    names = {title: [axis.name for axis in own.axes] for title, own in drawn.items() if own is not None}
    assert names["mean of size by kind"] == ["kind"]
    assert names["quartiles of month"] == ["quantile"]
    assert names[next(title for title in names if title.startswith("share"))] == ["kind", "old"]


def test_key_figures_come_first_and_files_in_the_page_are_what_readers_see(published: Path):
    found = report_release(published, suppress_above=0.33)
    page = Page(found)
    total = mdp.load_release(published).table("total")["estimate"].to_pylist()[0]
    assert f"{total:,.0f}" in found.split('id="tables"')[0]
    assert "1 March 2019 to 29 February 2020" in page.text
    links = [
        a for tag, a in page.elements if tag == "a" and str(a.get("href", "")).startswith("data:text/csv")
    ]
    assert len(links) == len(mdp.load_release(published).tables)
    (area,) = (str(a["href"]) for a in links if a["download"] == "area.csv")
    rows = list(csv.DictReader(base64.b64decode(area.partition(",")[2]).decode().splitlines()))
    listed = page.tables["area"][1:]
    assert [row["area"] for row in rows] == [row[0] for row in listed]
    hidden = [row["quality"] == "F" for row in rows]
    assert 0 < sum(hidden) < 87
    assert [row["estimate"] == "" == row["lower"] for row in rows] == hidden
    assert [row[1] == "F" for row in listed] == hidden
    with pytest.raises(SpecificationError):
        report_release(published, exported="nowhere")


@pytest.mark.parametrize("rule", [None, 0.33])
def test_key_figures_are_reliable(rule: float | None):
    """Of a total, a mean and a largest group that noise hides none is a key figure, nor is the letter F."""
    domain = mdp.Domain({"sex": ["f", "m"], "area": list("abcde"), "age": {"min": 0, "max": 4}})
    asked = [
        mdp.marginals([0, ["area"]]),
        *map(read_entry, [{"mean": "age", "by": ["sex"]}, {"quantile": {"age": [0.5]}}, {"sum": "age"}]),
    ]
    few: dict[str, list[object]] = {"sex": ["f", "m"], "area": ["a", "a"], "age": [1, 3]}
    measured = mdp.select(mdp.Workload(domain, *asked)).measure(few, mdp.Budget(mu=0.01), seed_not_private=2)
    release = measured.reconstruct().presented(suppress_above=rule)
    assert highlights.key_figures(release, list(tables.shown_tables(release))) == []
    many = {name: own * 20_000 for name, own in few.items()}
    strategy = mdp.select(mdp.Workload(domain, *asked))
    release = strategy.measure(many, mdp.Budget(mu=1), seed_not_private=2).reconstruct()
    release = release.presented(suppress_above=rule)
    found = highlights.key_figures(release, list(tables.shown_tables(release)))
    assert [key.label for key in found] == ["total", "mean of age by sex, f", "mean of age by sex, m",
        "median of age", "sum of age"]  # fmt: skip


def test_labels_of_any_alphabet_are_drawn_in_their_direction(tmp_path: Path):
    school = "\u05d4\u05e9\u05db\u05dc\u05d4"
    domain = mdp.Domain({school: ["\u05d9\u05e1\u05d5\u05d3\u05d9", "\u5e74\u9f62"], "sex": ["f", "m"]})
    measured = mdp.select(mdp.Workload(domain, mdp.marginals([1, 2]))).measure(
        {school: ["\u5e74\u9f62"] * 50, "sex": ["f"] * 50}, mdp.Budget(mu=1)
    )
    out = mdp.save_release(measured.reconstruct(), tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = report_release(out)
    page = Page(text)
    keys = [own for tag, own in page.elements if tag == "th" and own.get("scope") == "row"]
    own = [own for own in keys if own.get("dir") == "auto"]
    assert len(own) >= 2 + 2 + 3 + 4
    assert text.count(f'<th scope="col" dir="auto">{school}') >= 1
    assert next(a["download"] for _, a in page.elements if "download" in a) == f"{school}.csv"


def test_a_seeded_release_promises_nothing(release: mdp.Release, tmp_path: Path):
    table = {"name": HOSTILE, "age": [1] * 5, "old": ["no"] * 5, "code": [1] * 5}
    strategy = mdp.select(release.workload, mechanism="identity")
    measured = strategy.measure(table, mdp.Budget(rho=0.5), seed_not_private=1)
    few = measured.reconstruct(mdp.Workload(release.domain, mdp.marginals(0)))
    text = Page(report_release(mdp.save_release(few, tmp_path / "seeded"))).text
    assert "NOT PRIVATE. The noise was seeded" in text
    assert "toss a coin" not in text
    assert "protects the people" not in text


def test_a_folder_that_was_altered_gets_no_page(folder: Path, tmp_path: Path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    content = bytearray((copy / "answers.parquet").read_bytes())
    content[100] ^= 1
    (copy / "answers.parquet").write_bytes(content)
    with pytest.raises(mdp.StorageError, match=r"answers\.parquet: does not belong to release\.json"):
        report_release(copy)
    with pytest.raises(mdp.StorageError, match=r"found no release\.json"):
        report_release(tmp_path)


def test_a_measurement_alone_gets_the_same_tables(release: mdp.Release, page: str, tmp_path: Path):
    bare = mdp.save_release(release, tmp_path / "people", max_answers=0)
    assert not (bare / "answers.parquet").exists()
    other = report_release(bare, title="A & B")
    assert Page(other).tables == Page(page).tables
    assert '<h1 dir="auto">people</h1>' in page
    assert '<h1 dir="auto">A &amp; B</h1>' in other


def test_what_is_left_out_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch):
    for name, most in {"MAX_GROUPS": 5, "MAX_ROWS": 40, "MAX_GROUP_ROWS": 20, "_FIRST_ROWS": 3}.items():
        monkeypatch.setattr(tables, name, most)
    monkeypatch.setattr(accuracy, "MAX_ACCURACIES", 3)
    found = Page(report_release(folder))
    assert "4 more tables are not on this page" in found.text
    # the first group of every entry, rather than all of the first
    shown = ["age CDF by old", "<b>bold</b>", "age ranges by old", "age, code: abs"]
    lists = {name: rows for name, rows in found.tables.items() if not name.startswith("cross")}
    assert list(lists)[:-2] == shown
    assert [len(rows) - 1 for rows in lists.values()] == [3, 10, 3, 12, 6, 4]
    assert "The first 3 of 156 figures" in found.text
    assert "of 3 tables; 6 more are in release.json" in found.text


def test_a_million_answers_do_not_make_a_page_large(tmp_path: Path):
    domain = mdp.Domain({"x": 46, "y": 46})
    workload = mdp.Workload(domain, mdp.product(x="range", y="range"), mdp.product(x="prefix", y="identity"))
    strategy = mdp.select(mdp.Workload(domain, mdp.marginals(2)), mechanism="identity")
    table = {"x": [1, 2, 3], "y": [4, 5, 6]}
    release = strategy.measure(table, mdp.Budget(rho=0.5)).reconstruct(workload)
    assert release.workload.queries > 1_000_000
    large = report_release(mdp.save_release(release, tmp_path / "large", max_answers=0))
    assert len(large) < 400_000
    assert "1,168,561 answers: too many for a page" in Page(large).text
    assert "The first 50 of 2,116 figures" in Page(large).text


@pytest.mark.parametrize(("module", "name"), [("jinja2", "Jinja2"), ("matplotlib.figure", "matplotlib")])
def test_without_its_libraries_it_is_said_what_to_install(folder, monkeypatch, module, name):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(mdp.SpecificationError, match=f"{name}.*pip install '\\.\\["):
        report_release(folder)
