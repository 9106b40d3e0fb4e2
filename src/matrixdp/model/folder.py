"""Models as folders: a record, the measurement, the model's arrays, and answers beside the unbiased ones."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from matrixdp.answers.table import row_groups
from matrixdp.domain import Domain
from matrixdp.errors import StorageError
from matrixdp.exact.resources import one_blas_thread
from matrixdp.locks import whole_path
from matrixdp.model.tables import IntegerTable, LocalTables, Mixture, Tables
from matrixdp.storage.archive import (
    ArchiveReader,
    ArchiveWriter,
    arrow_writer,
    differences,
    entry,
    naming_later_versions,
    partial_folder,
    plain_content,
    read_strictly,
    replaces_folder,
    sync_files,
    sync_folder,
)
from matrixdp.storage.formats import load_measurement, save_measurement

if TYPE_CHECKING:
    from matrixdp.model.model import Model

MODEL_FORMAT, MODEL_VERSION = "matrixdp model", 3
RECORD, TABLES, MEASUREMENT, ANSWERS = (
    "model.json",
    "model.mdp",
    "measurement.mdp",
    "answers_consistent.parquet",
)
#: The files of a model, the record first.
MODEL_FILES = (RECORD, MEASUREMENT, TABLES, ANSWERS)
_LISTED = MODEL_FILES[1:]
_LARGEST_RECORD = 1 << 26
_UNREPEATED = ("query", "estimate", "lower", "upper", "modelled")

Progress = Callable[[int, int], None]
"""Is called with how many are done and of how many."""

BIASED = (
    "BIASED: the column modelled is never negative and agrees with itself everywhere, and for that it is "
    "biased, above all where counts are small; it has no standard deviation and no interval. The unbiased "
    "estimate beside it, with its standard deviation and interval, is the only promise. What is extrapolated "
    "was not measured: it is the model's guess, and no figure of the data."
)
"""What is said of the answers of every model."""
NOT_PRIVATE = "NOT PRIVATE: the noise was seeded, so anyone who knows the seed can remove it"
"""What is said besides where the noise was seeded."""


def promise(model: Model) -> dict[str, Any]:
    """Return the privacy part of a record: the promise of the release, which covers models of it."""
    return {
        **({} if model.private else {"warning": NOT_PRIVATE}),
        "private": model.private,
        "privacy": {
            "text": model.statement.text,
            "guarantees": model.statement.guarantees,
            "measurement": {"sha256": model.measurement_digest},
        },
    }


def save_model(
    model: Model, out: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None
) -> Path:
    """Write a model as a folder that appears whole or not at all.

    It has ``model.json``, which says what it is, that it is biased, how it was made and tested, what is
    promised, and the digest of every file; ``measurement.mdp``, what it is a model of, as it is in the folder
    of the release; ``model.mdp``, its arrays; and ``answers_consistent.parquet``, the rows of the release's
    ``answers.parquet`` in the same order, with ``modelled``, ``outside`` and ``extrapolated`` beside.

    Parameters
    ----------
    model : Model
        The model.
    out : str or path
        The folder. It must not be there, or be empty, or, with `force`, hold an earlier model.
    force : bool
        Whether an earlier model may be replaced.
    progress : callable, optional
        Is called with the number of answers written and of all.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    StorageError
        If `out` holds something else, or cannot be written.
    """
    target = whole_path(out)
    replaces = check_out(target, force)
    with partial_folder(target, "partial-model") as partial:
        folder, old = partial / "new", partial / "old"
        folder.mkdir()
        save_measurement(folder / MEASUREMENT, model.measurement, model.workload)
        write_tables(folder / TABLES, model.tables, model.made)
        with one_blas_thread():
            _write_answers(model, folder / ANSWERS, progress)
        written = {**_record(model), "files": {name: entry(folder / name) for name in _LISTED}}
        text = json.dumps(written, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / RECORD).write_text(text + "\n", encoding="utf-8")
        sync_files(folder)
        if replaces:
            target.replace(old)
        try:
            folder.replace(target)
        except BaseException:
            if replaces:
                old.replace(target)
            raise
        sync_folder(target.parent)
    return Path(out)


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of the model that a folder holds, and its record.

    Raises
    ------
    StorageError
        If it holds none, or one that was damaged or altered.
    """
    record = folder / RECORD
    if not os.path.isfile(record):  # noqa: PTH113 - no error where the path is none
        raise StorageError(f"{folder}: found no {RECORD}; expected the folder of a model", "file-missing")
    written = read_strictly(plain_content(record, _LARGEST_RECORD), str(record))
    if written.get("format") != MODEL_FORMAT:
        raise StorageError(f"{record}: holds something else than the record of a model", "damaged-file")
    if written.get("format_version") != MODEL_VERSION:
        found = f"{record}: found format version {written.get('format_version')!r:.80}"
        expected = f"expected {MODEL_VERSION}, which this matrixdp reads: make the model anew"
        raise StorageError(f"{found}; {expected}", "other-version")
    listed = written.get("files")
    if not isinstance(listed, dict) or set(listed) != set(_LISTED):
        raise StorageError(f"{record}: damaged: it does not list the files of a model", "damaged-file")
    for name in _LISTED:
        if entry(folder / name, plain=True) != listed[name]:
            found = f"{folder / name}: does not belong to {RECORD}: its checksum is another"
            raise StorageError(found, "damaged-file")
    measurement, workload = load_measurement(folder / MEASUREMENT)
    tables, made = read_tables(folder / TABLES, workload.domain)
    confidence: Any = written.get("confidence")
    if type(confidence) not in (int, float) or not 0 < confidence < 1:
        found = f"{record}: damaged: its confidence is no number between 0 and 1"
        raise StorageError(found, "damaged-file")
    fields = {"measurement": measurement, "workload": workload, "tables": tables, "made": made}
    return {**fields, "confidence": float(confidence), "digest": listed[MEASUREMENT]["sha256"]}, written


