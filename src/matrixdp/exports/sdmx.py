"""The tables of a release as SDMX: a structure message, and a file of observations for each table."""

from __future__ import annotations

import csv
import datetime as dt
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa

from matrixdp.answers.figures import UNRELIABLE, decimals_by_subject, figures_of, with_digits
from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.table import BOUND, FIGURES, figure_of, heading, is_key, subject_of
from matrixdp.answers.titles import file_name, unique
from matrixdp.errors import needing
from matrixdp.exports.registry import file_mark, register_export, same_tables
from matrixdp.texts import legal_xml

if TYPE_CHECKING:
    from matrixdp.releases.release import Release

STRUCTURE = "structure.xml"
#: What SDMX calls a total, and the agency where no publisher is named.
_TOTAL, _NOBODY = "_T", "UNKNOWN"
#: The measure and the attributes of observations that hold the four figures, and what they are called.
_FIGURES = {
    "estimate": ("OBS_VALUE", "Observation"),
    "stddev": ("STD_ERROR", "Standard error"),
    "lower": ("LOWER_BOUND", "Lower end of the interval"),
    "upper": ("UPPER_BOUND", "Upper end of the interval"),
}
_STATUS = {
    "A": "Normal value",
    "U": "Low reliability",
    "UNBOUNDED": "Low reliability: an estimate without a bounded interval",
    "Q": "Suppressed",
    "O": "Missing value",
}
#: The dimension of tables that have no other: every structure has one.
_SCOPE = "scope"
_CONFIDENTIALITY = {"F": "Free"}
_FIXED = {
    "OBS_STATUS": "Observation status",
    "CONF_STATUS": "Confidentiality status",
    "UNIT_MEASURE": "Unit of measure",
}


def identifiers(texts: Iterable[str], taken: Iterable[str] = (), *, named: str = "") -> dict[str, str]:
    """Return an SDMX identifier for each text: capitals, digits, hyphens and underscores, each once.

    Parameters
    ----------
    texts : iterable of str
        What is to be identified.
    taken : iterable of str
        Identifiers that are in use.
    named : str
        What identifiers begin with that would not begin with a letter; codes may begin with anything.

    Examples
    --------
    >>> identifiers(["female", "Female", "0-17", "[0, 10)", "\u0634"])
    {'female': 'FEMALE', 'Female': 'FEMALE_2', '0-17': '0-17', '[0, 10)': '0_10', '\u0634': 'X'}
    """
    found: dict[str, str] = {}
    used = set(taken)
    for text in texts:
        if text in found:
            continue
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().upper()
        base = re.sub(r"[^A-Z0-9-]+", "_", plain).strip("_")[:60] or "X"
        if named and not base[0].isalpha():
            base = f"{named}_{base}"
        made, number = base, 2
        while made in used:
            made, number = f"{base}_{number}", number + 1
        used.add(made)
        found[text] = made
    return found


@final
@dataclass(frozen=True)
class _Flow:
    """One table as SDMX has it: its identifier, its dimensions, its attributes, and its rows.

    ``keys`` and ``others`` say which columns are dimensions, and further attributes, by their identifiers.
    """

    id: str
    table: pa.Table
    measures: str
    keys: Mapping[str, str]
    others: Mapping[str, str]


def write_sdmx(release: Release, published: Sequence[PublishedTable], folder: Path) -> None:
    """Write a structure message and the observations of tables into a folder.

    Identifiers are made of machine names. Names are in the language of the release, or, where it has none, in
    all that its texts are written in.

    Raises
    ------
    SpecificationError
        If pysdmx is not installed.
    """
    with needing("pysdmx", "sdmx", "format"):
        from pysdmx.io.xml.sdmx30.writer.structure import write as write_structure
    kept = [one for one in published if one.statistic is None or one.statistic.table is not None]
    plain = release.in_language(None)
    flows = _flows(*_spoken(plain, same_tables(kept, release, plain)))
    codes = _codes(flows)
    publisher = plain.told.get("publisher", _NOBODY)
    agency = identifiers([publisher], named="A")[publisher]
    language = release.domain.language
    messages = []
    for own in release.languages if language is None else (language,):
        speaker = release.in_language(own)
        spoken = _spoken(speaker, same_tables(kept, release, speaker))
        made = _structures(speaker, *spoken, flows, codes, agency)
        message = write_structure(made, header=_header(release, agency)) or ""
        messages.append((own, legal_xml(message)))
    (folder / STRUCTURE).write_bytes(_joined(messages))
    mark, taken = file_mark(release), set[str]()
    for flow, one in zip(flows, kept, strict=True):
        path = folder / f"{mark}{file_name(one.name, taken)}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(_rows(release, flow, one.unit, codes, agency))


