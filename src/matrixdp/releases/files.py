"""The folders of releases: written, read, and held against what was measured."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matrixdp.answers.inference import statistics_table
from matrixdp.answers.table import (
    LEVEL,
    MARGINS,
    PUBLISHED,
    AnswerColumns,
    level_of,
    levels_of,
    plain_schema,
    row_groups,
)
from matrixdp.errors import Path as Place
from matrixdp.errors import StorageError
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import one_blas_thread
from matrixdp.locks import private_folder
from matrixdp.measure.measurement import Measurement
from matrixdp.measure.workers import Workers, run
from matrixdp.plans import SlicedEstimates
from matrixdp.queries import Workload
from matrixdp.queries.workload import MAX_ANSWERS
from matrixdp.releases import record as records
from matrixdp.releases.schema import Request
from matrixdp.releases.signatures import SigningKey, write_signature
from matrixdp.storage.archive import arrow_file, arrow_writer, as_text, differences, entry, header_digest
from matrixdp.storage.formats import load_measurement

if TYPE_CHECKING:
    from matrixdp.releases.release import Release

# Releases from their folders: what the record says is held against what the measurement is.

#: What stands in the statement and follows from the measurement without any rounding.
_STATED = ("private", "neighbours", "unit", "noise", "cost", "budget", "ledger", "out_of_domain",
           "max_records", "time")  # fmt: skip
_EXACT = re.compile(r"\d{1,3000}(/[1-9]\d{0,2999})?")


def read_folder(folder: Path) -> dict[str, Any]:
    """Return the record that a folder holds; what it says is not checked."""
    record = folder / records.RECORD
    if not os.path.isfile(record):  # noqa: PTH113 - no error where the path is none
        found = f"{folder}: found no {records.RECORD}; expected the folder of a release"
        raise StorageError(found, "file-missing")
    return records.read_record(record.read_bytes(), record)


def read_measurement(folder: Path, written: Mapping[str, Any]) -> tuple[Measurement, Workload]:
    """Return the measurement and the workload that belong to a record.

    `check_record` says whether the rest of the record follows from the measurement.
    """
    listed = _listed_measurement(written, folder / records.RECORD)
    path = folder / records.MEASUREMENT
    header = listed.get("header") if isinstance(listed, dict) else None
    if path.is_file() and (
        entry(path, like=listed) != listed if header is None else header_digest(path) != header
    ):
        found = f"{path}: does not belong to {records.RECORD}: its checksum is another"
        raise StorageError(found, "damaged-file")
    return load_measurement(path, lazily=header is not None)


def check_record(folder: Path, written: Mapping[str, Any], release: Release) -> None:
    """Check that what a record says of a measurement follows from it."""
    for problem in _differences(written, release):
        found = f"{folder / records.RECORD}: damaged or altered: {problem} from {records.MEASUREMENT}"
        raise StorageError(found, "damaged-file")


def expected_in(written: Mapping[str, Any]) -> Any:
    """Return how many records a record says were expected."""
    size = written.get("size")
    return size.get("expect") if isinstance(size, dict) else None


def version_in(written: Mapping[str, Any]) -> object:
    """Return which version of matrixdp a record says that it is of."""
    return _at(written, ("privacy", "versions", "matrixdp")).get("matrixdp")


def _listed_measurement(written: Mapping[str, Any], record: Path) -> object:
    """Return the entry of a record for the file of its measurement."""
    if written.get("format_version") != records.RELEASE_VERSION:
        raise StorageError(
            f"{record}: found format version {written.get('format_version')!r:.80}; expected "
            f"{records.RELEASE_VERSION}, which this matrixdp reads. What "
            f"{records.MEASUREMENT} holds can be written as a release anew at no further cost: see "
            "`load_measurement` in the documentation",
            code="other-version",
        )
    try:
        listed = written["files"][records.MEASUREMENT]
        named = written["privacy"]["measurement"]
        stated = written["confidence"]
        if named != {"file": records.MEASUREMENT, "sha256": listed["sha256"]}:
            raise ValueError("two digests")
        if isinstance(stated, bool) or not isinstance(stated, int | float):
            raise TypeError("confidence")
        float(stated), written["strategy"]
        return listed
    except (ValueError, KeyError, TypeError, OverflowError):
        raise StorageError(f"{record}: damaged: not the record of a release", "damaged-file") from None


def _differences(written: Mapping[str, Any], release: Release) -> Iterator[str]:
    """Yield where a record says something else than the measurement."""
    measurement = release.measurement
    authorization = measurement.authorization.as_dict()
    statement, parts = records.promise(release), records.measured(measurement)
    follows: dict[Place, object] = {
        ("private",): release.private,
        ("domain",): release.domain.to_spec(),
        ("queries",): release.workload.queries,
        **{("privacy", name): statement[name] for name in _STATED},
        **{("authorization", name): value for name, value in authorization.items() if name != "note"},
        **{("strategy", name): value for name, value in parts.items() if name != "split"},
    }
    for place, value in follows.items():
        found = _at(written, place)
        if (text := json.dumps({place[-1]: value})) != json.dumps(found):
            yield from differences(found, json.loads(text), place[:-1], exact=True)
    found = _rounded(_at(written, ("privacy", "guarantees")))
    yield from differences(found, {"guarantees": _rounded(release.statement.guarantees)}, ("privacy",))


def _at(written: Any, place: Place) -> dict[str | int, Any]:
    """Return the value at a place under its last key; nothing where there is no such place."""
    *outer, last = place
    for key in outer:
        written = written.get(key) if isinstance(written, dict) else None
    return {last: written[last]} if isinstance(written, dict) and last in written else {}


def _rounded(value: Any) -> Any:
    """Return guarantees with exact bounds as floats: how a bound was rounded is no difference."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, str) and _EXACT.fullmatch(value):
        with suppress(OverflowError):
            return float(Fraction(value))
    return value