def check_record(model: Model, folder: Path, written: dict[str, Any]) -> None:
    """Check that the record of a model says what follows from its files.

    Raises
    ------
    StorageError
        If it says anything else.
    """
    follows = json.loads(json.dumps(_record(model)))
    found = differences(written, follows, leave={("files",), ("versions",), ("privacy", "text")})
    versions = written.get("versions")
    made = versions.get("matrixdp") if isinstance(versions, dict) else None
    with naming_later_versions(folder / RECORD, made):
        for problem in found:
            raise StorageError(f"{folder / RECORD}: damaged or altered: {problem}", "damaged-file")


def _record(model: Model) -> dict[str, Any]:
    """Return the record of a model, without its list of files."""
    return {
        "format": MODEL_FORMAT,
        "format_version": MODEL_VERSION,
        "biased": BIASED,
        **promise(model),
        "method": model.method,
        "accepted": model.accepted,
        "total": model.tables.total,
        "made": dict(model.made),
        "domain": model.workload.domain.to_spec(),
        "queries": model.workload.queries,
        "confidence": model.confidence,
        "answers": {"file": ANSWERS, "columns": model.schema.names},
        "versions": {name: metadata.version(name) for name in ("matrixdp", "numpy", "pyarrow")},
    }


def _write_answers(model: Model, path: Path, progress: Progress | None) -> None:
    """Write the answers of a model, one query group in memory at a time."""
    schema = answers_schema(model)
    repeated = [name for name in schema.names if name not in _UNREPEATED]
    tables = row_groups(model.batches(model.workload.groups), schema)
    sink = arrow_writer(path, schema, compression="zstd", compression_level=1, use_dictionary=repeated)
    write_all(sink, tables, model.workload.queries, progress)


def write_all(sink: Any, tables: Iterable[pa.Table], total: int, progress: Progress | None) -> None:
    """Write tables to a file, and tell how many rows are done."""
    done = 0
    with sink as writer:
        for table in tables:
            writer.write_table(table)
            done += table.num_rows
            if progress is not None:
                progress(done, total)


def answers_schema(model: Model) -> pa.Schema:
    """Return the columns of the file of answers, and what it says of them."""
    mark = b"private" if model.private else b"NOT PRIVATE: seeded noise"
    return model.schema.with_metadata({b"matrixdp": mark, b"biased": BIASED.encode()})


def is_model(folder: Path) -> bool:
    """Return whether a folder holds a model, and nothing else."""
    try:
        written = read_strictly(plain_content(folder / RECORD, _LARGEST_RECORD), RECORD)
    except (StorageError, OSError):
        return False
    names = {path.name for path in folder.iterdir()}
    return written.get("format") == MODEL_FORMAT and names <= set(MODEL_FILES)


def check_out(target: Path, force: bool) -> bool:
    """Return whether a model would be replaced; refuse to touch anything else.

    Raises
    ------
    StorageError
        If the folder holds something, which is no model or must not be replaced.
    """
    return replaces_folder(target, "model", is_model, force)


# The file of a model: its arrays, and with what they were made, checked when read.


def write_tables(path: Path, tables: Tables, made: Mapping[str, Any]) -> None:
    """Write the file of a model, with what is said of how it was made."""
    with ArchiveWriter(path) as archive:
        header: dict[str, object] = {"total": tables.total}
        if isinstance(tables, Mixture):
            header |= {
                "weights": archive.add(tables.weights),
                "factors": {name: archive.add(own) for name, own in tables.factors.items()},
            }
        elif isinstance(tables, IntegerTable):
            header["counts"] = [list(tables.attributes), archive.add(tables.counts)]
        else:
            header["tables"] = [[list(names), archive.add(own)] for names, own in tables.tables.items()]
        form = {"format": MODEL_FORMAT, "format_version": MODEL_VERSION}
        archive.close({**form, "made": dict(made), "model": header})


def read_tables(path: Path, domain: Domain) -> tuple[Tables, dict[str, Any]]:
    """Read the file of a model.

    Raises
    ------
    StorageError
        If it holds none, or one that does not fit the domain, or is no table of shares.
    """
    with ArchiveReader(path, MODEL_FORMAT, MODEL_VERSION) as archive, archive.reading("its header"):
        header, made = archive.header["model"], archive.header["made"]
        archive.require(isinstance(made, dict), "it does not say how it was made")
        total = header["total"]
        archive.require(type(total) in (int, float), "its total is no number")
        json.dumps(made, allow_nan=False)
        if "counts" in header:
            names, counts = header["counts"]
            return IntegerTable(domain, tuple(map(archive.text, names)), archive.array(counts)), made
        if "tables" in header:
            tables = {
                tuple(map(archive.text, names)): _numbers(archive, own) for names, own in header["tables"]
            }
            return LocalTables(domain, float(total), tables), made
        factors = {name: _numbers(archive, own) for name, own in header["factors"].items()}
        return Mixture(domain, float(total), _numbers(archive, header["weights"]), factors), made


def _numbers(archive: ArchiveReader, name: object) -> Any:
    array = archive.array(name)
    archive.require(array.dtype == np.float64, "an array of it is not of floating-point numbers")
    return array
