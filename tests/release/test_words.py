"""The words around tables: whole in every language, in every face, and an office's own."""

import csv
import json
import re
import tomllib
from pathlib import Path
from string import Formatter

import pyarrow.parquet as pq
import pytest
from openpyxl.reader.excel import load_workbook
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp import texts
from matrixdp.cli.app import app
from matrixdp.display import printable
from matrixdp.report import report_release
from tests.cli.commands import run
from tests.pages import Page

FOLDER = Path(texts.__file__).with_name("words")
ENGLISH = tomllib.loads((FOLDER / "en.toml").read_text(encoding="utf-8"))
LANGUAGES = sorted(path.stem for path in FOLDER.glob("*.toml"))
ITALIAN = 'total = "Totale"\nby = "{first} per {rest}"\nunit = "Unità: {unit}."\nnav_tables = "Tavole & c."\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    title = {"en": "Sex", **dict.fromkeys(("fr", "de", "es", "it"), "X")}
    domain = {"sex": {"categories": ["f", "m"], "title": title}, "age": {"min": 0, "max": 11}}
    workload = [
        {"marginals": [["age"], ["sex", "age"]]},
        {"product": {"age": "prefix", "sex": "identity"}},
        {"product": {"age": "range"}},
        {"mean": "age", "by": ["sex"]},
        {"quantile": "age", "where": {"sex": ["f"]}},
        {"top": {"age": 2}},
    ]
    rules = {"round_to": 5, "suppress": {"cv_above": 0.5}, "within_range": True}
    spec = {"domain": domain, "workload": workload, "privacy": {"epsilon": 2}, "publication": rules}
    table = {"sex": ["f", "m", "m"] * 90, "age": [*range(9)] * 30}
    place = tmp_path_factory.mktemp("words") / "out"
    mdp.release(spec, place, table=table)
    return place


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no catalog of a test stay."""
    monkeypatch.setattr(texts, "_REGISTERED", {})
    texts.words_in.cache_clear()


def named(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_word(language: str) -> None:
    own = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    assert own.keys() == ENGLISH.keys()
    assert {name for name in own if named(own[name]) != named(ENGLISH[name])} == set()
    assert [len(own[name].split()) for name in ("months", "months_short", "weekdays")] == [12, 12, 7]


def test_every_word_is_said_somewhere() -> None:
    source = FOLDER.parent
    code = "".join(path.read_text() for path in (*source.rglob("*.py"), *source.rglob("*.html")))
    made = re.compile(
        r"(head|told|counts|warning|alt|form|marks|accuracy_straight|plainly_record|unit)_?|.*_(one|of)$|(in)?(below|(share|ratio)$)"
    )
    said = set(re.findall(r"[\"'](\w+)[\"']", code))
    assert [name for name in ENGLISH if not made.match(name) and name not in said] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_are_shown_as_they_are_written(folder: Path, language: str, tmp_path: Path) -> None:
    """No-break spaces stand before colons and per cent signs: nothing takes them for harm."""
    own = texts.words_in(language).texts
    assert {name for name, text in own.items() if printable(text) != text} == set()
    assert {
        name
        for name, text in own.items()
        if not all(map(str.isprintable, re.sub(r"[\u00a0\u202f]", "", text)))
    } == set()
    release = mdp.load_release(folder).in_language(language)
    [path] = release.save_tables(tmp_path / "book", format="xlsx").iterdir()
    book = load_workbook(path)
    cells = [str(cell.value) for sheet in book for row in sheet.iter_rows() for cell in row]
    seen = [report_release(folder, language=language), *cells, *book.sheetnames]
    for one in release.tables:
        more = ["--cross", "auto", "--margins"] if len(one.name.split(" by ")) > 1 else []
        seen.append(run("show", folder, one.title, "--language", language, *more).output)
    assert len(seen) > 100
    assert not [text for text in seen if "\ufffd" in text]
    assert sum("\u00a0" in text or "\u202f" in text for text in seen) > 5 or language == "en"


@pytest.mark.parametrize("language", ["fr", "de", "es"])
def test_a_page_has_no_english_words(folder: Path, language: str) -> None:
    text = report_release(folder, language=language)
    assert f'<html lang="{language}">' in text
    spoken = re.sub(r'<(p|ul|details) lang="en">.*?</\1>', "", text, flags=re.DOTALL)
    page, say = Page(spoken), texts.words_in(language)
    for name in ("nav_promise", "nav_accuracy", "plainly_small", "grades", "rounded", "download"):
        assert " ".join(say(name, base="5").split()) in page.text
    parts = [part.strip(" .") for own in ENGLISH.values() for part in re.split(r"{\w+}", own)]
    english = {part for part in parts if len(part) > 14 and part not in " ".join(say.texts.values())}
    assert len(english) > 80
    shown = f"{page.text} {' '.join(str(a.get('alt')) + str(a.get('aria-label')) for _, a in page.elements)}"
    assert {part for part in english if part in shown} == set()


def test_titles_and_workbooks_are_in_the_language(folder: Path, tmp_path: Path) -> None:
    release = mdp.load_release(folder).in_language("fr")
    assert [one.title for one in release.tables] == [
        "age", "X selon age", "age\N{NO-BREAK SPACE}: cumul selon X", "age\N{NO-BREAK SPACE}: intervalles",
        "moyenne\N{NO-BREAK SPACE}: age selon X", "quartiles\N{NO-BREAK SPACE}: age où X f",
        "les plus fréquents 2\N{NO-BREAK SPACE}: age",
    ]  # fmt: skip
    assert [one.name for one in release.tables] == [one.name for one in mdp.load_release(folder).tables]
    assert release.find("moyenne\N{NO-BREAK SPACE}: age selon X").name == "mean of age by sex"
    assert release.cross_table("sex by age").columns == ("Total", "f", "m")
    [path] = release.save_tables(tmp_path / "book", format="xlsx").iterdir()
    book = load_workbook(path)
    assert (book.sheetnames[0], book.sheetnames[-1]) == ("Sommaire", "Notes")
    assert [cell.value for cell in book["Sommaire"][3]][:2] == ["tableau", "avec intervalles"]
    heads = [cell.value for cell in book["age"][5]]
    assert heads[-5:] == ["estimation", "erreur type", "de", "à", "qualité"]
    assert book["X selon age (liste)"]["A5"].value == "X"
    notes = " ".join(str(cell.value) for cell in book["Notes"]["A"])
    assert release.presentation.say("digits") in notes
    assert all(words in notes for words in release.presentation.words)


def test_the_terminal_and_the_publication_speak_it(folder: Path, tmp_path: Path) -> None:
    for table, *more in (("age",), ("sex by age", "--cross", "auto"), ("mean of age by sex",)):
        shown = CliRunner().invoke(app, ["show", str(folder), table, *more, "--language", "de"])
        assert shown.exit_code == 0, shown.output
        assert (
            "Insgesamt" if more else "Standardfehler" if "mean" in table else "Schätzwert"
        ) in shown.output
        assert ("Vielfache von 5" in " ".join(shown.output.split())) == ("mean" not in table)
    spec = {"domain": {"a": 3}, "workload": [{"marginals": 1}], "privacy": {"rho": 1}}
    released = mdp.release(spec | {"publication": {"language": "es"}}, tmp_path / "es", table={"a": [0, 1]})
    assert released.presentation.say("quality") == "calidad"
    assert '<html lang="es">' in report_release(tmp_path / "es")


def test_an_office_hands_over_its_own_words(folder: Path, tmp_path: Path, registry: None) -> None:
    told = CliRunner().invoke(app, ["show", str(folder), "age", "--language", "it"])
    assert told.exit_code == 0
    assert told.stderr.count("no catalog has the language it") == 1
    assert "1 text without it: domain.age.title" in " ".join(told.stderr.split())
    catalog, out = tmp_path / "it.toml", tmp_path / "page.html"
    catalog.write_text(ITALIAN, encoding="utf-8")
    asked = ["report", str(folder), "--language", "it", "--words", str(catalog), "--out", str(out)]
    found = CliRunner().invoke(app, asked)
    assert (found.exit_code, found.stderr) == (0, "Warning: 1 text without it: domain.age.title.\n")
    page = out.read_text(encoding="utf-8")
    assert '<html lang="it">' in page
    assert "X per age" in page
    assert "Unità: records." in page
    assert "Tavole &amp; c." in page
    assert "How accurate they are" in page  # what the catalog leaves out


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("it.toml", None, "file-missing"),
        ("it.toml", "total", "specification"),
        ("it.toml", 'totals = "Totale"', "unknown-name"),
        ("it.toml", "total = 3", "specification"),
        ("it.toml", 'by = "{first.__class__} per {rest}"', "specification"),
        ("it.toml", 'total = "{}"', "specification"),
        ("it.toml", 'total = "{"', "specification"),
        ("it.toml", 'total = "}"', "specification"),
        ("it.toml", 'unit = "{unit:^400000000}"', "specification"),
        ("it.toml", 'unit = "{unit:{unit.__class__}}"', "specification"),
        ("it.toml", 'unit = "{unit!r}"', "specification"),
        ("it.toml", 'unit = "{unit}{unit}"', "specification"),
        ("it.toml", 'unit = "$x$ {unit}"', "specification"),
        ("it.toml", f'unit = "{1001 * "x"}"', "specification"),
        ("it.toml", "total = " + "[" * 10_000, "specification"),
        ("it.toml", "a." * 10_000 + "a = 1", "specification"),
        ("italiano!.toml", 'total = "Totale"', "specification"),
        ("it.yaml", 'total = "Totale"', "specification"),
    ],
)
def test_a_catalog_that_is_none_is_rejected(
    tmp_path: Path, registry: None, name: str, content: str | None, code: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(mdp.SpecificationError) as caught:
        mdp.register_words(tmp_path / name)
    assert caught.value.code == code
    assert texts.words_in("it").language == "en"


def test_nothing_but_names_is_evaluated(folder: Path, registry: None) -> None:
    """Not even in a catalog that was never checked."""
    written = "{unit:^9} {unit.__class__} {unit!r} {unit}"
    words = texts.Words("it", {**ENGLISH, "unit": written, "skip": "{skip.__class__:>30}"})
    assert words("unit", unit="{number}") == "{unit:^9} {unit.__class__} {unit!r} {number}"
    texts._REGISTERED["it"] = words.texts
    page = report_release(folder, language="it")
    assert "{unit:^9} {unit.__class__} {unit!r} records" in page
    assert "{skip.__class__:&gt;30}" in page


@pytest.mark.parametrize(
    ("language", "written"), [("de", "1.234,5"), ("en", "1,234.5"), ("es", "1.234,5"), ("fr", "1\u202f234,5")]
)
def test_numbers_have_the_marks_of_the_language_on_every_face(
    tmp_path: Path, language: str, written: str, registry: None
) -> None:
    domain = {"g": ["a", "b"], "h": ["x", "y"], "pay": {"min": 1230, "max": 1239}}
    workload = [{"mean": "pay", "by": ["g", "h"]}, {"marginals": 0}, {"share": {"marginals": [["g"]]}}]
    publication = {"language": language}
    spec = {"domain": domain, "workload": workload, "privacy": {"rho": 5000}, "publication": publication}
    rows = 1000
    table = {
        "g": ["a", "b"] * rows,
        "h": ["x"] * rows + ["y"] * rows,
        "pay": [1234, 1234, 1235, 1235] * (rows // 2),
    }
    release = mdp.release(spec, tmp_path / "out", table=table, seed_not_private=1).for_readers()
    mean = release.tables[0].name
    thousands = written[1]
    total, share = f"2{thousands}000", release.presentation.say.percent(0.5, 2)
    faces = {
        "show": run("show", tmp_path / "out", mean).output,
        "cross": run("show", tmp_path / "out", mean, "--cross", "auto").output,
        "answer": run("answer", tmp_path / "out", "mean: pay, by: [g]").output,
        "sql": run("answer", tmp_path / "out", "--sql", "SELECT g, AVG(pay) AS n FROM t GROUP BY g").output,
        "notebook": str(release.glance()) + release._repr_html_(),
        "page": report_release(tmp_path / "out"),
    }
    for face, text in faces.items():
        assert written in text, face
        assert "\ufffd" not in text, face
    for face in ("page", "notebook"):
        assert total in faces[face], face
        assert share[:2] in faces[face], face
    axes = release.plot(mean).axes[0]
    marks = [axes.xaxis.get_major_formatter()(value) for value in (1234.5, 2000.0)]
    assert marks == [written, total]


def test_what_is_put_into_words_is_escaped(tmp_path: Path) -> None:
    spec = {"domain": {"a": 3}, "workload": [{"marginals": 1}], "privacy": {"rho": 1}}
    mdp.release(spec | {"publication": {"unit": "<i>tests</i>"}}, tmp_path / "out", table={"a": [0, 1]})
    page = report_release(tmp_path / "out")
    assert "Unit: &lt;i&gt;tests&lt;/i&gt;" in page
    assert "<i>" not in page


def test_files_for_readers_hold_no_formulas(tmp_path: Path) -> None:
    labels = ["=1+1", "-5", "-cmd", "@SUM(A1)", "plain"]
    names = {"en": "=Kind", "fr": "+Sorte"}
    spec = {
        "domain": {"kind": {"categories": labels, "title": names}},
        "workload": [{"marginals": 1}],
        "privacy": {"rho": 1},
    }
    release = mdp.release(spec, tmp_path / "out", table={"kind": labels * 3})
    exact, spoken = (
        list(csv.reader((one.save_tables(tmp_path / name) / "kind.csv").read_text("utf-8").splitlines()))
        for name, one in (("exact", release), ("fr", release.in_language("fr")))
    )
    assert [row[0] for row in exact] == ["kind", *labels]
    assert [row[0] for row in spoken] == ["'+Sorte", "'=1+1", "-5", "'-cmd", "'@SUM(A1)", "plain"]
    package = json.loads((tmp_path / "fr" / "datapackage.json").read_text(encoding="utf-8"))
    assert package["resources"][0]["schema"]["fields"][0]["name"] == "'+Sorte"
    [path] = release.save_tables(tmp_path / "book", format="xlsx").iterdir()
    cells = [cell for sheet in load_workbook(path) for row in sheet.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "n"}
    assert set(labels) <= {cell.value for cell in cells}


def test_parquet_says_which_rules_were_declared(folder: Path, tmp_path: Path) -> None:
    release = mdp.load_release(folder)
    tables = release.save_tables(tmp_path / "tables", format="parquet")
    said = {
        path.stem: json.loads(pq.read_schema(path).metadata[b"matrixdp"])["presentation"]
        for path in tables.glob("*.parquet")
    }
    assert said["age"] == release.presentation.words
    assert said["mean-of-age-by-sex"] == [own for own in release.presentation.words if "multiples" not in own]


def test_the_terminal_says_what_a_confidence_is_and_leaves_out_what_says_nothing(folder: Path) -> None:
    top, mean = (
        CliRunner().invoke(app, ["show", str(folder), name]).output
        for name in ("top 2 of age", "mean of age by sex")
    )
    assert "The confidence is that with which the values listed" in top
    assert "The confidence" not in mean
    assert "binning" not in mean
    page = report_release(folder)
    assert page.count("The confidence is that with which") == 1
    assert "binning" not in page


@pytest.mark.parametrize("text", ['months = "a b"', 'months_short = "a"', 'weekdays = "x"'])
def test_lists_of_names_are_whole(text: str, tmp_path: Path) -> None:
    (tmp_path / "xx.toml").write_text(text)
    with pytest.raises(mdp.SpecificationError) as caught:
        mdp.register_words(tmp_path / "xx.toml")
    assert caught.value.code == "wrong-size"


def test_marks_may_be_none(tmp_path: Path) -> None:
    (tmp_path / "yy.toml").write_text('thousands = ""\ndecimal = ","')
    mdp.register_words(tmp_path / "yy.toml")
    assert [texts.words_in("yy").plain(own) for own in (0.5, 1968.25, 25000.0)] == ["0,5", "1968,25", "25000"]


def test_a_users_level_of_dates_keeps_its_values(tmp_path: Path) -> None:
    years = {"2016-17": ["2016-06", "2016-07"], "2016-00": ["2016-08"], "2011-12": ["2016-09"]}
    months = {"from": "2016-06-01", "to": "2016-09-30", "by": "month", "levels": {"school_year": years}}
    spec = {
        "domain": {"month": months, "sex": {"labels": {"f": {"en": "female", "fr": "femme"}, "m": "m"}}},
        "workload": [{"marginals": [["school_year"], ["month", "sex"]]}],
        "privacy": {"rho": 4},
    }
    table = {"month": ["2016-06-01", "2016-08-02"], "sex": ["f", "m"]}
    mdp.release(spec, tmp_path / "out", table=table)
    told = run("show", tmp_path / "out", "school_year").output
    assert all(value in told for value in years)
    # statements are read in the words of the specification, whatever readers see
    for condition in ("month >= '2016-07'", "sex = 'female'"):
        asked = f"SELECT month, COUNT(*) AS n FROM t WHERE {condition} GROUP BY month"  # noqa: S608
        for more in ((), ("--json",)):
            assert run("answer", tmp_path / "out", "--sql", asked, *more).exit_code == 0
    shown = json.loads(run("show", tmp_path / "out", "month, sex", "--json").stdout)
    assert {row["month"] for row in shown["answers"]} == {"2016-06", "2016-07", "2016-08", "2016-09"}
