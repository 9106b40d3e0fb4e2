"""The code book of a release as DDI Codebook 2.5: what it is about, its files and its variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from matrixdp.answers.publication import PublishedTable
from matrixdp.domain import Attribute
from matrixdp.exports.registry import register_export, same_tables
from matrixdp.texts import legal_xml

if TYPE_CHECKING:
    from matrixdp.releases.release import Release

FILE = "codebook.xml"
#: Longer lists of values are left out; the specification has them.
_MOST_VALUES = 10_000
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_NAMESPACE = "ddi:codebook:2_5"
_LOCATION = "{http://www.w3.org/2001/XMLSchema-instance}schemaLocation"
_SCHEMA = f"{_NAMESPACE} https://ddialliance.org/Specification/DDI-Codebook/2.5/XMLSchema/codebook.xsd"
#: Where texts of a publication have places of their own, in the order of the schema; others are notes.
_STUDY = {
    "title": "",
    "publisher": "citation/prodStmt/producer",
    "contact": "citation/distStmt/contact",
    "description": "stdyInfo/abstract",
    "period": "stdyInfo/sumDscr/timePrd",
    "unit": "stdyInfo/sumDscr/anlyUnit",
    "source": "method/dataColl/sources/dataSrc",
    "method": "method/notes",
    "licence": "dataAccs/useStmt/conditions",
}


def write_codebook(release: Release, published: Sequence[PublishedTable], folder: Path) -> None:
    """Write the code book into a folder: in the language of the release, else in all that its texts have."""
    language = release.domain.language
    spoken = release.languages if language is None else (language,)
    speakers = {own: release.in_language(own) for own in spoken}
    first = next(iter(spoken))
    book = ET.Element("codeBook", {"xmlns": _NAMESPACE, "version": "2.5", _LANGUAGE: first})
    book.set(_LOCATION, _SCHEMA)
    study = ET.SubElement(book, "stdyDscr")
    others = [key for key in release.told if key not in _STUDY]
    for key, place in (_STUDY | dict.fromkeys(others, "notes")).items():
        texts = {own: one.told.get(key, "") for own, one in speakers.items()}
        if key == "title":
            _title(study, {own: text or "Release" for own, text in texts.items()})
        else:
            _tell(study, place, texts, {"type": key} if key in others else {})
    _tell(study, "notes", {"en": release.statement.text})
    if not release.private:
        _tell(study, "notes", {"en": "NOT PRIVATE: the noise was seeded. Do not publish."})
    data = ET.SubElement(book, "dataDscr")
    for number, attribute in enumerate(release.in_language(None).domain, start=1):
        domains = {own: one.domain[attribute.name] for own, one in speakers.items()}
        _variable(data, f"V{number}", attribute, domains)
    every = zip(*(same_tables(published, release, one) for one in speakers.values()), strict=True)
    for number, named in enumerate(every, start=1):
        told = list(zip(speakers, named, strict=True))
        table = ET.SubElement(book, "otherMat", {"ID": f"T{number}", "type": "table"})
        _tell(table, "labl", {own: one.title for own, one in told})
        for key in ("note", "source"):
            _tell(table, "notes", {own: getattr(one, key) for own, one in told})
    ET.indent(book)
    ET.ElementTree(book).write(folder / FILE, encoding="utf-8", xml_declaration=True)


def _title(study: ET.Element, titles: Mapping[str, str]) -> None:
    """Write the title, and in other languages the parallel titles."""
    statement = ET.SubElement(ET.SubElement(study, "citation"), "titlStmt")
    for place, (own, text) in enumerate(_once(titles)):
        ET.SubElement(statement, "parTitl" if place else "titl", {_LANGUAGE: own}).text = text


def _variable(data: ET.Element, name: str, attribute: Attribute, spoken: Mapping[str, Attribute]) -> None:
    """Write an attribute with its texts and its values."""
    kind = "contin" if attribute.numeric else "discrete"
    variable = ET.SubElement(data, "var", {"ID": name, "name": legal_xml(attribute.name), "intrvl": kind})
    _tell(variable, "labl", {own: one.title for own, one in spoken.items()})
    for code in attribute.all_codes if attribute.size <= _MOST_VALUES else ():
        missing = {"missing": "Y"} if code == attribute.null_code else {}
        category = ET.SubElement(variable, "catgry", missing)
        ET.SubElement(category, "catValu").text = legal_xml(str(attribute.value(code)))
        _tell(category, "labl", {own: one.label(code) for own, one in spoken.items()})
    for key in ("unit", "note", "source"):
        texts = {own: one.told.get(key, "") for own, one in spoken.items()}
        _tell(variable, "notes", texts, {"type": key})


def _tell(
    parent: ET.Element, place: str, texts: Mapping[str, str], more: Mapping[str, str] | None = None
) -> None:
    """Write a text at a place in every language that has one of its own."""
    *outer, last = place.split("/")
    found = [(own, text) for own, text in _once(texts) if text]
    for name in outer if found else ():
        known = parent.find(name)
        parent = ET.SubElement(parent, name) if known is None else known
    for own, text in found:
        ET.SubElement(parent, last, {_LANGUAGE: own, **(more or {})}).text = text


def _once(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield texts that XML can hold with their languages, each text once."""
    seen: set[str] = set()
    for own, text in texts.items():
        if text not in seen:
            seen.add(text)
            yield own, legal_xml(text)


register_export("ddi", write_codebook)