def _spoken(
    release: Release, chosen: Sequence[PublishedTable]
) -> tuple[Sequence[PublishedTable], list[pa.Table]]:
    """Return tables with their contents, each with a column that says what a row is of."""
    tables = [release.table(one).to_arrow() for one in chosen]
    return chosen, [
        table
        if any(map(is_key, table.schema))
        else table.append_column(_SCOPE, pa.nulls(len(table), pa.utf8()))
        for table in tables
    ]


def _flows(published: Sequence[PublishedTable], tables: Sequence[pa.Table]) -> list[_Flow]:
    fixed = [*(own for own, _ in _FIGURES.values()), *_FIXED]
    columns = identifiers((name for table in tables for name in table.column_names), fixed, named="D")
    names = unique(one.name for one in published)
    ids = identifiers(names, named="T")
    found = []
    for name, one, table in zip(names, published, tables, strict=True):
        keys = {field.name: columns[field.name] for field in table.schema if is_key(field)}
        left = (f.name for f in table.schema if f.name not in keys and BOUND not in (f.metadata or {}))
        others = {other: columns[other] for other in left if other not in _own(table.schema).values()}
        found.append(_Flow(ids[name], table, one.measures, keys, others))
    return found


def _own(schema: pa.Schema) -> dict[str, str]:
    """Return the columns of the figures that a table is about, by figure."""
    return {figure_of(field): field.name for field in schema if figure_of(field) and not subject_of(field)}


def _codes(flows: Sequence[_Flow]) -> dict[str, dict[str, str]]:
    """Return the codes of the texts of each dimension, in every table alike."""
    texts: dict[str, dict[str, None]] = {}
    for flow in flows:
        for name in flow.keys:
            texts.setdefault(name, {}).update(dict.fromkeys(_texts(flow.table.column(name))))
    return {
        name: {"": _TOTAL} | identifiers((text for text in own if text), [_TOTAL])
        for name, own in texts.items()
    }


def _texts(column: pa.ChunkedArray) -> list[str]:
    """Return the text of each row of a column; empty for a total."""
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _structures(
    speaker: Release,
    published: Sequence[PublishedTable],
    tables: Sequence[pa.Table],
    flows: Sequence[_Flow],
    codes: Mapping[str, Mapping[str, str]],
    agency: str,
) -> list[Any]:
    """Return the concept scheme, the code lists, and for each table its structure and its dataflow."""
    from pysdmx import model as sdmx

    titles, say = dict(_FIGURES.values()) | _FIXED, speaker.presentation.say
    names: dict[str, dict[str, str]] = {name: {"": "Total"} for name in codes}
    for flow, table in zip(flows, tables, strict=True):
        spoken = dict(zip(flow.table.column_names, table.schema, strict=True))
        for name, own in (*flow.keys.items(), *flow.others.items()):
            titles.setdefault(own, heading(spoken[name], say))
            if name in flow.keys:
                pairs = zip(
                    _texts(flow.table.column(name)), _texts(table.column(spoken[name].name)), strict=True
                )
                names[name] |= {text: shown for text, shown in pairs if text}
    concepts = [sdmx.Concept(own, name=words) for own, words in titles.items()]
    lists = {
        own: sdmx.Codelist(f"CL_{own}", name=titles[own], items=items, agency=agency)
        for own, items in (
            *_fixed_lists(sdmx).items(),
            *(
                (
                    _dimension(flows, name),
                    [sdmx.Code(code, name=names[name][text]) for text, code in own.items()],
                )
                for name, own in codes.items()
            ),
        )
    }
    structures: list[Any] = [
        sdmx.ConceptScheme("CS_MATRIXDP", name="Concepts", items=concepts, agency=agency),
        *lists.values(),
    ]

    def component(own: str, role: Any, kind: Any = None) -> Any:
        concept = sdmx.ItemReference("Concept", agency, "CS_MATRIXDP", "1.0", own)
        level = "O" if role is sdmx.Role.ATTRIBUTE else None
        required = role is sdmx.Role.DIMENSION
        return sdmx.Component(
            own, required, role, concept, kind, local_codes=lists.get(own), attachment_level=level
        )

    told = [sdmx.Annotation(id=key, text=text) for key, text in speaker.told.items()]
    for flow, one in zip(flows, published, strict=True):
        parts = [component(own, sdmx.Role.DIMENSION) for own in flow.keys.values()]
        for figure, column in _own(flow.table.schema).items():
            role = sdmx.Role.MEASURE if figure == FIGURES[0] else sdmx.Role.ATTRIBUTE
            parts.append(component(_FIGURES[figure][0], role, _kind(flow.table.schema.field(column))))
        parts += [component(own, sdmx.Role.ATTRIBUTE) for own in _FIXED]
        for name, own in flow.others.items():
            parts.append(component(own, sdmx.Role.ATTRIBUTE, _kind(flow.table.schema.field(name))))
        words = " ".join(filter(None, (one.note, one.source, say("grades"), speaker.statement.text)))
        structure = sdmx.DataStructureDefinition(
            f"DSD_{flow.id}", name=one.title, components=sdmx.Components(parts), agency=agency
        )
        structures += [
            structure,
            sdmx.Dataflow(
                f"DF_{flow.id}",
                name=one.title,
                description=words,
                structure=structure,
                agency=agency,
                annotations=told,
            ),
        ]
    return structures


