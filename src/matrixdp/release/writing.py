"""Releases as folders: answers in Parquet, the record in JSON, and the measurement for later queries.

Answers are made and written one query group at a time, so that memory is bounded by the largest group and
not by the release.
"""

from __future__ import annotations

import json
import logging
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

from matrixdp.answers.columns import BATCH_ROWS, AnswerColumns, plain_schema
from matrixdp.errors import SafeNote
from matrixdp.exact.threads import one_blas_thread
from matrixdp.release.document import as_text, document
from matrixdp.release.keys import SigningKey
from matrixdp.release.leftovers import (
    ANSWERS,
    ANSWERS_CSV,
    LISTED,
    MEASUREMENT,
    RECORD,
    REQUEST,
    STATISTICS,
    mark_spent,
)
from matrixdp.release.signatures import write_signature
from matrixdp.release.staging import staged_folder
from matrixdp.release.written import Written
from matrixdp.statistics import statistics_table
from matrixdp.storage.files import entry
from matrixdp.storage.saving import save_measurement

__all__ = [
    "MAX_ANSWERS",
    "Progress",
    "complete_release",
    "mark_released",
    "privacy_mark",
    "save_release",
    "too_many",
    "write_release",
]

Progress = Callable[[int, int], None]
"""Is called with the number of answers written and of all."""

#: Above so many queries only the measurement is written, unless the caller says otherwise.
MAX_ANSWERS = 50_000_000

#: Rows that the writer encodes in one go, and how hard it compresses: most figures are noise, which does not
#: become smaller however long it is tried.
_ENCODED_ROWS, _COMPRESSION_LEVEL = 1 << 16, -5
#: The column that row groups are told apart by; least and largest values of others would help no reader.
_SORTED = "group"
_LOG = logging.getLogger(__name__)


def save_release(
    release: Written,
    out: str | os.PathLike[str],
    *,
    csv: bool = False,
    max_answers: int = MAX_ANSWERS,
    force: bool = False,
    key: SigningKey | None = None,
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
    key : SigningKey, optional
        Signs the release, as the last step before the folder takes its place; see `check_signature`.
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
    ...     mdp.load_release(folder).answers.equals(release.answers)
    ['answers.parquet', 'measurement.mdp', 'release.json']
    True
    """
    with staged_folder(out, force=force) as folder:
        write_release(release, folder, csv=csv, max_answers=max_answers, key=key, progress=progress)
    mark_released(release, Path(out))
    return Path(out)


def write_release(
    release: Written,
    folder: Path,
    *,
    csv: bool = False,
    max_answers: int = MAX_ANSWERS,
    key: SigningKey | None = None,
    progress: Progress | None = None,
) -> dict[str, object]:
    """Write the files of a release into a staged folder, and return its record; see `save_release`."""
    reservation = release.measurement.reservation
    if release.private:
        debited = None if reservation is None else reservation.ledger.path
        mark_spent(folder, release.measurement.authorization.budget, debited)
    if reservation is not None and reservation.run is not None:
        reservation.run.writes_to(folder)
    asked: dict[str, object] = {"confidence": release.confidence, "csv": csv, "max_answers": max_answers}
    asked |= {"origin": dict(release.origin), "expect": release.expect}
    (folder / REQUEST).write_text(json.dumps(asked), encoding="utf-8")
    save_measurement(folder / MEASUREMENT, release.measurement, release.workload)
    if reservation is not None:
        reservation.measured(str(entry(folder / MEASUREMENT)["sha256"]))
    return complete_release(release, folder, csv=csv, max_answers=max_answers, key=key, progress=progress)


def mark_released(release: Written, out: Path) -> None:
    """Let the ledger that a release was debited to, if any, say that it is in its place."""
    reservation = release.measurement.reservation
    if reservation is None:
        return
    try:
        reservation.released(str(entry(out / MEASUREMENT)["sha256"]))
    except BaseException as error:
        error.add_note(SafeNote(f"{reservation.note}. The release is whole in {out}"))
        raise


def complete_release(
    release: Written,
    folder: Path,
    *,
    csv: bool,
    max_answers: int,
    key: SigningKey | None = None,
    progress: Progress | None = None,
) -> dict[str, object]:
    """Write the files of a release beside its measurement, and return its record."""
    workload = release.workload
    columns: AnswerColumns | None = None
    note: str | None = None
    if workload.queries <= max_answers:
        columns = AnswerColumns(workload.domain, workload.groups)
        errors = _write_answers(release, columns, folder, csv, progress)
    else:
        note = too_many(workload.queries, max_answers)
        groups = [release.analysis.group(group) for group in workload]
        errors = [(error.total, error.largest) for error in groups]
    if any(one.table is not None for one in release.asked):
        mark = {b"matrixdp": privacy_mark(release.private)}
        table = statistics_table(release.asked).replace_schema_metadata(mark)
        pq.write_table(table, folder / STATISTICS, compression="zstd")
    names = [name for name in LISTED if (folder / name).exists()]
    files = {name: entry(folder / name) for name in names}
    written = document(release, errors, files, columns, note)
    (folder / RECORD).write_text(as_text(written) + "\n", encoding="utf-8")
    if key is not None:
        write_signature(folder, key)
    _LOG.info("wrote a release of %d queries in %d groups", workload.queries, len(workload))
    return written


def too_many(queries: int, limit: int) -> str:
    """Return why no answers are written, in words."""
    return (
        f"{queries} answers are more than the limit of {limit}, so only the measurement is here: ask it with "
        "`matrixdp answer`"
    )


def _write_answers(
    release: Written, columns: AnswerColumns, folder: Path, csv: bool, progress: Progress | None
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
        stack.enter_context(one_blas_thread())
        sinks = [stack.enter_context(_parquet(folder / ANSWERS, schema))]
        if csv:
            sinks.append(stack.enter_context(_csv(folder / ANSWERS_CSV, schema)))
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
    # a dictionary of numbers costs more time than it saves in bytes
    texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    writer = pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        use_dictionary=texts,
        write_statistics=[_SORTED],
        write_batch_size=_ENCODED_ROWS,
    )
    return _Sink(lambda table: writer.write_table(table, row_group_size=table.num_rows), writer.close)


def _csv(path: Path, schema: pa.Schema) -> _Sink:
    plain = plain_schema(schema)
    writer = pacsv.CSVWriter(path, plain)
    return _Sink(lambda table: writer.write_table(table.cast(plain)), writer.close)
