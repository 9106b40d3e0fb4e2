"""Texts for readers: in every language, in every face, and of no influence on what is measured."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.forms import FormError
from matrixdp.specification import load_specification
from matrixdp.texts import Text

NASTY = ['=cmd()|"x", y', "line\nbreak", "<b>bold</b> & co", "شرطة"]
TITLES = {"en": NASTY[0], "fr": NASTY[2], "ar": NASTY[3]}
PLAIN = """
domain:
  sex: {labels: {f: female, m: male}, null: unknown}
  place: {categories: [a, b, c], levels: {area: {N: [a, b], S: [c]}}}
  age: {min: 0, max: 3}
workload:
  - marginals: [[sex, place], [sex, area]]
  - mean: age
    by: [sex]
privacy: {mu: 3}
"""


def told() -> dict:
    """Return the same specification with texts."""
    spec = yaml.safe_load(PLAIN)
    spec["domain"]["sex"] |= {
        "labels": {"f": {"en": "female", "fr": "femme"}, "m": {"en": "male", "fr": "homme"}},
        "null": {"en": "unknown", "fr": "inconnu"},
        "title": {"en": "Sex", "fr": "Sexe"},
        "note": NASTY[1],
    }
    spec["domain"]["place"] |= {
        "title": TITLES,
        "level_texts": {"area": {"title": {"fr": "Région"}, "labels": {"N": {"en": "N", "fr": "Nord"}}}},
    }
    spec["domain"]["age"] |= {"unit": {"en": "years", "fr": "ans"}, "title": "Age"}
    spec["workload"][0] |= {
        "title": {"en": "Stops", "fr": "Contrôles"},
        "note": NASTY[3],
        "source": "Register",
    }
    spec["workload"][1] |= {"title": {"en": "Mean age", "fr": "Âge moyen"}}
    spec["publication"] = {
        "title": TITLES,
        "unit": {"en": "stops", "fr": "contrôles"},
        "licence": "CC BY 4.0",
    }
    return spec


TABLE = {"sex": ["f", "m", None] * 30, "place": ["a", "b", "c"] * 30, "age": [0, 1, 2] * 30}


def released(spec: object, folder: Path) -> mdp.Release:
    return mdp.release(spec, folder, table=TABLE, seed_not_private=3)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("texts") / "out"
    released(told(), place)
    return place


def test_texts_change_no_figure_and_no_machine_name(folder: Path, tmp_path: Path) -> None:
    plain, release = released(yaml.safe_load(PLAIN), tmp_path / "plain"), mdp.load_release(folder)
    assert release.answers.equals(plain.answers)
    assert release.domain == plain.domain
    assert [one.name for one in release.tables] == [one.name for one in plain.tables]
    assert {k: t.column_names for k, t in release.statistics.items()} == {
        k: t.column_names for k, t in plain.statistics.items()
    }
    assert mdp.verify_release(folder).holds
    one, other = (json.loads((place / "release.json").read_text()) for place in (folder, tmp_path / "plain"))
    assert one.pop("publication") == told()["publication"]
    assert one["privacy"]["cost"] == other["privacy"]["cost"]
    assert one.keys() == other.keys()


def test_a_release_speaks_each_language(folder: Path) -> None:
    release = mdp.load_release(folder)
    french = release.in_language("fr")
    assert release.languages == ("en", "fr", "ar")
    assert [one.title for one in french.tables] == [
        f"Contrôles: Sexe selon {NASTY[2]}",
        "Contrôles: Sexe selon Région",
        "Âge moyen",
    ]
    assert [one.unit for one in french.tables] == ["contrôles", "contrôles", "ans"]
    assert [one.unit for one in release.tables] == ["stops", "stops", "years"]
    found = french.table(french.tables[1])
    assert found["sex"].to_pylist()[::2] == ["femme", "homme", "inconnu"]
    assert found["area"].to_pylist()[:2] == ["Nord", "S"]
    assert found["estimate"].equals(release.table(release.tables[1].name)["estimate"])
    assert french.table("Âge moyen")["sex"].to_pylist() == ["femme", "homme", "inconnu"]
    assert french.told["title"] == NASTY[2]
    assert french.in_language(None).table("sex by area").equals(release.table("sex by area"))
    assert french.find("sex by place") == french.tables[0]


def test_a_saved_release_has_the_first_language_whatever_it_speaks(folder: Path, tmp_path: Path) -> None:
    again = mdp.load_release(mdp.load_release(folder).in_language("fr").save(tmp_path / "again"))
    assert again.answers.equals(mdp.load_release(folder).answers)
    assert again.publication.to_spec() == told()["publication"]
    assert mdp.verify_release(tmp_path / "again").holds


def test_the_terminal_speaks_it(folder: Path) -> None:
    shown = CliRunner().invoke(app, ["show", str(folder), "sex by place", "--language", "fr"])
    assert shown.exit_code == 0, shown.output
    assert {"Sexe", "inconnu", NASTY[3], "Register."} <= set(shown.output.replace("│", " ").split())
    german = CliRunner().invoke(app, ["show", str(folder), "sex by place", "--language", "de"])
    assert "Schätzwert" in german.output  # in the words of a catalog; texts are as they are
    refused = CliRunner().invoke(app, ["show", str(folder), "--language", "xx"])
    assert refused.exit_code == 2
    assert "unknown-name" in refused.output


def test_files_have_names_for_programs_and_titles_for_readers(folder: Path, tmp_path: Path) -> None:
    release = mdp.load_release(folder)
    plain, french = (
        release.save_tables(tmp_path / "plain"),
        release.in_language("fr").save_tables(tmp_path / "fr"),
    )
    assert {path.name for path in plain.iterdir()} == {path.name for path in french.iterdir()}
    name = "NOT-PRIVATE-sex-by-place.csv"
    heads = {}
    for place in (plain, french):
        with (place / name).open(encoding="utf-8", newline="") as file:
            heads[place] = list(csv.reader(file))
    assert heads[plain][0][:3] == ["sex", "place", "estimate"]
    assert heads[french][0][:3] == ["Sexe", NASTY[2], "estimation"]
    assert [row[2:] for row in heads[plain][1:]] == [row[2:] for row in heads[french][1:]]
    assert heads[french][1][0] == "femme"
    for place, head, title in ((plain, "sex", "Sex"), (french, "Sexe", None)):
        package = json.loads((place / "datapackage.json").read_text(encoding="utf-8"))
        [table] = [one for one in package["resources"] if one["path"] == name]
        assert (table["description"], table["sources"]) == (NASTY[3], [{"title": "Register"}])
        field = table["schema"]["fields"][0]
        assert (field["name"], field.get("title")) == (head, title)
        assert field["description"].endswith(NASTY[1])
        assert package["licenses"] == [{"title": "CC BY 4.0"}]
        catalogue = json.loads((place / "croissant.json").read_text(encoding="utf-8"))
        assert catalogue["license"] == "CC BY 4.0"
        columns = [one["source"]["extract"]["column"] for one in catalogue["recordSet"][0]["field"]]
        assert columns == heads[place][0]
    parquet = release.in_language("fr").save_tables(tmp_path / "pq", format="parquet")
    schema = pq.read_schema(parquet / name.replace(".csv", ".parquet"))
    assert (schema.names[0], schema.field(0).metadata[b"title"]) == ("sex", b"Sexe")
    assert json.loads(schema.metadata[b"matrixdp"])["unit"] == "contrôles"


def test_texts_have_a_limit() -> None:
    for own in (10_000 * "é", {"en": "Sex", "fr": 10_000 * "x"}):
        assert Text(own).to_spec() == own
    for own in (10_001 * "é", {"en": "Sex", "fr": 10_001 * "x"}):
        with pytest.raises(FormError) as caught:
            Text(own)
        assert caught.value.code == "wrong-type"


def test_texts_come_back_as_they_were_written() -> None:
    specification = load_specification(told())
    again = load_specification(specification.document)
    assert again.document == specification.document
    assert again.domain.to_spec()["place"]["level_texts"] == told()["domain"]["place"]["level_texts"]  # type: ignore[index]
    assert again.workload.entries[0].to_spec()["title"] == told()["workload"][0]["title"]


BOOK = (
    "variable,value,title.en,title.fr,note,label.en,label.fr\n"
    'sex,,Sex,Sexe,"line\nbreak, ""quoted""",,\n'
    "sex,f,,,,female,femme\nsex,m,,,,male,homme\nother,9,Other,,,x,\nplace,b,,,,=cmd(),\n"
)