# Releases as folders: answers in Parquet, the record in JSON, and the measurement for later queries.
#
# Answers are made and written one query group at a time, so that memory is bounded by the largest group and
# not by the release.

Progress = Callable[[int, int], None]
"""Is called with the number of answers written and of all."""

#: Rows that the writer encodes in one go, and how hard it compresses: most figures are noise, which does not
#: become smaller however long it is tried.
_ENCODED_ROWS, _COMPRESSION_LEVEL = 1 << 16, -5
#: The column that row groups are told apart by, and that of areas; least and largest values of others would
#: help no reader.
_SORTED = "group"
#: Above so many answers at several levels of areas these are in a folder, with files for each level.
MANY_ANSWERS = 5_000_000
#: The most rows of such a file, so that one that holds an area is read soon.
PART_ROWS = 1 << 23
_LOG = logging.getLogger(__name__)


def complete_release(
    release: Release,
    folder: Path,
    asked: Request,
    key: SigningKey | None,
    progress: Progress | None,
    workers: Workers | None = None,
) -> None:
    """Write the files of a release beside its measurement; workers may write most of many answers."""
    workload = release.workload
    columns: AnswerColumns | None = None
    if workload.queries <= asked.max_answers:
        columns = answer_columns(release)
        parts = columns.at is not None and not asked.csv
        own = release.measurement.estimates if workers is not None and parts else None
        if workers is not None and isinstance(own, SlicedEstimates):
            errors = _write_by(workers, release, own, columns, folder, progress)
        else:
            errors = _write_answers(release, columns, folder, asked.csv, progress)
        if release.series is not None:
            _write_new_answers(release, columns, folder)
    else:
        groups = [release.analysis.group(group) for group in workload]
        errors = [(error.total, error.largest) for error in groups]
    if any(one.table is not None for one in release.asked):
        mark = {b"matrixdp": privacy_mark(release.private)}
        table = statistics_table(release.asked).replace_schema_metadata(mark)
        with arrow_writer(folder / records.STATISTICS, table.schema, compression="zstd") as writer:
            writer.write_table(table)
    files = {name: entry(folder / name) for name in records.listed_in(folder)}
    written = records.document(release, errors, files, columns, asked.max_answers)
    (folder / records.RECORD).write_text(as_text(written) + "\n", encoding="utf-8")
    if key is not None:
        write_signature(folder, key)
    _LOG.info("wrote a release of %d queries in %d groups", workload.queries, len(workload))


def answer_columns(release: Release, parted: bool | None = None) -> AnswerColumns:
    """Return the columns that the files of a release have: of very many answers those with margins.

    ``parted`` says whether answers are in files for each level of areas; by default many are.
    """
    workload = release.workload
    margins = workload.queries > MAX_ANSWERS
    if parted is None:
        parted = workload.queries > MANY_ANSWERS and release.series is None
    at = levels_of(workload.domain, workload.groups) if parted else None
    return AnswerColumns(workload.domain, workload.groups, series=release.series, margins=margins, at=at)


