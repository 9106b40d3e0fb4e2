"""Releases as folders: answers in Parquet, the record in JSON, and the measurement for later queries.

Answers are made and written one query group at a time, so that memory is bounded by the largest group and
not by the release.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from matrixdp.errors import SafeNote, StorageError
from matrixdp.release.columns import BATCH_ROWS, AnswerColumns
from matrixdp.release.document import RELEASE_VERSION, as_text, document
from matrixdp.release.leftovers import (
    MARKS,
    MEASUREMENT,
    RELEASE_FILES,
    RELEASE_FORMAT,
    REQUEST,
    mark_spent,
    refuse_leftover,
)
from matrixdp.release.release import Release
from matrixdp.release.staging import staged_folder
from matrixdp.storage.saving import load_measurement, save_measurement

__all__ = [
    "MAX_ANSWERS",
    "Progress",
    "complete_release",
    "load_release",
    "mark_released",
    "privacy_mark",
    "save_release",
    "write_release",
]

Progress = Callable[[int, int], None]
"""Is called with the number of answers written and of all."""

#: Above so many queries only the measurement is written, unless the caller says otherwise.
MAX_ANSWERS = 50_000_000

_ANSWERS, _CSV, _RECORD = "answers.parquet", "answers.csv", "release.json"
_UNREPEATED = ("query", "estimate", "lower", "upper")


def save_release(
    release: Release,
    out: str | os.PathLike[str],
    *,
    csv: bool = False,
    max_answers: int = MAX_ANSWERS,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write a release as a folder that appears whole or not at all.

    Parameters
    ----------
    release : Release
        The release.
    out : str or path
        The folder. It must not be there, or be empty, or, with `force`, hold an earlier release.
    csv : bool
        Whether to write the answers as CSV too.
    max_answers : int
        Above so many queries only the measurement is written, which `load_release` answers from.
    force : bool
        Whether an earlier release may be replaced.
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
    UnsupportedQueryError
        If the measurement does not determine a query of the workload.

    Examples
    --------
    >>> import tempfile
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> release = mdp.select(workload).measure({"sex": ["male"]}, mdp.Budget(rho=0.5)).reconstruct()
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = save_release(release, f"{parent}/out")
    ...     print(sorted(path.name for path in folder.iterdir()))
    ...     load_release(folder).answers.equals(release.answers)
    ['answers.parquet', 'measurement.mdp', 'release.json']
    True
    """
    with staged_folder(out, force=force) as folder:
        write_release(release, folder, csv=csv, max_answers=max_answers, progress=progress)
    mark_released(release, Path(out))
    return Path(out)


def write_release(
    release: Release,
    folder: Path,
    *,
    csv: bool = False,
    max_answers: int = MAX_ANSWERS,
    progress: Progress | None = None,
) -> dict[str, object]:
    """Write the files of a release into a staged folder, and return its record; see `save_release`."""
    if release.private:
        mark_spent(folder, release.measurement.authorization.budget)
    asked: dict[str, object] = {"confidence": release.confidence, "csv": csv, "max_answers": max_answers}
    asked |= {"origin": dict(release.origin)}
    (folder / REQUEST).write_text(json.dumps(asked), encoding="utf-8")
    save_measurement(folder / MEASUREMENT, release.measurement, release.workload)
    if release.measurement.reservation is not None:
        release.measurement.reservation.measured(str(_checked(folder / MEASUREMENT)["sha256"]))
    return complete_release(release, folder, csv=csv, max_answers=max_answers, progress=progress)


def mark_released(release: Release, out: Path) -> None:
    """Let the ledger that a release was debited to, if any, say that it is in its place."""
    reservation = release.measurement.reservation
    if reservation is None:
        return
    try:
        reservation.released(str(_checked(out / MEASUREMENT)["sha256"]))
    except BaseException as error:
        error.add_note(SafeNote(f"{reservation.note}. The release is whole in {out}"))
        raise


def complete_release(
    release: Release, folder: Path, *, csv: bool, max_answers: int, progress: Progress | None = None
) -> dict[str, object]:
    """Write the files of a release beside its measurement, and return its record."""
    workload = release.workload
    columns: AnswerColumns | None = None
    note: str | None = None
    if workload.queries <= max_answers:
        columns = AnswerColumns(workload.domain, workload.groups)
        errors = _write_answers(release, columns, folder, csv, progress)
    else:
        note = (
            f"{workload.queries} answers are more than the limit of {max_answers}, so only the measurement "
            "is here: ask it with `matrixdp answer`"
        )
        groups = [release.analysis.group(group) for group in workload]
        errors = [(error.total, error.largest) for error in groups]
    names = sorted(name for name in RELEASE_FILES if name not in MARKS and (folder / name).exists())
    files = {name: _checked(folder / name) for name in names}
    written = document(release, errors, files, columns, note)
    (folder / _RECORD).write_text(as_text(written) + "\n", encoding="utf-8")
    return written


