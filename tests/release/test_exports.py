"""Releases as SDMX and DDI: read back, held against their structure, in every language."""

import csv
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from lxml import etree
from pysdmx.io import read_sdmx
from pysdmx.io.csv.sdmx20.reader import read as read_observations
from pysdmx.model.dataflow import Role
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.exports.sdmx import identifiers
from tests.release.stopping import fail
from tests.release.test_texts import NASTY, released, told

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
DDI = {"d": "ddi:codebook:2_5"}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> mdp.Release:
    spec = told()
    spec["domain"]["age"] |= {"min": -2}
    spec["workload"] += [
        {"marginals": [0, ["sex"]][:1]},
        {"cdf": "age"},
        {"quantile": "age", "name": "2nd: age"},
    ]
    spec["publication"]["publisher"] = "Office of <Statistics>"
    return released(spec, tmp_path_factory.mktemp("exports") / "out")


@pytest.fixture(scope="module")
def folder(release: mdp.Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.save_tables(tmp_path_factory.mktemp("sdmx") / "sdmx", format="sdmx")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def structures(folder: Path):
    message = read_sdmx(folder / "structure.xml", validate=True)
    lists = {
        f"CL_{own.id.removeprefix('CL_')}": {code.id for code in own.items} for own in message.get_codelists()
    }
    return message, lists


def test_observations_fit_their_structure(release: mdp.Release, folder: Path) -> None:
    message, _ = structures(folder)
    definitions = {own.id: own for own in message.get_data_structure_definitions()}
    flows = {own.id: own for own in message.get_dataflows()}
    assert len(flows) == len(definitions) == len(release.tables)
    concepts = {concept.id for scheme in message.get_concept_schemes() for concept in scheme.items}
    seen = set()
    for path in folder.glob("*.csv"):
        rows = rows_of(path)
        [dataset] = read_observations(path.read_text(encoding="utf-8"))
        assert len(dataset.data) == len(rows)
        flow = rows[0]["STRUCTURE_ID"].split(":")[1].removesuffix("(1.0)")
        seen.add(flow)
        parts = {part.id: part for part in definitions[flow.replace("DF_", "DSD_", 1)].components}
        assert list(rows[0])[3:] == sorted(parts, key=list(rows[0]).index)
        assert parts.keys() <= concepts
        keys = [name for name, part in parts.items() if part.role is Role.DIMENSION]
        assert max(Counter(tuple(row[name] for name in keys) for row in rows).values()) == 1
        for name, part in parts.items():
            if part.local_codes is not None:
                assert {row[name] for row in rows} <= {code.id for code in part.local_codes.items}
            elif part.role is not Role.DIMENSION and part.local_dtype == "Double":
                [float(row[name]) for row in rows if row[name]]
    assert seen == flows.keys()


def test_observations_are_the_figures_of_the_tables(
    release: mdp.Release, folder: Path, tmp_path: Path
) -> None:
    plain = release.save_tables(tmp_path / "csv")
    own = rows_of(folder / "NOT-PRIVATE-sex-by-place.csv")
    other = rows_of(plain / "NOT-PRIVATE-sex-by-place.csv")
    for name, figure in {"OBS_VALUE": "estimate", "STD_ERROR": "stddev", "LOWER_BOUND": "lower"}.items():
        assert [row[name] for row in own] == [row[figure] for row in other]
    assert {row["UNIT_MEASURE"] for row in own} == {"stops"}


def test_suppressed_figures_are_marked_and_left_out(release: mdp.Release, tmp_path: Path) -> None:
    shy = release.presented(suppress_above=0.5)
    rows = rows_of(shy.save_tables(tmp_path / "o", format="sdmx") / "NOT-PRIVATE-sex-by-place.csv")
    marked = [row["OBS_STATUS"] == "Q" for row in rows]
    assert any(marked)
    assert [row["OBS_VALUE"] == row["STD_ERROR"] == row["LOWER_BOUND"] == "" for row in rows] == marked


def test_names_are_in_every_language_and_identifiers_in_none(
    release: mdp.Release, folder: Path, tmp_path: Path
) -> None:
    tree = etree.parse(folder / "structure.xml")
    names = {(one.get(LANGUAGE), one.text) for one in tree.iter() if one.get(LANGUAGE)}
    assert {("en", "Sex"), ("fr", "Sexe"), ("fr", "Âge moyen"), ("ar", NASTY[3]), ("fr", NASTY[2])} <= names
    french = release.in_language("fr").save_tables(tmp_path / "fr", format="sdmx")
    assert {path.name for path in french.iterdir()} == {path.name for path in folder.iterdir()}
    spoken = {one.get(LANGUAGE) for one in etree.parse(french / "structure.xml").iter() if one.get(LANGUAGE)}
    assert spoken == {"fr"}
    _, one = structures(folder)
    assert one["CL_SEX"] == {"_T", "FEMALE", "MALE", "UNKNOWN"}
    assert one["CL_AGE"] >= {"-2", "-2_-1", "-2_3"}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Âge", "age", "ÂGE"], ["AGE", "AGE_2", "AGE_3"]),
        (["a_2", "a", "A"], ["A_2", "A", "A_3"]),
        (["", "=cmd()", "-5", "5"], ["X", "CMD", "-5", "5"]),
    ],
)
def test_identifiers_are_valid_and_unique(texts: list[str], expected: list[str]) -> None:
    assert list(identifiers(texts).values()) == expected
    assert identifiers(["2nd"], named="T") == {"2nd": "T_2ND"}
    assert identifiers(["t"], ["T"], named="T") == {"t": "T_2"}


