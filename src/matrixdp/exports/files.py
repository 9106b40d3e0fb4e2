"""Tables as files of their own, in CSV or Parquet, with a Data Package and Croissant that describe them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.figures import decimals_by_subject, decimals_of, with_digits
from matrixdp.answers.inference import METADATA
from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.table import (
    BOUND,
    FIGURE,
    FIGURES,
    OF,
    REMARKS,
    TITLE,
    AnswerColumns,
    heading,
    plain_schema,
    quoted,
    without_formulas,
)
from matrixdp.answers.titles import file_name, unique
from matrixdp.exact.resources import one_blas_thread
from matrixdp.exports.registry import file_mark, register_export
from matrixdp.queries import Group
from matrixdp.storage.archive import arrow_writer, as_text, entry
from matrixdp.texts import ENGLISH

if TYPE_CHECKING:
    from matrixdp.releases.release import Release

DATA_PACKAGE, CROISSANT = "datapackage.json", "croissant.json"
_CSV, _PARQUET = "text/csv", "application/vnd.apache.parquet"
#: What each table can be written as in a file of its own, with the media types.
_TYPES = {"csv": _CSV, "parquet": _PARQUET}


def write_files(format: str, release: Release, published: Sequence[PublishedTable], folder: Path) -> None:  # noqa: A002
    """Write each table as a file, and descriptions of all of them."""
    with one_blas_thread():
        files = list(_written(release, published, folder, format))
    for name, described in ((DATA_PACKAGE, data_package), (CROISSANT, croissant)):
        (folder / name).write_text(as_text(described(release, files)) + "\n", encoding="utf-8")


def _written(
    release: Release,
    published: Sequence[PublishedTable],
    folder: Path,
    format: str,  # noqa: A002
) -> Iterator[TableFile]:
    taken: set[str] = set()
    for one in published:
        group, statistic = one.group, one.statistic
        if statistic is not None and statistic.table is None:
            continue  # the record says why it could not be computed
        name = file_name(one.name, taken)
        path = folder / f"{file_mark(release)}{name}.{format}"
        categories: dict[str, list[str]] = {}
        if group is None:
            assert statistic is not None
            tables = iter([_statistic(statistic.published, format)])
        else:
            columns = AnswerColumns(release.domain, (group,), levels=True)
            tables = _tables(release, group, columns, format)
        schema, headers = _write(path, tables, one, release)
        if group is not None:
            categories = _categories(columns, schema)
        said = entry(path)
        yield TableFile(
            path.name, name, one, schema, headers, categories,
            said["bytes"], said["sha256"], _TYPES[format],
        )  # fmt: skip


def _statistic(table: pa.Table, format: str) -> pa.Table:  # noqa: A002
    """Return a statistic as a file has it: in CSV with the digits that its errors justify."""
    return with_digits(table, decimals_by_subject(table)) if format == "csv" else table


def _tables(
    release: Release,
    group: Group,
    columns: AnswerColumns,
    format: str,  # noqa: A002
) -> Iterator[pa.Table]:
    """Yield the table of a group in pieces."""
    least: list[float] = []

    def seen(_: int, variances: NDArray[np.float64]) -> None:
        least.append(float(np.sqrt(variances[variances > 0].min(initial=np.inf))))

    for batch in release.batches((group,), columns, seen):
        table = pa.Table.from_batches([batch]).drop_columns(["group"])
        yield with_digits(table, decimals_of(least[0])) if format == "csv" else table


def _write(
    path: Path, tables: Iterator[pa.Table], one: PublishedTable, release: Release
) -> tuple[pa.Schema, tuple[str, ...]]:
    """Write the pieces of a table; return the columns, and what the file calls them."""
    first = next(tables)
    schema, plain = first.schema, path.suffix == ".csv"
    if not plain:
        described = [
            field.with_metadata({**(field.metadata or {}), b"description": field_description(field)})
            for field in schema
        ]
        told = {"unit": one.unit, "note": one.note, "source": one.source}
        said = {
            "title": one.title,
            **{key: text for key, text in told.items() if text},
            "confidence": release.confidence,
            "presentation": release.presentation.rules(one.measures),
            "privacy": release.statement.as_dict(),
        }
        if METADATA in (schema.metadata or {}):
            said["statistic"] = json.loads(schema.metadata[METADATA])
        schema = pa.schema(described, metadata={"matrixdp": json.dumps(said, ensure_ascii=False)})
    headers, spoken = tuple(schema.names), plain and release.domain.language is not None
    if spoken:
        headers = unique(quoted(heading(field, release.presentation.say)) for field in schema)
    plain_form = pa.schema([field.with_name(name) for field, name in zip(schema, headers, strict=True)])
    plain_form = plain_schema(plain_form) if spoken else plain_form
    with arrow_writer(path, plain_form if plain else schema, compression="zstd") as writer:
        for table in chain([first], tables):
            named = table.rename_columns(list(headers)).replace_schema_metadata()
            named = without_formulas(named) if spoken else named
            writer.write_table(named if plain else table.cast(schema))
    return schema, headers


def _categories(columns: AnswerColumns, schema: pa.Schema) -> dict[str, list[str]]:
    """Return the texts of the columns of attributes, in order."""
    return {own: columns.texts(name) for name, own in columns.columns.items() if own in schema.names}


# Tables of answers described for machines: a Data Package and Croissant, with the privacy statement.

_PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
#: Longer lists of categories are left out.
_MOST_CATEGORIES = 1_000
_FIGURES = {
    "estimate": "Estimated number of records, unbiased; it may be negative",
    "stddev": "Standard error of the estimate, from the noise alone",
    "lower": "Lower end of the interval",
    "upper": "Upper end of the interval",
}


@final
@dataclass(frozen=True)
class TableFile:
    """A file with one table, whose columns the file calls by its headers."""

    path: str
    name: str
    table: PublishedTable
    schema: pa.Schema
    headers: Sequence[str]
    categories: Mapping[str, Sequence[str]]
    size: int
    sha256: str
    media_type: str


def field_description(field: pa.Field) -> str:
    """Return what a column of a table holds, in words.

    Examples
    --------
    >>> field_description(pa.field("stddev", pa.float64()))
    'Standard error of the estimate, from the noise alone'
    """
    metadata = field.metadata or {}
    figure = metadata.get(FIGURE, b"").decode()
    if OF in metadata:
        subject = metadata[OF].decode()
        return _FIGURES[figure] + (f", of the {subject}" if subject else "")
    if figure or field.name in FIGURES:
        own = figure or field.name
        return _FIGURES[own] + (f", for {field.name.removesuffix(f'_{own}')}" if figure else "")
    if field.name in REMARKS:
        return REMARKS[field.name]
    if BOUND in metadata:
        end = "begin" if metadata[BOUND] == b"from" else "end"
        return f"Where the values that the row counts {end}"
    return "The values that the row counts" if field.name != "query" else "What the row counts"


def data_package(release: Release, files: Sequence[TableFile]) -> dict[str, Any]:
    """Return the description as a Data Package, version 2 of the Frictionless standard."""
    resources = [
        {
            "name": file.name,
            "type": "table",
            "path": file.path,
            "title": file.table.title,
            **({"description": file.table.note} if file.table.note else {}),
            **({"sources": [{"title": file.table.source}]} if file.table.source else {}),
            "unit": file.table.unit,
            "format": file.path.rpartition(".")[2],
            "mediatype": file.media_type,
            "encoding": "utf-8",
            # readers of Parquet do not count bytes, and call it a fault that they did not
            **({"bytes": file.size} if file.media_type == _CSV else {}),
            "hash": f"sha256:{file.sha256}",
            "schema": {"fields": _fields(release, file), "missingValues": [""]},
        }
        for file in files
    ]
    return {
        "$schema": _PROFILE,
        "name": "matrixdp-tables",
        "title": _title(release),
        "description": _description(release),
        **_packaged(release.told),
        **({} if (time := release.measurement.authorization.time) is None else {"created": time}),
        "confidence": release.confidence,
        "intervals": release.intervals.description,
        "presentation": release.presentation.words,
        "private": release.private,
        "privacy": release.statement.as_dict(),
        "resources": resources,
    }


def _packaged(told: Mapping[str, str]) -> dict[str, Any]:
    """Return what readers are told of a release in the words of a Data Package."""
    roles = {"publisher": "publisher", "contact": "contactPoint"}
    named = {"method": "homepage", "period": "temporalCoverage"}
    listed = {"licence": "licenses", "source": "sources"}
    people = [{"title": told[key], "roles": [role]} for key, role in roles.items() if key in told]
    found: dict[str, Any] = {"contributors": people} if people else {}
    for key, text in told.items():
        if key in listed:
            found[listed[key]] = [{"title": text}]
        elif key not in ("title", "description", *roles):
            first, *others = key.split("_")
            found[named.get(key, first + "".join(map(str.capitalize, others)))] = text
    return found


def _fields(release: Release, file: TableFile) -> list[dict[str, Any]]:
    found = []
    for field, header in zip(file.schema, file.headers, strict=True):
        kind = _column_kind(field.type, "integer", "number", "date", "string")
        own: dict[str, Any] = {"name": header, "type": kind}
        if _titled(field) not in ([], [header]):
            own["title"] = heading(field, ENGLISH)
        own["description"] = _described(release, field)
        listed = file.categories.get(field.name, ())
        if 0 < len(listed) <= _MOST_CATEGORIES:
            own |= {"categories": list(listed), "categoriesOrdered": True}
        found.append(own)
    return found


def _described(release: Release, field: pa.Field) -> str:
    """Return what a column of a table holds, with the note on its attribute."""
    domain = release.domain
    note = domain[field.name].told.get("note", "") if field.name in domain else ""
    return ". ".join(filter(None, (field_description(field), note)))


def croissant(release: Release, files: Sequence[TableFile]) -> dict[str, Any]:
    """Return the description as Croissant 1.0, JSON-LD."""
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": "matrixdp tables",
        "alternateName": _title(release),
        "description": " ".join((_description(release), *_left(release))),
        **_catalogued(release.told),
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        **({} if (time := release.measurement.authorization.time) is None else {"dateCreated": time}),
        "rai:personalSensitiveInformation": release.statement.text,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file.path,
                "name": file.path,
                "description": file.table.title,
                "contentUrl": file.path,
                "contentSize": f"{file.size} B",
                "encodingFormat": "application/x-parquet" if file.media_type == _PARQUET else file.media_type,
                "sha256": file.sha256,
            }
            for file in files
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": file.name,
                "name": file.name,
                "description": file.table.title,
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{file.name}/{field.name}",
                        "name": field.name,
                        "description": ". ".join((*_titled(field), _described(release, field))),
                        "dataType": f"sc:{_column_kind(field.type, 'Integer', 'Float', 'Date', 'Text')}",
                        "source": {"fileObject": {"@id": file.path}, "extract": {"column": header}},
                    }
                    for field, header in zip(file.schema, file.headers, strict=True)
                ],
            }
            for file in files
        ],
    }


def _titled(field: pa.Field) -> list[str]:
    """Return the title of a column, where it has one."""
    return [heading(field, ENGLISH)] if TITLE in (field.metadata or {}) else []


#: The properties of schema.org for texts of a publication; what has none follows the description.
_CATALOGUED = {"licence": "license", "period": "temporalCoverage", "source": "isBasedOn", "method": "url"}


def _left(release: Release) -> Iterator[str]:
    """Yield what readers are told of a release that schema.org has no property for."""
    for key, text in release.told.items():
        if key not in ("title", "description", "publisher", *_CATALOGUED):
            yield f"{release.presentation.say(f'told_{key}')}: {text.rstrip('.')}."


def _catalogued(told: Mapping[str, str]) -> dict[str, Any]:
    """Return what readers are told of a release in the words of schema.org, as far as it has any."""
    named = {own: told[key] for key, own in _CATALOGUED.items() if key in told}
    publisher = {"@type": "sc:Organization", "name": told.get("publisher")}
    return named | ({"publisher": publisher} if "publisher" in told else {})


def _column_kind(type_: pa.DataType, integer: str, number: str, day: str, text: str) -> str:
    if pa.types.is_integer(type_):
        return integer
    if pa.types.is_floating(type_):
        return number
    return day if pa.types.is_date(type_) else text


def _title(release: Release) -> str:
    mark = "" if release.private else "NOT PRIVATE: "
    words = f"{release.workload.queries:,} counts with differential privacy"
    return f"{mark}{release.told.get('title', words)}"


def _description(release: Release) -> str:
    ends = f"Intervals are of {100 * release.confidence:g}% confidence, {release.intervals.description}."
    own = (release.told.get("description"), release.statement.text, ends)
    return " ".join(filter(None, own))


_TERMS = (
    "citeAs", "column", "extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes",
    "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "separator", "source", "subField", "transform",
)  # fmt: skip
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{name: f"cr:{name}" for name in _TERMS},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}

register_export("csv", partial(write_files, "csv"))
register_export("parquet", partial(write_files, "parquet"))
