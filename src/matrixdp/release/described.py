"""Tables of answers described for machines: a Data Package and Croissant, with the privacy statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa

from matrixdp.answers.columns import BOUND, FIGURES
from matrixdp.answers.tables import FIGURE
from matrixdp.release.written import Written

__all__ = ["CSV", "PARQUET", "TableFile", "croissant", "data_package", "field_description"]

CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
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
    """A file with the table of one group."""

    path: str
    name: str
    title: str
    rows: int
    schema: pa.Schema
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
    if figure or field.name in FIGURES:
        own = figure or field.name
        return _FIGURES[own] + (f", for {field.name.removesuffix(f'_{own}')}" if figure else "")
    if BOUND in metadata:
        end = "begin" if metadata[BOUND] == b"from" else "end"
        return f"Where the values that the row counts {end}"
    return "The values that the row counts" if field.name != "query" else "What the row counts"


def data_package(release: Written, files: Sequence[TableFile]) -> dict[str, Any]:
    """Return the description as a Data Package, version 2 of the Frictionless standard."""
    resources = [
        {
            "name": file.name,
            "type": "table",
            "path": file.path,
            "title": file.title,
            "format": file.path.rpartition(".")[2],
            "mediatype": file.media_type,
            "encoding": "utf-8",
            # readers of Parquet do not count bytes, and call it a fault that they did not
            **({"bytes": file.size} if file.media_type == CSV else {}),
            "hash": f"sha256:{file.sha256}",
            "schema": {"fields": [_field(file, field) for field in file.schema], "missingValues": [""]},
        }
        for file in files
    ]
    return {
        "$schema": _PROFILE,
        "name": "matrixdp-tables",
        "title": _title(release),
        "description": _description(release),
        **({} if (time := release.measurement.authorization.time) is None else {"created": time}),
        "confidence": release.confidence,
        "intervals": release.intervals.description,
        "private": release.private,
        "privacy": release.statement.as_dict(),
        "resources": resources,
    }


def _field(file: TableFile, field: pa.Field) -> dict[str, Any]:
    kind = _kind(field.type, "integer", "number", "date", "string")
    found: dict[str, Any] = {"name": field.name, "type": kind, "description": field_description(field)}
    listed = file.categories.get(field.name, ())
    if 0 < len(listed) <= _MOST_CATEGORIES:
        found |= {"categories": list(listed), "categoriesOrdered": True}
    return found


def croissant(release: Written, files: Sequence[TableFile]) -> dict[str, Any]:
    """Return the description as Croissant 1.0, JSON-LD."""
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": "matrixdp tables",
        "alternateName": _title(release),
        "description": _description(release),
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        **({} if (time := release.measurement.authorization.time) is None else {"dateCreated": time}),
        "rai:personalSensitiveInformation": release.statement.text,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": file.path,
                "name": file.path,
                "description": file.title,
                "contentUrl": file.path,
                "contentSize": f"{file.size} B",
                "encodingFormat": "application/x-parquet" if file.media_type == PARQUET else file.media_type,
                "sha256": file.sha256,
            }
            for file in files
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": file.name,
                "name": file.name,
                "description": file.title,
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{file.name}/{field.name}",
                        "name": field.name,
                        "description": field_description(field),
                        "dataType": f"sc:{_kind(field.type, 'Integer', 'Float', 'Date', 'Text')}",
                        "source": {"fileObject": {"@id": file.path}, "extract": {"column": field.name}},
                    }
                    for field in file.schema
                ],
            }
            for file in files
        ],
    }


def _kind(type_: pa.DataType, integer: str, number: str, day: str, text: str) -> str:
    if pa.types.is_integer(type_):
        return integer
    if pa.types.is_floating(type_):
        return number
    return day if pa.types.is_date(type_) else text


def _title(release: Written) -> str:
    mark = "" if release.private else "NOT PRIVATE: "
    return f"{mark}{release.workload.queries:,} counts with differential privacy"


def _description(release: Written) -> str:
    ends = f"Intervals are of {100 * release.confidence:g} % confidence, {release.intervals.description}."
    return f"{release.statement.text} {ends}"


_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{
        name: f"cr:{name}"
        for name in (
            "citeAs", "column", "extract", "field", "fileProperty", "fileObject", "fileSet", "format",
            "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
            "references", "regex", "repeated", "replace", "separator", "source", "subField", "transform",
        )
    },
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}  # fmt: skip
