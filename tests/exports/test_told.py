"""Every text of a publication reaches readers by every way that a release takes."""

import re
import zipfile
from pathlib import Path

import pytest

import matrixdp as mdp
from matrixdp.exports import EXPORTS
from matrixdp.texts import Publication, words_in

#: What is no text: it says how figures are shown, which ones, or in which language texts are.
RULES = {
    "language",
    "round_to",
    "suppress",
    "within_range",
    "key_figures",
    "order",
    "hide_from_page",
    "footnotes",
}
KEYS = tuple(key for key in Publication.keys() if key not in RULES)  # noqa: SIM118 - the keys of the form
TEXTS = {key: f"https://{key}.example" if key == "method" else f"The {key} & more" for key in KEYS}
#: The files that describe all tables, by format; Parquet has those of CSV.
DESCRIPTIONS = {
    "csv": ("datapackage.json", "croissant.json"),
    "parquet": ("datapackage.json", "croissant.json"),
    "xlsx": ("tables.xlsx",),
    "sdmx": ("structure.xml",),
    "ddi": ("codebook.xml",),
}
#: A page says what a record is beside each table.
ELSEWHERE = {"page": {"unit"}}


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"]}), mdp.marginals(1))
    measured = mdp.select(workload).measure({"sex": ["m"]}, mdp.Budget(mu=1))
    return measured.reconstruct(publication=Publication.read(TEXTS))


def texts_in(path: Path) -> str:
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            return book.read("xl/sharedStrings.xml").decode()
    return path.read_text(encoding="utf-8")


def missing(text: str, surface: str) -> list[str]:
    said = text.replace("&amp;", "&")
    return [key for key in KEYS if TEXTS[key] not in said and key not in ELSEWHERE.get(surface, ())]


@pytest.mark.parametrize("kind", DESCRIPTIONS)
def test_exports_have_every_text(release: mdp.Release, tmp_path: Path, kind: str) -> None:
    folder = release.save_tables(tmp_path / kind, format=kind)
    for name in DESCRIPTIONS[kind]:
        assert missing(texts_in(folder / name), kind) == []


def test_every_export_of_ours_is_tried() -> None:
    writes = {name: getattr(one, "func", one) for name, one in EXPORTS.items()}
    ours = {name for name, write in writes.items() if write.__module__.startswith("matrixdp.exports.")}
    assert set(DESCRIPTIONS) == ours


def test_the_page_has_every_text(release: mdp.Release, tmp_path: Path) -> None:
    assert missing(mdp.report_release(release.save(tmp_path / "out")), "page") == []


def test_every_text_has_a_name_in_english() -> None:
    assert all(f"told_{key}" in words_in("en").texts for key in KEYS)


def test_tables_keep_their_titles_whatever_others_are_called(tmp_path: Path) -> None:
    """One is titled as another is named, and what serves a statistic is named as the statistic."""
    domain = mdp.Domain({"sex": ["f", "m"], "age": 3})
    asked = mdp.marginals([["sex"]], title="Sexes"), mdp.marginals([["age"]], title="sex")
    workload = mdp.Workload(domain, *asked, mdp.ask.sum("age", name="total age"))
    measured = mdp.select(workload).measure({"sex": ["m"], "age": [1]}, mdp.Budget(mu=1))
    release = measured.reconstruct()
    titles = [one.title for one in (*release.tables, *release.helpers)]
    for kind, name in (("ddi", "codebook.xml"), ("sdmx", "structure.xml"), ("xlsx", "tables.xlsx")):
        text = texts_in(release.save_tables(tmp_path / kind, format=kind, helpers=True) / name)
        assert [title for title in titles if title not in text] == [], kind
    book = texts_in(tmp_path / "ddi" / "codebook.xml")
    assert re.findall(r"<otherMat[^>]*>\s*<labl[^>]*>([^<]*)<", book) == titles
