"""Models as folders: a record, the measurement, the model's arrays, and answers beside the unbiased ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from matrixdp.answers.table import BATCH_ROWS
from matrixdp.errors import StorageError
from matrixdp.exact.resources import one_blas_thread
from matrixdp.locks import whole_path
from matrixdp.model.archive import MODEL_FORMAT, MODEL_VERSION, read_tables, write_tables
from matrixdp.model.words import BIASED, Progress, Written, promise
from matrixdp.storage.archive import (
    differences,
    entry,
    plain_content,
    read_strictly,
    sync_folder,
    temporary_name,
)
from matrixdp.storage.formats import load_measurement, save_measurement

__all__ = [
    "ANSWERS",
    "MODEL_FILES",
    "answers_schema",
    "check_out",
    "check_record",
    "is_model",
    "read_model",
    "save_model",
]

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
_PARTIAL, _OLD = "partial-model", "replaced-model"


def save_model(
    model: Written, out: str | os.PathLike[str], *, force: bool = False, progress: Progress | None = None
) -> Path:
    """Write a model as a folder that appears whole or not at all.

    It has ``model.json``, which says what it is, that it is biased, how it was made and tested, what is
    promised, and the digest of every file; ``measurement.mdp``, what it is a model of, as it is in the folder
    of the release; ``model.mdp``, its arrays; and ``answers_consistent.parquet``, the rows of the release's
    ``answers.parquet`` in the same order, with ``modelled`` and ``extrapolated`` beside.

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
    with _staged(Path(out), force) as folder:
        save_measurement(folder / MEASUREMENT, model.measurement, model.workload)
        write_tables(folder / TABLES, model.tables, model.made)
        with one_blas_thread():
            _write_answers(model, folder / ANSWERS, progress)
        written = {**_record(model), "files": {name: entry(folder / name) for name in _LISTED}}
        text = json.dumps(written, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / RECORD).write_text(text + "\n", encoding="utf-8")
    return Path(out)


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of the model that a folder holds, and its record.

    Raises
    ------
    StorageError
        If it holds none, or one that was damaged or altered.
    """
    if not os.path.isfile(folder / RECORD):  # noqa: PTH113 - no error where the path is none
        raise StorageError(f"{folder}: found no {RECORD}; expected the folder of a model", "file-missing")
    written = read_strictly(plain_content(folder / RECORD, _LARGEST_RECORD), str(folder / RECORD))
    if written.get("format") != MODEL_FORMAT:
        raise StorageError(
            f"{folder / RECORD}: holds something else than the record of a model", "damaged-file"
        )
    if written.get("format_version") != MODEL_VERSION:
        raise StorageError(
            f"{folder / RECORD}: found format version {written.get('format_version')!r:.80}; expected "
            f"{MODEL_VERSION}, which this matrixdp reads: make the model anew",
            "other-version",
        )
    listed = written.get("files")
    if not isinstance(listed, dict) or set(listed) != set(_LISTED):
        raise StorageError(
            f"{folder / RECORD}: damaged: it does not list the files of a model", "damaged-file"
        )
    for name in _LISTED:
        if entry(folder / name, plain=True) != listed[name]:
            raise StorageError(
                f"{folder / name}: does not belong to {RECORD}: its checksum is another", "damaged-file"
            )
    measurement, workload = load_measurement(folder / MEASUREMENT)
    tables, made = read_tables(folder / TABLES, workload.domain)
    confidence = written.get("confidence")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise StorageError(
            f"{folder / RECORD}: damaged: its confidence is no number between 0 and 1", "damaged-file"
        )
    fields = {"measurement": measurement, "workload": workload, "tables": tables, "made": made}
    return {**fields, "confidence": float(confidence), "digest": listed[MEASUREMENT]["sha256"]}, written


def check_record(model: Written, folder: Path, written: dict[str, Any]) -> None:
    """Check that the record of a model says what follows from its files.

    Raises
    ------
    StorageError
        If it says anything else.
    """
    follows = json.loads(json.dumps(_record(model)))
    found = differences(written, follows, leave={("files",), ("versions",), ("privacy", "text")})
    for problem in found:
        raise StorageError(f"{folder / RECORD}: damaged or altered: {problem}", "damaged-file")


def _record(model: Written) -> dict[str, Any]:
    """Return what the record of a model says, but for its files."""
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


def _write_answers(model: Written, path: Path, progress: Progress | None) -> None:
    """Write the answers of a model, one query group in memory at a time."""
    schema = answers_schema(model)
    repeated = [name for name in schema.names if name not in _UNREPEATED]
    total, done = model.workload.queries, 0
    pending: list[pa.RecordBatch] = []
    options = {"compression": "zstd", "compression_level": 1, "use_dictionary": repeated}
    with pq.ParquetWriter(path, schema, **options) as sink:
        for batch in model.batches(model.workload.groups):
            pending.append(batch)
            done += batch.num_rows
            if sum(own.num_rows for own in pending) >= BATCH_ROWS or done == total:
                sink.write_table(pa.Table.from_batches(pending).cast(schema))
                pending = []
                if progress is not None:
                    progress(done, total)


def answers_schema(model: Written) -> pa.Schema:
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


@contextmanager
def _staged(out: Path, force: bool) -> Iterator[Path]:
    """Give a temporary folder beside another, which takes its place when all went well."""
    target = whole_path(out)
    replaces = check_out(target, force)
    partial, old = temporary_name(target, _PARTIAL), temporary_name(target, _OLD)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
    except (OSError, ValueError) as error:
        raise StorageError.unwritable(target, error) from None
    try:
        yield partial
        for file in partial.iterdir():
            with file.open("rb+") as stream:
                os.fsync(stream.fileno())
        if replaces:
            target.replace(old)
        try:
            partial.replace(target)
        except BaseException:
            if replaces:
                old.replace(target)
            raise
        sync_folder(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def check_out(target: Path, force: bool) -> bool:
    """Return whether a model would be replaced; refuse to touch anything else.

    Raises
    ------
    StorageError
        If the folder holds something, which is no model or must not be replaced.
    """
    if not os.path.lexists(target):
        return False
    if not target.is_dir() or target.is_symlink():
        raise StorageError(f"{target}: found a file; expected a folder that is not there yet", "file-exists")
    if not any(target.iterdir()):
        return False
    if not is_model(target):
        raise StorageError(
            f"{target}: found a folder with other files; expected one that is not there yet", "file-exists"
        )
    if not force:
        raise StorageError(
            f"{target}: found an earlier model; use another folder, or replace it (force=True, or --force)",
            "file-exists",
        )
    return True