def _checked(path: Path) -> dict[str, object]:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _write_answers(
    release: Release, columns: AnswerColumns, folder: Path, csv: bool, progress: Progress | None
) -> list[tuple[float, float]]:
    """Write the answers and return each group's sum of variances and largest variance."""
    errors: list[tuple[float, float]] = []

    def seen(variances: NDArray[np.float64]) -> None:
        errors.append((float(variances.sum()), float(variances.max())))

    schema = columns.schema.with_metadata({b"matrixdp": privacy_mark(release.private)})
    total = release.workload.queries
    done = 0
    with ExitStack() as stack:
        # many small products: several threads would spend their time waiting for one another
        stack.enter_context(threadpool_limits(limits=1, user_api="blas"))
        sinks = [stack.enter_context(_parquet(folder / _ANSWERS, schema))]
        if csv:
            sinks.append(stack.enter_context(_csv(folder / _CSV, schema)))
        for table in _row_groups(release.batches(release.workload.groups, columns, seen), schema):
            for sink in sinks:
                sink.write(table)
            done += table.num_rows
            if progress is not None:
                progress(done, total)
    return errors


def privacy_mark(private: bool) -> bytes:
    """Return what the file of the answers says of the noise."""
    return b"private" if private else b"NOT PRIVATE: seeded noise"


def _row_groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Join small batches, so that a file of many small groups has few row groups."""
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if pending and rows + batch.num_rows > BATCH_ROWS:
            yield pa.Table.from_batches(pending).cast(schema)
            pending, rows = [], 0
        pending.append(batch)
        rows += batch.num_rows
    if pending:
        yield pa.Table.from_batches(pending).cast(schema)


@final
class _Sink:
    """Write tables to a file in a thread of its own, at most one table behind."""

    def __init__(self, write: Callable[[pa.Table], None], close: Callable[[], None]) -> None:
        self._write, self._close = write, close
        self._pool = ThreadPoolExecutor(1)
        self._pending: Future[None] | None = None

    def write(self, table: pa.Table) -> None:
        if self._pending is not None:
            self._pending.result()
        self._pending = self._pool.submit(self._write, table)

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._pending is not None:
                self._pending.result()
        finally:
            self._pool.shutdown()
            self._close()


def _parquet(path: Path, schema: pa.Schema) -> _Sink:
    repeated = [name for name in schema.names if name not in _UNREPEATED]
    writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, use_dictionary=repeated)
    return _Sink(lambda table: writer.write_table(table, row_group_size=table.num_rows), writer.close)


def _csv(path: Path, schema: pa.Schema) -> _Sink:
    plain = pa.schema(
        [(field.name, pa.utf8() if pa.types.is_dictionary(field.type) else field.type) for field in schema]
    )
    writer = pacsv.CSVWriter(path, plain)
    return _Sink(lambda table: writer.write_table(table.cast(plain)), writer.close)


def load_release(out: str | os.PathLike[str], *, confidence: float | None = None) -> Release:
    """Return the release that a folder holds, ready for new queries; the data are not needed.

    Parameters
    ----------
    out : str or path
        The folder.
    confidence : float, optional
        Of the intervals; what the release was written with where it is left out.

    Returns
    -------
    Release
        With the workload that it was made for.

    Raises
    ------
    StorageError
        If the folder does not hold a release, or one that never took its place, or its files were damaged
        or altered.
    """
    folder = Path(out)
    refuse_leftover(folder)
    record = folder / _RECORD
    if not os.path.isfile(record):  # noqa: PTH113 - no error where the path is none
        raise StorageError(f"{folder}: found no {_RECORD}; expected the folder of a release")
    try:
        written = json.loads(record.read_bytes())
        if written["format"] != RELEASE_FORMAT:
            raise StorageError(f"{record}: holds something else than the record of a release")
        if written["format_version"] != RELEASE_VERSION:
            raise StorageError(
                f"{record}: found format version {written['format_version']!r}; expected {RELEASE_VERSION}, "
                f"which this matrixdp reads. What {MEASUREMENT} holds can be written as a release anew at no "
                "further cost: see `load_measurement` in the documentation"
            )
        listed = written["files"][MEASUREMENT]["sha256"]
        stated = float(written["confidence"])
        origin = {key: written["strategy"][key] for key in ("mechanism", "reason", "objective", "certificate")
                  if key in written["strategy"]}  # fmt: skip
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise StorageError(f"{record}: damaged: not the record of a release") from None
    measurement, workload = load_measurement(folder / MEASUREMENT)
    if _checked(folder / MEASUREMENT)["sha256"] != listed:
        raise StorageError(f"{folder / MEASUREMENT}: does not belong to {_RECORD}: its checksum is another")
    return Release(measurement, workload, stated if confidence is None else confidence, origin)