def _write_answers(
    release: Release, columns: AnswerColumns, folder: Path, csv: bool, progress: Progress | None
) -> list[tuple[float, float]]:
    """Write the answers and return each group's sum of variances and largest variance."""
    errors, seen = largest_errors(release.workload)
    schema = marked_schema(release, columns)
    batches = release.batches(release.workload.groups, columns, seen)
    done = 0
    # many small products: several threads would spend their time waiting for one another
    with one_blas_thread(), ExitStack() as stack:
        whole = (
            _parquet(folder / records.ANSWERS, schema)
            if columns.at is None
            else parted(folder, columns, schema)
        )
        sinks = [stack.enter_context(whole)]
        if csv:
            sinks.append(stack.enter_context(_csv(folder / records.ANSWERS_CSV, schema)))
        for table in row_groups(batches, schema):
            for write in sinks:
                write(table)
            done += table.num_rows
            if progress is not None:
                progress(done, release.workload.queries)
    return errors


# Workers write the answers about areas one by one, some slices each, from the measurement in the folder.

#: The number of their first file: sums over areas stand before them.
_FIRST = 10_000
_SHARES = "shares.npz"
_DRAFTS = ".draft-"


def _write_by(
    workers: Workers,
    release: Release,
    own: SlicedEstimates,
    columns: AnswerColumns,
    folder: Path,
    progress: Progress | None,
) -> list[tuple[float, float]]:
    """Write the answers with workers, and return each group's sum of variances and largest variance."""
    errors, seen = largest_errors(release.workload)
    schema, done = marked_schema(release, columns), 0
    with one_blas_thread(), parted(folder, columns, schema) as write:
        for table in row_groups(release.rows_of(own.sums(release.workload.groups), columns, seen), schema):
            write(table)
            done += table.num_rows
    left = release.workload.queries - done
    each = max(1, PART_ROWS * len(own.slices) // max(1, left))
    parts = -(-len(own.slices) // each) if left else 0
    try:
        with private_folder(workers.where) as shared:
            np.savez(shared / _SHARES, **{str(place): share for place, share in own.shares().items()})  # type: ignore[arg-type]
            given = type(release), folder.absolute(), shared, release.confidence
            write_part = partial(_write_part, given, each)
            for number, found in enumerate(run(workers, write_part, parts)):
                pairs = zip(errors, found, strict=True)
                errors = [(one[0] + two[0], max(one[1], two[1])) for one, two in pairs]
                if progress is not None:
                    progress(done + left * (number + 1) // parts, release.workload.queries)
    finally:
        _read_by_worker.cache_clear()
        for draft in folder.glob(f"{_DRAFTS}*"):  # of a worker that was killed
            shutil.rmtree(draft, ignore_errors=True)
    return errors


#: What makes a release, the folders of the release and of what is shared, and the confidence of intervals.
_Given = tuple["type[Release]", Path, Path, float]


def _write_part(given: _Given, each: int, number: int) -> list[tuple[float, float]]:
    """Write the answers about some slices, and return their errors; twice they are the same answers."""
    release, columns, own = _read_by_worker(given)
    folder = given[1]
    errors, seen = largest_errors(release.workload)
    schema, draft = marked_schema(release, columns), Path(tempfile.mkdtemp(prefix=_DRAFTS, dir=folder))
    some = own.alone(release.workload.groups, range(number * each, (number + 1) * each))
    with one_blas_thread(), parted(draft, columns, schema, _FIRST + number) as write:
        for table in row_groups(release.rows_of(some, columns, seen), schema):
            write(table)
    for path in draft.glob("*/*/*"):
        target = folder / path.relative_to(draft)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    shutil.rmtree(draft, ignore_errors=True)
    return errors


@lru_cache(maxsize=1)
def _read_by_worker(given: _Given) -> tuple[Release, AnswerColumns, SlicedEstimates]:
    """Return the release that a worker answers from, its columns, and estimates that know the shares."""
    made, folder, shared, confidence = given
    measurement, workload = load_measurement(folder / records.MEASUREMENT, lazily=True)
    release, own = made(measurement, workload, confidence), measurement.estimates
    assert isinstance(own, SlicedEstimates)
    with np.load(shared / _SHARES) as shares:
        known = {int(place): shares[place] for place in shares.files}
    return release, answer_columns(release, parted=True), own.knowing(known)


def marked_schema(release: Release, columns: AnswerColumns) -> pa.Schema:
    """Return the columns of files of answers, marked as private or not."""
    return columns.schema.with_metadata({b"matrixdp": privacy_mark(release.private)})


def largest_errors(workload: Workload) -> tuple[list[tuple[float, float]], Callable[[int, Array], None]]:
    """Return each group's sum of variances and largest variance, and what `Release.batches` tells them."""
    errors = [(0.0, 0.0)] * len(workload)

    def seen(place: int, variances: Array) -> None:
        total, largest = errors[place]
        errors[place] = total + float(variances.sum()), max(largest, float(variances.max()))

    return errors, seen


def _write_new_answers(release: Release, columns: AnswerColumns, folder: Path) -> None:
    """Write the answers that came with the last publication of a series."""
    assert release.series is not None
    name, published = release.series
    last = release.domain[name].label(published[-1] - 1)
    schema = plain_schema(columns.schema)
    new = arrow_writer(folder / records.NEW_ANSWERS, schema)
    with arrow_file(folder / records.ANSWERS) as answers, new as writer:
        for batch in pq.ParquetFile(answers).iter_batches():
            table = pa.Table.from_batches([batch]).cast(schema)
            writer.write_table(table.filter(pc.equal(table.column(PUBLISHED), last)))


def privacy_mark(private: bool) -> bytes:
    """Return the mark in the file of answers that says whether its noise is private."""
    return b"private" if private else b"NOT PRIVATE: seeded noise"


_Write = Callable[[pa.Table], None]


@contextmanager
def _behind(writing: AbstractContextManager[Any], write: Callable[[Any, pa.Table], None]) -> Iterator[_Write]:
    """Yield a function that writes tables in a thread of its own, at most one table behind."""
    with writing as writer, ThreadPoolExecutor(1) as pool:
        pending = pool.submit(lambda: None)

        def put(table: pa.Table) -> None:
            nonlocal pending
            pending.result()
            pending = pool.submit(write, writer, table)

        yield put
        pending.result()


def _parquet(path: Path, schema: pa.Schema, *sorted_by: str) -> AbstractContextManager[_Write]:
    listed = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    options: dict[str, Any] = {}
    if MARGINS[-1] in schema.names:
        # errors are equal in long runs; of estimates the bytes that say how large they are become smaller
        listed += MARGINS[1:]
        options["column_encoding"] = {MARGINS[0]: "BYTE_STREAM_SPLIT"}
    writing = arrow_writer(
        path,
        schema,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        # a dictionary of numbers costs more time than it saves in bytes
        use_dictionary=listed,
        write_statistics=[_SORTED, *sorted_by],
        write_batch_size=_ENCODED_ROWS,
        **options,
    )
    return _behind(writing, lambda writer, table: writer.write_table(table, row_group_size=table.num_rows))


@contextmanager
def parted(folder: Path, columns: AnswerColumns, schema: pa.Schema, first: int = 0) -> Iterator[_Write]:
    """Yield a function that writes tables, each of one level, into files of that level.

    With the number of the first file one is written for each level, and others stay.
    """
    assert columns.at is not None
    if not first:
        shutil.rmtree(folder / records.ANSWERS_FOLDER, ignore_errors=True)  # of a run that was stopped
    schema = schema.remove(schema.get_field_index(LEVEL))
    area = columns.columns[columns.at[0]]
    with ExitStack() as every:
        held: dict[str, tuple[ExitStack, _Write]] = {}
        parts, rows = Counter[str](), Counter[str]()

        def put(table: pa.Table) -> None:
            level = level_of(table)
            assert level is not None
            if level not in held or (not first and rows[level] + table.num_rows > PART_ROWS):
                if level in held:
                    held[level][0].close()
                path = folder / records.level_folder(level) / f"part-{first + parts[level]:05}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                own = every.enter_context(ExitStack())
                held[level] = own, own.enter_context(_parquet(path, schema, area))
                parts[level], rows[level] = parts[level] + 1, 0
            held[level][1](table.drop_columns([LEVEL]))
            rows[level] += table.num_rows

        yield put


def _csv(path: Path, schema: pa.Schema) -> AbstractContextManager[_Write]:
    plain = plain_schema(schema)
    return _behind(arrow_writer(path, plain), lambda writer, table: writer.write_table(table.cast(plain)))
