"""Synthetic records as files: Parquet or CSV, and beside them what they are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from matrixdp.answers.table import plain_schema
from matrixdp.errors import SpecificationError, StorageError
from matrixdp.forms import describe_value
from matrixdp.model.records import StratifiedRecords
from matrixdp.model.values import RecordColumns
from matrixdp.model.words import NOT_PRIVATE, SYNTHETIC, Progress, Written, promise
from matrixdp.storage.archive import entry, sync_folder, temporary_name

__all__ = ["beside", "write_records"]

_FORMAT, _VERSION = "matrixdp records", 1
_ENDINGS = (".parquet", ".csv")


def beside(path: Path) -> Path:
    """Return the file that says what a file of records is.

    Examples
    --------
    >>> beside(Path("people.csv")).name
    'people.csv.json'
    """
    return path.with_name(f"{path.name}.json")


def write_records(
    model: Written,
    path: Path,
    records: StratifiedRecords,
    columns: RecordColumns,
    values: str,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write records to a file that appears whole or not at all, and what they are to another beside it.

    Parameters
    ----------
    model : Model
        What the records are of.
    path : Path
        A name that ends in ``.parquet`` or ``.csv``. Beside it, with the ending ``.json`` more, comes what
        the records are: that they are synthetic, how many, from which seed, by which model of which
        measurement, what is promised, and the file's digest.
    records : StratifiedRecords
    columns : RecordColumns
    values : str
        What the columns were made with.
    force : bool
        Whether files of these names may be replaced.
    progress : callable, optional
        Is called with the number of records written and of all.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    SpecificationError
        If the name has another ending.
    StorageError
        If a file is there already, or none can be written.
    """
    if path.suffix.lower() not in _ENDINGS:
        raise SpecificationError.at(
            ("out",), describe_value(path.name), "a name that ends in .parquet or .csv", code="unknown-name"
        )
    for name in (path, beside(path)):
        if os.path.lexists(name) and not (force and name.is_file()):
            raise StorageError(
                f"{name}: is there already; use another name, or replace it (force=True, or --force)",
                "file-exists",
            )
    partial, partial_record = temporary_name(path, "partial"), temporary_name(beside(path), "partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.touch(exist_ok=False)
    except (OSError, ValueError) as error:
        raise StorageError.unwritable(path, error) from None
    try:
        _write(model, partial, path.suffix.lower(), records, columns, progress)
        record = {
            "format": _FORMAT,
            "format_version": _VERSION,
            "synthetic": SYNTHETIC,
            **promise(model),
            "rows": records.rows,
            "seed": records.seed,
            "values": values,
            "columns": columns.schema.names,
            "model": {"method": model.method, "accepted": model.accepted, "made": dict(model.made)},
            "files": {path.name: entry(partial)},
        }
        text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
        partial_record.write_text(text + "\n", encoding="utf-8")
        for own in (partial, partial_record):
            with own.open("rb+") as stream:
                os.fsync(stream.fileno())
        partial.replace(path)
        partial_record.replace(beside(path))
        sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)
        partial_record.unlink(missing_ok=True)
    return path


def _write(
    model: Written,
    path: Path,
    ending: str,
    records: StratifiedRecords,
    columns: RecordColumns,
    progress: Progress | None,
) -> None:
    mark = SYNTHETIC if model.private else f"{NOT_PRIVATE}. {SYNTHETIC}"
    schema = columns.schema.with_metadata({b"matrixdp": mark.encode()})
    plain = plain_schema(columns.schema)
    write: Callable[[pa.Table], None]
    if ending == ".csv":
        sink = pacsv.CSVWriter(path, plain)
        write = lambda table: sink.write_table(table.cast(plain))  # noqa: E731
    else:
        sink = pq.ParquetWriter(path, schema, compression="zstd", compression_level=1)
        write = sink.write_table
    done = 0
    with sink:
        for codes in records.chunks():
            table = pa.Table.from_batches([columns.batch(codes)]).cast(schema)
            write(table)
            done += table.num_rows
            if progress is not None:
                progress(done, records.rows)