def test_the_code_book_has_attributes_values_and_texts(release: mdp.Release, tmp_path: Path) -> None:
    shown = CliRunner().invoke(
        app,
        ["show", str(release.save(tmp_path / "out")), "--export", str(tmp_path / "ddi"), "--format", "ddi"],
    )
    assert shown.exit_code == 0, shown.output
    book = etree.parse(tmp_path / "ddi" / "codebook.xml").getroot()

    def texts(path: str) -> list[tuple[str | None, str | None]]:
        return [(one.get(LANGUAGE), one.text) for one in book.findall(path, DDI)]

    assert texts("d:stdyDscr/d:citation/d:prodStmt/d:producer") == [("en", "Office of <Statistics>")]
    assert texts("d:stdyDscr/d:citation/d:titlStmt/d:parTitl") == [("fr", NASTY[2]), ("ar", NASTY[3])]
    sex = "d:dataDscr/d:var[@name='sex']"
    assert texts(f"{sex}/d:labl") == [("en", "Sex"), ("fr", "Sexe")]
    assert [text for _, text in texts(f"{sex}/d:catgry/d:catValu")] == ["f", "m", "unknown"]
    assert texts(f"{sex}/d:catgry/d:labl")[:2] == [("en", "female"), ("fr", "femme")]
    assert texts(f"{sex}/d:notes") == [("en", NASTY[1])]
    assert len(book.findall("d:otherMat", DDI)) == len(release.tables)


def test_a_workbook_on_a_full_disk_leaves_nothing(
    release: mdp.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xlsxwriter.workbook.ZipFile", fail)
    with pytest.raises(OSError, match="No space left"):
        release.save_tables(tmp_path / "out", format="xlsx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["sdmx", "ddi", "xlsx"])
def test_texts_that_xml_cannot_hold_are_replaced(tmp_path: Path, kind: str) -> None:
    hostile = "a\x00\x1b\x0b\ufffe<&]]>"
    attribute = {
        "categories": [hostile[2:], "b"],
        "title": hostile,
        "note": hostile,
        "labels": {"b": hostile + "b"},
    }
    workload = mdp.Workload(mdp.Domain({hostile: attribute}), mdp.marginals(1))
    made = mdp.select(workload).measure({hostile: ["b"]}, mdp.Budget(mu=1)).reconstruct()
    folder = made.save_tables(tmp_path / "out", format=kind)
    if kind == "xlsx":
        with zipfile.ZipFile(folder / "tables.xlsx") as book:
            texts = [book.read(name) for name in book.namelist()]
    else:
        texts = [path.read_bytes() for path in folder.glob("*.xml")]
    assert all(etree.fromstring(text) is not None for text in texts)
    assert any("\ufffd".encode() in text for text in texts)
