"""The tables of a release as files that people publish: one for each group, and what describes them."""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from matrixdp.answers.columns import AnswerColumns
from matrixdp.answers.digits import decimals_of, for_people
from matrixdp.answers.tables import own_table
from matrixdp.answers.titles import head, titles
from matrixdp.domain import Domain
from matrixdp.errors import SpecificationError, StorageError, TooLargeError
from matrixdp.exact.threads import one_blas_thread
from matrixdp.forms import describe_value
from matrixdp.queries import Group, ProductGroup, Total
from matrixdp.release.described import CSV, PARQUET, TableFile, croissant, data_package, field_description
from matrixdp.release.document import as_text
from matrixdp.release.written import Written
from matrixdp.storage.archive import sync_folder, temporary_name
from matrixdp.storage.files import entry

__all__ = ["CROISSANT", "DATA_PACKAGE", "FORMATS", "write_tables"]

DATA_PACKAGE, CROISSANT = "datapackage.json", "croissant.json"
FORMATS = {"csv": CSV, "parquet": PARQUET}
"""What tables can be written as, with their media types."""
#: A folder gets at most so many tables.
_MOST_TABLES = 10_000
_LONGEST_NAME = 80
#: Latin letters that are not a plain one with a mark.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)


def write_tables(release: Written, out: str | os.PathLike[str], format: str, pivot: str | None) -> Path:  # noqa: A002
    """Write every table of a release into a new folder; see `matrixdp.Release.save_tables`."""
    if format not in FORMATS:
        raise SpecificationError.at(("format",), describe_value(format), " or ".join(FORMATS))
    groups = release.workload.groups
    if len(groups) > _MOST_TABLES:
        expected = f"at most {_MOST_TABLES:,} as files of their own; answers.parquet has all of them"
        raise TooLargeError.at(("tables",), f"{len(groups):,} tables", expected)
    if pivot is not None and not any(_pivoted(group, release.workload.domain, pivot) for group in groups):
        expected = "an attribute that a table asks about beside others"
        raise SpecificationError.at(("pivot",), describe_value(pivot), expected)
    target = Path(os.path.abspath(out))  # noqa: PTH100 - keeps a symbolic link to where the user points
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise StorageError(f"{target}: found something there; expected a folder that is new or empty")
        partial = temporary_name(target, "tables")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "a name that is not a path"
        raise StorageError(f"{target}: cannot be written ({reason})") from None
    try:
        with one_blas_thread():
            files = list(_written(release, partial, format, pivot))
        for name, described in ((DATA_PACKAGE, data_package), (CROISSANT, croissant)):
            (partial / name).write_text(as_text(described(release, files)) + "\n", encoding="utf-8")
        partial.replace(target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Path(out)


def _written(release: Written, folder: Path, format: str, pivot: str | None) -> Iterator[TableFile]:  # noqa: A002
    groups = release.workload.groups
    called = titles(groups)
    taken: set[str] = set()
    for group, title in zip(groups, called, strict=True):
        name = _file_name(title, taken)
        path = folder / f"{'' if release.private else 'NOT-PRIVATE-'}{name}.{format}"
        own = pivot if pivot is not None and _pivoted(group, release.workload.domain, pivot) else None
        columns = AnswerColumns(release.workload.domain, (group,), levels=True)
        rows, schema = _write(path, _tables(release, group, columns, format, own), title, release)
        said = entry(path)
        yield TableFile(
            path.name, name, title, rows, schema, _categories(columns, schema),
            int(str(said["bytes"])), str(said["sha256"]), FORMATS[format],
        )  # fmt: skip


def _tables(
    release: Written,
    group: Group,
    columns: AnswerColumns,
    format: str,  # noqa: A002
    pivot: str | None,
) -> Iterator[pa.Table]:
    """Yield the table of a group in pieces, or at once where it is made wide."""
    least: list[float] = []

    def seen(variances: NDArray[np.float64]) -> None:
        least.append(float(np.sqrt(variances[variances > 0].min(initial=np.inf))))

    batches = release.batches((group,), columns, seen)
    pieces: Iterator[Any] = ([batch] for batch in batches) if pivot is None else iter([list(batches)])
    for piece in pieces:
        table = pa.Table.from_batches(piece, schema=columns.schema)
        table = own_table(table, group, release.workload.domain, pivot)
        yield for_people(table, decimals_of(least[0])) if format == "csv" else table


def _write(path: Path, tables: Iterator[pa.Table], title: str, release: Written) -> tuple[int, pa.Schema]:
    """Write the pieces of a table; return the number of rows, and the columns."""
    first = next(tables)
    schema, rows = first.schema, 0
    if path.suffix == ".csv":
        writer = pacsv.CSVWriter(path, schema)
    else:
        described = [field.with_metadata({**(field.metadata or {}), b"description": field_description(field)})
                     for field in schema]  # fmt: skip
        said = {"title": title, "confidence": release.confidence, "privacy": release.statement.as_dict()}
        metadata = {"matrixdp": json.dumps(said, ensure_ascii=False)}
        schema = pa.schema(described, metadata=metadata)
        writer = pq.ParquetWriter(path, schema, compression="zstd")
    with writer:
        while first is not None:
            rows += first.num_rows
            writer.write_table(
                first.cast(schema) if path.suffix != ".csv" else first.replace_schema_metadata()
            )
            first = next(tables, None)
    return rows, schema


def _categories(columns: AnswerColumns, schema: pa.Schema) -> dict[str, list[str]]:
    """Return the texts of the columns of attributes, in order."""
    texts = {columns.columns[name]: columns.texts(name) for name in columns.columns}
    return {name: found for name, found in texts.items() if name in schema.names}


def _pivoted(group: Group, domain: Domain, pivot: str) -> bool:
    """Return whether a group asks about an attribute, or a level, beside others."""
    if not isinstance(group, ProductGroup):
        return False
    asked = [(name, own) for name, own in group.sets.items() if not isinstance(own, Total)]
    return len(asked) > 1 and any(pivot in (name, head(domain[name], (own,))) for name, own in asked)


def _file_name(title: str, taken: set[str]) -> str:
    """Return a name of small letters, digits and hyphens that no other table has."""
    # ß becomes ss before what is not ASCII goes
    letters = title.casefold().translate(_LETTERS)
    plain = unicodedata.normalize("NFKD", letters).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_LONGEST_NAME].strip("-") or "table"
    made, number = name, 1
    while made in taken:
        number += 1
        made = f"{name}-{number}"
    taken.add(made)
    return made