def test_a_code_book_tells_what_the_specification_does_not(tmp_path: Path) -> None:
    spec = yaml.safe_load(PLAIN) | {"codebook": "book.csv"}
    spec["domain"]["sex"] = {"categories": ["f", "m"], "labels": {"m": "men"}, "null": "unknown"}
    (tmp_path / "book.csv").write_text(BOOK, encoding="utf-8")
    loaded = load_specification(spec, base_path=tmp_path)
    sex, french = loaded.domain["sex"], loaded.domain.in_language("fr")["sex"]
    assert [sex.label(code) for code in range(3)] == ["female", "men", "unknown"]
    assert [french.label(code) for code in range(3)] == ["femme", "men", "unknown"]
    assert (sex.title, french.title, sex.told["note"]) == ("Sex", "Sexe", 'line\nbreak, "quoted"')
    assert loaded.domain["place"].label(1) == "=cmd()"
    assert "codebook" not in loaded.document
    assert load_specification(loaded.document).domain.to_spec() == loaded.domain.to_spec()
    for text, code in (("a,b\n1,2\n", "missing-key"), (BOOK.replace("sex,f", "sex,x"), "unknown-name")):
        (tmp_path / "book.csv").write_text(text, encoding="utf-8")
        with pytest.raises(mdp.SpecificationError) as caught:
            load_specification(spec, base_path=tmp_path)
        assert (caught.value.code, caught.value.path[0]) == (code, "codebook")