def _dimension(flows: Sequence[_Flow], name: str) -> str:
    return next(flow.keys[name] for flow in flows if name in flow.keys)


def _fixed_lists(sdmx: Any) -> dict[str, list[Any]]:
    lists = {"OBS_STATUS": _STATUS, "CONF_STATUS": _CONFIDENTIALITY}
    return {own: [sdmx.Code(code, name=words) for code, words in held.items()] for own, held in lists.items()}


def _kind(field: pa.Field) -> Any:
    from pysdmx.model import DataType

    return DataType.DOUBLE if pa.types.is_floating(field.type) else DataType.STRING


def _header(release: Release, agency: str) -> Any:
    from pysdmx.model import Organisation
    from pysdmx.model.message import Header

    time = release.measurement.authorization.time
    made = dt.datetime(2000, 1, 1, tzinfo=dt.UTC) if time is None else dt.datetime.fromisoformat(time)
    return Header(id="MATRIXDP", test=not release.private, prepared=made, sender=Organisation(agency))


def _joined(messages: Sequence[tuple[str, str]]) -> bytes:
    """Return the messages in several languages, which differ in their names alone, as one."""
    from lxml import etree

    roots = [etree.fromstring(text.encode()) for _, text in messages]
    language = "{http://www.w3.org/XML/1998/namespace}lang"
    spoken = [[one for one in root.iter() if one.get(language)] for root in roots]
    for same in zip(*spoken, strict=True):
        for (own, _), one in zip(messages, same, strict=True):
            one.set(language, own)
        for one in reversed(same[1:]):
            if one.text != same[0].text:
                same[0].addnext(one)
    made: bytes = etree.tostring(roots[0], xml_declaration=True, encoding="UTF-8")
    return made


def _rows(
    release: Release, flow: _Flow, unit: str, codes: Mapping[str, Mapping[str, str]], agency: str
) -> Iterator[list[object]]:
    """Yield the head and the observations of a table as SDMX-CSV 2.0 has them."""
    table, own = flow.table, _own(flow.table.schema)
    shown = with_digits(table, decimals_by_subject(table))
    judged = figures_of(table, flow.measures, release.presentation)[""]
    states = zip(judged.letters, judged.hidden.tolist(), judged.unbounded.tolist(), strict=True)
    figures = [_FIGURES[figure][0] for figure in own]
    first = ["dataflow", f"{agency}:DF_{flow.id}(1.0)", "I"]
    yield [
        "STRUCTURE", "STRUCTURE_ID", "ACTION", *flow.keys.values(), *figures, *_FIXED, *flow.others.values(),
    ]  # fmt: skip
    keys = [[codes[name][text] for text in _texts(table.column(name))] for name in flow.keys]
    values = [shown.column(name).to_pylist() for name in (*own.values(), *flow.others)]
    for row, (letter, hidden, unbounded) in enumerate(states):
        found = ["" if column[row] is None or hidden else _plain(column[row]) for column in values]
        status = "UNBOUNDED" if unbounded else "U" if letter == UNRELIABLE else "A"
        status = "Q" if hidden else "O" if found[0] == "" else status
        said = [status, "F", unit]
        yield [*first, *(key[row] for key in keys), *found[: len(own)], *said, *found[len(own) :]]


def _plain(value: object) -> object:
    """Return a value with the digits that the other files have: whole numbers without a point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


register_export("sdmx", write_sdmx)
